"""The GPUs of a machine as `doctor --gpu` finds them, without what names machine or person."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from gpudebug.core.hardware.plan import plain_uuid
from gpudebug.core.redaction.hosts import without_hosts

# The nodes of GPUs are the same everywhere.
_PATH = re.compile(r"(?<![\w.])/(?!dev/nvidia)(?:[\w.+@-]+/)+[\w.+@-]*")
_RAISED = re.compile(r"(\b[\w.]*(?:Error|Exception|Exit|Interrupt|Warning)):.*", re.DOTALL)


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
