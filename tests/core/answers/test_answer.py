"""Answers as JSON, and with other texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tests.support.answers import read

from gpudebug.core.answers.answer import Answer, omitted, plain, with_texts
from gpudebug.core.records import Gate
from gpudebug.core.words import Result, Status


class Pair(NamedTuple):
    first: str
    second: int


@dataclass(frozen=True, kw_only=True)
class Row:
    title: str
    status: Status
    note: str | None = omitted()
    for_: tuple[str, ...] = ("all",)


@dataclass(frozen=True, kw_only=True)
class Example(Answer):
    file: str
    rows: tuple[Row, ...]
    figures: dict[str, float | None]
    gate: Gate
    pair: Pair
    unknown: str | None = None


ANSWER = Example(
    file="/a/b",
    rows=(Row(title="one", status=Status.VALIDATED), Row(title="two", status=Status.TESTING, note="held")),
    figures={"loss": 0.5, "rate": None},
    gate=Gate(name="delta", value="8 pp", threshold="20 pp", result=Result.FAIL),
    pair=Pair("left", 2),
)
DOCUMENT = {
    "file": "/a/b",
    "rows": [
        {"title": "one", "status": "VALIDATED", "for": ["all"]},
        {"title": "two", "status": "TESTING", "note": "held", "for": ["all"]},
    ],
    "figures": {"loss": 0.5, "rate": None},
    "gate": {
        "name": "delta",
        "value": "8 pp",
        "threshold": "20 pp",
        "result": Result.FAIL.value,
        "note": None,
        "source": None,
        "unexplained": None,
    },
    "pair": ["left", 2],
    "unknown": None,
}


def test_its_json_has_its_fields_in_their_order_and_omits_what_does_not_apply() -> None:
    document = ANSWER.as_json()
    assert document == DOCUMENT
    assert [*document] == [*DOCUMENT]
    assert read(Example, document) == ANSWER


def test_other_texts_take_their_places_and_nothing_else_changes() -> None:
    document = ANSWER.as_json()
    document["rows"][1]["note"] = document["pair"][0] = document["gate"]["value"] = "hidden"
    document["rows"][1]["for"] = ["some"]
    document["figures"] = {"seen": 0.5, "rate": None}
    changed = with_texts(ANSWER, document)
    assert changed.as_json() == document
    assert changed.rows[1] == Row(title="two", status=Status.TESTING, note="hidden", for_=("some",))
    assert changed.rows[0].status is Status.VALIDATED
    assert (changed.gate.value, changed.pair, changed.file) == ("hidden", Pair("hidden", 2), "/a/b")
    assert with_texts(ANSWER, ANSWER.as_json()) == ANSWER


@dataclass(frozen=True, slots=True)
class Slotted:
    name: str
    rows: tuple[str, ...]


def test_a_record_with_slots_is_an_object_too() -> None:
    assert plain([Slotted("one", ("two",))]) == [{"name": "one", "rows": ["two"]}]
