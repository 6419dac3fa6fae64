"""The importable packages of a checkout, and where a command starts to look for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from gpudebug.core.command import command_line

# Deeper ones are parts of other projects: vendored code, test data.
_DEEPEST = 3
_MARK = "__init__.py"


def top_packages(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Name -> folders of the packages that are not in another one, from the paths of a checkout's files."""
    marked = {str(PurePosixPath(path).parent) for path in paths if PurePosixPath(path).name == _MARK}
    found: dict[str, list[str]] = {}
    for folder in sorted(marked):
        path = PurePosixPath(folder)
        if path.name.isidentifier() and len(path.parts) <= _DEEPEST and str(path.parent) not in marked:
            found.setdefault(path.name, []).append(folder)
    return {name: tuple(folders) for name, folders in found.items()}


def first_folder(argv: Sequence[str], cwd: str, executable: str) -> str:
    """Where Python searches first: the folder of the script, for `-m` the working one, else the program's."""
    start = command_line.program_start(argv)
    program = argv[start - 1] if start else ""
    if program.endswith(".py"):
        return str(PurePosixPath(cwd, program).parent)
    if start > 1 and argv[start - 2] in ("-m", "--module"):
        return cwd
    return str(PurePosixPath(executable).parent)
