"""Answer requests that the SDK cannot read, and would leave unanswered, with an error."""

from __future__ import annotations

import json
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

ARGUMENT = "\x00unreadable"
"""The only argument of a call that replaces an unreadable one; its value is the reason."""
_WHY = "the request holds text that is not valid JSON, such as half a character (a lone surrogate)"
_LONGEST_NAME = 100


class Mended:
    """The stream of a client's messages, in which an unreadable request is replaced by one that fails."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def receive(self) -> Any:
        return mended(await self._inner.receive())

    def __aiter__(self) -> Mended:
        return self

    async def __anext__(self) -> Any:
        return mended(await self._inner.__anext__())

    async def __aenter__(self) -> Mended:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *what: Any) -> Any:
        return await self._inner.__aexit__(*what)


def mended(item: Any) -> Any:
    """Return a message; for an unreadable request, one that is answered with an error."""
    if not isinstance(item, ValidationError):
        return item
    stand_in = next(filter(None, map(stand_in_of, map(_read, item.errors(include_url=False)))), None)
    if stand_in is None:
        return item
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(json.dumps(stand_in), by_name=False))
    except ValidationError:
        return item


def _read(problem: Any) -> Any:
    """Return the line that the SDK was given, parsed, or the object that it made of it."""
    given = problem.get("input")
    if not isinstance(given, (str, bytes)):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return None


def stand_in_of(request: Any) -> dict[str, Any] | None:
    """Return a request that fails in its place; None if it is not a request or has no id."""
    if not isinstance(request, dict) or "method" not in request:
        return None
    number = request.get("id")
    if isinstance(number, bool) or not isinstance(number, (int, str)):
        return None
    made: dict[str, Any] = {"jsonrpc": "2.0", "id": _text(number), "method": "unreadable", "params": {}}
    params = request.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    if request["method"] == "tools/call" and isinstance(name, str):
        made |= {
            "method": "tools/call",
            "params": {"name": _text(name)[:_LONGEST_NAME], "arguments": {ARGUMENT: _WHY}},
        }
    return made


def _text(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value
