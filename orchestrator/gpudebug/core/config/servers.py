"""The settings of `server:` that no other setting has: its port, and when it is ready."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any

from gpudebug.core.config import values
from gpudebug.core.text.expressions import Unbounded, bounded
from gpudebug.core.yaml.problem import YamlProblem

if TYPE_CHECKING:
    from gpudebug.core.config.schema import ServerSettings

PORT = "{port}"
PORT_VARIABLE = "GPUDEBUG_SERVER_PORT"
_MOST = 65535
_EXAMPLE = "{port: 5555}, {http: /health} or {log: 'startup complete'}"


def port(value: Any) -> int | None:
    """A port's number; None for `auto`."""
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


def contradictions(server: ServerSettings | None, keys: Container[Any]) -> Iterator[YamlProblem]:
    """What cannot be meant together; `keys` are the places of all keys of the file."""
    for part in ("workload", "reference"):
        if (part, "server") in keys:
            message = f"{part}.server: server is a setting of its own"
            yield YamlProblem((part, "server"), message, _MOVE, key=True)
    if server is None or server.port is not None or server.ready.keys() & {"port", "log"}:
        return
    texts = [str(server.command), *server.env.values()]
    if not any(PORT in text or PORT_VARIABLE in text for text in texts):
        message = f"server: {PORT} is in no word of its command, so it does not learn its port"
        yield YamlProblem(("server", "command"), message, "write --port={port}, or set server.port: 5555")


_MOVE = "write server: at the beginning of a line"
