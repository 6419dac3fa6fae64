"""Figures of learning that a run wrote into files, kept small in its run folder to be read again."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpudebug.core.catalogue import frameworks
from gpudebug.core.errors import StoreError
from gpudebug.core.evidence.learning import chosen, restarts
from gpudebug.core.inside.kept_files import FileState
from gpudebug.core.records import LearningSeries
from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.trainlog.logger_files import WrittenScalars, read_events, read_wandb
from gpudebug.core.trainlog.written_tables import head_of_csv, of_last_run, read_csv, read_jsonl
from gpudebug.edges import store
from gpudebug.edges.walk import files_below
from gpudebug.engine.run import adapters

FILE = "learning.jsonl"
LARGEST = 8 << 20
"""Of a larger file the beginning is read."""
_LARGEST_KEPT = 1 << 20
MOST_FILES = 8
MOST_SERIES = 12
MOST_DOUBTFUL = 3
_MOST_FOLDERS = 300
_DEEPEST = 5
# Where loggers write by default: beside the command.
_USUAL = ("runs", "wandb", "lightning_logs", "logs", "outputs", "tb_logs", "results", "checkpoints")


@dataclass(frozen=True)
class WrittenLearning:
    """The series of a run's files, and what was wrong with these."""

    series: tuple[LearningSeries, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _LoggerFormat:
    """How a file of a logger is read; `head` finds what a table of which runs write on begins with, None if
    each run has a file of its own."""

    read: Callable[[bytes], WrittenScalars]
    head: Callable[[bytes], bytes] | None = None


def standing(run_dir: Path, argv: Sequence[str], cwd: Path) -> dict[Path, FileState]:
    """Return the files of loggers that are there before a run is launched: those of earlier ones."""
    found = {}
    for folder in _folders(run_dir, argv, cwd).every:
        for path, _ in _files(folder, run_dir.parent):
            state = _state(path)
            if state is not None:
                found[path] = state
    return found


def collect(
    run_dir: Path,
    argv: Sequence[str],
    cwd: Path,
    redactor: Redactor,
    before: Mapping[Path, FileState],
    opened: Collection[str] = (),
) -> None:
    """Read what the run wrote in its own folder, in the output folder that `argv` names, or where loggers
    write by themselves, and keep its figures of learning.

    Only what is surely of this run: `before` is what had been `standing` there, `opened` are files that its
    processes were seen to hold open to write. One that may be another process's is named.
    """
    since = (run_dir / "run.json").stat().st_mtime
    folders = _folders(run_dir, argv, cwd)
    forms: dict[Path, _LoggerFormat] = {}

    def changed(folder: Path) -> list[Path]:
        found = {path: form for path, form in _files(folder, run_dir.parent) if _is_new(path, since, before)}
        forms.update(found)
        return list(found)

    surely = [path for folder in folders.own for path in changed(folder)]
    doubtful: list[Path] = []
    for folder in folders.named:
        found = changed(folder)
        sure = _of_named(folder, found, opened, run_dir.name)
        surely += sure
        doubtful += [path for path in found if path not in sure]
    found = [path for folder in folders.usual for path in changed(folder)]
    sure = _of_usual(found, opened, before)
    surely += sure
    doubtful += [path for path in found if path not in sure]
    surely = list(dict.fromkeys(surely))
    lines: list[str] = []
    for path in surely[:MOST_FILES]:
        lines += _lines(path, forms[path], redactor, before.get(path))
    lines = lines[: 2 * MOST_SERIES]
    left = [path for path in dict.fromkeys(doubtful) if path not in surely]
    lines += [_doubt(path, cwd, redactor) for path in left[:MOST_DOUBTFUL]]
    if lines:
        store.copy_into(run_dir / FILE, "".join(f"{line}\n" for line in lines).encode())


def _of_named(folder: Path, found: Sequence[Path], opened: Collection[str], run: str) -> list[Path]:
    """Return those in the output folder of the command that this run wrote: what it held open, else all if
    the folder has the run's name, or if files of one folder alone have changed."""
    seen = _held_open(found, opened)
    own = any(run in part for part in folder.parts) or len({path.parent for path in found}) == 1
    return seen or (list(found) if own else [])


def _of_usual(found: Sequence[Path], opened: Collection[str], before: Mapping[Path, FileState]) -> list[Path]:
    """Those where loggers write by themselves that this run wrote: what it held open, else those of the one
    folder that is new, as of a logger that opens its file for each line, if no other one has changed."""
    seen = _held_open(found, opened)
    parents = {path.parent for path in found}
    new = len(parents) == 1 and not parents & {path.parent for path in before}
    return seen or (list(found) if new else [])


def _held_open(found: Sequence[Path], opened: Collection[str]) -> list[Path]:
    return [path for path in found if os.path.realpath(path) in opened]


def _is_new(path: Path, since: float, before: Mapping[Path, FileState]) -> bool:
    """Tell whether the file was written since the launch; file systems may keep whole seconds only."""
    state = _state(path)
    return state is not None and state != before.get(path) and state.written_ns >= int(since) * 10**9


def _doubt(path: Path, cwd: Path, redactor: Redactor) -> str:
    shown = redactor.redact(str(path.relative_to(cwd) if path.is_relative_to(cwd) else path))
    why = "changed during the run and may be another process's: it is not used"
    return json.dumps({"note": f"{shown} {why}; write it below {{run_dir}}"})


def _lines(path: Path, form: _LoggerFormat, redactor: Redactor, before: FileState | None) -> list[str]:
    source = _source(path, redactor)
    try:
        data = store.read_head(path, LARGEST, follow=True)
        found, size = form.read(data), len(data)
        if before is not None and form.head is not None and _goes_on(path, before):
            added = store.read_head(path, LARGEST, before.size, follow=True)
            found, size = of_last_run(data[: before.size], added, form.read, form.head(data)), len(added)
    except StoreError as e:
        return [json.dumps({"note": f"{source} {e.message}"})]
    lines = [one.model_dump_json() for one in chosen(found, source)[:MOST_SERIES]]
    note = f"has more than {LARGEST >> 20} MB" if size >= LARGEST else found.note
    noted = [f"{source} {note}"] if note is not None and found.values else []
    again = restarts(found, source)
    return [*lines, *(json.dumps({"note": one}) for one in (*noted, *([again] if again else [])))]


def _goes_on(path: Path, before: FileState) -> bool:
    """Tell whether a line of the file ends where the file had ended before the run, and more follow."""
    behind = store.read_head(path, 2, before.size - 1, follow=True)
    return len(behind) == 2 and behind[:1] == b"\n"


def _source(path: Path, redactor: Redactor) -> str:
    """Return the same for the same file of every run: event files have times and machines in their names."""
    if "tfevents" in path.name:
        return "TensorBoard"
    return "W&B" if path.suffix == ".wandb" else redactor.redact(path.name)


class _Folders(NamedTuple):
    """Where a run's loggers may write: its own folder, the one that its command names, the usual ones."""

    own: tuple[Path, ...]
    named: tuple[Path, ...]
    usual: tuple[Path, ...]

    @property
    def every(self) -> tuple[Path, ...]:
        return (*self.own, *self.named, *self.usual)


def _folders(run_dir: Path, argv: Sequence[str], cwd: Path) -> _Folders:
    option = frameworks.output_flag(argv, adapters.known())
    own = () if (run_dir / "job").is_symlink() else (run_dir / "job",)
    named = (cwd / option.value,) if option and option.value else ()
    return _Folders(own, named, tuple(cwd / name for name in _USUAL))


def _files(folder: Path, runs: Path) -> Iterator[tuple[Path, _LoggerFormat]]:
    """Files of loggers with their formats; folders of runs are passed over."""

    def enter(path: Path) -> bool:
        return not (path.parent == runs and (path / "run.json").exists())

    for path in files_below(folder, deepest=_DEEPEST, most_folders=_MOST_FOLDERS, enter=enter):
        if (form := _format(path.name)) is not None:
            yield path, form


def _format(name: str) -> _LoggerFormat | None:
    """That of a file of this name; None if it is no logger's, or could not be printed in a line."""
    if not name.isprintable():
        return None
    if "tfevents" in name:
        return _LoggerFormat(read_events)
    if name.startswith("run-") and name.endswith(".wandb"):
        return _LoggerFormat(read_wandb)
    if name.endswith(".csv") and not name.endswith("monitor.csv"):
        return _LoggerFormat(lambda data: read_csv(data.decode("utf-8", "replace")), head_of_csv)
    if name.endswith(".jsonl"):
        return _LoggerFormat(lambda data: read_jsonl(data.decode("utf-8", "replace")), lambda data: b"")
    return None


def _state(path: Path) -> FileState | None:
    try:
        status = path.stat()
    except OSError:  # Another program has removed it since.
        return None
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        return None
    return FileState(status.st_size, status.st_mtime_ns)


def read_written(run_dir: Path) -> WrittenLearning:
    """What `collect` kept; nothing if there was nothing. Raises StoreError if it is not what that writes."""
    path = run_dir / FILE
    if not path.is_file():
        return WrittenLearning()
    series: list[LearningSeries] = []
    notes: list[str] = []
    for line in store.read_head(path, _LARGEST_KEPT).decode("utf-8", "replace").splitlines():
        try:
            record = json.loads(line)
            if isinstance(record, dict) and "note" in record:
                notes.append(str(record["note"]))
            else:
                series.append(LearningSeries.model_validate(record))
        except (ValueError, RecursionError):
            raise StoreError(
                "is not what gpudebug writes", file=str(path), next="move this run folder away"
            ) from None
    return WrittenLearning(tuple(series), tuple(notes))
