from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudebug.core.errors import LaunchError
from gpudebug.edges.launcher import find_command
from gpudebug.edges.launcher.command import cannot_launch


def script(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_finds_on_the_path_of_the_given_environment(tmp_path: Path) -> None:
    script(tmp_path / "first/train", mode=0o644)
    wanted = script(tmp_path / "second/train")
    (tmp_path / "zeroth/train").mkdir(parents=True)
    path = os.pathsep.join(str(tmp_path / name) for name in ("zeroth", "absent", "first", "second"))
    assert find_command(["train", "--x"], str(tmp_path), {"PATH": path}) == str(wanted)


@pytest.mark.parametrize("name", ["./train.sh", "sub/../train.sh", "ABSOLUTE"])
def test_a_name_with_a_slash_counts_from_the_working_folder(tmp_path: Path, name: str) -> None:
    wanted = script(tmp_path / "train.sh")
    (tmp_path / "sub").mkdir()
    found = find_command([name.replace("ABSOLUTE", str(wanted))], str(tmp_path), {})
    assert Path(found).resolve() == wanted.resolve()


def test_an_empty_entry_of_path_is_the_working_folder(tmp_path: Path) -> None:
    wanted = script(tmp_path / "train")
    assert find_command(["train"], str(tmp_path), {"PATH": "/nowhere:"}) == str(wanted)


def test_without_path_the_system_default_is_searched(tmp_path: Path) -> None:
    assert Path(find_command(["sh"], str(tmp_path), {})).name == "sh"


BAD = [
    (["no-such-program"], 127, "command not found"),
    (["./no-such-file"], 127, "command not found"),
    (["./folder"], 126, "is a folder"),
    (["./plain.txt"], 126, "is not executable"),
    (["plain.txt"], 126, "is not executable"),
    (["./orphan"], 127, "interpreter /no/such/python"),
    ([], 125, "empty"),
    ([""], 125, "empty"),
    (["sh", "a\0b"], 126, "NUL"),
]


@pytest.mark.parametrize(("argv", "status", "words"), BAD)
def test_what_cannot_run_is_said_before_the_launch(
    tmp_path: Path, argv: list[str], status: int, words: str
) -> None:
    (tmp_path / "folder").mkdir()
    script(tmp_path / "plain.txt", mode=0o644)
    script(tmp_path / "orphan", "#!/no/such/python -u\nprint(1)\n")
    with pytest.raises(LaunchError, match=words) as caught:
        find_command(argv, str(tmp_path), {"PATH": str(tmp_path) + ":/usr/bin:/bin"})
    assert caught.value.status == status
    assert caught.value.next


@pytest.mark.parametrize("folder", ["absent", "file"])
def test_a_bad_working_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LaunchError, match="working folder") as caught:
        find_command(["sh"], str(tmp_path / folder), {"PATH": "/bin"})
    assert caught.value.status == 125


def test_a_relative_interpreter_counts_from_the_working_folder(tmp_path: Path) -> None:
    script(tmp_path / "bin/python")
    wanted = script(tmp_path / "train", "#!bin/python\n")
    assert find_command(["./train"], str(tmp_path), {}) == str(wanted)


def test_every_status_has_advice() -> None:
    assert all(cannot_launch("m", status).next for status in (125, 126, 127))


def test_a_folder_on_the_path_that_may_not_be_entered_is_passed_over(tmp_path: Path) -> None:
    """As the superuser a name that is too long stands for it: the system refuses to look."""
    wanted = script(tmp_path / "open/train")
    closed = tmp_path / "closed"
    script(closed / "train")
    closed.chmod(0)
    entry = str(closed) if os.geteuid() else "x" * 300
    try:
        found = find_command(["train"], str(tmp_path), {"PATH": f"{entry}:{tmp_path}/open"})
        assert found == str(wanted)
        if os.geteuid():
            with pytest.raises(LaunchError, match="not executable"):
                find_command([f"{closed}/train"], str(tmp_path), {})
    finally:
        closed.chmod(0o755)
