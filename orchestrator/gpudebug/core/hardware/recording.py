"""What `doctor --gpu` recorded: what the loading process says that it did, and what was sampled meanwhile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from gpudebug.core.hardware.plan import IDLE, plain_uuid
from gpudebug.core.lazy import regex
from gpudebug.core.redaction.hosts import without_hosts
from gpudebug.core.samples.row import DeviceReading, parse_row

# The nodes of GPUs are the same everywhere.
_PATH = regex(r"(?<![\w.])/(?!dev/nvidia)(?:[\w.+@-]+/)+[\w.+@-]*")
_RAISED = regex(r"(\b[\w.]*(?:Error|Exception|Exit|Interrupt|Warning)):.*", re.DOTALL)


@dataclass(frozen=True)
class Gpu:
    """One GPU or MIG device that the sampler reads; `uuid` is a stand-in for its own in a bundle."""

    index: int
    uuid: str
    name: str
    driver: str | None = None
    mig: bool = False
    power_limit_w: float | None = None


class Machine(NamedTuple):
    """What was asked before the run, and how it ended.

    `cuda` is CUDA's version (12040 is 12.4), `cuda_uuids` the GPUs as CUDA sees them, in its order and in
    plain digits. `outcome` is how the loading process ended, `reason` why.
    """

    gpus: tuple[Gpu, ...]
    cuda: int
    cuda_uuids: tuple[str, ...]
    outcome: str = "COMPLETED"
    reason: str | None = None

    @property
    def usable(self) -> tuple[Gpu, ...]:
        """The GPUs that CUDA sees too."""
        return tuple(gpu for gpu in self.gpus if plain_uuid(gpu.uuid) in self.cuda_uuids)


def pseudonyms(machine: Machine) -> dict[str, str]:
    """Return a name for each UUID, as NVML and as CUDA write it: of the same shape, by the order of the GPUs.

    A UUID names a card for good. One that is written here in two ways gets the same digits in both.
    """
    plain = dict.fromkeys((*(plain_uuid(gpu.uuid) for gpu in machine.gpus), *machine.cuda_uuids))
    digits = {uuid: f"{number:032x}" for number, uuid in enumerate(plain)}
    dashed = {gpu.uuid: _named(gpu.uuid, digits[plain_uuid(gpu.uuid)]) for gpu in machine.gpus}
    return {**dashed, **digits}


def _named(uuid: str, digits: str) -> str:
    """Return a name as long as the UUID: rows count the bytes of the log that holds it."""
    kind = "MIG" if uuid.startswith("MIG") else "GPU"
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return f"{kind}-{'-'.join(parts)}".ljust(len(uuid), "-")


def without_paths(text: str) -> str:
    """Return the text with each absolute path of a file in a folder replaced."""
    return _PATH.sub("(a path)", text)


def scrubbed(text: str, names: Sequence[str]) -> str:
    """Return the text without paths, `names`, hosts, and what an exception says behind its class, which may
    be anything."""
    return without_hosts(without_paths(_RAISED.sub(r"\1", text)), names)


def scrubbed_value(value: Any, names: Sequence[str]) -> Any:
    """Return a JSON value with each text in it, and each key, as `scrubbed` leaves it."""
    if isinstance(value, str):
        return scrubbed(value, names)
    if isinstance(value, Mapping):
        return {scrubbed(str(k), names): scrubbed_value(v, names) for k, v in value.items()}
    return [scrubbed_value(v, names) for v in value] if isinstance(value, (list, tuple)) else value


def is_raised(line: str) -> bool:
    """Tell whether a line of a log is the last of a traceback, which begins with the exception's class."""
    return _RAISED.match(line) is not None


def records_alone(log: str, names: Sequence[str] = ()) -> str:
    """Return the log with `#` for each character of a line that is no record, and without hosts and `names`
    in what a record says, so that its length stays.

    What a library or an interpreter prints may hold anything.
    """
    lines = log.splitlines(keepends=True)
    return "".join(
        _record(line, names) if line.startswith('{"kind": "') else _blanked(line) for line in lines
    )


def _record(line: str, names: Sequence[str]) -> str:
    """Return a record whose message names nothing, as long as it was."""
    try:
        found = json.loads(line)
    except ValueError:
        return _blanked(line)
    message = found.get("message") if isinstance(found, dict) else None
    if not isinstance(message, str) or (clean := scrubbed(message, names)) == message:
        return line
    least = len(json.dumps({**found, "message": ""}))
    room = len(line.rstrip("\n").encode()) - least
    fits = clean.encode("ascii", "replace").decode().translate(_ESCAPED)[: max(0, room)].ljust(room)
    return json.dumps({**found, "message": fits}) + ("\n" if line.endswith("\n") else "")


_ESCAPED = {ord(character): "?" for character in ('"', "\\", *map(chr, range(32)), "\x7f")}


def _blanked(line: str) -> str:
    return "#" * len(line.rstrip("\n").encode()) + ("\n" if line.endswith("\n") else "")


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return the text with each UUID replaced, longest first: one may hold another."""
    for uuid in sorted(names, key=len, reverse=True):
        text = text.replace(uuid, names[uuid])
    return text


def written_machine(machine: Machine, more: Mapping[str, str]) -> str:
    """Return the machine as JSON, with versions and whatever else says nothing of host or person."""
    document = {**machine._asdict(), "gpus": [asdict(gpu) for gpu in machine.gpus], **more}
    return json.dumps(document, indent=1) + "\n"


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


def _lines(log: bytes) -> Iterator[tuple[int, dict[str, object]]]:
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
