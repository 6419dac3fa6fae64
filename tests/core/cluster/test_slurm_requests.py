"""What can be known before a job is submitted."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpudebug.core.cluster.jobs import BatchJob
from gpudebug.core.cluster.slurm_requests import (
    NO_FOLDER,
    NO_PROGRAM,
    NO_SETUP,
    AskedOf,
    addresses,
    asked_of,
    clock,
    environment,
    for_srun,
    gpus_in,
    node_groups,
    option,
    problem,
    rendered,
    several_clusters,
)
from gpudebug.core.config import SlurmSettings

SINFO = """\
main*|up|infinite|1|64|gpu:a100:4(S:0-1)|10.0.0.1
main*|up|infinite|1|64|gpu:a100:4(S:0-1)|10.0.0.2
main*|up|infinite|1|32|(null)|10.0.0.3
short|up|1:00:00|4|16|gpu:2|localhost
old|down|infinite|1|16|gpu:8|n9
Last update: today
"""


def asked(**settings: object) -> str | None:
    found = problem(node_groups(SINFO), asked_of(SlurmSettings.model_validate(settings), {}))
    return None if found is None else f"{found.message}; {found.next}"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"gpus_per_node": "a100:4", "nodes": 2},
        {"gpus_per_node": 0, "nodes": 3},
        {"partition": "short", "time": "1h"},
        {"partition": "short", "time": "2h", "qos": "long"},
        {"partition": "short", "extra": ["--gres=gpu:h100:1"]},
        {"partition": "nowhere", "extra": ["-pshort"]},
        {"gpus_per_node": 8, "cpus_per_task": 128, "nodes": 9, "time": "300h"},
        {"partition": "main,short", "time": "30h"},
        {"cpus_per_task": 64},
        {"constraint": "anything&else"},
    ],
)
def test_what_the_cluster_can_give_is_no_problem(settings: dict[str, object]) -> None:
    assert asked(**settings) is None


@pytest.mark.parametrize(
    ("settings", "what", "change"),
    [
        ({"partition": "gpu"}, "there is no partition gpu here: main, short, old", "partition: main"),
        ({"partition": "old"}, "partition old is not up", "another runner.slurm.partition"),
        ({"partition": "short", "time": "2h"}, "partition short allows 1h at most", "time: 1h"),
        (
            {"partition": "main", "gpus_per_node": 8},
            "no node of partition main has 8 GPUs: gpu:a100:4(S:0-1)",
            "gpus_per_node",
        ),
        (
            {"extra": ["--partition=main"], "gpus_per_node": "h100:1"},
            "no node of partition main has h100:1 GPUs",
            "gpus_per_node",
        ),
        ({"gpus_per_node": "h100:1"}, "no node of this cluster has h100:1 GPUs", "gpus_per_node"),
        ({"partition": "main", "nodes": 3}, "main has 2 such nodes, and 3 are asked for", "nodes: 2"),
        (
            {"partition": "main", "cpus_per_task": 65},
            "no node of partition main has 65 cores, 64 at most",
            "cpus_per_task: 64",
        ),
    ],
)
def test_what_it_can_never_give_is_one_line(settings: dict[str, object], what: str, change: str) -> None:
    found = asked(**settings)
    assert found is not None
    assert what in found
    assert change in found


@pytest.mark.parametrize("stars", [SINFO, SINFO.replace("*", "").replace("gpu:a100:4(S:0-1)", "(null)")])
def test_a_cluster_may_choose_the_partition_by_itself(stars: str) -> None:
    """A plugin of the site sends the job where it belongs: a default partition says nothing of it."""
    assert problem(node_groups(stars), AskedOf(gpus="2", nodes=3, time_s=1e6)) is None
    assert problem(node_groups(stars), AskedOf(gpus="9")) is not None


@pytest.mark.parametrize("text", ["", "command not allowed here\n", "a|b|c\n"])
def test_nothing_known_is_no_problem(text: str) -> None:
    assert problem(node_groups(text), AskedOf(("x",))) is None


@pytest.mark.parametrize(
    ("gres", "wanted", "has"),
    [
        ("gpu:2", "2", True),
        ("gpu:2", "a100:2", False),
        ("gpu:a100:2,gpu:v100:2", "4", True),
        ("gpu:a100:2,gpu:v100:2", "v100:2", True),
        ("gpu:a100:2(S:0,1)", "a100:3", False),
        ("nvme:4", "1", False),
        ("(null)", "0", True),
    ],
)
def test_the_gpus_of_a_node(gres: str, wanted: str, has: bool) -> None:
    assert gpus_in(gres, wanted) is has


def test_equal_nodes_of_a_partition_are_one_group() -> None:
    assert [(group.partition, group.nodes, group.cores) for group in node_groups(SINFO)] == [
        ("main", 2, 64),
        ("main", 1, 32),
        ("short", 4, 16),
        ("old", 1, 16),
    ]
    assert addresses(SINFO) == ("10.0.0.1", "10.0.0.2", "10.0.0.3", "localhost", "n9")


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("--partition=gpu",), "gpu"),
        (("-pgpu",), "gpu"),
        (("-pcpu", "--mem=1G", "--partition=gpu"), "gpu"),
        (("--partition",), ""),
        (("--partitions=x", "--part-p=y"), None),
        ((), None),
    ],
)
def test_the_last_option_of_a_name_counts(words: tuple[str, ...], value: str | None) -> None:
    assert option(words, "--partition", "-p") == value


def test_a_key_counts_before_a_variable_and_an_option_before_a_key() -> None:
    environ = {"SBATCH_PARTITION": "variable"}
    assert asked_of(SlurmSettings(), {}).partitions == ()
    assert asked_of(SlurmSettings(), environ).partitions == ("variable",)
    keyed = SlurmSettings(partition="a,b")
    assert asked_of(keyed, environ).partitions == ("a", "b")
    extra = SlurmSettings.model_validate({"partition": "a", "extra": ["-pc"]})
    assert asked_of(extra, environ).partitions == ("c",)


def test_what_another_option_says_is_not_checked() -> None:
    words = ["--gres=gpu:1", "-N4", "-c2", "--time=1:00:00"]
    settings = {"extra": words, "time": "2h", "cpus_per_task": 8}
    assert asked_of(SlurmSettings.model_validate(settings), {}) == AskedOf()
    assert asked_of(SlurmSettings.model_validate({"time": "2h"}), {"SBATCH_QOS": "long"}).time_s is None
    assert asked_of(SlurmSettings.model_validate({"time": "2h"}), {}).time_s == 7200


def test_sbatch_hears_no_default_for_what_the_script_gives() -> None:
    """In the environment a default counts before the script, in which `runner.slurm` is written."""
    dropped = ("EXPORT", "SIGNAL", "ARRAY_INX", "JOB_NAME", "ERROR", "INPUT", "OUTPUT", "OPEN_MODE", "WAIT")
    kept = {
        "SBATCH_RESERVATION": "r",
        "SBATCH_MEM_PER_GPU": "9G",
        "SBATCH_GRES": "nvme:1",
        "HOME": "/home",
        "SBATCH_PARTITION": "p",
        "SBATCH_ACCOUNT": "a",
        "SBATCH_EXCLUSIVE": "user",
        "SBATCH_TIMELIMIT": "9",
        "SLURM_CLUSTERS": "c",
    }
    all_of_them = {**kept, **{f"SBATCH_{name}": "x" for name in dropped}, "SLURM_EXPORT_ENV": "NONE"}
    assert environment(all_of_them, SlurmSettings()) == kept
    settings = {"partition": "gpu", "account": "b", "exclusive": True, "time": "1h"}
    rest = environment(kept, SlurmSettings.model_validate(settings))
    assert set(kept) - set(rest) == {
        f"SBATCH_{n}" for n in ("PARTITION", "ACCOUNT", "EXCLUSIVE", "TIMELIMIT")
    }


def test_sbatch_hears_nothing_of_an_allocation_around_it() -> None:
    environ = {"SLURM_JOB_ID": "7", "SLURM_MEM_PER_NODE": "1", "SLURMD_NODENAME": "n0", "SLURM_CONF": "/c"}
    assert environment(environ, SlurmSettings()) == {"SLURM_CONF": "/c"}


@pytest.mark.parametrize(
    ("extra", "environ", "found"),
    [
        ([], {}, None),
        ([], {"SLURM_CLUSTERS": "a"}, None),
        (["-Ma"], {"SLURM_CLUSTERS": "a"}, None),
        (["-Mb"], {"SLURM_CLUSTERS": "a"}, "b"),
        (["--clusters=b"], {}, "b"),
        ([], {"SBATCH_CLUSTERS": "b"}, "b"),
        ([], {"SLURM_CLUSTERS": "a,b"}, "a,b"),
        ([], {"SLURM_CLUSTERS": "all"}, "all"),
    ],
)
def test_a_job_is_asked_of_where_it_is_sent_to(
    extra: list[str], environ: dict[str, str], found: str | None
) -> None:
    assert several_clusters(SlurmSettings.model_validate({"extra": extra}), environ) == found


def test_options_that_srun_does_not_know_are_left_out() -> None:
    words = ("--mem=1G", "--requeue", "-a1-3", "--wait", "--wrap=x", "-N4", "--constraint=a", "-wn1")
    assert for_srun(words) == ("--mem=1G", "--constraint=a", "-wn1")


def job(folder: Path, *argv: str, log: str = "/log-{job}") -> BatchJob:
    return BatchJob("gpudebug-x", argv, str(folder), log, (("NAME", 'it\'s "me"'),))


def run(script: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SLURMD_NODENAME": "n0"}
    return subprocess.run(["bash"], input=script, env=env, capture_output=True, text=True, check=False)


def test_every_setting_is_an_option(tmp_path: Path) -> None:
    settings = SlurmSettings.model_validate(
        {
            "partition": "gpu",
            "account": "me",
            "qos": "high",
            "nodes": 2,
            "gpus_per_node": "a100:4",
            "cpus_per_task": 8,
            "time": "1-12:00",
            "constraint": "h100&nvlink",
            "exclusive": True,
            "extra": ["--mem=64G", "--comment=a b"],
        }
    )
    lines = rendered(job(tmp_path, "/bin/true"), settings).splitlines()
    assert [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")] == [
        "--job-name=gpudebug-x",
        "--partition=gpu",
        "--account=me",
        "--qos=high",
        "--nodes=2",
        "--ntasks-per-node=1",
        "--gpus-per-node=a100:4",
        "--cpus-per-task=8",
        "--time=1-12:00:00",
        '"--constraint=h100&nvlink"',
        "--exclusive",
        "--output=/log-%j",
        "--open-mode=append",
        "--signal=B:USR1@120",
        "--requeue",
        "--export=ALL",
        "--mem=64G",
        '"--comment=a b"',
    ]
    assert "export SRUN_CPUS_PER_TASK=8" in lines


def test_what_is_not_set_is_left_to_the_cluster(tmp_path: Path) -> None:
    text = rendered(job(tmp_path, "/bin/true"), SlurmSettings.model_validate({"gpus_per_node": 0}))
    for name in ("partition", "account", "qos", "gpus", "cpus", "time=", "constraint", "exclusive"):
        assert f"--{name}" not in text


def test_the_program_runs_in_its_folder_with_its_words(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "folder"'
    folder.mkdir()
    settings = SlurmSettings.model_validate({"setup": ["export A=1", "B=$((A + 1)); export B"]})
    done = run(rendered(job(folder, "/bin/sh", "-c", 'echo "$PWD|$NAME|$A$B|$0"', "x y"), settings))
    assert done.stdout == f'{folder}|it\'s "me"|12|x y\n'


@pytest.mark.parametrize(
    ("folder", "program", "setup", "status", "what"),
    [
        ("nowhere", "/bin/true", "", NO_FOLDER, "node n0 does not see the folder"),
        (".", "/nowhere/python", "", NO_PROGRAM, "node n0 does not see /nowhere/python"),
        (".", "/bin/true", "false", NO_SETUP, "node n0 failed in runner.slurm.setup"),
    ],
)
def test_a_node_that_cannot_begin_says_why(
    tmp_path: Path, folder: str, program: str, setup: str, status: int, what: str
) -> None:
    done = run(rendered(job(tmp_path / folder, program), SlurmSettings.model_validate({"setup": setup})))
    assert done.returncode == status
    assert what in done.stderr


def test_the_program_takes_the_place_of_the_shell(tmp_path: Path) -> None:
    """Else bash would keep Slurm's signal until the program has ended."""
    script = rendered(job(tmp_path, "/bin/sh", "-c", "echo $$"), SlurmSettings())
    process = subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, text=True)
    out, _ = process.communicate()
    assert int(out) == process.pid


@pytest.mark.parametrize("log", ["/a\nb", "/a\\b"])
def test_a_path_that_cannot_be_written_in_it_is_refused(tmp_path: Path, log: str) -> None:
    with pytest.raises(ValueError, match=r"backslash|control"):
        rendered(job(tmp_path, "/bin/true", log=log), SlurmSettings())


def test_a_percent_sign_in_a_path_is_no_pattern_of_slurm(tmp_path: Path) -> None:
    assert "--output=/50%%j/log-%j" in rendered(
        job(tmp_path, "/bin/true", log="/50%j/log-{job}"), SlurmSettings()
    )


@pytest.mark.parametrize(("seconds", "text"), [(60, "00:01:00"), (61, "00:02:00"), (90000, "1-01:00:00")])
def test_times_as_slurm_writes_them(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(("time", "seals"), [("1m", 10), ("6m", 60), ("12m", 120), ("4h", 120), (None, 120)])
def test_a_short_limit_is_not_spent_on_sealing(tmp_path: Path, time: str | None, seals: int) -> None:
    script = rendered(job(tmp_path, "/bin/true"), SlurmSettings.model_validate({"time": time}))
    assert f"--signal=B:USR1@{seals}\n" in script
