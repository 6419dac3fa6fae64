"""What texts write: durations, sizes, devices, equal values; and short digests that tell texts apart.

The grammar is plain ASCII decimals with a unit: `30m`, `1h30m`, `500ms`, `2GB`. `nan`, `inf`, `1_000`,
`1:30`, exponents and digits of other scripts are refused. Sizes are binary: `MB` and `MiB` are 2**20 bytes.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.words import CPU, GPU, RECORDING

try:
    # The same function without loading OpenSSL, which takes a tenth of `gpudebug status`.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b


def short_digest(data: bytes) -> str:
    """BLAKE2b of `data` as 16 hexadecimal digits."""
    return str(blake2b(data, digest_size=8).hexdigest())


_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES: dict[str, int] = {
    "b": 1,
    **{f"{letter}{tail}": 1024**power for power, letter in enumerate("kmgt", 1) for tail in ("", "b", "ib")},
}
_PART = regex(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?([A-Za-z]{0,3})", re.ASCII)

LONGEST_S = 366 * 86400.0
LARGEST_BYTES = 2**60


class QuantityError(ValueError):
    """Text that is no duration, size or device; the message says what was expected."""


def parse_duration(text: str) -> float:
    """Seconds of `90s`, `30m`, `1h30m`, `500ms`, `2d`, or of a bare number of seconds.

    Raises QuantityError for anything else and above 366 days.
    """
    seconds, position, unit_before = 0.0, 0, float("inf")
    text = text.strip(" ")
    while True:
        match = _PART.match(text, position)
        alone = match is not None and not match[2] and match.span() == (0, len(text))
        unit = 1.0 if alone else _SECONDS.get(match[2], 0.0) if match else 0.0
        if match is None or not 0 < unit < unit_before:
            raise QuantityError("expected a duration such as 30m, 90s, 1h30m or 0.2s")
        seconds += float(match[1]) * unit
        position, unit_before = match.end(), unit
        if position == len(text):
            break
        position += text[position] == " "
    if seconds > LONGEST_S:
        raise QuantityError(f"{text!r} is longer than 366 days")
    return seconds


_PHASE = regex(r"phase +(?P<name>[^\s:].*?)(?: +(?P<for>[0-9.]+ ?(?:ms|s|m|min|h|d)))?")


class PhaseWait(NamedTuple):
    """A phase that a run waits for, and the seconds of its steady part; None if none are named."""

    name: str
    seconds: float | None


def parse_phase(text: str) -> PhaseWait:
    """Take `phase ppo` and `phase ppo 60s` apart. Raises QuantityError for all else."""
    found = _PHASE.fullmatch(text.strip(" "))
    if found is None:
        raise QuantityError("expected a phase such as phase ppo 60s")
    return PhaseWait(found["name"], parse_duration(found["for"]) if found["for"] else None)


def parse_size(text: str) -> int:
    """Bytes of `2GB`, `500 MB`, `64KiB`, `1.5g`, or of a bare number of bytes; binary multiples.

    Raises QuantityError for anything else and above 2**60 bytes.
    """
    match = _PART.fullmatch(text.strip(" "))
    unit = match[2].lower() if match else "?"
    if match is None or (unit and unit not in _BYTES):
        raise QuantityError("expected a size such as 2GB, 500MB or 64KiB")
    size = round(float(match[1]) * _BYTES[unit or "b"])
    if size > LARGEST_BYTES:
        raise QuantityError(f"{text!r} is larger than 2**60 bytes")
    return size


DEVICES = "auto, nvml, cpu, cpu:N or replay:FOLDER[@SPEEDx]"
_DEVICE = regex(
    r"cpu:(?P<cores>[0-9]{1,4}(?:\.[0-9]{1,3})?)"
    r"|replay:(?P<path>[^\x00-\x08\x0a-\x1f\x7f]+?)(?:@(?P<speed>[0-9]{1,4}(?:\.[0-9]+)?)x)?"
)


class DeviceChoice(NamedTuple):
    """`device:` taken apart. `kind` is auto or a kind of device; `cores` is None for all that the process
    may use; `speed` is how much faster than recorded a replay runs."""

    kind: str
    cores: float | None = None
    path: str = ""
    speed: float = 1.0


def parse_device(text: str) -> DeviceChoice:
    """Take `auto`, `nvml`, `cpu`, `cpu:N` and `replay:PATH[@Nx]` apart. Raises QuantityError for all else."""
    if text in ("auto", GPU.name, CPU.name):
        return DeviceChoice(text)
    found = _DEVICE.fullmatch(text)
    if found and found["cores"] and float(found["cores"]) > 0:
        return DeviceChoice(CPU.name, cores=float(found["cores"]))
    if found and found["path"] and float(found["speed"] or 1) > 0:
        return DeviceChoice(RECORDING.name, path=found["path"], speed=float(found["speed"] or 1))
    raise QuantityError(f"expected {DEVICES}")


_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})


def same_value(a: str, b: str) -> bool:
    """Tell whether both write one value: numbers, truth values, rows and paths are compared as such."""
    left, right = _items(a), _items(b)
    return len(left) == len(right) and all(map(_same_item, left, right))


def finite_number(text: str) -> float | None:
    """Return the number that a text is; None for any other text."""
    try:
        value = float(text) if text.isascii() else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _items(text: str) -> list[str]:
    inner = text.strip().strip("[]()")
    return inner.replace(",", " ").split() or [""]


def _same_item(a: str, b: str) -> bool:
    a, b = (text.strip("\"'").lower() for text in (a, b))
    if a == b:
        return True
    if {a, b} <= _YES or {a, b} <= _NO:
        return True
    numbers = finite_number(a), finite_number(b)
    if None not in numbers:
        return numbers[0] == numbers[1]
    return a.removeprefix("./").rstrip("/") == b.removeprefix("./").rstrip("/")
