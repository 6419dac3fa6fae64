"""`gpudebug init --agent`: an agent's instruction file says how to use gpudebug, and keeps what it said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, contents, gpudebug, make_repository

COMMAND = "python train.py --steps=200"
BEGIN, END = b"<!-- gpudebug:begin -->", b"<!-- gpudebug:end -->"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", {"train.py": "print(1)\n", "AGENTS.md": "# Mine\r\nno end"})


def test_a_new_campaign_comes_with_its_agents_instructions(folder: Path) -> None:
    words = ("--agent", "codex", "--agent", "claude-skill", "--agent", "aider")
    answer = gpudebug(folder, "init", "--command", COMMAND, *words, "--json").expect(0).json
    written = (folder / "AGENTS.md").read_bytes()
    assert written.startswith(b"# Mine\r\nno end\r\n")
    assert b"gpudebug next\r\n" in written and b"\n" not in written.replace(b"\r\n", b"")
    skill = folder / ".claude/skills/gpudebug/SKILL.md"
    assert skill.read_bytes().startswith(b"---\nname: gpudebug\ndescription: ")
    assert {str(skill), str(folder / "AGENTS.md"), str(folder / "gpudebug.yaml")} <= set(answer["files"])
    assert any("--read CONVENTIONS.md" in note for note in answer["notes"])


def test_the_instructions_say_what_an_agent_must_know(folder: Path) -> None:
    gpudebug(folder, "init", "--command", COMMAND, "--agent", "gemini").expect(0)
    text = (folder / "GEMINI.md").read_text()
    assert {f"| {status} |" for status in (0, 3, 4, 5, 6, 7)} <= {line[:5] for line in text.splitlines()}
    assert all(command in text for command in ("gpudebug next --detach", "gpudebug wait --for 9m"))
    assert len(text) < 2000


def test_alone_it_leaves_the_campaign_as_it_is(recorded: Campaign) -> None:
    before = contents(recorded.folder)
    answer = recorded.json("init", "--agent", "claude")
    made = ["CLAUDE.md", ".claude/settings.json", ".mcp.json"]
    assert answer["files"] == [str(recorded.folder / name) for name in made]
    after = contents(recorded.folder)
    assert all(after.pop(name) for name in made)
    assert {name: what for name, what in after.items() if name != ".claude"} == before
    assert recorded.json("init", "--agent", "claude")["files"] == []
    # The code is the same as when the baseline was recorded.
    assert recorded.json("status")["next"]["action"] == "propose"


def test_it_is_found_from_a_folder_below(recorded: Campaign) -> None:
    below = recorded.folder / "progress"
    gpudebug(below, "init", "--agent", "cursor").expect(0)
    assert (recorded.folder / ".cursor/rules/gpudebug.mdc").exists()


def test_one_file_under_two_names_is_written_once(folder: Path) -> None:
    os.symlink("AGENTS.md", folder / "CLAUDE.md")
    gpudebug(folder, "init", "--command", COMMAND, "--agent", "claude", "--agent", "codex").expect(0)
    assert (folder / "CLAUDE.md").is_symlink()
    assert (folder / "AGENTS.md").read_bytes().count(BEGIN) == 1


@pytest.mark.parametrize(
    ("prepare", "status", "said"),
    [
        (lambda f: (f / "AGENTS.md").write_bytes(BEGIN + b"\n"), 1, "AGENTS.md:1: 1 markers begin"),
        (lambda f: (f / "AGENTS.md").write_bytes((BEGIN + b"\n" + END + b"\n") * 2), 1, "one of each"),
        (lambda f: os.replace(f / "train.py", f.parent / "x") or relink(f, f.parent / "x"), 1, "leads out"),
        (lambda f: (f / "AGENTS.md").unlink() or os.mkfifo(f / "AGENTS.md"), 1, "not a regular file"),
        (lambda f: (f / "AGENTS.md").unlink() or (f / "AGENTS.md").mkdir(), 1, "not a regular file"),
    ],
    ids=["lone", "doubled", "outside", "fifo", "folder"],
)
def test_what_cannot_be_continued_is_refused_before_anything_is_written(
    folder: Path, prepare: object, status: int, said: str
) -> None:
    prepare(folder)  # type: ignore[operator]
    before = contents(folder)
    done = gpudebug(folder, "init", "--command", COMMAND, "--agent", "codex").expect(status)
    assert said in done.err and "next:" in done.err
    assert contents(folder) == before


def relink(folder: Path, target: Path) -> None:
    (folder / "AGENTS.md").unlink()
    os.symlink(target, folder / "AGENTS.md")


def test_an_unknown_agent_and_a_missing_campaign(folder: Path) -> None:
    before = contents(folder)
    done = gpudebug(folder, "init", "--command", COMMAND, "--agent", "nobody").expect(2)
    assert "codex, claude, claude-skill" in done.err
    assert "no training command" in gpudebug(folder, "init", "--agent", "codex").expect(2).err
    assert contents(folder) == before
