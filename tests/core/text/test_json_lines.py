"""Lines of values in JSON texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.text import json_lines
from gpudebug.core.text.json_lines import line_of, parse

TEXT = """
{
 "a": 1,
 "b": {"a": [10,
   {"c": "} \\" ]"},
   [ ]], "d": {}},
 "e":
   null
}
"""

PLACES: dict[str, tuple[list[str | int | None], int]] = {
    "the whole": ([], 2),
    "a key": (["a"], 3),
    "a key inside": (["b", "a"], 4),
    "an item": (["b", "a", 0], 4),
    "an item below": (["b", "a", 1, "c"], 5),
    "behind brackets in a text": (["b", "a", 2], 6),
    "a value below its key": (["e"], 8),
    "a key that is not there": (["b", "x"], 4),
    "an item that is not there": (["b", "a", 7], 4),
    "no place": (["b", "a", None], 4),
    "a key of what has none": (["a", "x"], 3),
    "an empty object": (["b", "d", "x"], 6),
}


@pytest.mark.parametrize(("steps", "line"), PLACES.values(), ids=PLACES)
def test_the_line_is_that_of_the_value(steps: list[str | int | None], line: int) -> None:
    assert line_of(TEXT, steps) == line


records = st.dictionaries(
    st.text(max_size=5),
    st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3),
    min_size=1,
    max_size=5,
)


@given(records, st.data())
def test_every_key_of_a_record_is_found_on_the_line_that_begins_with_it(
    record: dict[str, Any], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(record)))
    text = json.dumps(record, indent=1)
    assert text.split("\n")[line_of(text, [key]) - 1].startswith(f" {json.dumps(key)}: ")


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "[" * 100_000, "[" * 101 + "]" * 101, "{", "", r'["\ud800"]']
)
def test_what_is_no_document_of_ours_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text, finite=True)


def test_names_of_files_and_pairs_are_read() -> None:
    assert parse(r'["\ud83d\ude00", "\udcff", "\\ud800"]', finite=True) == ["\U0001f600", "\udcff", r"\ud800"]


def test_brackets_in_strings_are_no_levels() -> None:
    said = {"lines": ["[" * 200, "{[" * 100], "deep": [[[[1]]]]}
    assert parse(json.dumps(said)) == said
    assert parse("[" * 64 + "]" * 64)


def test_many_small_values_are_refused_where_they_take_more_than_their_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small, usual = "[" + "{}," * 1000 + "0]", '[{"name": "' + "x" * 100 + '"}]'
    assert len(parse(small)) == 1001
    monkeypatch.setattr(json_lines, "_BESIDE", 0)
    assert parse(usual)
    with pytest.raises(ValueError, match="too many small values"):
        parse(small)
