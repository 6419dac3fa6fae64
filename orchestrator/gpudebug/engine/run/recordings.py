"""Recordings of devices in a file, ours or of another monitor: each run in it, as samples."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.formats import WANDB, encoding_of, text_of
from gpudebug.core.recordings.monitors import recognised
from gpudebug.core.recordings.runs import MonitorRecording, RecordedRun, read_recording
from gpudebug.core.recordings.stores import read_wandb_run
from gpudebug.core.samples.table import SampleTable, read_samples
from gpudebug.core.trainlog.logger_files import read_wandb_system
from gpudebug.core.words import counted
from gpudebug.edges import opener, store
from gpudebug.engine.run.readings import refuse_binary

if TYPE_CHECKING:
    from gpudebug.core.answers.analyze import WholeRecording

HEAD = 64 << 10
LARGEST_WANDB = 256 << 20
SAMPLES = "a samples CSV, a recording of nvidia-smi, dcgmi or another monitor, or a .wandb file"


@dataclass(frozen=True)
class RunSamples:
    """The samples of one run, and `text`, as a samples.csv holds them; None if the file is one itself.

    `recorded` is where in the file it lies, None if the file holds just it; `whole` what all its rows show.
    """

    samples: SampleTable
    text: str | None = None
    recorded: RecordedRun | None = None
    whole: WholeRecording | None = None


@dataclass(frozen=True)
class RecordedFile:
    """The runs of a file; `source` names the monitor, None for our own sampler. `timed` is false if nothing
    says when its rows were read, `whole` is of all runs together."""

    runs: tuple[RunSamples, ...]
    source: str | None = None
    notes: tuple[str, ...] = ()
    timed: bool = True
    whole: WholeRecording | None = None


def recording(path: Path) -> RecordedFile:
    """Read a file of samples. Raises GpudebugError if it is none, or cannot be read as what it is."""
    head = store.read_head(path, HEAD, follow=True)
    if head.startswith(WANDB):
        data = store.read_file(path, LARGEST_WANDB, follow=True)
        return of_store(read_wandb_run(read_wandb_system(data), str(path)), str(path))
    if recognised(text_of(head)) is None:
        refuse_binary(path, head, SAMPLES)
        return RecordedFile((RunSamples(_ours(path)),))
    with _text(path, encoding_of(head) or "utf-8") as f:
        return of_store(read_recording(f, str(path)), str(path))


def _ours(path: Path) -> SampleTable:
    with _text(path) as f:
        samples = read_samples(f, str(path))
    if samples.refused:
        raise GpudebugError(samples.refused, file=str(path), next="is this the right file?")
    return samples


def _text(path: Path, encoding: str = "utf-8") -> io.TextIOWrapper:
    return io.TextIOWrapper(opener.opened(path, follow=True), encoding, "replace", None)


def of_store(found: MonitorRecording, file: str) -> RecordedFile:
    """Return the runs of what was read, as samples."""
    runs = []
    for run in found.runs:
        text = run.text()
        samples = read_samples(io.StringIO(text, newline="\n"), file)
        runs.append(RunSamples(samples, text, run if len(found.runs) > 1 else None, run.whole))
    if runs:
        runs[0].samples.unreadable += found.unreadable
    return RecordedFile(tuple(runs), found.source, found.notes, found.timed, found.whole)


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
