"""The values of `runner:` and `server:` that no other setting has: what a scheduler is asked for, a port."""

from __future__ import annotations

import re
from typing import Any

from gpudebug.core.config import values
from gpudebug.core.text.expressions import Unbounded, bounded

MOST_GPUS = 64
_NAME = r"[^\s\x00-\x1f\x7f'\"\\#]{1,200}"
_GPUS = r"([A-Za-z0-9_.-]{1,64}):([0-9]{1,3})"
# days-hours[:minutes[:seconds]], hours:minutes:seconds, minutes:seconds, as Slurm writes them.
_DAYS = r"([0-9]{1,3})-([0-9]{1,2})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?"
_CLOCK = r"(?:([0-9]{1,4}):)?([0-9]{1,4}):([0-9]{1,2})"


def name(value: Any) -> str | None:
    """One word for an option of the scheduler, without quotes; None if it is left to the cluster."""
    if value is None:
        return None
    found = values.quoted(value)
    if not re.fullmatch(_NAME, found):
        raise ValueError(f"expected one word such as gpu, found {values.shown(value)}")
    return found


def gpus(value: Any) -> str:
    """GPUs of each node: a number, or `TYPE:NUMBER`; `0` asks for none."""
    text = values.quoted(value)
    typed = re.fullmatch(_GPUS, text)
    count = typed[2] if typed else text
    if not re.fullmatch(r"[0-9]{1,3}", count) or int(count) > MOST_GPUS or (typed and not int(count)):
        raise ValueError(f"expected a number of GPUs such as 8, or a100:8, found {values.shown(value)}")
    return f"{typed[1]}:{int(count)}" if typed else str(int(count))


def count_of(gpus: str) -> int:
    """Return the number in what `gpus` returned."""
    return int(gpus.rpartition(":")[2])


def time(value: Any) -> float | None:
    """Seconds of `4h`, or of Slurm's own `4:00:00` and `1-12:00`; None for the partition's default.

    A bare number is refused: it is seconds here and minutes in Slurm.
    """
    if value is None:
        return None
    written = str(getattr(value, "text", value)).strip()
    if re.fullmatch(r"[0-9.]+", written):
        raise ValueError(f"expected a time with its unit such as 4h, found {values.shown(value)}")
    days, clock = re.fullmatch(_DAYS, written), re.fullmatch(_CLOCK, written)
    if days is None and clock is None:
        seconds = values.duration(value)
    elif days is not None:
        d, h, m, s = (int(part or 0) for part in days.groups())
        seconds = ((d * 24 + h) * 60 + m) * 60.0 + s
    else:
        assert clock is not None
        h, m, s = (int(part or 0) for part in clock.groups())
        seconds = (h * 60 + m) * 60.0 + s
    if seconds < 60:
        raise ValueError(f"expected a minute or more, found {values.shown(value)}")
    return seconds


def cores(value: Any) -> int | None:
    """Return a number of cores; None if it is left to the cluster."""
    return None if value is None else values.count(value)


def setup(value: Any) -> str:
    """Lines of shell that run on the node before gpudebug does, from a block or a list of lines."""
    if value is None:
        return ""
    lines = [values.quoted(line) for line in value] if isinstance(value, list) else [values.text(value)]
    return "\n".join(lines).strip("\n")


def options(value: Any) -> tuple[str, ...]:
    """Options for the scheduler's own command, each one a word that begins with `-`."""
    found = () if value is None else values.words(value)
    for word in found:
        if not re.fullmatch(r"-[^\n\r]+", word):
            raise ValueError(f"expected options such as [--mem=64G], found {values.shown(word)}")
    return found


PORT = "{port}"
PORT_VARIABLE = "GPUDEBUG_SERVER_PORT"
_MOST = 65535
_EXAMPLE = "{port: 5555}, {http: /health} or {log: 'startup complete'}"


def port(value: Any) -> int | None:
    """Return a port's number; None for `auto`."""
    if value is None or value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
        raise ValueError(f"expected auto or a port from 1 to {_MOST}, found {values.shown(value)}")
    return int(value)


def ready(value: Any) -> dict[str, str | int]:
    """What says that it is ready: one of `port`, `http` and `log`; empty for the port of the server."""
    if value in (None, "port", {"port": True}):
        return {}
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= {"port", "http", "log"}:
        raise ValueError(f"expected one of {_EXAMPLE}, found {values.shown(value)}")
    ((kind, content),) = value.items()
    if kind == "port":
        number = port(content)
        return {} if number is None else {"port": number}
    text = values.text(content)
    if kind == "http" and not re.fullmatch(r"/[!-~]*", text):
        raise ValueError(f"http: expected a path such as /health, found {values.shown(content)}")
    if kind == "log":
        _expression(text)
    return {kind: text}


def _expression(text: str) -> None:
    try:
        bounded(text)
    except Unbounded as error:
        raise ValueError(f"log: {text!r} {error}; write it with fewer repeats") from None
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"log: no regular expression: {error}") from None
