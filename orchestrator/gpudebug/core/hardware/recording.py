"""What `doctor --gpu` recorded: what the loading process says that it did, and what was sampled meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core.hardware.plan import IDLE
from gpudebug.core.samples.row import DeviceReading, parse_row

SETTLED_S = 1.2
"""A reading says what was up to a second before it (nvmlUtilization_t in nvml.h), and a tick late."""


class Busy(NamedTuple):
    """Whole periods of one GPU's load, in seconds since the launch; `busy_s` is what its events counted."""

    phase: str
    gpu: str
    kernel: str
    began: float
    ended: float
    busy_s: float


class Span(NamedTuple):
    """One phase, in seconds since the launch. `gpus` are those that had a load."""

    name: str
    began: float
    ended: float
    gpus: tuple[str, ...]


class KernelTimer(NamedTuple):
    """One kernel: how long it was to run, and did by the GPU's events and by the host's clock, in s."""

    asked_s: float
    event_s: float
    host_s: float


class PinnedCopy(NamedTuple):
    """A copy of `size` bytes to the GPU and back, in s, and whether it came back the same."""

    size: int
    to_s: float
    back_s: float
    same: bool


class GpuTruth(NamedTuple):
    """What the loading process did, as far as it came. `failed` is why it ended early, if it says so."""

    spans: tuple[Span, ...] = ()
    slices: tuple[Busy, ...] = ()
    timers: Mapping[str, KernelTimer] = {}
    copies: Mapping[str, PinnedCopy] = {}
    held: Mapping[str, int] = {}
    ended: bool = False
    failed: str | None = None


class SamplerNotes(NamedTuple):
    """What the sampler says of itself; `missing` by column, `energy_j` joules of the run by UUID."""

    source: str = "none"
    interval: float = 0.2
    ticks: int = 0
    missed: int = 0
    restarts: int = 0
    lost: str | None = None
    missing: Mapping[str, str] = {}
    energy_j: Mapping[str, float] = {}


class GpuRecording(NamedTuple):
    """Rows, truth and notes of one run."""

    rows: tuple[DeviceReading, ...]
    truth: GpuTruth
    notes: SamplerNotes

    def of(self, uuid: str, span: Span) -> list[DeviceReading]:
        """Return the readings of a GPU that are about this phase alone."""
        began, ended = self._settled(span)
        return [r for r in self.rows if r.gpu_uuid == uuid and began <= (r.elapsed or 0.0) <= ended]

    def _settled(self, span: Span) -> tuple[float, float]:
        # A line may be dated a tick late, and the next phase has begun by then.
        return span.began + SETTLED_S, span.ended - 2 * self.notes.interval

    def span(self, name: str, uuid: str | None = None) -> Span | None:
        """The phase of this name; with `uuid` the one in which this GPU worked. None if it did not end."""
        found = (s for s in self.truth.spans if s.name == name and (uuid is None or uuid in s.gpus))
        return next(found, None)

    def without_load(self, uuid: str) -> list[Span]:
        """Return the phases in which a GPU idled."""
        return [s for s in self.truth.spans if uuid not in s.gpus]

    def duty(self, uuid: str, span: Span) -> float | None:
        """In %: how much of the readings' time in a phase its kernels ran; None if nothing was counted."""
        began, ended = self._settled(span)
        shares = [
            (min(s.ended, ended) - max(s.began, began), s.busy_s / (s.ended - s.began))
            for s in self.truth.slices
            if s.gpu == uuid and s.began < ended and s.ended > began
        ]
        length = sum(seconds for seconds, _ in shares)
        return 100 * sum(seconds * share for seconds, share in shares) / length if length else None


def parse_recording(samples: str, log: bytes, notes: str) -> GpuRecording:
    """Read samples.csv, the loading process's output and sampler.json.

    The output's own times become the samples': a line is no earlier than the first tick that sees it is late.
    Lines and keys that are not known are left out. ValueError if the notes are not JSON.
    """
    rows = tuple(row for line in samples.splitlines() if (row := parse_row(line)) and row.elapsed is not None)
    lines = list(_lines(log))
    return GpuRecording(rows, _truth([line for _, line in lines], _shift(rows, lines)), _notes(notes))


def _lines(log: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each whole line that is a record, with the length of the log at its end."""
    length = 0
    for raw in log.splitlines(keepends=True):
        length += len(raw)
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("at"), (int, float)) and raw.endswith(b"\n"):
            yield length, line


def _shift(rows: Sequence[DeviceReading], lines: Iterable[tuple[int, Mapping[str, Any]]]) -> float:
    """Seconds from the launch to the loading process's first line: at most what each line shows."""
    seen = [(r.log_bytes, r.elapsed) for r in rows if r.log_bytes is not None and r.elapsed is not None]
    shifts = []
    at = 0
    for length, line in lines:
        while at < len(seen) and seen[at][0] < length:
            at += 1
        if at < len(seen):
            shifts.append(seen[at][1] - line["at"])
    return min(shifts, default=0.0)


def _truth(lines: Sequence[Mapping[str, Any]], shift: float) -> GpuTruth:
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        kinds.setdefault(str(line.get("kind")), []).append(line)
    slices = tuple(
        Busy(s["phase"], s["gpu"], s["kernel"], s["from"] + shift, s["to"] + shift, s["busy_s"])
        for s in kinds.get("slice", ())
    )
    spans = tuple(
        _span(p["name"], p["from"] + shift, p["to"] + shift, slices) for p in kinds.get("phase", ())
    )
    return GpuTruth(
        spans,
        slices,
        {t["gpu"]: KernelTimer(t["asked_s"], t["event_s"], t["host_s"]) for t in kinds.get("timer", ())},
        {c["gpu"]: PinnedCopy(c["bytes"], c["to_s"], c["back_s"], c["same"]) for c in kinds.get("copy", ())},
        {m["gpu"]: m["bytes"] for m in kinds.get("memory", ()) if m["bytes"]},
        "end" in kinds,
        next((str(f["message"]) for f in kinds.get("failed", ())), None),
    )


def _span(name: str, began: float, ended: float, slices: Sequence[Busy]) -> Span:
    busy = dict.fromkeys(s.gpu for s in slices if name != IDLE and began <= s.began < ended)
    return Span(name, began, ended, tuple(busy))


def _notes(text: str) -> SamplerNotes:
    read = json.loads(text or "{}")
    known = {name: read[name] for name in SamplerNotes._fields if read.get(name) is not None}
    return SamplerNotes(**known)
