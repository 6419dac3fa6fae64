"""Finding the program that a command names, before any device time is spent."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpudebug.core.errors import LaunchError
from gpudebug.edges import opener

FAILED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
NEXT = {
    FAILED: "correct `cwd` or the path of the output, then run it again",
    NOT_EXECUTABLE: "make it executable with `chmod +x`, or start it through its interpreter",
    NOT_FOUND: "check the command's first word, and that the environment it is installed in is active",
}


def cannot_launch(message: str, status: int, *, next: str | None = None) -> LaunchError:
    return LaunchError(message, status=status, next=next or NEXT.get(status))


def find_command(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> str:
    """Absolute path of the program that would run as `argv` in `cwd` with `env`'s PATH.

    Raises LaunchError: 125 for a bad `cwd` or an empty command, 127 for not found, 126 for a folder, a file
    without permission to execute, or words that no program can receive.
    """
    if not argv or not argv[0]:
        raise cannot_launch("the command is empty", FAILED, next="write the command after `--`")
    for word in (*argv, *env.keys(), *env.values()):
        if "\0" in word:
            raise cannot_launch(
                f"{argv[0]}: an argument or variable has a NUL byte", NOT_EXECUTABLE, next="remove it"
            )
    folder = Path(cwd).absolute()
    if not _is_folder(folder):
        raise cannot_launch(f"the working folder {cwd} does not exist or is not a folder", FAILED)
    blocked = None
    for candidate in _candidates(argv[0], folder, env):
        try:
            mode = candidate.stat().st_mode
        except PermissionError:
            blocked = blocked or candidate if "/" in argv[0] else blocked
            continue
        except OSError:
            continue
        if stat.S_ISREG(mode) and os.access(candidate, os.X_OK):
            _check_interpreter(candidate, argv[0], folder)
            return str(candidate)
        blocked = blocked or candidate
    if blocked is None:
        raise cannot_launch(f"{argv[0]}: command not found", NOT_FOUND)
    if _is_folder(blocked):
        raise cannot_launch(f"{argv[0]}: is a folder", NOT_EXECUTABLE, next="name the program inside it")
    raise cannot_launch(f"{argv[0]}: {blocked} is not executable", NOT_EXECUTABLE)


def _is_folder(path: Path) -> bool:
    """False also where we may not look."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_missing(path: Path) -> bool:
    """Known not to be there; where we may not look, the launch itself will tell."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _candidates(name: str, folder: Path, env: Mapping[str, str]) -> Iterator[Path]:
    if "/" in name:
        yield folder / name
        return
    for entry in env.get("PATH", os.defpath).split(os.pathsep):
        # An empty entry is the working folder; a folder of that name on PATH is no program.
        candidate = folder / entry / name
        if not _is_folder(candidate):
            yield candidate


def _check_interpreter(program: Path, name: str, folder: Path) -> None:
    """A script whose first line names a program that is not there fails only at exec; say so now."""
    try:
        with opener.opened(program, follow=True) as file:
            first = file.readline(256)
    except OSError:
        return  # executable but not readable: not a script that we could judge
    words = first[2:].split() if first.startswith(b"#!") else []
    if words and _is_missing(folder / os.fsdecode(words[0])):
        interpreter = words[0].decode("utf-8", "backslashreplace")
        raise cannot_launch(
            f"{name}: its first line names the interpreter {interpreter}, which does not exist",
            NOT_FOUND,
            next="install the interpreter or correct the script's first line",
        )
