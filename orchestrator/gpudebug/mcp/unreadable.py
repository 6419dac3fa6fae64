"""Answer requests that the SDK cannot read, and would leave unanswered, with an error.

JSON-RPC 2.0 has two codes for them: -32700 for a line that is no JSON, -32600 for JSON that is no request. A
call of a tool whose arguments alone cannot be read fails as a call, so that the model reads why.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

ARGUMENT = "\x00unreadable"
"""The only argument of a call that replaces an unreadable one; its value is the reason."""
_WHY = "the request holds text that is not valid JSON, such as half a character (a lone surrogate)"
_NO_REQUEST = 'not a JSON-RPC 2.0 request: one object with "jsonrpc": "2.0", a text "method" and an "id"'
_NO_JSON = "the line is not JSON"
_NOTIFICATION = "notifications/"
"""How the method of every notification of the protocol begins."""
_LONGEST_NAME = 100
_LONGEST_ID = 1000


class AnsweredStream:
    """The stream of a client's messages; what cannot be read is answered on `writing`, then dropped."""

    def __init__(self, inner: Any, writing: Any) -> None:
        self._inner = inner
        self._writing = writing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def receive(self) -> Any:
        while (item := await self._readable(await self._inner.receive())) is None:
            pass
        return item

    def __aiter__(self) -> AnsweredStream:
        return self

    async def __anext__(self) -> Any:
        while (item := await self._readable(await self._inner.__anext__())) is None:
            pass
        return item

    async def __aenter__(self) -> AnsweredStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *what: Any) -> Any:
        return await self._inner.__aexit__(*what)

    async def _readable(self, item: Any) -> Any:
        reply = reply_to(item) if isinstance(item, Exception) else without_id(item) or item
        if isinstance(reply, JSONRPCError):
            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await self._writing.send(SessionMessage(reply))
            return None
        return reply


def reply_to(problem: Exception) -> SessionMessage | JSONRPCError | None:
    """Return a call that fails in the place of an unreadable one, else the error that answers it.

    None for what is not to be answered: a notification, a response, an empty line.
    """
    if not isinstance(problem, ValidationError):
        return _error(None, PARSE_ERROR, _NO_JSON)
    errors = problem.errors(include_url=False)
    lines = [error["input"] for error in errors if error["type"] == "json_invalid"]
    if any(not line.strip() for line in lines):
        return None
    read = [found for found in map(_read, errors) if found is not None]
    request = next((found for found in read if isinstance(found, dict)), None)
    if request is None:
        return _error(None, *((INVALID_REQUEST, _NO_REQUEST) if read else (PARSE_ERROR, _NO_JSON)))
    is_response = "method" not in request and ("result" in request or "error" in request)
    if is_response or ("method" in request and "id" not in request):
        return None
    number = request.get("id")
    if isinstance(number, bool) or not isinstance(number, (int, str)) or len(str(number)) > _LONGEST_ID:
        return _error(None, INVALID_REQUEST, _NO_REQUEST)
    code, why = (PARSE_ERROR, _WHY) if lines else (INVALID_REQUEST, _NO_REQUEST)
    return _failing_call(request) or _error(_text(number), code, why)


def without_id(item: SessionMessage) -> JSONRPCError | None:
    """Return the error that answers a request whose id is missing or no id: it is read as a notification."""
    message = item.message
    if isinstance(message, JSONRPCNotification) and not message.method.startswith(_NOTIFICATION):
        return _error(None, INVALID_REQUEST, _NO_REQUEST)
    return None


def _error(number: int | str | None, code: int, why: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=why))


def _read(problem: Any) -> Any:
    """Return the line that the SDK was given, parsed, or the object that it made of it."""
    given = problem["input"]
    if problem["type"] != "json_invalid":
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return None


def _failing_call(request: dict[str, object]) -> SessionMessage | None:
    """Return a call of the same tool that fails; None if it is no call of one."""
    given = request.get("params")
    params = given if isinstance(given, dict) else {}
    name = params.get("name")
    if request.get("method") != "tools/call" or not isinstance(name, str):
        return None
    # What is sent with every request from 2026-07-28 on: without it this one is of another protocol.
    meta = {"_meta": params["_meta"]} if "_meta" in params else {}
    made = {
        "jsonrpc": "2.0",
        "id": _text(request["id"]),
        "method": "tools/call",
        "params": {"name": _text(name)[:_LONGEST_NAME], "arguments": {ARGUMENT: _WHY}, **meta},
    }
    with contextlib.suppress(ValidationError, ValueError, RecursionError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(json.dumps(made), by_name=False))
    return None


def _text(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value
