"""A look at a command becomes the first run of its campaign's baseline, or stays a diagnosis."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.support.campaigns import Done, gpudebug, make_repository

from gpudebug.engine.campaign.load import load
from gpudebug.engine.trial.reuse import alike

PROGRAM = """\
import sys, time
for step in range(1, 151):
    time.sleep(0.05)
    print(f"step {step} loss {1 / step:.4f}", flush=True)
"""
LOOK = ("why", "--to-the-end", "--device=cpu:1", "--", "python", "train.py", "--lr=1 2", "--out={run_dir}/a")
CARRIED = "gpudebug-why-1 is the first run of the baseline: runs/0001-baseline-workload"
STAYS = "gpudebug-why-1 stays a diagnosis and is no run of the baseline: "


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_repository(tmp_path_factory.mktemp("look") / "repo", {"train.py": PROGRAM})
    gpudebug(folder, *LOOK).expect(0)
    return folder


@pytest.fixture
def folder(looked: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-a", str(looked), str(tmp_path / "repo")], check=True)
    return tmp_path / "repo"


def begun(folder: Path, *more: str, run: str = "gpudebug-why-1", **env: str) -> Done:
    return gpudebug(folder, "--json", "init", "--from", run, *more, env=env or None)


def last_note(done: Done) -> str:
    return str(done.expect(0).json["notes"][-1])


def test_it_is_a_sealed_run_of_the_baseline_that_next_begins_with(folder: Path) -> None:
    assert last_note(begun(folder)) == CARRIED
    loaded = load(folder)
    assert loaded.setup.config.workload.argv() == (*LOOK[4:],)
    assert loaded.setup.config.device == "cpu:1"
    found = dict(
        alike(
            loaded.setup,
            loaded.history.records,
            "baseline-workload",
            loaded.history.identities["workload"],
            0,
        )
    )
    assert [*found] == ["0001-baseline-workload"]
    for name in ("samples.csv", "train.log"):
        same = (folder / "gpudebug-why-1" / name).read_bytes()
        assert (folder / "runs" / "0001-baseline-workload" / name).read_bytes() == same
    assert gpudebug(folder, "--json", "verify").expect(0).json["ok"] is True


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("train.py", PROGRAM + "#\n", "tree differs from the campaign's"),
        ("gpudebug-why-1/samples.csv", "elapsed\n", "its files were altered after it was sealed"),
    ],
)
def test_of_other_code_or_altered_it_stays_a_diagnosis(folder: Path, file: str, text: str, why: str) -> None:
    (folder / file).write_text(text)
    assert last_note(begun(folder)) == STAYS + why
    assert not list((folder / "runs").glob("0*"))


def test_of_another_command_it_stays_a_diagnosis(folder: Path) -> None:
    note = last_note(begun(folder, "--command", "python train.py"))
    assert note == f"{STAYS}command differs from the campaign's"


def test_outside_of_git_a_look_is_no_baseline(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("151", "3"))
    gpudebug(tmp_path, *LOOK).expect(0)
    for words in (("init", "-q"), ("add", "train.py"), ("commit", "-qm", "Start")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)
    assert last_note(begun(tmp_path)) == f"{STAYS}its code was in no git repository with a commit when it ran"


def test_an_agents_session_begins_nothing(folder: Path) -> None:
    begun(folder, GPUDEBUG_SESSION="s1").expect(1)
    assert not (folder / "gpudebug.yaml").exists()


def test_what_is_no_run_is_one_line(folder: Path) -> None:
    error = begun(folder, run="train.py").expect(2).json["error"]
    assert error["message"] == "train.py is not a run folder"
    (folder / "gpudebug-why-1" / "manifest.json").unlink()
    assert begun(folder).expect(1).json["error"]["message"] == "the run was not finished"


def test_a_secret_that_was_not_recorded_is_asked_for(folder: Path) -> None:
    path = folder / "gpudebug-why-1" / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "argv": ["python", "train.py", "--token=[redacted]"]}))
    assert "has a secret" in begun(folder).expect(2).json["error"]["message"]


def test_a_log_of_few_losses_is_said_before_the_first_run(folder: Path) -> None:
    path = folder / "gpudebug-why-1" / "evidence.json"
    evidence = json.loads(path.read_text())
    few = {**evidence["loss"], "points": 2, "advice": "log more often"}
    path.write_text(json.dumps({**evidence, "loss": few, "learning": [], "outcome": "ENDED_BY_PLAN"}))
    *_, said, last = begun(folder).expect(0).json["notes"]
    assert said.startswith("learning is judged by 12 losses of a run, and gpudebug-why-1 shows 2: ")
    assert said.endswith("; log more often")
    assert last.startswith(STAYS)
