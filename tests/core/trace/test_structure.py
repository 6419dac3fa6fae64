"""Where objects end: the scan against the standard library's decoder."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.trace.structure import objects

texts = st.text(st.sampled_from('ab"\\{}[],:é\n'), max_size=8)
values = st.recursive(
    st.none() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(st.dictionaries(texts, values, max_size=3), max_size=5),
    st.sampled_from([None, 2]),
    st.booleans(),
)
def test_ends_are_where_the_decoder_sees_them(
    found: list[object], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(found, indent=indent, ensure_ascii=ascii_only)
    ends, end = objects(text[1:].encode())
    assert end == len(text[1:].encode()) - 1
    wanted, at = [], 1
    for _ in found:
        at = text.index("{", at)
        at = json.JSONDecoder().raw_decode(text, at)[1]
        wanted.append(len(text[1:at].encode()))
    assert ends == wanted


@given(st.lists(st.dictionaries(texts, values, max_size=2), min_size=1, max_size=4), st.data())
def test_a_cut_text_has_the_objects_before_the_cut(found: list[object], data: st.DataObject) -> None:
    text = json.dumps(found)[1:].encode()
    ends, _ = objects(text)
    cut = data.draw(st.integers(0, len(text) - 1))
    assert objects(text[:cut]) == ([e for e in ends if e <= cut], None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", ([], None)),
        (b"]", ([], 0)),
        (b'{"a": "\\\\"}, {"b": "\\\\\\"}"}]', ([11, 27], 27)),
        (b'1, [2], {}] , "x": [{}]}', ([10], 10)),
        (b"}}", ([], 0)),
    ],
)
def test_edges(text: bytes, found: tuple[list[int], int | None]) -> None:
    assert objects(text) == found
