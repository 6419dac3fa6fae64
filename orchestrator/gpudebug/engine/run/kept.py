"""So that no run rewrites what was there before unnoticed: what is guarded, and what became of it.

Python of the training stops by itself, see `training/probe/gpudebug_probe/keep.py`. What native code writes
is seen by its files afterwards.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside import kept_files
from gpudebug.core.inside.kept_files import FileState, KeptNotes, NamedPlace
from gpudebug.edges import launcher, store
from gpudebug.edges.store import earlier, jobfiles
from gpudebug.edges.walk import files_below
from gpudebug.engine.campaign.session import session_of
from gpudebug.engine.run import adapters
from gpudebug.engine.run.files import Files
from gpudebug.engine.run.job import Bench, PreparedRun

OVERWRITE = "GPUDEBUG_OVERWRITE"
"""The variable that `--overwrite` sets to 1; what is started from here has it too."""
# What is looked at before and after a run, for native code alone.
_MOST_FILES, _MOST_FOLDERS, _DEEPEST = 4000, 300, 5
_MOST_NOTES = 8 << 20
# What is left of a run ends within it, once gpudebug was killed.
_ENDING_NS = 5 * 10**9
_MOST_NAMED = 5
# As the guard in the training has it: caches, byte code and what is hidden are made again.
_MADE_AGAIN = ("cache", "caches", "__pycache__", "node_modules")
_BEGIN, _END = (".", "cache-", "cached_"), (".pyc", ".cache")


class WouldOverwrite(GpudebugError):
    """The program was stopped before it overwrote a file that was there before the run."""

    code = "overwrite"


@dataclass(frozen=True)
class GuardedFiles:
    """What a run may not overwrite: `places` are what its command names, `before` the files in them and in
    its working folder. `variable` is what its Python is told."""

    argv: tuple[str, ...]
    cwd: Path
    places: tuple[NamedPlace, ...]
    before: Mapping[str, FileState]
    variable: str


@dataclass(frozen=True)
class Overwriting:
    """What became of the files: the one before which the run was `stopped`, and those that native code
    `changed`."""

    stopped: WouldOverwrite | None = None
    changed: tuple[str, ...] = ()


def may_overwrite() -> bool:
    """Tell whether a person has allowed it; an agent's session may not."""
    return os.environ.get(OVERWRITE) == "1" and session_of() is None


def guard(bench: Bench, job: PreparedRun, files: Files, argv: tuple[str, ...]) -> GuardedFiles | None:
    """Look at what is there before a run of `argv`; None of one that runs already, or is only played back."""
    if job.attached is not None or bench.replays or files.reports is None:
        return None
    begun = time.time_ns()
    cwd = job.cwd.resolve()
    places = kept_files.named_places(argv, job.env, str(cwd))
    named = {os.path.realpath(place.path) for place in places}
    roots = [cwd, *(Path(path) for path in sorted(named) if os.path.isdir(path) and not _holds(path, cwd))]
    apart = [files.reports, *map(Path, kept_files.caches(job.env)), *_own_tree(job)]
    known = earlier.get_earlier()
    before = {
        path: state
        for path, state in _standing(roots, apart, bench.workspace.runs).items()
        if not known & {state.line(path), earlier.NATIVE + state.line(path)}
    }
    lines = [
        "allow" if may_overwrite() else "stop",
        str(begun),
        str(earlier.earlier_file() or os.devnull),
        *(f"+{root}" for root in roots),
        *(f"-{os.path.realpath(path)}" for path in apart),
    ]
    kept = "\n".join(line for line in lines if "\n" not in line)
    return GuardedFiles(argv, cwd, places, before, kept)


def _own_tree(job: PreparedRun) -> list[Path]:
    """Return the private worktree in which a change is tested: all that it holds can be made again."""
    trees = job.code.trees
    return [trees.tree] if trees is not None and trees.tree.resolve() != trees.checkout.resolve() else []


def _holds(folder: str, path: Path) -> bool:
    return path.is_relative_to(folder)


def _standing(roots: Iterable[Path], apart: Iterable[Path], runs: Path) -> dict[str, FileState]:
    """Return the files there that somebody would miss, the highest first, as far as is looked."""
    closed = {os.path.realpath(path) for path in apart}

    def enter(path: Path) -> bool:
        hidden = path.name.startswith(".") or path.name.lower() in _MADE_AGAIN
        ours = (path.parent == runs and runs.name == "runs") or os.path.exists(path / "run.json")
        return not (hidden or ours or str(path) in closed or os.path.exists(path / "pyvenv.cfg"))

    found: dict[str, FileState] = {}
    for root in roots:
        if str(root) not in closed:
            paths = files_below(root, deepest=_DEEPEST, most_folders=_MOST_FOLDERS, enter=enter)
            for path in islice(paths, _MOST_FILES):
                made_again = path.name.lower().startswith(_BEGIN) or path.name.lower().endswith(_END)
                if not made_again and (state := _state(str(path))) is not None:
                    found[str(path)] = state
    return found


def _state(path: str) -> FileState | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return FileState(status.st_size, status.st_mtime_ns, status.st_ino)


def is_stopped(files: Files) -> bool:
    """Tell whether a process of the run that goes on was stopped."""
    return files.records is not None and os.path.lexists(files.records / launcher.STOPPED)


def became(bench: Bench, guarded: GuardedFiles | None, files: Files) -> Overwriting:
    """Look at what a run that has ended did to the files, and remember what it wrote."""
    if guarded is None or files.reports is None or files.lost:
        return Overwriting()
    notes = kept_files.read_notes(b"".join(_notes(files.reports)))
    after = {path: _state(path) for path in {*guarded.before, *notes.opened}}
    changed = kept_files.changed(
        {path: state for path, state in guarded.before.items() if state.size}, after, notes
    )
    _remember(notes, after, changed)
    data = jobfiles.read_of(files.reports, launcher.STOPPED, _MOST_NOTES)
    stopped = None if data is None else _error(bench, guarded, files, kept_files.stopped_at(data))
    return Overwriting(stopped, changed)


def remember_cut_off(folder: store.RunFolder) -> None:
    """Remember what a run wrote beside which gpudebug was killed: what no one wrote after its last sign."""
    signs = [_state(str(path)) for path in (folder.samples, folder.log, *_listed(folder.records))]
    last = max((sign.written_ns for sign in signs if sign is not None), default=0) + _ENDING_NS
    notes = kept_files.read_notes(b"".join(_notes(folder.path)))
    found = {path: _state(path) for path in notes.written()}
    earlier.add_earlier(
        [state.line(path) for path, state in found.items() if state is not None and state.written_ns <= last]
    )


def _listed(folder: Path) -> Iterator[Path]:
    return files_below(folder, deepest=0, most_folders=1)


def _notes(folder: Path) -> Iterable[bytes]:
    stem, _, kind = launcher.KEPT_NOTES.rpartition(".")
    for name in jobfiles.names_in(folder, store.RECORDS):
        if name.startswith(stem) and name.endswith(kind):
            yield jobfiles.read_of(folder, name, _MOST_NOTES) or b""


def _remember(notes: KeptNotes, after: Mapping[str, FileState | None], changed: Iterable[str]) -> None:
    wrote = {path: _state(path) for path in notes.written()}
    lines = [state.line(path) for path, state in wrote.items() if state is not None]
    native = [earlier.NATIVE + state.line(path) for path in changed if (state := after[path]) is not None]
    earlier.add_earlier([*lines, *native])


def _error(bench: Bench, guarded: GuardedFiles, files: Files, path: str | None) -> WouldOverwrite:
    if path is None:
        return WouldOverwrite(
            "the program was stopped before it overwrote a file that was there before this run",
            file=str(files.log),
            next="free some disk space: its name could not be written down; or allow it with --overwrite",
        )
    if path in {os.path.realpath(own) for own in (files.samples, files.log, files.server_log)}:
        return WouldOverwrite(
            "gpudebug writes there, and the program was stopped before it overwrote it",
            file=path,
            next="name another file with -o, or in the program",
        )
    place = kept_files.deciding(path, guarded.places, str(guarded.cwd))
    framework = adapters.of_command(guarded.argv, guarded.cwd).framework if place is None else None
    output = f"--{framework.output[0].lstrip('-')}" if framework and framework.output else None
    # A Hydra app keeps there how it was started: its own override moves all that it writes.
    if any((folder / ".hydra" / "hydra.yaml").is_file() for folder in Path(path).parents):
        output = "hydra.run.dir"
    return WouldOverwrite(
        "was there before this run, and the program was stopped before it overwrote it",
        file=path,
        next=kept_files.advice(path, place, output, campaign=bench.campaign is not None),
    )


def said_of(changed: tuple[str, ...]) -> str:
    """Name loudly what was rewritten."""
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    return (
        f"rewritten while the run was under way: {', '.join(changed[:_MOST_NAMED])}{more}; not by the "
        "program's Python, so it could not be stopped before: its native code did, or another program"
    )
