"""Requests that cannot be read get an answer; what asks for none gets none."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("mcp")

from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from gpudebug.mcp.unreadable import ARGUMENT, AnsweredStream, reply_to, without_id

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def read(line: str) -> SessionMessage | Exception:
    """As the SDK reads a line: a message, or the error that it would pass over."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as e:
        return e


def problem(line: str) -> Exception:
    found = read(line)
    assert isinstance(found, Exception), line
    return found


@pytest.mark.parametrize("name", ["status", "a\\ud800"])
@pytest.mark.parametrize("meta", ["", ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'])
def test_a_tools_call_becomes_one_that_fails(name: str, meta: str) -> None:
    line = (
        f'{{"id":"a","method":"tools/call","params":{{"name":"{name}","arguments":{{"x":"\\udfff"}}{meta}}}}}'
    )
    made = reply_to(problem(line))
    assert isinstance(made, SessionMessage) and isinstance(made.message, JSONRPCRequest)
    params = made.message.params
    assert made.message.id == "a" and params is not None
    assert list(params["arguments"]) == [ARGUMENT]
    assert ("_meta" in params) is bool(meta)


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        ("{", None, PARSE_ERROR),
        ("next", None, PARSE_ERROR),
        ("[" * 100_000, None, PARSE_ERROR),
        ('"next"', None, INVALID_REQUEST),
        ("[]", None, INVALID_REQUEST),
        ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, INVALID_REQUEST),
        ('{"jsonrpc":"2.0"}', None, INVALID_REQUEST),
        ('{"jsonrpc":"1.0","id":3,"method":"ping"}', 3, INVALID_REQUEST),
        ('{"id":3,"method":"ping"}', 3, INVALID_REQUEST),
        ('{"jsonrpc":"2.0","id":"x","method":5}', "x", INVALID_REQUEST),
        ('{"jsonrpc":"2.0","id":"x","method":"ping","params":7}', "x", INVALID_REQUEST),
        ('{"jsonrpc":"2.0","id":7,"method":"\\udc00","params":{}}', 7, PARSE_ERROR),
    ],
)
def test_what_cannot_be_read_is_answered(line: str, id: object, code: int) -> None:
    reply = reply_to(problem(line))
    assert isinstance(reply, JSONRPCError)
    assert (reply.id, reply.error.code) == (id, code)
    assert len(reply.error.message) < 200


@pytest.mark.parametrize("id", [',"id":true', ',"id":null', ',"id":1.5', ',"id":[1]', ""])
def test_a_request_without_a_proper_id_is_no_notification(id: str) -> None:
    for method, answered in (("tools/list", True), ("notifications/initialized", False)):
        found = read(f'{{"jsonrpc":"2.0"{id},"method":"{method}"}}')
        assert isinstance(found, SessionMessage)
        reply = without_id(found)
        assert (reply is not None and reply.error.code == INVALID_REQUEST) is answered


@pytest.mark.parametrize(
    "line",
    [
        "",
        " \t",
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":1}',
        '{"jsonrpc":"2.0","id":1,"result":2}',
        '{"id":1,"error":{"code":1}}',
    ],
)
def test_what_asks_for_no_answer_gets_none(line: str) -> None:
    assert reply_to(problem(line)) is None


@given(st.integers(-(2**31), 2**31) | st.text(max_size=8), ANY, ANY)
def test_every_request_with_an_id_is_answered(number: object, method: object, params: object) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
    found = read(line)
    assert isinstance(found, SessionMessage) or reply_to(found) is not None


@given(st.text(st.characters(exclude_categories=[])))
def test_no_line_raises(line: str) -> None:
    for text in (json.dumps(line), line.encode("utf-8", "replace").decode()):
        found = read(text)
        if isinstance(found, Exception):
            reply_to(found)


def test_the_stream_answers_and_passes_over_what_cannot_be_read() -> None:
    async def story() -> None:
        into, reading = anyio.create_memory_object_stream[Any](9)
        writing, out = anyio.create_memory_object_stream[SessionMessage](9)
        good = read('{"jsonrpc":"2.0","id":1,"method":"ping"}')
        async with into, writing, out:
            for item in (problem("{"), problem(""), ValueError("x"), good):
                await into.send(item)
            await into.aclose()
            async with AnsweredStream(reading, writing) as stream:
                assert [item async for item in stream] == [good]
            answers = [out.receive_nowait().message for _ in range(2)]
        assert all(isinstance(a, JSONRPCError) and a.error.code == PARSE_ERROR for a in answers)

    anyio.run(story)
