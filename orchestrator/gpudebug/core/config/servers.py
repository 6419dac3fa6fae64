"""The settings of `server:` that no other setting has: its port, and when it is ready."""

from __future__ import annotations

import re
from typing import Any

from gpudebug.core.config import values
from gpudebug.core.text.expressions import Unbounded, bounded

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
