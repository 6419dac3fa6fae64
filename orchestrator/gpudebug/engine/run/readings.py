"""The samples and the log of a run, read back from their files."""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, BinaryIO

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.formats import binary_format, encoding_of, next_step
from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.samples.table import SampleTable, looks_like_samples, read_samples
from gpudebug.core.trainlog.reader import LogReader, LogSummary
from gpudebug.edges import opener, store

if TYPE_CHECKING:
    from gpudebug.core.records import PlannedEnd

# A log is read whole up to twice this; of a longer one the middle is left out.
_LOG_PART = 32 << 20
_CHUNK = 1 << 16
_HEAD = 4096
_BEHIND = re.compile(rb"</html>\s*\S", re.IGNORECASE)
_PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype html|html)\b", re.IGNORECASE)


def read_run_samples(path: Path) -> SampleTable:
    """Return the samples of a run; none if the sampler never wrote."""
    file = opener.look(path, follow=True)
    if file is None:
        return SampleTable()
    with file:
        if os.fstat(file.fileno()).st_size == 0:
            return SampleTable()
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="\n")
        return read_samples(text, str(path))


def log_beside(path: Path) -> Path | None:
    """The log of the same run, as a run folder and `sample -o` lay it: with it the steps show the window."""
    log = path.with_name("train.log") if path.name == "samples.csv" else path.with_suffix(".log")
    return log if log.is_file() else None


def samples_beside(log: Path) -> SampleTable:
    """The samples of the same run, which give every line of the log its time; none if there are none."""
    path = log.with_name("samples.csv") if log.name == "train.log" else log.with_suffix(".csv")
    if not path.is_file():
        return SampleTable()
    head = store.read_head(path, _HEAD, follow=True).decode("utf-8", "replace")
    return read_run_samples(path) if looks_like_samples(head) else SampleTable()


def read_log(
    path: Path,
    samples: SampleTable,
    patterns: Mapping[str, str],
    *,
    exit_status: int | None,
    signal: int | None,
    redactor: Redactor | None = None,
    planned: PlannedEnd | None = None,
) -> LogSummary:
    """Read a log, each part with the time at which the samples saw it; the middle of a flood is left out, and
    what came after gpudebug ended the run as `planned`.

    The lines that it quotes have passed the redactor (without one, that of known token shapes).
    """
    reader = LogReader(dict(patterns), perf_counter)
    file = opener.look(path, follow=True)
    if file is not None:
        with file:
            _feed(reader, file, samples.log_times, planned)
    summary = reader.summary(exit_status, signal)
    if summary.failure is None:
        return summary
    redact = (redactor or Redactor()).quoted
    lines = tuple(redact(line) for line in summary.failure.lines)
    return replace(summary, failure=type(summary.failure)(kind=summary.failure.kind, lines=lines))


def until(samples: SampleTable, planned: PlannedEnd | None) -> SampleTable:
    """Return the samples that were taken before gpudebug ended the run by its plan."""
    if planned is None:
        return samples
    return replace(samples, rows=[row for row in samples.rows if row.elapsed <= planned.at_s])


def _feed(
    reader: LogReader, file: BinaryIO, times: Sequence[tuple[float, int]], planned: PlannedEnd | None
) -> None:
    size, last = os.fstat(file.fileno()).st_size, None
    encoding = encoding_of(file.read(64))
    decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
    file.seek(0)
    if planned is not None:
        size, last = min(size, planned.log_bytes), planned.at_s
    skip = (_LOG_PART, size - _LOG_PART) if size > 2 * _LOG_PART else (size, size)
    marks = [(min(at, size), t) for t, at in times if at > 0]
    position = 0
    for end, time in [*marks, (size, last)]:
        while position < end:
            if skip[0] <= position < skip[1]:
                position = file.seek(skip[1])
                reader.feed(b"\n")
            data = file.read(min(_CHUNK, max(end - position, 1)))
            if not data:
                return
            position += len(data)
            reader.feed(decoder.decode(data).encode() if decoder else data, time)


def refuse_binary(path: Path, head: bytes, known: str) -> None:
    """GpudebugError if the file is binary, by the name of its format; `known` says what could be given."""
    if _PAGE.match(head) and not _BEHIND.search(head):
        raise GpudebugError(
            "is an HTML page, not what it was saved as",
            file=str(path),
            next="download the file itself: this is a page about it, or an error",
        )
    kind = binary_format(head, path.name)
    if kind is not None:
        raise GpudebugError(f"is {kind}, not text", file=str(path), next=next_step(kind, known))
