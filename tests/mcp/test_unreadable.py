"""Requests that cannot be read get an answer; what is no request gets none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("mcp")

from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from gpudebug.mcp.unreadable import ARGUMENT, mended, stand_in_of

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def read(line: str) -> object:
    """As the SDK reads a line: a message, or the error that it would pass over."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as e:
        return e


@pytest.mark.parametrize("name", ["status", "a\\ud800"])
def test_a_tools_call_becomes_one_that_fails(name: str) -> None:
    line = f'{{"id":"a","method":"tools/call","params":{{"name":"{name}","arguments":{{"x":"\\udfff"}}}}}}'
    made = stand_in_of(json.loads(line))
    assert made is not None
    assert list(made["params"]["arguments"]) == [ARGUMENT]
    assert isinstance(mended(read(line)), SessionMessage)


@pytest.mark.parametrize("request_", [[], 1, None, {"id": 1}, {"method": "x"}, {"method": "x", "id": True}])
def test_what_is_no_request_gets_none(request_: object) -> None:
    assert stand_in_of(request_) is None


@given(st.integers(-(2**31), 2**31) | st.text(max_size=8), ANY, ANY)
def test_every_request_with_an_id_can_be_answered(number: object, method: object, params: object) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
    assert isinstance(mended(read(line)), SessionMessage)


@given(st.text(st.characters(exclude_categories=[])))
def test_no_line_raises(line: str) -> None:
    mended(read(json.dumps(line)))
    mended(read(line.encode("utf-8", "replace").decode()))
