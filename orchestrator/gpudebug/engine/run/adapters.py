"""The training frameworks that gpudebug knows, and what a command's own program says of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from gpudebug.core.catalogue import Framework, frameworks, read_framework
from gpudebug.core.catalogue import program as programs
from gpudebug.core.catalogue.frameworks import FoundFramework, StartedProgram
from gpudebug.core.catalogue.model import derived
from gpudebug.core.catalogue.program import Program
from gpudebug.core.command.synonyms import Synonyms
from gpudebug.core.config import Workload
from gpudebug.core.errors import StoreError
from gpudebug.edges import catalogue as files
from gpudebug.edges import store

_LARGEST = 1 << 20
_MOST_NEIGHBOURS = 20


@dataclass(frozen=True)
class Known:
    """Return a command's framework and its source's settings; None if unknown."""

    found: FoundFramework | None
    program: Program | None

    @property
    def framework(self) -> Framework | None:
        return self.found.framework if self.found else None

    def started(self, argv: Sequence[str]) -> StartedProgram:
        """Return what a diagnosis takes of the command."""
        name, kind = (self.framework.name, self.framework.kind) if self.framework else (None, None)
        names = (*self.program.uses, *self.program.options) if self.program else ()
        return StartedProgram(argv, name, kind, names)


@lru_cache(maxsize=1)
def known() -> tuple[Framework, ...]:
    """Return every framework, in the order of their names."""
    return derived(read_framework(file.text, file.shown) for file in files.shipped("frameworks"))


def of(root: Path, workload: Workload) -> Known:
    """The framework of a workload of the campaign at `root`, by its command and its program's imports."""
    return _known(workload.argv(), program_of(root, workload))


def of_command(argv: Sequence[str], folder: Path) -> Known:
    """Return the framework of a command that is started in `folder`, which belongs to no campaign."""
    return _known(argv, next((p for path in programs.scripts(argv) if (p := _own(path, folder))), None))


def _known(argv: Sequence[str], program: Program | None) -> Known:
    return Known(frameworks.find(argv, known(), program), program)


def _own(path: str, folder: Path) -> Program | None:
    """Return what a script says; its neighbours are read below its folder and `folder`."""
    with suppress(OSError, ValueError):
        return _program([path], folder, Path(os.path.commonpath([folder, (folder / path).resolve().parent])))
    return None


def program_of(root: Path, workload: Workload) -> Program | None:
    """Return what the script that the command names says, and the files beside it that it imports.

    Only files of the repository are read; None if the command names none.
    """
    return _program(programs.scripts(workload.argv()), root / workload.cwd, root)


def _program(scripts: Iterable[str], folder: Path, root: Path) -> Program | None:
    for path in scripts:
        source = _source(folder / path, root)
        if source is not None:
            found = (_source(folder / other, root) for other in programs.neighbours(source, path))
            beside = islice((text for text in found if text is not None), _MOST_NEIGHBOURS)
            return _looked(path, (source, *beside))
    return None


def synonyms_of(root: Path, workload: Workload) -> Synonyms:
    """Return the options of a workload's program that have several names."""
    known = of(root, workload)
    return frameworks.synonyms_of(known.found, known.program)


def locks_of(root: Path, workload: Workload, locked: Sequence[str], names: Sequence[str]) -> Synonyms:
    """The same, and groups of locked options with those of `names` that set the same thing elsewhere."""
    known = of(root, workload)
    return locks_in(workload.argv(), known, locked, names)


def locks_in(argv: Sequence[str], known: Known, locked: Sequence[str], names: Sequence[str]) -> Synonyms:
    """Return the same of a command whose framework and program are `known`."""
    return frameworks.locks_of(argv, known.found, known.program, locked, names)


@lru_cache(maxsize=4)
def _looked(path: str, sources: tuple[str, ...]) -> Program:
    return programs.look(path, sources)


def version_of(framework: Framework, packages: dict[str, str]) -> str | None:
    """Return the version of the framework's package among installed ones, as a run's record names them."""
    names = {name.lower().replace("-", "_"): version for name, version in packages.items()}
    wanted = (framework.package, *framework.packages)
    return next((names[n.replace("-", "_")] for n in wanted if n and n.replace("-", "_") in names), None)


def _source(path: Path, root: Path) -> str | None:
    try:
        target = store.resolve_inside(path, root)
        if not target.is_file() or target.stat().st_size > _LARGEST:
            return None
        return store.read_file(target).decode("utf-8", "replace")
    except StoreError:
        # What cannot be read says nothing; that it cannot be run is for others to say.
        return None
