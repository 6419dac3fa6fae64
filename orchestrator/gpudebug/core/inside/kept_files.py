"""Files that a run overwrites, or would: what its processes noted of them, and what moves them elsewhere."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpudebug.core.command import command_line
from gpudebug.core.lazy import regex

NOTE = regex(rb"([wards]) (\d{1,20}) (\d{1,20}) ([^\n]+)")
# Variables that every program has, and folders that no result lies in.
_COMMON = regex(
    r"HOME|PWD|OLDPWD|PATH|T(E?MP|MPDIR)|SHELL|_|VIRTUAL_ENV|CONDA_\w+|XDG_\w+|PYTHON\w*|GPUDEBUG_\w+|SSH_\w+"
    r"|\w*CACHE\w*|HF_HOME|TORCH_HOME|MPLCONFIGDIR|LD_\w+|CUDA_\w+|SLURM\w*"
)
_CACHE = regex(r"\w*CACHE\w*|HF_HOME|TORCH_HOME|MPLCONFIGDIR")
_SYSTEM = ("/usr", "/bin", "/lib", "/etc", "/opt", "/proc", "/sys", "/dev", "/run")
_SHARED = ("/", "/tmp", "/var/tmp")
# What people edit while a run goes on, and what programs add to.
_WRITTEN_BY_HAND = (".py", ".md", ".sh", ".ipynb", ".toml", ".cfg", ".yaml", ".yml")
_ADDED_TO = (".log", ".txt", ".out", ".err", ".csv", ".tsv", ".jsonl")


class FileState(NamedTuple):
    """A file at one moment: its bytes, when it was written in nanoseconds, which one it is (0: unknown)."""

    size: int
    written_ns: int
    inode: int = 0

    def line(self, path: str) -> str:
        """Return what the record of earlier runs says of a file in this state, as the guard writes it."""
        return f"{self.size} {self.written_ns} {path}"


class NamedPlace(NamedTuple):
    """A setting of a command that names a file or folder: `--out`, "" of a word alone, or a variable; its
    value, and the path."""

    setting: str
    value: str
    path: str

    @property
    def is_variable(self) -> bool:
        return self.value == self.path and self.setting.isidentifier()


@dataclass
class KeptNotes:
    """What the processes of a run noted: files that they wrote, and how others were before they let them be
    written to; `moved` are folders that got another name."""

    wrote: set[str] = field(default_factory=set)
    added: set[str] = field(default_factory=set)
    opened: dict[str, FileState] = field(default_factory=dict)
    moved: list[tuple[str, str]] = field(default_factory=list)

    def written(self) -> list[str]:
        """Return the files that the run wrote, by the names that they have at its end."""
        paths = set(self.wrote)
        for old, new in self.moved:
            paths |= {new + path[len(old) :] for path in paths if path.startswith(old + "/")}
        return sorted(paths)


def read_notes(data: bytes) -> KeptNotes:
    """Parse the notes of a run's processes; what is none of them is passed over."""
    notes = KeptNotes()
    for line in data.splitlines():
        found = NOTE.fullmatch(line)
        if found is None:
            continue
        kind, path = found[1], found[4].decode("utf-8", "surrogateescape")
        if kind == b"w":
            notes.wrote.add(path)
        elif kind == b"a":
            notes.added.add(path)
        elif kind == b"r":
            notes.opened.setdefault(path, FileState(int(found[2]), int(found[3])))
        elif kind == b"d":
            old, _, new = path.partition("\t")
            notes.moved.append((old, new))
    return notes


def stopped_at(data: bytes) -> str | None:
    """Return the file before which a run was stopped; None if its note could not be written whole."""
    found = NOTE.match(data)
    return found[4].decode("utf-8", "surrogateescape") if found else None


def named_places(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> tuple[NamedPlace, ...]:
    """Return the settings of a command that may name where it writes."""
    return tuple(_of_words(argv, cwd)) + tuple(_of_variables(env, cwd))


def _of_words(argv: Sequence[str], cwd: str) -> Iterator[NamedPlace]:
    found = command_line.options(argv)
    for option in found:
        if option.value and not option.value.startswith("-"):
            yield NamedPlace(option.name, option.value, _path(cwd, option.value))
    taken = {place for option in found for place in range(option.start, option.stop)}
    for place, word in enumerate(argv[1:], 1):
        if place not in taken and not word.startswith("-") and not word.endswith(".py"):
            yield NamedPlace("", word, _path(cwd, word))


def _of_variables(env: Mapping[str, str], cwd: str) -> Iterator[NamedPlace]:
    for name, value in sorted(env.items()):
        if value.startswith("/") and ":" not in value and not _COMMON.fullmatch(name):
            path = posixpath.normpath(value)
            if not _within(cwd, path) and path not in _SHARED and not path.startswith(_SYSTEM):
                yield NamedPlace(name, value, path)


def caches(env: Mapping[str, str]) -> list[str]:
    """Return the folders that variables name as caches."""
    return [v for name, v in sorted(env.items()) if _CACHE.fullmatch(name) and v.startswith("/")]


def _path(cwd: str, value: str) -> str:
    return posixpath.normpath(posixpath.join(cwd, value))


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def deciding(path: str, places: Sequence[NamedPlace], cwd: str) -> NamedPlace | None:
    """Return the setting that names the file or the nearest folder above it; None if none does."""
    above = [place for place in places if _within(path, place.path) and not _within(cwd, place.path)]
    return max(above, key=lambda place: len(place.path), default=None)


def changed(
    before: Mapping[str, FileState], after: Mapping[str, FileState | None], notes: KeptNotes
) -> tuple[str, ...]:
    """Return the files of before that are not as they were, and that no process of the run noted it wrote:
    native code rewrote them, or another program. What has only grown as logs do is left out."""
    found = []
    for path, old in {**notes.opened, **before}.items():
        new = after.get(path)
        if path in notes.wrote or path in notes.added or path.endswith(_WRITTEN_BY_HAND):
            continue
        if new is None:
            found.append(path)
        elif new[:2] != old[:2] or (old.inode and new.inode != old.inode):
            name = path.lower()
            grew = new.size > old.size and (name.endswith(_ADDED_TO) or "tfevents" in name)
            if not grew:
                found.append(path)
    return tuple(sorted(found))


def advice(path: str, place: NamedPlace | None, output: str | None, *, campaign: bool) -> str:
    """Return what moves a file out of the way of a run; `output` is the framework's flag of its folder."""
    where = "in workload.command of gpudebug.yaml" if campaign else "in the command"
    fresh = f"give the run a folder of its own ({{}} {where})"
    if place is None and output is not None:
        first = fresh.format(f"{output}=…/{{run}}")
    elif place is None:
        first = "move it away, or let the program write elsewhere ({run} stands for the run's name)"
    elif place.is_variable:
        first = f"set {place.setting} to another folder"
    elif place.path == path:
        first = f"give {place.setting or place.value} another name {where}"
    else:
        new = f"{place.value.rstrip('/')}/{{run}}"
        first = fresh.format(f"{place.setting}={new}" if place.setting else f"{new} for {place.value}")
    return f"{first}, or allow it with --overwrite"
