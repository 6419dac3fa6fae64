"""Recordings of devices in a file, ours or of another monitor: each run in it, as samples."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.columns import CSV
from gpudebug.core.recordings.formats import WANDB, binary_format, next_step
from gpudebug.core.recordings.monitors import recognised
from gpudebug.core.recordings.runs import MonitorRecording, RecordedRun, read_recording, read_wandb_run
from gpudebug.core.samples.table import SampleTable, looks_like_samples, read_samples
from gpudebug.core.words import counted
from gpudebug.edges import opener, store

HEAD = 64 << 10
LARGEST_WANDB = 256 << 20
SAMPLES = "a samples CSV, a recording of nvidia-smi, dcgmi or another monitor, or a .wandb file"


@dataclass(frozen=True)
class RunSamples:
    """The samples of one run, and `text`, as a samples.csv holds them; None if the file is one itself.

    `recorded` is where in the file it lies, None if the file holds just it.
    """

    samples: SampleTable
    text: str | None = None
    recorded: RecordedRun | None = None


@dataclass(frozen=True)
class RecordedFile:
    """The runs of a file; `source` names the monitor, None for our own sampler."""

    runs: tuple[RunSamples, ...]
    source: str | None = None
    notes: tuple[str, ...] = ()


def refuse_binary(path: Path, head: bytes, known: str) -> None:
    """GpudebugError if the file is binary, by the name of its format; `known` says what could be given."""
    kind = binary_format(head, path.name)
    if kind is not None:
        raise GpudebugError(f"is {kind}, not text", file=str(path), next=next_step(kind, known))


def recording(path: Path) -> RecordedFile:
    """Read a file of samples. Raises GpudebugError if it is none, or cannot be read as what it is."""
    head = store.read_head(path, HEAD, follow=True)
    if head.startswith(WANDB):
        data = store.read_file(path, LARGEST_WANDB, follow=True)
        return _recorded(read_wandb_run(data, str(path)), str(path))
    refuse_binary(path, head, SAMPLES)
    text = head.decode("utf-8", "replace")
    source = recognised(text)
    if source is None:
        return RecordedFile((RunSamples(_ours(path)),))
    with _text(path) as f:
        found = read_recording(f, str(path))
    # Rows that were always read as they stand are kept so.
    if source == CSV and len(found.runs) == 1 and not found.notes and looks_like_samples(text):
        samples = _ours(path)
        if not samples.unreadable and samples.rows:
            return RecordedFile((RunSamples(samples),))
    return _recorded(found, str(path))


def _ours(path: Path) -> SampleTable:
    with _text(path) as f:
        samples = read_samples(f, str(path))
    if samples.refused:
        raise GpudebugError(samples.refused, file=str(path), next="is this the right file?")
    return samples


def _text(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(opener.opened(path, follow=True), "utf-8", "replace", "\n")


def _recorded(found: MonitorRecording, file: str) -> RecordedFile:
    runs = []
    for run in found.runs:
        text = run.text()
        samples = read_samples(io.StringIO(text, newline="\n"), file)
        runs.append(RunSamples(samples, text, run if len(found.runs) > 1 else None))
    if runs:
        runs[0].samples.unreadable += found.unreadable
    return RecordedFile(tuple(runs), found.source, found.notes)


def one_run(found: RecordedFile, number: int | None, file: str) -> RunSamples:
    """Run `number` of a file, counted from 1. Raises GpudebugError if it has several and none is named."""
    count = len(found.runs)
    if number is None and count > 1:
        which = "; ".join(f"{i}: {span(run)}" for i, run in enumerate(found.runs, start=1))
        raise GpudebugError(f"holds {count} runs ({which})", file=file, next="say which one: --run N")
    if number is not None and not 1 <= number <= count:
        held = counted(count, "run")
        raise GpudebugError(f"has no run {number}: it holds {held}", file=file, next="say which one: --run N")
    return found.runs[(number or 1) - 1]


def span(run: RunSamples) -> str:
    """Return where in its file a run lies: `0.0 to 512.0 s`."""
    recorded = run.recorded
    return f"{recorded.start_s:.1f} to {recorded.end_s:.1f} s" if recorded else "all of it"
