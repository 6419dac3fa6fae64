"""Bad input at the real command line: one clear line, the documented status, nothing lost, nothing run."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.campaigns import (
    PROGRESS,
    Campaign,
    Done,
    contents,
    git,
    gpudebug,
    make_campaign,
)

ENTRY = """\
## Hypotheses

### Hypothesis 1: The loader waits
- **Description**: Because.
- **Test Method**: Try.
- **Intervention**: --set --lr=0.2
- **Status**: UNTESTED
"""
PROPOSE = ("propose", "--title", "A cause", "--set", "--lr=0.3")
CAMPAIGN_COMMANDS = (("status",), ("next",), PROPOSE, ("show", "1"), ("baseline", "workload"))
BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\ngoal: *c\n"


def own_files(folder: Path) -> dict[str, tuple[int, str]]:
    """What belongs to the user: everything but the lock files that gpudebug keeps in runs/."""
    return {
        name: what
        for name, what in contents(folder).items()
        if name != "runs" and not re.fullmatch(r"runs/\.([0-9a-f]+\.lock|gpudebug(/claim(\.holder)?)?)", name)
    }


def refused_in_words(done: Done, status: int, says: tuple[str, ...]) -> None:
    """One line on standard error: what, where, and what to do next."""
    done.expect(status)
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("gpudebug: ")
    assert "; next: " in line
    assert "Traceback" not in line
    for text in says:
        assert text in line


def refused_in_json(done: Done, status: int, says: tuple[str, ...]) -> None:
    """One JSON document on standard output, and nothing else anywhere."""
    done.expect(status)
    assert done.err == ""
    assert len(done.out.splitlines()) == 1
    error = done.json["error"]
    assert set(error) == {"code", "message", "file", "line", "next"}
    assert error["message"]
    assert error["next"]
    whole = f"{error['file']}:{error['line']}: {error['message']}; {error['next']}"
    for text in says:
        assert text in whole


def refused(folder: Path, words: tuple[str, ...], status: int, says: tuple[str, ...]) -> None:
    """The command refuses in both forms, and the repository stays as it was."""
    before = own_files(folder)
    refused_in_words(gpudebug(folder, *words), status, says)
    at = words.index("--") if "--" in words else len(words)
    refused_in_json(gpudebug(folder, *words[:at], "--json", *words[at:]), status, says)
    assert own_files(folder) == before


@dataclass(frozen=True)
class Bad:
    """One way to damage a good campaign, what is refused then, and the words that the line must hold."""

    damage: Callable[[Campaign], object]
    says: tuple[str, ...]
    in_words: tuple[str, ...] = ("next",)
    in_json: tuple[str, ...] = ("status",)
    status: int = 1

    def check(self, campaign: Campaign, *, pinned: bool = False) -> None:
        """`pinned`: a person has seen these settings; else the first `next` says what it pins as well."""
        self.damage(campaign)
        if pinned:
            campaign.pin()
        before = own_files(campaign.folder)
        refused_in_words(campaign.run(*self.in_words), self.status, self.says)
        refused_in_json(campaign.run(*self.in_json, "--json"), self.status, self.says)
        assert own_files(campaign.folder) == before
        assert campaign.runs() == []


def in_config(text: str) -> Callable[[Campaign], object]:
    return lambda c: c.config.write_bytes(c.config.read_bytes() + text.encode())


def instead(old: str, new: str) -> Callable[[Campaign], object]:
    def change(c: Campaign) -> None:
        text = c.config.read_text()
        assert old in text
        c.config.write_text(text.replace(old, new))

    return change


def config_is(data: bytes) -> Callable[[Campaign], object]:
    return lambda c: c.config.write_bytes(data)


def command_is(command: str) -> Callable[[Campaign], object]:
    def change(c: Campaign) -> None:
        text = c.config.read_text()
        c.config.write_text(re.sub(r"  command: .*\n", lambda _: f"  command: {json.dumps(command)}\n", text))

    return change


def progress_is(text: str | bytes) -> Callable[[Campaign], object]:
    def change(c: Campaign) -> None:
        c.progress.write_bytes(text if isinstance(text, bytes) else text.encode())

    return change


def replaced_by(make: Callable[[Path], object], name: str) -> Callable[[Campaign], object]:
    def change(c: Campaign) -> None:
        path = c.folder / name
        path.unlink()
        make(path)

    return change


def linked_outside(path: Path) -> None:
    target = path.parents[2] / "outside.md"
    target.write_text("somebody else's\n")
    path.symlink_to(target)


def linked_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def no_repository(c: Campaign) -> None:
    shutil.rmtree(c.folder / ".git")


def empty_repository(c: Campaign) -> None:
    no_repository(c)
    git(c.folder, "init", "--quiet")


def broken_repository(c: Campaign) -> None:
    (c.folder / ".git" / "HEAD").write_text("nonsense\n")


def not_executable(c: Campaign) -> None:
    script = c.folder / "train.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o644)
    command_is("./train.sh")(c)


CONFIG = {
    "no cores": Bad(instead("device: cpu:1", "device: cpu:0"), ("device",)),
    "broken yaml": Bad(config_is(b"workload: [\n"), ("gpudebug.yaml:", "YAML")),
    "tab": Bad(config_is(b"workload:\n\tcommand: x\n"), ("gpudebug.yaml:2", "YAML")),
    "tag": Bad(in_config("guidelines: !!python/object/apply:os.system ['touch pwned']\n"), ("tags",)),
    "alias bomb": Bad(in_config(BOMB), ("anchors and aliases",)),
    "unknown key": Bad(in_config("devise: cpu\n"), ("unknown key devise", "device")),
    "unknown nested key": Bad(
        instead("max_runs", "max_run"), ("unknown key protocol.max_run", "protocol.max_runs")
    ),
    "campaign leads out": Bad(instead("campaign: test", "campaign: ../x"), ("gpudebug.yaml:1", "campaign")),
    "progress leads out": Bad(in_config("progress: ../x.md\n"), ("progress",)),
    "progress absolute": Bad(in_config("progress: /etc/passwd\n"), ("progress",)),
    "cwd leads out": Bad(instead("  timeout", "  cwd: ../..\n  timeout"), ("cwd",)),
    "a key twice": Bad(in_config("goal: again\n"), ("goal", "already")),
    "two documents": Bad(in_config("---\na: b\n"), ("second YAML document",)),
    "empty": Bad(config_is(b""), ("gpudebug.yaml",)),
    "a list": Bad(config_is(b"- a\n"), ("gpudebug.yaml",)),
    "invalid UTF-8": Bad(config_is(b"goal: \xff\n"), ("UTF-8",)),
    "NUL": Bad(config_is(b"goal: a\0b\n"), ("gpudebug.yaml",)),
    "huge": Bad(in_config("# " + "x" * (2 << 20) + "\n"), ("larger than 1 MiB",)),
    "deep": Bad(config_is(b"goal: " + b"[" * 5000 + b"\n"), ("gpudebug.yaml",)),
    "conflict markers": Bad(in_config("<<<<<<< HEAD\ngoal: a\n=======\n>>>>>>> b\n"), ("gpudebug.yaml:",)),
    "no command": Bad(config_is(b"campaign: test\n"), ("workload",)),
    "impossible value": Bad(instead("max_runs: 3", "max_runs: -3"), ("max_runs",)),
    "impossible thresholds": Bad(in_config("criteria: {success: 5, failure: 10}\n"), ("criteria",)),
    "unknown device": Bad(instead("device: cpu:1", "device: tpu"), ("device",)),
    "unbalanced quotes": Bad(command_is("python train.py 'a"), ("gpudebug.yaml:", "quote")),
    "a pipe without a shell": Bad(command_is("python train.py | tee log"), ("shell: true",)),
    "a FIFO": Bad(replaced_by(os.mkfifo, "gpudebug.yaml"), ("not a regular file",)),
    "a folder": Bad(replaced_by(Path.mkdir, "gpudebug.yaml"), ("not a regular file",)),
    "a link to itself": Bad(replaced_by(linked_to_itself, "gpudebug.yaml"), ("gpudebug.yaml",)),
}

PROGRESS_FILE = {
    "no number": Bad(progress_is(ENTRY.replace("Hypothesis 1:", "Hypothesis:")), (f"{PROGRESS}:3", "number")),
    "a number twice": Bad(progress_is(ENTRY + ENTRY), (f"{PROGRESS}:10", "line 3")),
    "unknown status": Bad(
        progress_is(ENTRY.replace("UNTESTED", "MAYBE")), (f"{PROGRESS}:7", "VALIDATED", "MAYBE")
    ),
    "conflict markers": Bad(
        progress_is(ENTRY + "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"), (f"{PROGRESS}:8", "merge")
    ),
    "invalid UTF-8": Bad(
        progress_is(ENTRY.encode().replace(b"Because", b"Be\xffcause")), (f"{PROGRESS}:4", "UTF-8")
    ),
    "UTF-16": Bad(progress_is(ENTRY.encode("utf-16")), ("UTF-16",)),
    "a FIFO": Bad(replaced_by(os.mkfifo, PROGRESS), ("not a regular file",)),
    "a folder": Bad(replaced_by(Path.mkdir, PROGRESS), ("not a regular file",)),
    "a link out of the repository": Bad(
        replaced_by(linked_outside, PROGRESS), ("leads out of the repository",)
    ),
    "a link to itself": Bad(replaced_by(linked_to_itself, PROGRESS), (PROGRESS,)),
    "a device": Bad(
        replaced_by(lambda p: p.symlink_to("/dev/zero"), PROGRESS), ("leads out of the repository",)
    ),
}

REPOSITORY = {
    "none": Bad(no_repository, ("git repository", "git init")),
    "empty": Bad(empty_repository, ("no commit", "git commit")),
    "broken": Bad(broken_repository, ("git",)),
}

RUNNING = (("next",), ("baseline", "workload"))

BEFORE_DEVICE_TIME = {
    "command not found": Bad(command_is("no-such-program --lr=1"), ("not found",), *RUNNING),
    "command not executable": Bad(not_executable, ("not executable", "chmod"), *RUNNING),
    "command a folder": Bad(command_is("./progress"), ("is a folder",), *RUNNING),
    "interpreter missing": Bad(
        lambda c: (
            (c.folder / "run").write_text("#!/no/such/python\n"),
            (c.folder / "run").chmod(0o755),
            command_is("./run")(c),
        ),
        ("/no/such/python",),
        *RUNNING,
    ),
    "no working folder": Bad(instead("  timeout", "  cwd: nowhere\n  timeout"), ("nowhere",), *RUNNING),
    "no recordings": Bad(
        instead("device: cpu:1", "device: replay:nowhere"), ("recorded runs", "nowhere"), *RUNNING
    ),
    "no such reference": Bad(
        lambda c: None, ("no reference",), ("baseline", "reference"), ("baseline", "reference"), 2
    ),
}


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return make_campaign(tmp_path / "repo", progress=ENTRY)


@pytest.mark.parametrize("bad", CONFIG.values(), ids=CONFIG)
def test_a_damaged_config(campaign: Campaign, bad: Bad) -> None:
    bad.check(campaign)


@pytest.mark.parametrize("bad", PROGRESS_FILE.values(), ids=PROGRESS_FILE)
def test_a_damaged_progress_file(campaign: Campaign, bad: Bad) -> None:
    bad.check(campaign)
    refused_in_words(campaign.run(*PROPOSE), bad.status, bad.says)


@pytest.mark.parametrize("bad", REPOSITORY.values(), ids=REPOSITORY)
def test_no_usable_repository(campaign: Campaign, bad: Bad) -> None:
    bad.check(campaign)


@pytest.mark.parametrize("bad", BEFORE_DEVICE_TIME.values(), ids=BEFORE_DEVICE_TIME)
def test_what_can_be_checked_is_checked_before_device_time(campaign: Campaign, bad: Bad) -> None:
    bad.check(campaign, pinned=True)


@pytest.mark.parametrize("words", CAMPAIGN_COMMANDS, ids=lambda w: w[0])
def test_no_config_leads_to_init(tmp_path: Path, words: tuple[str, ...]) -> None:
    refused(tmp_path, words, 1, ("no gpudebug.yaml", "gpudebug init"))
    assert list(tmp_path.iterdir()) == []
