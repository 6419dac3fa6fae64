"""What a user asks of sbatch in other ways than by the keys of runner.slurm."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster.slurm_options import (
    AskedOf,
    asked_of,
    environment,
    for_srun,
    option,
    several_clusters,
)
from gpudebug.core.config import SlurmSettings


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
