"""Figures of learning that a run wrote into files, kept small in its run folder to be read again."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpudebug.core.catalogue import frameworks
from gpudebug.core.errors import StoreError
from gpudebug.core.evidence.written import chosen
from gpudebug.core.records import LearningSeries
from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.trainlog.event_files import WrittenScalars, read_events
from gpudebug.core.trainlog.wandb_files import read_wandb
from gpudebug.core.trainlog.written_tables import read_csv, read_jsonl
from gpudebug.edges import store
from gpudebug.edges.walk import files_below
from gpudebug.engine.run import adapters

FILE = "learning.jsonl"
LARGEST = 8 << 20
"""Of a larger file the beginning is read."""
_LARGEST_KEPT = 1 << 20
MOST_FILES = 8
MOST_SERIES = 12
_MOST_FOLDERS = 300
_DEEPEST = 5
# Where loggers write by default: beside the command.
_USUAL = ("runs", "wandb", "lightning_logs", "logs", "outputs", "tb_logs", "results", "checkpoints")


@dataclass(frozen=True)
class WrittenLearning:
    """The series of a run's files, and what was wrong with these."""

    series: tuple[LearningSeries, ...] = ()
    notes: tuple[str, ...] = ()


def collect(run_dir: Path, argv: Sequence[str], cwd: Path, redactor: Redactor) -> None:
    """Read what the run wrote in its own folder, in the output folder that `argv` names, or where loggers
    write by themselves, and keep its figures of learning. Files older than its run.json are of another run.
    """
    since = (run_dir / "run.json").stat().st_mtime
    option = frameworks.output_flag(argv, adapters.known())
    own = [] if (run_dir / "job").is_symlink() else [run_dir / "job"]
    named = [cwd / option.value] if option and option.value else []
    folders = [*own, *named, *(cwd / name for name in _USUAL)]
    lines: list[str] = []
    seen: set[Path] = set()
    for folder in folders:
        for path, read in _files(folder, since, run_dir.parent):
            if path not in seen and len(seen) < MOST_FILES:
                seen.add(path)
                lines += _lines(path, read, redactor)
    if lines:
        store.copy_into(run_dir / FILE, "".join(f"{line}\n" for line in lines[: 2 * MOST_SERIES]).encode())


def _lines(path: Path, read: Callable[[bytes], WrittenScalars], redactor: Redactor) -> list[str]:
    source = _source(path, redactor)
    try:
        data = store.read_head(path, LARGEST)
    except StoreError as e:
        return [json.dumps({"note": f"{source} {e.message}"})]
    found = read(data)
    lines = [one.model_dump_json() for one in chosen(found, source)[:MOST_SERIES]]
    note = f"has more than {LARGEST >> 20} MB" if len(data) >= LARGEST else found.note
    noted = [json.dumps({"note": f"{source} {note}"})] if note is not None and found.values else []
    return [*lines, *noted]


def _source(path: Path, redactor: Redactor) -> str:
    """The same for the same file of every run: event files have times and machines in their names."""
    if "tfevents" in path.name:
        return "TensorBoard"
    return "W&B" if path.suffix == ".wandb" else redactor.redact(path.name)


def _files(
    folder: Path, since: float, runs: Path
) -> Iterator[tuple[Path, Callable[[bytes], WrittenScalars]]]:
    """Files of loggers that were written since, with their readers; other runs' folders are passed over."""

    def enter(path: Path) -> bool:
        return not (path.parent == runs and (path / "run.json").exists())

    for path in files_below(folder, deepest=_DEEPEST, most_folders=_MOST_FOLDERS, enter=enter):
        if (reader := _reader(path.name)) is not None and _fresh(path, since):
            yield path, reader


def _reader(name: str) -> Callable[[bytes], WrittenScalars] | None:
    """What reads a file of this name; None if it is no logger's, or could not be printed in a line."""
    if not name.isprintable():
        return None
    if "tfevents" in name:
        return read_events
    if name.startswith("run-") and name.endswith(".wandb"):
        return read_wandb
    if name.endswith(".csv") and not name.endswith("monitor.csv"):
        return lambda data: read_csv(data.decode("utf-8", "replace"))
    if name.endswith(".jsonl"):
        return lambda data: read_jsonl(data.decode("utf-8", "replace"))
    return None


def _fresh(path: Path, since: float) -> bool:
    try:
        status = path.stat()
    except OSError:  # Another program has removed it since.
        return False
    # File systems may keep whole seconds only.
    return stat.S_ISREG(status.st_mode) and status.st_size > 0 and status.st_mtime >= int(since)


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
