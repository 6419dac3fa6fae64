"""An answer without what is empty, raw or said twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpudebug.mcp.compact import as_text, compact


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123456, 0.1235),
        (123.456, 123.5),
        (1234567.89, 1234568),
        (1.0, 1),
        (-0.000123456, -0.0001235),
        (0.0, 0.0),
        (9.99999, 10),
        (7, 7),
        (True, True),
        (float("inf"), float("inf")),
    ],
)
def test_figures_keep_four_digits(value: float, shown: float) -> None:
    assert compact({"x": value}) == {"x": shown}


def test_what_is_empty_is_left_out_and_what_is_false_or_zero_is_not() -> None:
    given = {"a": None, "b": [], "c": {"d": None}, "e": "", "f": False, "g": 0, "h": [None, 1.5], "i": [{}]}
    assert compact(given) == {"f": False, "g": 0, "h": [None, 1.5], "i": [{}]}


@pytest.mark.parametrize("key", ["probe", "evidence", "facts", "sparks", "profile", "course"])
def test_tables_as_they_were_recorded_are_left_out_at_any_depth(key: str) -> None:
    assert compact({"rows": [{"n": 1, key: {"steps": 9}}], key: [1]}) == {"rows": [{"n": 1}]}


def test_a_page_goes_without_the_diagnosis_that_it_holds() -> None:
    answer: dict[str, Any] = {"action": "propose", "diagnosis": [{"id": "x"}]}
    assert compact({**answer, "brief": "# page"}) == {"action": "propose", "brief": "# page"}
    assert compact({**answer, "brief": None}) == answer


def test_instructions_are_told_of_the_first_cause_alone() -> None:
    causes = [{"id": id, "hypothesis": {"title": id, "instructions": "Write it."}} for id in "ab"]
    assert compact({"abstains": None, "causes": causes})["causes"] == [
        causes[0],
        {"id": "b", "hypothesis": {"title": "b"}},
    ]
    abstaining = compact({"abstains": "no run", "causes": causes})["causes"]
    assert [cause["hypothesis"] for cause in abstaining] == [{"title": "a"}, {"title": "b"}]


def test_of_the_whole_catalogue_the_ids_alone() -> None:
    def listed(count: int) -> Any:
        causes = [{"id": f"c-{n}", "title": "A cause"} for n in range(count)]
        return compact({"groups": [{"group": "stalls", "causes": causes}]})["groups"][0]["causes"]

    assert listed(2) == [{"id": "c-0", "title": "A cause"}, {"id": "c-1", "title": "A cause"}]
    assert listed(20)[:2] == ["c-0", "c-1"]


def test_the_text_is_the_object_on_one_short_line() -> None:
    text = as_text({"a": [1, 2], "b": "é\n"})
    assert text == '{"a":[1,2],"b":"é\\n"}'
    assert json.loads(text) == {"a": [1, 2], "b": "é\n"}
