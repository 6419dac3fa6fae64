"""The values of `runner:` and `server:` that no other setting has: what a scheduler is asked for, a port."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from gpudebug.core.config import values
from gpudebug.core.yaml.models import expected, unexpected

MOST_GPUS = 64
_GPUS = r"([A-Za-z0-9_.-]{1,64}):([0-9]{1,3})"
# days-hours[:minutes[:seconds]], hours:minutes:seconds, minutes:seconds, as Slurm writes them.
_DAYS = r"([0-9]{1,3})-([0-9]{1,2})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?"
_CLOCK = r"(?:([0-9]{1,4}):)?([0-9]{1,4}):([0-9]{1,2})"


def _gpus(value: Any) -> str:
    """GPUs of each node: a number, or `TYPE:NUMBER`; `0` asks for none."""
    text = values.quoted(value)
    typed = re.fullmatch(_GPUS, text)
    count = typed[2] if typed else text
    if not re.fullmatch(r"[0-9]{1,3}", count) or int(count) > MOST_GPUS or (typed and not int(count)):
        raise unexpected("a number of GPUs such as 8, or a100:8", value)
    return f"{typed[1]}:{int(count)}" if typed else str(int(count))


def count_of(gpus: str) -> int:
    """Return the number in what `_gpus` returned."""
    return int(gpus.rpartition(":")[2])


def _time(value: Any) -> float:
    """Seconds of `4h`, or of Slurm's own `4:00:00` and `1-12:00`.

    A bare number is refused: it is seconds here and minutes in Slurm.
    """
    written = str(getattr(value, "text", value)).strip()
    if re.fullmatch(r"[0-9.]+", written):
        raise unexpected("a time with its unit such as 4h", value)
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
        raise unexpected("a minute or more", value)
    return seconds


def _lines(value: Any) -> str:
    """Lines of shell that run on the node before gpudebug does, from a block or a list of lines."""
    if value is None:
        return ""
    lines = [values.quoted(line) for line in value] if isinstance(value, list) else [values.text(value)]
    return "\n".join(lines).strip("\n")


# One word for an option of the scheduler, without quotes.
Name = Annotated[
    values.Quoted, Field(pattern=r"^[^\s\x00-\x1f\x7f'\"\\#]{1,200}$"), expected("one word such as gpu")
]
Gpus = Annotated[str, BeforeValidator(_gpus)]
Time = Annotated[float, BeforeValidator(_time)]
Setup = Annotated[str, BeforeValidator(_lines)]
_Option = Annotated[
    values.Quoted, Field(pattern=r"^-[^\n\r]+$"), expected("an option such as --mem=64G, in a list")
]
# Options for the scheduler's own command.
Options = Annotated[tuple[_Option, ...], BeforeValidator(lambda value: [] if value is None else value)]

PORT = "{port}"
PORT_VARIABLE = "GPUDEBUG_SERVER_PORT"
_MOST = 65535
_EXAMPLE = "{port: 5555}, {http: /health} or {log: 'startup complete'}"


def _port(value: Any) -> int | None:
    """Return a port's number; None for `auto`."""
    if value is None or value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
        raise unexpected(f"auto or a port from 1 to {_MOST}", value)
    return int(value)


def _ready(value: Any) -> dict[str, str | int]:
    """What says that it is ready: one of `port`, `http` and `log`; empty for the port of the server."""
    if value in (None, "port", {"port": True}):
        return {}
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= {"port", "http", "log"}:
        raise unexpected(f"one of {_EXAMPLE}", value)
    ((kind, content),) = value.items()
    if kind == "port":
        number = _port(content)
        return {} if number is None else {"port": number}
    text = values.text(content)
    if kind == "http" and not re.fullmatch(r"/[!-~]*", text):
        raise ValueError(f"http: {unexpected('a path such as /health', content)}")
    try:
        return {kind: values.expression(text) if kind == "log" else text}
    except ValueError as error:
        raise ValueError(f"log: {error}") from None


Port = Annotated[int | None, BeforeValidator(_port)]
Ready = Annotated[dict[str, str | int], BeforeValidator(_ready)]
