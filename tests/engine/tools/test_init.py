"""`gpudebug init`: writes what a campaign needs, says what it saw, and never overwrites."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.support.campaigns import contents, git, gpudebug, make_repository

from gpudebug.core.config import load
from gpudebug.edges.devices import Resolved
from gpudebug.engine.tools.init import BY_RATE, ON_NODES, init

COMMAND = "python train.py --steps=200 --output_dir=outputs/run1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "My Training!", {"train.py": "print(1)\n", ".gitignore": "*.pt"})


def test_a_campaign_is_ready_to_go_on(folder: Path) -> None:
    answer = gpudebug(folder, "init", "--command", COMMAND, "--json").expect(0).json
    assert answer["campaign"] == "my-training"
    assert all(Path(f).exists() for f in answer["files"])
    assert any("{run}" in note for note in answer["notes"])
    assert "{run}" in (folder / "gpudebug.yaml").read_text().partition("command: |")[2]
    assert (folder / ".gitignore").read_text() == "*.pt\nruns/\n"
    assert {"runs", "progress", "hypotheses"} <= {p.name for p in folder.iterdir() if p.is_dir()}
    status = gpudebug(folder, "status", "--json").expect(0).json
    assert status["next"]["action"] == "record_baseline"
    assert answer["next_command"] == "gpudebug next"


def test_a_second_init_changes_nothing(folder: Path) -> None:
    gpudebug(folder, "init", "--command", COMMAND).expect(0)
    before = contents(folder)
    done = gpudebug(folder, "init", "--command", "something else").expect(1)
    assert "is there already" in done.err
    assert contents(folder) == before


def test_a_progress_file_that_is_there_is_named_and_kept(folder: Path) -> None:
    path = folder / "outputs" / "progress.md"
    path.parent.mkdir()
    path.write_bytes("# Mine\r\n\r\n### Hypothesis 3: é\r\n- Status: untested\r\n".encode())
    before = path.read_bytes()
    words = ("--command", COMMAND, "--progress", "outputs/progress.md")
    gpudebug(folder, "init", *words).expect(0)
    assert path.read_bytes() == before
    assert gpudebug(folder, "status", "--json").json["hypotheses"][0]["number"] == 3


def test_a_rule_that_ignores_runs_already_is_enough(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo", {".gitignore": "/runs\n"})
    gpudebug(folder, "init", "--command", COMMAND).expect(0)
    assert (folder / ".gitignore").read_text() == "/runs\n"


def test_seed_like_commands_survive_word_for_word(folder: Path) -> None:
    command = 'python train.py --json=\'{"a": "b c", "d": [1]}\' \\\n  --name="it\'s" --empty= --glob=*.py'
    gpudebug(folder, "init", "--command", command, "--json").expect(0)
    assert command.replace("\n", "\n    ") in (folder / "gpudebug.yaml").read_text()


def test_defaults_are_printed_and_nothing_is_written(folder: Path) -> None:
    before = contents(folder)
    text = gpudebug(folder, "init", "--print-defaults").expect(0).out
    assert "max_runs: 8" in text
    assert contents(folder) == before
    (folder / "gpudebug.yaml").write_text(text)
    gpudebug(folder, "status").expect(0)


def test_a_command_behind_the_dashes_is_the_same_as_one_text(folder: Path) -> None:
    words = ("python", "train.py", "--lr", "1", "--json", '{"a": "b c"}', "--output_dir=out/{run}")
    gpudebug(folder, "init", "--campaign", "mine", "--", *words).expect(0)
    loaded = load((folder / "gpudebug.yaml").read_text(), "gpudebug.yaml")
    assert (loaded.workload.argv(), loaded.campaign) == (words, "mine")


REFUSED = {
    "no command": ((), 2),
    "a command in both ways": (("--command", COMMAND, "--", "python", "train.py"), 2),
    "a blank command": (("--command", " "), 2),
    "an open quote": (("--command", "python 'train.py"), 1),
    "a campaign that leads out": (("--command", COMMAND, "--campaign", "../x"), 1),
    "a progress file that leads out": (("--command", COMMAND, "--progress", "../x.md"), 1),
    "an unknown option": (("--comand", COMMAND), 2),
    "an open quote in the reference": (("--command", COMMAND, "--reference", "a 'b"), 1),
}


@pytest.mark.parametrize(("words", "status"), REFUSED.values(), ids=REFUSED)
def test_what_would_make_no_campaign_is_refused(folder: Path, words: tuple[str, ...], status: int) -> None:
    before = contents(folder)
    done = gpudebug(folder, "init", *words).expect(status)
    (line,) = done.err.splitlines()
    assert "; next: " in line
    assert contents(folder) == before


def test_outside_a_repository_it_says_how_to_make_one(tmp_path: Path) -> None:
    done = gpudebug(tmp_path, "init", "--command", COMMAND).expect(1)
    assert "git init" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["gpudebug.yaml", ".gitignore", "progress/my-training.md"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda p: p.symlink_to("/nowhere/at/all")])
def test_what_is_in_the_way_stays(folder: Path, name: str, make: object) -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    make(path)  # type: ignore[operator]
    kind = path.lstat().st_mode
    done = gpudebug(folder, "init", "--command", COMMAND)
    assert done.status in (0, 1)
    assert path.lstat().st_mode == kind
    if done.status:
        (line,) = done.err.splitlines()
        assert "; next: " in line
        assert name == "gpudebug.yaml" or not (folder / "gpudebug.yaml").exists()


def test_init_below_a_campaign_makes_one_of_its_own(folder: Path) -> None:
    gpudebug(folder, "init", "--command", COMMAND).expect(0)
    below = folder / "part"
    below.mkdir()
    gpudebug(below, "init", "--command", COMMAND).expect(0)
    assert gpudebug(below, "status", "--json").json["campaign"] == "part"


PARSER = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--{}')\np.parse_args()\n"


@pytest.mark.parametrize(
    ("option", "noted"),
    [
        ("batch_size", []),
        (
            "ims-per-batch",
            ["locked: the program has no --batch_size; --ims-per-batch is locked in its place"],
        ),
        ("batch_zise", ["locked: the program has no --batch_size; the nearest is --batch_zise"]),
        ("lr", ["locked: the program has no --batch_size"]),
    ],
)
def test_a_locked_flag_that_the_program_does_not_have_is_named(
    tmp_path: Path, option: str, noted: list[str]
) -> None:
    locked = "campaign: x\nworkload: {command: python train.py}\nlocked: [--batch_size]\n"
    folder = make_repository(tmp_path / "r", {"train.py": PARSER.format(option), "gpudebug.yaml": locked})
    notes = init(folder, command=None, agent=["agents"]).notes
    assert [note for note in notes if note.startswith("locked:")] == noted
    # Without an agent the campaign is left as it is, and doctor looks at it: both say so as well.
    line = gpudebug(folder, "init", "--command", "python train.py").expect(1).err
    assert ("; ".join(["is left as it is", *noted]) + "; next: ") in line
    checks = [c for c in gpudebug(folder, "doctor", "--json").json["checks"] if c["name"] == "locked flags"]
    assert [f"locked: {c['found']}" for c in checks] == noted
    assert {c["result"] for c in checks} <= {"warning"}


def test_where_nothing_is_known_of_the_program_no_lock_is_doubted(tmp_path: Path) -> None:
    locked = "campaign: x\nworkload: {command: my-train --lr=1}\nlocked: [--batch_size]\n"
    folder = make_repository(tmp_path / "r", {"gpudebug.yaml": locked})
    assert not [n for n in init(folder, command=None, agent=["agents"]).notes if n.startswith("locked:")]


def test_a_repository_without_a_commit_is_refused_at_once(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    failed = gpudebug(tmp_path, "init", "--command", COMMAND).expect(1)
    assert "has no commit yet; next: git add -A && git commit" in failed.err
    assert not (tmp_path / "gpudebug.yaml").exists()


@pytest.mark.parametrize(
    ("kind", "cluster", "metric"),
    [("cpu", None, "steps_per_s"), ("cpu", "/usr/bin/sbatch", "gpu_util"), ("nvml", None, "gpu_util")],
)
def test_without_a_gpu_the_metric_is_one_that_decides(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, cluster: str | None, metric: str
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: cluster)
    monkeypatch.setattr("gpudebug.edges.devices.resolve", lambda *_: Resolved({"kind": kind}, ()))
    notes = init(folder, command=COMMAND).notes
    assert f"metric: {metric}\n" in (folder / "gpudebug.yaml").read_text()
    said = {("cpu", None): [BY_RATE], ("cpu", "/usr/bin/sbatch"): [ON_NODES]}
    assert [note for note in notes if "no GPU here" in note] == said.get((kind, cluster), [])


def test_the_settings_that_are_advised_for_nodes_without_a_gpu_are_accepted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/sbatch")
    monkeypatch.setattr("gpudebug.edges.devices.resolve", lambda *_: Resolved({"kind": "cpu"}, ()))
    init(folder, command=COMMAND)
    text = (folder / "gpudebug.yaml").read_text()
    for setting in ON_NODES.partition("set ")[2].split(", "):
        text = re.sub(rf"{setting.partition(' ')[0]} \S+", setting, text, count=1)
    assert load(text, "gpudebug.yaml").metric == "steps_per_s"
