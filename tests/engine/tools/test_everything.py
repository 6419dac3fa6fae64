"""`clean --all` leaves a repository, and a user's folders, as they were before gpudebug came."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, git, make_repository
from tests.support.campaigns import gpudebug as run
from tests.support.looks import look

from gpudebug.core.agents.instructions import BEGIN, END, with_block, without_block
from gpudebug.edges.store import device_locks, drop_free

Env = dict[str, str | None]


@pytest.fixture
def home(tmp_path: Path) -> Env:
    """The variables of a user with folders of his own: cache, temporary files, locks of devices."""
    made = {"XDG_CACHE_HOME": "cache", "TMPDIR": "tmp", "GPUDEBUG_LOCK_DIR": "locks"}
    for name in made.values():
        (tmp_path / "home" / name).mkdir(parents=True)
    return {variable: str(tmp_path / "home" / name) for variable, name in made.items()}


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_repository_is_as_it_was_before_init(tmp_path: Path, home: Env) -> None:
    folder = make_repository(
        tmp_path / "repo", {"train.py": "print(1)\n", "CLAUDE.md": "# Mine\n\nRead it.\n"}
    )
    before = everything(folder)
    run(folder, "init", "--command", "python train.py", "--agent=claude", env=home).expect(0)
    run(folder, "sample", "-o", str(tmp_path / "seen.csv"), "--device=cpu:1", "--", "true", env=home)
    tmp = tmp_path / "home" / "tmp"
    (tmp / "gpudebug-defect-aaaa_111.log").write_text("")
    (tmp / "gpudebug-demo-abcdefgh").mkdir()
    (tmp / "gpudebug-demo-of-mine").mkdir()
    (tmp_path / "home" / "locks" / "mine.txt").write_text("mine")
    look(folder)
    assert git(folder, "status", "--porcelain")
    (folder / ".mcp.json").write_text(
        '{"mcpServers": {"gpudebug": {"command": "gpudebug", "args": ["mcp"]}}, "a": 1}'
    )
    assert run(folder, "clean", "--all", env=home).expect(2).err.count("\n") == 1
    run(folder, "clean", "--all", "--yes", env={**home, "GPUDEBUG_SESSION": "a"}).expect(2)
    # In a process of its own, as it reads TMPDIR once.
    done = run(folder, "clean", "--all", "--yes", "--json", env=home, close_fds=True).expect(0).json
    assert [(Path(one["path"]).name, one["why"][:30]) for one in done["kept"]] == [
        (".mcp.json", "holds settings of yours too; t")
    ]
    assert everything(folder) - before == {".mcp.json"}
    assert git(folder, "status", "--porcelain").split() == ["??", ".mcp.json"]
    assert everything(tmp_path / "home") == {
        *("cache", "locks", "locks/mine.txt", "tmp", "tmp/gpudebug-demo-of-mine")
    }


def test_a_campaign_goes_with_all_that_it_recorded(adopted: Campaign, home: Env) -> None:
    adopted.json("export", env=home)
    other = adopted.folder / ".git" / "gpudebug" / "folders" / "0123abcd"
    other.mkdir(parents=True)
    done = adopted.json("clean", "--all", "--yes", env=home)
    assert [(Path(one["path"]).name, one["why"]) for one in done["kept"]] == [
        ("gpudebug", "it holds 1 record of campaigns in other folders of this repository")
    ]
    assert git(adopted.folder, "for-each-ref", "refs/gpudebug") == ""
    assert not {*os.listdir(adopted.folder)} & {"gpudebug.yaml", "runs", "progress", "hypotheses"}
    assert [path.name for path in (adopted.folder / ".git/gpudebug/folders").iterdir()] == ["0123abcd"]


def test_a_lock_that_is_held_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUDEBUG_LOCK_DIR", str(tmp_path / "locks"))
    with device_locks(["GPU-1"], {"command": "gpudebug next"}):
        [(folder, drop)] = drop_free()
        assert folder == tmp_path / "locks" and drop() == "GPU-1 is in use"
        assert "GPU-1.lock" in os.listdir(folder)
    [(_, drop)] = drop_free()
    assert drop() is None and list(drop_free()) == []


@pytest.mark.parametrize("old", [b"# Mine\n", b"# Mine", b"# Mine\r\n\r\nMore.\r\n", b"# Mine\n\n"])
def test_the_part_of_an_agents_file_goes_and_the_rest_stays(old: bytes) -> None:
    added = with_block(old, "Use it.", "", "CLAUDE.md")
    rest = without_block(added, "", "CLAUDE.md")
    assert BEGIN.encode() not in rest and END.encode() not in rest
    assert rest.rstrip(b"\r\n") == old.rstrip(b"\r\n")
    assert without_block(with_block(None, "Use it.", "---\n", "F"), "---\n", "F") == b""
