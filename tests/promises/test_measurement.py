"""Only gpudebug measures: what a training does to the files of its run is named and counts for nothing."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, contents, copied, make_campaign
from tests.support.patches import write_patch

PROGRAM = Path(__file__).parents[1] / "support" / "tampering_train.py"
TRAIN = (sys.executable, "train.py")

ALTERED = {
    "three_times_as_busy": "samples.csv was altered during the run: ",
    "one_digit": "bytes that had been written to it were changed",
    "three_gigabytes": "samples.csv was altered during the run: it has 32212",
    "shorter": "samples.csv was altered during the run: ",
    "more_rows": "samples.csv was altered during the run: ",
    "another_file": "samples.csv was altered during the run: ",
    "a_link": "samples.csv was altered during the run: it was removed, or another thing was put in its place",
    "a_fifo": "it was removed, or another thing was put in its place",
    "a_folder": "it was removed, or another thing was put in its place",
    "another_record": "run.json was altered during the run: it has ",
    "a_folder_as_record": "run.json was altered during the run: it was removed, or another thing was put in",
    "the_past_of_the_log": "train.log was altered during the run: the ",
    "a_log_begun_anew": "train.log was altered during the run: it has 18 bytes, ",
    "a_log_that_is_a_link": "train.log was altered during the run: it was removed",
    "the_past_of_the_probe_record": "probe.jsonl was altered during the run: the ",
    "the_rows_of_a_sampler_that_it_killed": "samples.csv was changed by another program",
    "a_link_to_the_run_folder": "runs/0001-sample was altered during the run: the folder was moved",
    "a_folder_of_the_users": "runs/0001-sample was altered during the run: the folder was moved",
    "no_run_folder": "runs/0001-sample was altered during the run: the folder was moved or removed",
}
HARMLESS = (
    "nothing",
    "links_beside_its_own_folder",
    "a_link_to_its_own_folder",
    "a_change_that_is_none",
    "a_link_to_its_records",
    "an_output_folder_begun_anew",
    "an_output_folder_moved",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign with its baseline, recorded once."""
    campaign = make_campaign(
        tmp_path_factory.mktemp("measurement") / "repo",
        command=shlex.join([*TRAIN, "--seconds=7.5"]),
        files={"train.py": PROGRAM.read_bytes(), "loader.py": "workers = 1\n"},
        max_runs=2,
    )
    campaign.json("next")
    return campaign


@pytest.fixture
def plain(tmp_path: Path) -> Campaign:
    return make_campaign(tmp_path / "repo", files={"train.py": PROGRAM.read_bytes()})


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of the user's, outside of the repository."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "data.csv").write_text("elapsed,gpu_util\n0.2,99\n")
    (folder / "run.json").write_text("{}")
    return folder


def sampled(campaign: Campaign, victim: Path, attack: str) -> Any:
    words = ("sample", "--device=cpu:1", "--json", "--", *TRAIN, f"--attack={attack}")
    done = campaign.run(*words, env={"VICTIM": str(victim)})
    assert "Traceback" not in done.err
    return done.json


@pytest.mark.parametrize("attack", ALTERED)
def test_a_run_whose_files_are_altered_is_lost_and_says_why(
    plain: Campaign, victim: Path, attack: str
) -> None:
    before = contents(victim)
    answer = sampled(plain, victim, attack)
    assert answer["outcome"] == "SAMPLER_LOST"
    assert ALTERED[attack] in answer["why"]
    run = plain.folder / "runs" / "0001-sample"
    assert not run.is_symlink()
    assert ("`>&2`" in answer["why"]) is (attack == "a_log_begun_anew")
    record = json.loads((run / "run.json").read_text())
    assert (record["outcome"], record["reason"]) == ("SAMPLER_LOST", answer["why"])
    files = json.loads((run / "manifest.json").read_text())["files"]
    assert not [name for name in files if name.startswith("job/") or "csv." in name]
    for name in files:
        assert (run / name).stat().st_size < 1 << 20
    moved = [p for p in (plain.folder / "runs").glob(".0001-sample.*") if p.is_dir() and not p.is_symlink()]
    kept = contents(moved[0] if attack == "a_folder_of_the_users" else victim)
    assert {name: kept[name] for name in before} == before
    plain.json("status")
    if "run_folder" in attack or attack == "a_folder_of_the_users":
        # The next run finds nothing in its way.
        assert sampled(plain, victim, "nothing")["outcome"] == "COMPLETED"
        assert plain.runs() == ["0001-sample", "0002-sample"]


@pytest.mark.parametrize("attack", HARMLESS)
def test_what_else_a_training_leaves_in_its_run_folder_is_followed_nowhere(
    plain: Campaign, victim: Path, attack: str
) -> None:
    before = contents(victim)
    answer = sampled(plain, victim, attack)
    assert (answer["outcome"], answer["exit_status"]) == ("COMPLETED", 0)
    assert contents(victim) == before
    run = plain.folder / "runs" / "0001-sample"
    assert [p.name for p in run.iterdir() if p.is_symlink() or p.name == "change.patch"] == []
    record = json.loads((run / "run.json").read_text())
    for name in ("samples.csv", "train.log"):
        assert record["written"][name]["bytes"] == (run / name).stat().st_size


def test_without_a_campaign_the_users_files_stay_where_they_are(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nos.truncate('F.csv', 9)\n")
    here = Campaign(tmp_path)
    words = ("--device=cpu:1", "-o", "F.csv", "--json", "--", sys.executable, "train.py")
    assert here.run("sample", *words).json["error"]["code"] == "overwrite"
    answer = here.run("sample", "--overwrite", "--force", *words).json
    assert answer["outcome"] == "SAMPLER_LOST"
    assert "samples.csv was altered" in answer["why"]
    assert answer["window"] is None
    assert {"F.csv", "F.log"} <= {p.name for p in tmp_path.iterdir()}


def test_a_trial_that_makes_its_device_busier_on_paper_is_never_validated(
    made: Campaign, tmp_path: Path, victim: Path
) -> None:
    campaign = copied(made, tmp_path / "repo")
    campaign.propose("--set --attack=three_times_as_busy")
    answer = campaign.json("next", env={"VICTIM": str(victim), "SECONDS": "1.5"})
    assert answer["verdict"] == "INVALID"
    assert campaign.statuses() == ["INVALID"]
    assert "SAMPLER_LOST: samples.csv was altered during the run" in campaign.text
    assert campaign.json("verify")["problems"] == []


@pytest.mark.parametrize("attack", ["another_change", "no_change", "a_folder_as_change"])
def test_the_change_that_is_judged_is_the_one_that_was_applied(
    made: Campaign, tmp_path: Path, attack: str
) -> None:
    """Else a patch that prints steps which nobody made could pass for one that prints nothing."""
    campaign = copied(made, tmp_path / "repo")
    train = PROGRAM.read_text().replace('default="nothing"', f'default="{attack}"')
    patch = write_patch(campaign, "hypotheses/patches/x.patch", {"train.py": train})
    campaign.propose("--patch hypotheses/patches/x.patch")
    answer = campaign.json("next", env={"SECONDS": "1.5"})
    assert answer["verdict"] == "INVALID"
    assert campaign.statuses() == ["INVALID"]
    assert "SAMPLER_LOST: change.patch was altered during the run" in campaign.text
    trials = [name for name in campaign.runs() if name.endswith("-h1")]
    assert len(trials) == 2, answer
    for name in trials:
        run = campaign.folder / "runs" / name
        assert (run / "change.patch").read_text() == patch
        record = json.loads((run / "run.json").read_text())
        assert record["written"]["change.patch"]["bytes"] == len(patch)
    assert campaign.json("verify")["problems"] == []


def test_a_folder_in_the_place_of_its_record_does_not_stop_the_campaign(
    made: Campaign, tmp_path: Path
) -> None:
    campaign = copied(made, tmp_path / "repo")
    campaign.propose("--set --attack=a_folder_as_record")
    answer = campaign.json("next", env={"SECONDS": "1.5"})
    assert (answer["action"], answer["verdict"]) == ("tested", "INVALID")
    assert campaign.json("verify")["problems"] == []


def test_the_files_of_a_sealed_run_are_those_that_were_counted(made: Campaign, tmp_path: Path) -> None:
    campaign = copied(made, tmp_path / "repo")
    run = campaign.folder / "runs" / "0001-baseline-workload"
    record = json.loads((run / "run.json").read_text())
    assert campaign.json("verify")["ok"] is True
    # Even where the manifest was written anew to fit.
    (run / "samples.csv").write_bytes((run / "samples.csv").read_bytes().replace(b"0.2", b"0.3", 1))
    seal(run)
    problems = campaign.json("verify", status=1)["problems"]
    counted = [p for p in problems if p["field"] == "written.samples.csv"]
    assert counted
    assert record["written"]["samples.csv"]["sha256"][:16] in counted[0]["expected"]


def test_a_run_of_other_code_than_its_record_names_is_a_problem(made: Campaign, tmp_path: Path) -> None:
    campaign = copied(made, tmp_path / "repo")
    run = campaign.folder / "runs" / "0001-baseline-workload"
    record = json.loads((run / "run.json").read_text())
    assert record["checked_out"] == record["identity"]["tree"]
    (run / "run.json").write_text(json.dumps({**record, "checked_out": "0" * 16}))
    seal(run)
    fields = [p["field"] for p in campaign.json("verify", status=1)["problems"]]
    assert fields == ["checked_out"]


def test_a_record_of_an_earlier_version_knows_of_no_counts_and_is_no_problem(
    made: Campaign, tmp_path: Path
) -> None:
    campaign = copied(made, tmp_path / "repo")
    run = campaign.folder / "runs" / "0001-baseline-workload"
    record = json.loads((run / "run.json").read_text())
    del record["written"], record["checked_out"]
    (run / "run.json").write_text(json.dumps(record))
    seal(run)
    assert campaign.json("verify")["ok"] is True


def seal(run: Path) -> None:
    """Write the manifest anew, as somebody would who alters what was sealed."""
    import hashlib

    manifest = json.loads((run / "manifest.json").read_text())
    manifest["files"] = {n: hashlib.sha256((run / n).read_bytes()).hexdigest() for n in manifest["files"]}
    (run / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.slow
@pytest.mark.parametrize("module", ["json", "sitecustomize", "importlib"])
def test_a_module_of_a_patch_runs_in_its_trial_alone(
    made: Campaign, tmp_path: Path, victim: Path, module: str
) -> None:
    """In the run its environment names the run; outside of it nothing of the patch may be started."""
    campaign = copied(made, tmp_path / "repo")
    witness = victim / "outside"
    code = (
        "import os, subprocess\n"
        "if 'GPUDEBUG_RUN_DIR' not in os.environ:\n"
        f"    open({str(witness)!r}, 'w').close()\n"
        "    subprocess.Popen(['sleep', '300'], start_new_session=True, env={})\n"
    )
    text = write_patch(campaign, "hypotheses/patches/x.patch", {"loader.py": "workers = 2\n"})
    lines = code.splitlines()
    new = (
        f"diff --git a/{module}.py b/{module}.py\nnew file mode 100644\n--- /dev/null\n+++ b/{module}.py\n"
        f"@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)
    )
    (campaign.folder / "hypotheses/patches/x.patch").write_text(text + new)
    if module == "sitecustomize":
        words = ["propose", "--title", "x", "--method", "x", "--patch", "hypotheses/patches/x.patch"]
        refused = campaign.run(*words).expect(1)
        assert "is run by every Python that finds it" in refused.err
        assert not witness.exists()
        return
    campaign.propose("--patch hypotheses/patches/x.patch")
    done = campaign.run("next", "--json", env={"SECONDS": "1", "PYTHONPATH": str(campaign.folder)})
    assert "Traceback" not in done.err
    assert not witness.exists()
    assert any(name.endswith("-h1") for name in campaign.runs())


def test_looking_starts_nothing_of_the_repositorys(tmp_path: Path, victim: Path) -> None:
    witness = victim / "ran"
    python = f'#!/bin/sh\ntouch {shlex.quote(str(witness))}\nexec {sys.executable} "$@"\n'
    files = {"train.py": PROGRAM.read_bytes(), "python": python}
    campaign = make_campaign(tmp_path / "repo", command="./python train.py", files=files)
    (campaign.folder / "python").chmod(0o755)
    for words in (["doctor"], ["doctor", "--profiling"], ["status"], ["verify"], ["report"]):
        campaign.run(*words)
        assert not witness.exists(), words
    said = campaign.run("doctor", "--profiling").out
    assert "not started" in said
    assert os.path.relpath(campaign.folder / "python", campaign.folder) in said
