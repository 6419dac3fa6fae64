from __future__ import annotations

import pytest

from gpudebug.core.progress.fields import (
    first_of,
    read_fields,
    read_status,
    result_values,
    run_names,
    uncode,
)
from gpudebug.core.words import Status


def fields(text: str) -> dict[str, str]:
    data = text.encode()
    return {field.name: field.text() for field in reversed(read_fields(data, 0, len(data))) if field.name}


def status(line: str) -> tuple[Status | None, str]:
    data = line.encode()
    field = first_of(read_fields(data, 0, len(data)), "status")
    assert field is not None
    reading = read_status(field)
    return reading.status, reading.note


def result(text: str) -> dict[str, str]:
    data = text.encode()
    field = first_of(read_fields(data, 0, len(data)), "result")
    assert field is not None
    return result_values(field)


@pytest.mark.parametrize(
    "line",
    [
        "- **Status**: REJECTED",
        "* **Status**: REJECTED",
        "+ **Status**: REJECTED",
        "- **Status:** REJECTED",
        "- **Status** : REJECTED",
        "- **Status**:REJECTED",
        "- __Status__: REJECTED",
        "- *Status*: REJECTED",
        "- _Status_: REJECTED",
        "- `Status`: REJECTED",
        "- ***Status***: REJECTED",
        "- **Status: REJECTED**",
        "- Status: REJECTED",
        "- status: rejected",
        "- STATUS: Rejected",
        "- **STATUS** - rejected",
        "- **Status** – REJECTED",
        "- **Status** — REJECTED",
        "- **Status**：REJECTED",
        "- **Status**:   REJECTED   ",
        "-\t**Status**:\tREJECTED",
        "  - **Status**: REJECTED",
        "- **Status**: **REJECTED**",
        "- **Status**: `REJECTED`",
        "- **Status**: _rejected_",
        "- **Status**: ❌ REJECTED",
        "- **Status**: ❌REJECTED",
        "- **Status**: 🔴 **REJECTED**",
        "- **Status**: :x: REJECTED",
        "- **Status**: :white_check_mark: REJECTED",
        "- **Status**: ⚠️ REJECTED ⚠️",
        "- **Status**: [REJECTED]",
        "- **Status**: REJECTED.",
        "- **Status**: ~~UNTESTED~~ REJECTED",
        "- **Status**: <!-- VALIDATED or REJECTED --> REJECTED",
        "- ✅ **Status**: REJECTED",
        "- [x] **Status**: REJECTED",
        "- **Status**:\n  REJECTED",
        "- **Status**:\n  - REJECTED",
        "**Status**: REJECTED",
        "**Status:** REJECTED",
        "Status: REJECTED",
    ],
)
def test_every_way_to_write_a_status(line: str) -> None:
    found, note = status(line)
    assert found is Status.REJECTED
    assert note.strip("️⚠") == "" or "\n" in line


@pytest.mark.parametrize("each", list(Status))
@pytest.mark.parametrize("write", [str.upper, str.lower, str.title])
def test_every_status_in_every_case(each: Status, write: object) -> None:
    assert callable(write)
    assert status(f"- **Status**: {write(each.value)}") == (each, "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- **Status**: REJECTED - no effect", (Status.REJECTED, "no effect")),
        ("- **Status**: REJECTED (no effect)", (Status.REJECTED, "(no effect)")),
        ("- **Status**: REJECTED: no effect", (Status.REJECTED, "no effect")),
        ("- **Status**: REJECTED — no effect", (Status.REJECTED, "no effect")),
        ("- **Status**: **REJECTED** – no effect", (Status.REJECTED, "no effect")),
        ("- **Status**: **REJECTED - no effect**", (Status.REJECTED, "no effect")),
        ("- **Status: REJECTED - no effect**", (Status.REJECTED, "no effect")),
        (
            "- **Status**: Rejected because VALIDATED was wrong",
            (Status.REJECTED, "because VALIDATED was wrong"),
        ),
        ("- **Status**: REJECTED | no effect", (Status.REJECTED, "no effect")),
        ("- **Status**:", (Status.UNTESTED, "")),
        # The seed's own template line, not filled in yet, is no verdict.
        ("- **Status**: VALIDATED | REJECTED", (Status.UNTESTED, "REJECTED")),
        ("- **Status**: [VALIDATED/REJECTED]", (Status.UNTESTED, "REJECTED]")),
        ("- **Status**: INVALIDATED", (None, "")),
        ("- **Status**: not tested", (None, "tested")),
        ("- **Status**: ✅", (None, "")),
        ("- **Status**: ?", (None, "")),
        ("- **Status**: 1", (None, "")),
    ],
)
def test_the_first_word_decides(line: str, expected: tuple[Status | None, str]) -> None:
    assert status(line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- **Description**: one\n  two\n  three\n", {"description": "one\ntwo\nthree"}),
        ("- **Description**: one\ntwo\n", {"description": "one\ntwo"}),
        ("- **Description**: one\n\n  two\n", {"description": "one\ntwo"}),
        ("- **Description**: one\n\nown text\n", {"description": "one"}),
        ("- **Description**:\n  one\n", {"description": "one"}),
        (
            "- **Description**: one\n  - a point\n  - Status: a point\n",
            {"description": "one\n- a point\n- Status: a point"},
        ),
        ("- **Description**: one\n> quoted\n", {"description": "one"}),
        ("- **Description**: one\n---\ntext\n", {"description": "one"}),
        (
            "- **Description**: one\n***\n- **Test Method**: two\n",
            {"description": "one", "test method": "two"},
        ),
        ("- **Test-Method**: x\n", {"test method": "x"}),
        ("- **test_method**: x\n", {"test method": "x"}),
        ("- **Method**: x\n", {"test method": "x"}),
        ("- **GPU Utilization**: 3%\n", {"gpu util": "3%"}),
        ("- **gpu utilisation**: 3%\n", {"gpu util": "3%"}),
        ("- **Result (4 runs)**: x\n", {"result": "x"}),
        ("- **Owner**: me\n- see https://example.com\n", {"owner": "me"}),
        (
            "- **Description**: one\n- own bullet\n  of two lines\n- Status: TESTING\n",
            {"description": "one", "status": "TESTING"},
        ),
        ("- **Description**: the first\n- **Description**: the second\n", {"description": "the first"}),
        ("**Description**: one\n**Status**: TESTING\n", {"description": "one", "status": "TESTING"}),
        ("Description: one\nStatus: TESTING\n", {"description": "one", "status": "TESTING"}),
        ("- Description: it says\nStatus: TESTING\n", {"description": "it says\nStatus: TESTING"}),
        ("    - **Status**: code\n", {}),
        ("plain: text\n", {}),
    ],
)
def test_which_lines_belong_to_a_field(text: str, expected: dict[str, str]) -> None:
    assert fields(text) == expected


WRITTEN = {
    "GPU util before": "27%",
    "GPU Utilization (after)": "61%",
    "loss": "CONVERGING",
    "Runs": "runs/0005-h1",
}
VALUES = {"gpu util before": "27%", "gpu util after": "61%", "loss": "CONVERGING", "runs": "runs/0005-h1"}


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("- **Result**:", "\n  - {}: {}"),
        ("- **Result**:", "\n    - {}: {}"),
        ("- **Result**:", "\n\t- {}: {}"),
        ("- **Result**:", "\n - {}: {}"),
        ("- **Result**:", "\n- {}: {}"),
        ("- **Result**:\n", "\n- {}: {}"),
        ("- **Result**:", "\n\n  - {}: {}"),
        ("- **Result**:", "\n  - **{}**: {}"),
        ("* Result:", "\n  * **{}:** {}"),
        ("- **Results**:", "\n  {}: {}"),
        ("- **Result**:", " {}: {};"),
        ("- **Result**:", " {}: {},"),
        ("- **Result**:", " {}: {} |"),
    ],
)
def test_every_way_to_write_a_result(head: str, line: str) -> None:
    text = head + "".join(line.format(key, value) for key, value in WRITTEN.items())
    assert result(text) == VALUES
    assert result(text + "\n- **Owner**: me\n") == VALUES


def test_a_result_without_a_bullet_and_one_with_ragged_values() -> None:
    flat = "**Result**:\n\n" + "".join(f"- {key}: {value}\n" for key, value in WRITTEN.items())
    assert result(flat) == VALUES
    for plain in ("Result:\n", "**Result**:\n", "- Result:\n"):
        assert result(plain + "".join(f"{key}: {value}\n" for key, value in WRITTEN.items())) == VALUES
    indents = ("  ", "      ", "    ", "   ")
    pairs = zip(indents, WRITTEN.items(), strict=True)
    assert result("- **Result**:\n" + "".join(f"{i}- {k}: {v}\n" for i, (k, v) in pairs)) == VALUES


def test_own_text_in_a_result() -> None:
    text = "- **Result**: promising\n  - Notes: first\n    second\n    - a point\n"
    text += "  - Seen by: Ada\n  - a remark\n"
    assert result(text) == {"summary": "promising", "notes": "first second - a point", "seen by": "Ada"}
    assert result("- **Result**:\n") == {}


def test_a_fence_in_a_field_belongs_to_it_and_holds_no_field() -> None:
    data = b"- **Test Method**: run\n  ```\n- **Status**: VALIDATED\n  ```\n- **Status**: TESTING\n"
    start, end = data.index(b"  ```"), data.rindex(b"- **Status")
    found = read_fields(data, 0, len(data), [(start, end)])
    assert [field.name for field in found] == ["test method", "status"]
    assert data[found[0].first.offset : found[0].end] == data[:end]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("runs/0001-a, runs/0002-b", ("0001-a", "0002-b")),
        ("`runs/0001-baseline-workload/`", ("0001-baseline-workload",)),
        ("0005-h1 0006-h1; 0005-h1", ("0005-h1", "0006-h1")),
        ("[0005-h1](../runs/0005-h1)", ("0005-h1",)),
        ("runs/12345-h10.", ("12345-h10",)),
        ("on 2025-01-02, 4 of them", ()),
        ("", ()),
    ],
)
def test_run_names(text: str, expected: tuple[str, ...]) -> None:
    assert run_names(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`a b`", "a b"),
        ("``a `b` c``", "a `b` c"),
        ("`` `a` ``", "`a`"),
        ("`a` and `b`", "`a` and `b`"),
        ("a `b`", "a `b`"),
        ("`", "`"),
        ("", ""),
        ("``", "``"),
    ],
)
def test_uncode(text: str, expected: str) -> None:
    assert uncode(text) == expected


def test_hostile_lines_take_linear_time() -> None:
    for text in (
        "- " + "*" * 300_000,
        "- **Status**: " + "<!--" * 100_000,
        "- **Status**: " + "~~" * 200_000,
        "- " + "a " * 200_000,
    ):
        fields(text)
        if "Status" in text:
            assert status(text)[0] is None
