from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.progress_files import CONTRACT, files, many_hypotheses, outside, values

from gpudebug.core.progress import (
    ProgressFile,
    next_acceptance,
    parse,
    reopen,
    set_accepted,
    set_result,
    set_status,
    set_testing,
)
from gpudebug.core.words import Status

RESULT = "- **Result**:\n  - GPU util after: {}.0%\n  - Notes: none\n  - Runs: runs/{:04d}-h1\n"


def read(text: str | bytes) -> ProgressFile:
    return parse(text if isinstance(text, bytes) else text.encode(), "p.md")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- **Status**: VALIDATED", "- **Status**: VALIDATED\n- **Accepted**: 3"),
        ("* **Status:** ✅ VALIDATED - at last", "* **Status:** ✅ VALIDATED - at last\n* **Accepted:** 3"),
        ("- **Status: VALIDATED**", "- **Status: VALIDATED**\n- **Accepted: 3**"),
        ("- **Status**: **VALIDATED**", "- **Status**: **VALIDATED**\n- **Accepted**: 3"),
        ("+ Status : VALIDATED", "+ Status : VALIDATED\n+ Accepted : 3"),
        ("- [x] **Status**: VALIDATED", "- [x] **Status**: VALIDATED\n- [x] **Accepted**: 3"),
        ("- **Status**:\n  VALIDATED", "- **Status**:\n  VALIDATED\n- **Accepted**: 3"),
        ("**Status**: VALIDATED", "**Status**: VALIDATED\n**Accepted**: 3"),
        ("- **Status** — VALIDATED", "- **Status** — VALIDATED\n- **Accepted** — 3"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["\n- **Result**:\n  - Notes: n\n- **Owner**: me\n", "\n\nown text\n", ""])
def test_an_acceptance_stands_below_the_status_in_its_style(
    before: str, after: str, ending: str, tail: str
) -> None:
    frame = "# T\n\n### Hypothesis 1: A\n- **Description**: d\n{}"
    text, wanted = ((frame.format(x) + tail).replace("\n", ending) for x in (before, after))
    made = set_accepted(read(text), 1, 3)
    assert made.decode() in (wanted, wanted + ending)
    entry = read(made).hypothesis(1)
    assert (entry.accepted, entry.status) == (3, Status.VALIDATED)
    assert entry.result == read(text).hypothesis(1).result


@pytest.mark.parametrize(
    ("written", "order"),
    [
        ("- **Accepted**: 1", 1),
        ("- Accepted: **12**", 12),
        ("* __Accepted:__ 2", 2),
        ("- **Accepted**: yes", None),
        ("- **Accepted**: 3 reviewers liked it", None),
        ("- **Accepted**: 0", None),
        ("- **Accepted**: -1", None),
        ("- **Accepted**: ２", None),
        ("- **Accepted**:", None),
        ("```\n- **Accepted**: 1\n```", None),
        ("- **Accepted**: yes\n- **Accepted**: 4", 4),
    ],
)
def test_what_counts_as_accepted(written: str, order: int | None) -> None:
    text = f"### Hypothesis 1: A\n- **Status**: VALIDATED\n- **Owner**: me\n{written}\n"
    assert read(text).hypothesis(1).accepted == order


def test_acceptances_are_numbered_in_their_order() -> None:
    doc = read(CONTRACT)
    assert next_acceptance(doc) == 1
    doc = read(set_accepted(doc, 1, 1))
    assert next_acceptance(doc) == 2
    assert set_accepted(doc, 1, 2) == doc.data, "an accepted one stays as it is"


def test_what_has_no_status_is_not_accepted() -> None:
    with pytest.raises(ValueError, match="no status"):
        set_accepted(read("### Hypothesis 1: A\n- **Description**: d\n"), 1, 1)


def test_a_reopened_hypothesis_keeps_its_results() -> None:
    text = "### Hypothesis 1: A\n- **Intervention**: --set --a=1\n- **Status**: UNTESTED\n- **Owner**: me\n"
    doc = read(text)
    for turn, status in enumerate([Status.REJECTED, Status.INCONCLUSIVE, Status.VALIDATED], 1):
        doc = read(set_result(doc, 1, status, RESULT.format(turn, turn)))
        assert doc.hypothesis(1).runs == (f"{turn:04d}-h1",)
        if turn < 3:
            doc = read(reopen(doc, 1))
            assert (doc.hypothesis(1).runs, doc.hypothesis(1).result) == ((), {})
    assert doc.data.decode() == (
        "### Hypothesis 1: A\n"
        "- **Intervention**: --set --a=1\n"
        "- **Status**: VALIDATED\n"
        "- **Result**:\n  - GPU util after: 3.0%\n  - Notes: none\n  - Runs: runs/0003-h1\n"
        "- **Earlier result 2 (INCONCLUSIVE)**:\n"
        "  - GPU util after: 2.0%\n  - Notes: none\n  - Runs: runs/0002-h1\n"
        "- **Earlier result (REJECTED)**:\n"
        "  - GPU util after: 1.0%\n  - Notes: none\n  - Runs: runs/0001-h1\n"
        "- **Owner**: me\n"
    )
    assert set(doc.hypothesis(1).earlier_runs) == {"0001-h1", "0002-h1"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "- **Status**: REJECTED - too slow\n- **Result**:\n  - Notes: n\n",
            "- **Status**: UNTESTED\n- **Earlier result (REJECTED)**: too slow\n  - Notes: n\n",
        ),
        (
            "* Status: rejected\n* Results: no gain; runs: runs/0001-h1\n",
            "* Status: UNTESTED\n* Earlier result (REJECTED): no gain; runs: runs/0001-h1\n",
        ),
        (
            "- **Status**: REJECTED - by hand\n- **Result**: none\n- Runs: runs/0001-h1\n",
            "- **Status**: UNTESTED\n- **Earlier result (REJECTED)**: by hand; none\n"
            "- Earlier runs: runs/0001-h1\n",
        ),
        (
            "- **Status**: INVALID\n- **Result**:\n- Training: SUCCESS\n- Runs: runs/0001-h1\n",
            "- **Status**: UNTESTED\n- **Earlier result (INVALID)**:\n- Training: SUCCESS\n"
            "- Runs: runs/0001-h1\n",
        ),
        (
            "**Status:** INVALID\n\n**Result:**\n- Runs: runs/0001-h1\n",
            "**Status:** UNTESTED\n\n**Earlier result (INVALID):**\n- Runs: runs/0001-h1\n",
        ),
        (
            "- **Status** — INVALID\n- **Result** — Runs: runs/0001-h1\n",
            "- **Status** — UNTESTED\n- **Earlier result (INVALID)** — Runs: runs/0001-h1\n",
        ),
        (
            "- **Status: INVALID**\n- **Result (4 runs): Runs: runs/0001-h1**\n",
            "- **Status: UNTESTED**\n- **Earlier result (INVALID) (4 runs): Runs: runs/0001-h1**\n",
        ),
        (
            "- **Status**: INCONCLUSIVE - see runs/0001-h1\n",
            "- **Status**: UNTESTED\n- **Earlier result (INCONCLUSIVE)**: see runs/0001-h1\n",
        ),
        ("- **Status**: INVALID", "- **Status**: UNTESTED\n- **Earlier result (INVALID)**:\n"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_only_the_keys_of_a_result_change(before: str, after: str, ending: str) -> None:
    before, after = ((f"### Hypothesis 1: A\n{text}").replace("\n", ending) for text in (before, after))
    doc = read(reopen(read(before), 1))
    assert doc.data.decode() == after
    entry = doc.hypothesis(1)
    assert (entry.status, entry.runs, entry.result) == (Status.UNTESTED, (), {})
    assert entry.earlier_runs == (("0001-h1",) if "0001-h1" in before else ())
    again = read(set_result(doc, 1, Status.VALIDATED, RESULT.format(9, 9))).hypothesis(1)
    assert (again.runs, again.earlier_runs) == (("0009-h1",), entry.earlier_runs)
    assert again.result["gpu util after"] == "9.0%"


@given(files(), st.integers(0, 3), st.integers(1, 99))
def test_an_acceptance_adds_a_line_and_nothing_else(data: bytes, pick: int, order: int) -> None:
    doc = read(data)
    stated = [h for h in doc.hypotheses if h.status_line is not None]
    if not stated:
        return
    entry = stated[pick % len(stated)]
    made = set_accepted(doc, entry.number, order)
    again = read(made)
    changed = again.hypothesis(entry.number)
    assert changed.accepted == order
    assert values(again) == values(doc)
    assert outside(again, changed.start, changed.end) == outside(doc, entry.start, entry.end)
    kept = made.replace(b"\r\n", b"\n").split(b"\n")
    for line in data.replace(b"\r\n", b"\n").split(b"\n"):
        kept = kept[kept.index(line) + 1 :]
    assert set_accepted(again, entry.number, order + 1) == made


@given(files(), st.integers(0, 3), st.lists(st.sampled_from(Status), min_size=1, max_size=3))
def test_reopening_keeps_every_result_and_every_other_byte(
    data: bytes, pick: int, statuses: list[Status]
) -> None:
    doc = first = read(data)
    if not doc.hypotheses:
        return
    number = doc.hypotheses[pick % len(doc.hypotheses)].number
    seen: set[str] = set(doc.hypothesis(number).runs)
    for turn, status in enumerate(statuses, 1):
        doc = read(reopen(doc, number))
        entry = doc.hypothesis(number)
        assert (entry.status, entry.status_note) == (Status.UNTESTED, "")
        assert (entry.runs, entry.result) == ((), {})
        assert set(entry.earlier_runs) >= seen
        assert values(doc, number) == values(first, number)
        doc = read(set_result(doc, number, status, RESULT.format(turn, turn + 100)))
        assert doc.hypothesis(number).runs == (f"{turn + 100:04d}-h1",)
        assert set(doc.hypothesis(number).earlier_runs) >= seen
        seen.add(f"{turn + 100:04d}-h1")
    old, new = first.hypothesis(number), doc.hypothesis(number)
    assert outside(doc, new.start, new.end) == outside(first, old.start, old.end)
    for own in (b"own bullet", b"own text", b"Mine: stays", b"**Owner**: me", b"no entry", b"quoted"):
        assert doc.data.count(own) == data.count(own)


def test_a_large_file_is_reopened_and_accepted() -> None:
    doc = read(many_hypotheses(2000))
    made = read(set_accepted(read(set_status(doc, 1999, Status.VALIDATED)), 1999, 1))
    assert [h.number for h in made.hypotheses if h.accepted] == [1999]
    assert read(reopen(doc, 2)).hypothesis(2).earlier_runs == ("0009-h2", "0010-h2")


BEGUN = [
    (
        "replaced",
        "### Hypothesis 1: x\n- **Intervention**: --code\n- **Status**: UNTESTED\n- Own: y\n",
        "### Hypothesis 1: x\n- **Intervention**: --patch p\n- **Status**: TESTING - since 1\n- Own: y\n",
    ),
    (
        "added in front of the status",
        "### Hypothesis 1: x\n* **Description**: d\n* **Status**: UNTESTED\n",
        "### Hypothesis 1: x\n* **Description**: d\n* **Intervention**: --patch p\n"
        "* **Status**: TESTING - since 1\n",
    ),
    (
        "a value that went on is replaced whole",
        "### Hypothesis 1: x\r\n- Intervention:\r\n  --code\r\n- Status: UNTESTED\r\n",
        "### Hypothesis 1: x\r\n- Intervention: --patch p\r\n- Status: TESTING - since 1\r\n",
    ),
    (
        "neither is there",
        "### Hypothesis 1: x\n- **Test Method**: m\n\n## Notes\n",
        "### Hypothesis 1: x\n- **Test Method**: m\n- **Intervention**: --patch p\n"
        "- **Status**: TESTING - since 1\n\n## Notes\n",
    ),
]


@pytest.mark.parametrize(("text", "expected"), [c[1:] for c in BEGUN], ids=[c[0] for c in BEGUN])
def test_a_trial_that_begins_has_its_status_and_change(text: str, expected: str) -> None:
    document = read(text)
    found = read(set_testing(document, 1, "since 1", "--patch p"))
    entry = found.hypothesis(1)
    assert (entry.status, entry.intervention) == (Status.TESTING, "--patch p")
    assert sorted(found.data.decode().splitlines()) == sorted(expected.splitlines())


def test_without_a_change_only_the_status_is_touched() -> None:
    text = "### Hypothesis 1: x\n- **Intervention**: --set --a=1\n- **Status**: UNTESTED\n"
    document = read(text)
    assert set_testing(document, 1, "since 1").decode() == text.replace("UNTESTED", "TESTING - since 1")
