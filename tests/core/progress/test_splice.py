from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.progress_files import CONTRACT, files, many_hypotheses, outside, values

from gpudebug.core.errors import ProgressError
from gpudebug.core.progress import (
    ProgressFile,
    add_hypothesis,
    next_number,
    parse,
    set_baseline,
    set_result,
    set_status,
    with_heading,
)
from gpudebug.core.words import Status
from gpudebug.edges import templates

ENTRY = "### Hypothesis {}: New\n- **Description**: d\n- **Test Method**: m\n- **Status**: UNTESTED\n"
RESULT = (
    "- **Result**:\n  - GPU util before: 1.0%\n  - GPU util after: 2.0%\n"
    "  - Runs: runs/0009-h1, runs/0010-h1\n"
)
VALUES = [
    "gpu_util_before",
    "gpu_util_after",
    "metric",
    "improvement",
    "training",
    "loss",
    "throughput",
    "notes",
]
BASELINE = (
    "### Baseline: workload\n- **Command**: `x`\n- **GPU util**: 9%\n- **Runs**: runs/0007-w, runs/0008-w\n"
)


def read(text: str | bytes) -> ProgressFile:
    return parse(text if isinstance(text, bytes) else text.encode(), "p.md")


def crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- **Status**: UNTESTED", "- **Status**: TESTING"),
        ("* **Status:** untested", "* **Status:** TESTING"),
        ("+ Status : UNTESTED  ", "+ Status : TESTING  "),
        ("- __Status__: **UNTESTED**", "- __Status__: **TESTING**"),
        ("- **Status**: `UNTESTED`", "- **Status**: `TESTING`"),
        ("- **Status: UNTESTED**", "- **Status: TESTING**"),
        ("- **Status: UNTESTED - as yet**", "- **Status: TESTING**"),
        ("- **Status**: **UNTESTED - as yet**", "- **Status**: **TESTING**"),
        ("- **Status**: ⏳ UNTESTED", "- **Status**: TESTING"),
        ("- **Status**: **⏳ UNTESTED**", "- **Status**: **TESTING**"),
        ("- **Status**: **⏳ UNTESTED - as yet**", "- **Status**: **TESTING**"),
        ("- [ ] **Status**: UNTESTED", "- [ ] **Status**: TESTING"),
        ("- **Status**: REJECTED - no effect", "- **Status**: TESTING"),
        ("- **Status**:", "- **Status**: TESTING"),
        ("- **Status**: ", "- **Status**: TESTING"),
        ("- **Status**:UNTESTED", "- **Status**: TESTING"),
        ("-\tStatus:\tUNTESTED", "-\tStatus:\tTESTING"),
        ("- **Status**:\n  UNTESTED", "- **Status**:\n  TESTING"),
        ("- **Status**:\n  - UNTESTED", "- **Status**:\n  - TESTING"),
        ("- **Status** — UNTESTED", "- **Status** — TESTING"),
        ("**Status**: UNTESTED", "**Status**: TESTING"),
        ("- **Status**: VALIDATED | REJECTED", "- **Status**: TESTING"),
        ("- **Status**: TESTING since noon", "- **Status**: TESTING since noon"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_status_changes_in_the_style_that_it_has(before: str, after: str, ending: str) -> None:
    frame = "# T\n\n### Hypothesis 1: A\n- **Owner**: me\n{}\n- **Notes**: mine\n\n## End"
    text = frame.replace("\n", ending)
    old, new = before.replace("\n", ending), after.replace("\n", ending)
    made = set_status(read(text.format(old)), 1, Status.TESTING)
    assert made.decode() == text.format(new)
    assert read(made).hypotheses[0].status is Status.TESTING


@pytest.mark.parametrize("note", ["no effect", "- no effect", ": no\neffect\n### Hypothesis 2: B"])
def test_a_note_follows_the_status(note: str) -> None:
    for value in ("UNTESTED", "**UNTESTED**", "`REJECTED` - earlier"):
        doc = read(f"### Hypothesis 1: A\n- **Status**: {value}\n")
        [entry] = read(set_status(doc, 1, Status.REJECTED, note)).hypotheses
        assert entry.status is Status.REJECTED
        assert entry.status_note in ("no effect", "no effect ### Hypothesis 2: B")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("### Hypothesis 1: A\n", "### Hypothesis 1: A\n- **Status**: TESTING\n"),
        ("### Hypothesis 1: A", "### Hypothesis 1: A\n- **Status**: TESTING\n"),
        ("### Hypothesis 1: A\ntext\n", "### Hypothesis 1: A\n- **Status**: TESTING\n\ntext\n"),
        ("### Hypothesis 1: A\n- own\n", "### Hypothesis 1: A\n- **Status**: TESTING\n- own\n"),
        (
            "## Hypothesis 1: A\n* Description: d\n  more\n* own\n",
            "## Hypothesis 1: A\n* Description: d\n  more\n* Status: TESTING\n* own\n",
        ),
        (
            "## Hypothesis 1: A\n- **Description:** d\n- **Test Method:** m\n",
            "## Hypothesis 1: A\n- **Description:** d\n- **Test Method:** m\n- **Status:** TESTING\n",
        ),
        (
            "## Hypothesis 1: A\n* **Result**: none\n",
            "## Hypothesis 1: A\n* **Status**: TESTING\n* **Result**: none\n",
        ),
        (
            "## Hypothesis 1: A\n**Description**: d\n\ntext\n",
            "## Hypothesis 1: A\n**Description**: d\n**Status**: TESTING\n\ntext\n",
        ),
        ("## Hypothesis 1: A\n- Description: d", "## Hypothesis 1: A\n- Description: d\n- Status: TESTING\n"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_missing_status_is_added(before: str, after: str, ending: str) -> None:
    before, after = before.replace("\n", ending), after.replace("\n", ending)
    made = set_status(read("# T" + ending + before), 1, Status.TESTING)
    assert made.decode() == "# T" + ending + after
    assert read(made).hypotheses[0].status is Status.TESTING


def test_a_result_is_added_below_the_status() -> None:
    made = set_result(read(CONTRACT), 2, Status.REJECTED, RESULT, "no effect")
    assert made.decode() == CONTRACT.replace("UNTESTED\n", "REJECTED - no effect\n" + RESULT)


def test_every_value_that_gpudebug_writes_is_replaced_by_the_next_result() -> None:
    block = templates.render("result.md.j2", **dict.fromkeys(VALUES, "1"), runs=["0009-h1"])
    once = set_result(read(ENTRY.format(1)), 1, Status.REJECTED, block)
    assert set_result(read(once), 1, Status.REJECTED, block) == once


def test_a_result_is_replaced_and_own_bullets_stay() -> None:
    text = (
        "## Hypothesis 1: A\r\n* **Owner**: me\r\n* **Status**: ✅ VALIDATED\r\n* **Result**: good\r\n"
        "    * GPU util before: [baseline]%\r\n    * Seen by: Ada\r\n      and Bob\r\n    * Notes: old\r\n"
        "      and long\r\n* own bullet\r\n\r\nown text\r\n\r\n## End\r\n"
    )
    made = set_result(read(text), 1, Status.INCONCLUSIVE, RESULT)
    block = crlf(RESULT.replace("- ", "* "))
    assert made.decode() == (
        "## Hypothesis 1: A\r\n* **Owner**: me\r\n* **Status**: INCONCLUSIVE\r\n"
        + block.replace("GPU util before", "Seen by: Ada\r\n      and Bob\r\n  * GPU util before").replace(
            "  * Seen", "    * Seen"
        )
        + "* own bullet\r\n\r\nown text\r\n\r\n## End\r\n"
    )
    [entry] = read(made).hypotheses
    assert entry.runs == ("0009-h1", "0010-h1")
    assert entry.result["gpu util after"] == "2.0%"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "text\n",
        "- **Description**: d\n",
        "**Description**: d\n**Status**: UNTESTED\n",
        "**Status**: UNTESTED\n**Result**:\n\n- GPU util before: 7%\n",
        "Status: UNTESTED\nDescription: d\n",
        "- **Status**: UNTESTED\n- **Result**:\n- GPU util before: 7%\n- Loss: NaN\n",
        "- **Result**:\n  - GPU util before: 7%",
        "  - **Status**: UNTESTED\n  - **Result**: none",
        "- Status: UNTESTED\n  because\n\n  of this\n\n- own\n",
        "- Status: UNTESTED\n  ```\n  - Result: none\n  ```\n",
    ],
)
@pytest.mark.parametrize("tail", ["", "\n## End\n- Result: own\n"])
def test_a_result_reads_back_from_every_kind_of_entry(body: str, tail: str) -> None:
    doc = read(f"### Hypothesis 1: A\n{body}{tail}")
    made = set_result(doc, 1, Status.REJECTED, RESULT, "why")
    [entry] = read(made).hypotheses
    assert (entry.status, entry.status_note) == (Status.REJECTED, "why")
    assert entry.result == {
        "gpu util before": "1.0%",
        "gpu util after": "2.0%",
        "runs": "runs/0009-h1, runs/0010-h1",
    }
    assert made.decode().endswith(tail)
    assert set_result(read(made), 1, Status.VALIDATED, RESULT) == made


def test_a_run_that_stands_there_already_changes_nothing() -> None:
    made = set_result(read(CONTRACT), 2, Status.REJECTED, RESULT)
    fewer = RESULT.replace(", runs/0010-h1", "")
    assert set_result(read(made), 2, Status.VALIDATED, fewer, "other") == made
    more = RESULT.replace("0010-h1", "0010-h1, runs/0011-h1")
    assert read(set_result(read(made), 2, Status.VALIDATED, more)).hypotheses[1].status is Status.VALIDATED


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "## Hypotheses\n\n{}"),
        ("# T\n", "# T\n\n## Hypotheses\n\n{}"),
        ("# T", "# T\n\n## Hypotheses\n\n{}"),
        ("# T\n\n## Hypotheses\n", "# T\n\n## Hypotheses\n\n{}"),
        ("# T\n\n## Hypotheses\n\n## End\n", "# T\n\n## Hypotheses\n\n{}\n## End\n"),
        ("## Hypotheses\ntext\n## End\n", "## Hypotheses\ntext\n\n{}\n## End\n"),
        (
            "## Hypotheses\n\n### Hypothesis 1: A\n\n### Own\ntext\n\n## End\n",
            "## Hypotheses\n\n### Hypothesis 1: A\n\n### Own\ntext\n\n{}\n## End\n",
        ),
        ("# T\n\n### Hypothesis 1: A\n- x\n\n## End\n", "# T\n\n### Hypothesis 1: A\n- x\n\n{}\n## End\n"),
        ("## Hypothesis 1: A\n- x", "## Hypothesis 1: A\n- x\n\n#{}"),
        ("## Hypotheses\n## Hypothesis 1: A\n## End", "## Hypotheses\n## Hypothesis 1: A\n\n#{}\n## End"),
        ("## 🧪 Hypotheses (newest last):\n", "## 🧪 Hypotheses (newest last):\n\n{}"),
        ("```\n## Hypotheses\n```\n", "```\n## Hypotheses\n```\n\n## Hypotheses\n\n{}"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_where_a_hypothesis_is_added(before: str, after: str, ending: str, bom: str) -> None:
    doc = read((bom + before).replace("\n", ending))
    number = next_number(doc)
    rendered = ENTRY.format(number)
    rendered_here = after.replace("#{}", rendered[1:]) if "#{}" in after else after.replace("{}", rendered)
    made = add_hypothesis(doc, rendered).decode()
    if "\n" in before:
        assert made == (bom + rendered_here).replace("\n", ending)
    assert made.startswith(bom) and made.replace("\r\n", "\n").removeprefix(bom) == rendered_here
    again = read(made).hypotheses
    assert (again[-1].number, again[-1].title, again[-1].status) == (number, "New", Status.UNTESTED)


def test_a_hypothesis_follows_the_last_one_where_the_section_has_none() -> None:
    doc = read("## Hypotheses\n- ideas\n\n## Log\n\n#### Hypothesis 1: A\n\n## End\n")
    made = add_hypothesis(doc, ENTRY.format(2)).decode()
    assert made == doc.data.decode().replace("\n## End", f"\n#{ENTRY.format(2)}\n## End")


def test_numbers_go_on_after_the_highest() -> None:
    assert next_number(read("")) == 1
    doc = read("### Hypothesis 7: A\n### Hypothesis 3: B\n")
    assert next_number(doc) == 8
    with pytest.raises(ProgressError, match="hypothesis 3 is already in the file; next: use 8"):
        add_hypothesis(doc, ENTRY.format(3))


@pytest.mark.parametrize("opener", ["```", "<!--", "~~~~ text"])
def test_nothing_is_added_where_an_unclosed_fence_would_swallow_it(opener: str) -> None:
    doc = read(f"# T\n\n### Hypothesis 1: A\n\n{opener}\ntext\n")
    with pytest.raises(ProgressError) as caught:
        add_hypothesis(doc, ENTRY.format(2))
    assert caught.value.line == 5 and caught.value.next == "close it, then try again"
    assert b"TESTING" in set_status(doc, 1, Status.TESTING)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "## Baselines\n\n{}"),
        ("# T\n\n## Baselines\n\n## Hypotheses\n", "# T\n\n## Baselines\n\n{}\n## Hypotheses\n"),
        (
            "# T\n\n## Hypotheses\n\n### Hypothesis 1: A\n",
            "# T\n\n## Baselines\n\n{}\n## Hypotheses\n\n### Hypothesis 1: A\n",
        ),
        ("# T\n\n## Hypothesis 1: A\n", "# T\n\n## Baselines\n\n{}\n## Hypothesis 1: A\n"),
        ("# T\n\n### Hypothesis 1: A\n", "# T\n\n## Baselines\n\n{}\n## Hypotheses\n\n### Hypothesis 1: A\n"),
        (
            "# T\n\n## Log\n\n### Hypothesis 1: A\n",
            "# T\n\n## Baselines\n\n{}\n## Log\n\n### Hypothesis 1: A\n",
        ),
        ("## Baseline Results\n- mine\n\n## End\n", "## Baseline Results\n- mine\n\n{}\n## End\n"),
        ("### Baseline: reference\n- Runs: none\n", "### Baseline: reference\n- Runs: none\n\n{}"),
    ],
)
def test_where_a_baseline_is_added(before: str, after: str) -> None:
    made = set_baseline(read(before), "workload", BASELINE)
    assert made.decode() == after.replace("{}", BASELINE)
    found = read(made).baseline("workload")
    assert found is not None and found.runs == ("0007-w", "0008-w")


def test_a_baseline_is_replaced_and_own_bullets_stay() -> None:
    text = (
        "# T\n\n## Workload baseline\n\n* **Seen by**: Ada\n* **GPU Utilization:** 27%\n  or so\n* own\n"
        "* **Throughput**: 6 steps/s\n* Runs: none\n\ntext\n\n## Hypotheses\n"
    )
    made = set_baseline(read(text), "workload", BASELINE).decode()
    block = BASELINE.partition("\n")[2].replace("- ", "* ")
    assert made == (
        "# T\n\n## Workload baseline\n\n* **Seen by**: Ada\n"
        + block
        + "* own\n* **Throughput**: 6 steps/s\n\n"
        "text\n\n## Hypotheses\n"
    )
    assert set_baseline(read(made), "workload", BASELINE.replace("9%", "8%")).decode() == made
    other = BASELINE.replace("0008-w", "0009-w")
    assert read(set_baseline(read(made), "workload", other)).baselines[0].runs == ("0007-w", "0009-w")


@pytest.mark.parametrize("body", ["", "\n", "text\n", "\n- own\n", "\r\n"])
def test_a_baseline_without_figures_gets_them(body: str) -> None:
    made = set_baseline(read("### Baseline: workload\n" + body), "workload", BASELINE)
    [found] = read(made).baselines
    assert (found.fields["gpu util"], found.runs) == ("9%", ("0007-w", "0008-w"))


def test_only_a_blank_file_gets_a_heading() -> None:
    head = "# GPU utilization debugging: x\n\n## Hypotheses\n"
    assert with_heading(read(""), head).data == head.encode()
    assert with_heading(read("\ufeff\r\n"), head).data == b"\xef\xbb\xbf" + crlf(head).encode()
    doc = read("mine")
    assert with_heading(doc, head) is doc


@pytest.mark.parametrize(
    "rendered",
    [
        "",
        "text\n",
        "text\n" + ENTRY.format(9),
        ENTRY.format(9) + ENTRY.format(10),
        ENTRY.format(9) + "```\n",
        ENTRY.format(9) + "<!--\n",
        ENTRY.format(9) + "<<<<<<< HEAD\n",
        ENTRY.format(9).replace("UNTESTED", "DONE"),
    ],
)
def test_a_text_that_reaches_beyond_its_entry_is_a_defect(rendered: str) -> None:
    with pytest.raises(ValueError):
        add_hypothesis(read(CONTRACT), rendered)
    with pytest.raises(ValueError):
        set_baseline(read(CONTRACT), "workload", rendered)
    with pytest.raises(ValueError):
        set_result(read(CONTRACT), 2, Status.REJECTED, rendered)


@given(files(), st.sampled_from(Status), st.integers(0, 3), st.sampled_from(["", "why"]))
def test_a_status_changes_one_line_and_nothing_else(
    data: bytes, status: Status, pick: int, note: str
) -> None:
    doc = read(data)
    if not doc.hypotheses:
        return
    entry = doc.hypotheses[pick % len(doc.hypotheses)]
    made = set_status(doc, entry.number, status, note)
    again = read(made)
    changed = again.hypothesis(entry.number)
    assert changed.status is status
    assert changed.status_note == note or (not note and entry.status is status)
    assert values(again, entry.number) == values(doc, entry.number)
    assert (changed.description, changed.test_method, changed.result) == (
        entry.description,
        entry.test_method,
        entry.result,
    )
    assert outside(again, changed.start, changed.end) == outside(doc, entry.start, entry.end)
    old, new = data.splitlines(keepends=True), made.splitlines(keepends=True)
    if entry.status_line is not None:
        assert len(old) == len(new)
        assert [i + 1 for i, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]] in (
            [],
            [entry.status_line],
        )
    assert set_status(again, entry.number, status, note) == made


@given(files(), st.sampled_from(Status), st.integers(0, 3))
def test_a_result_changes_one_entry_and_nothing_else(data: bytes, status: Status, pick: int) -> None:
    doc = read(data)
    if not doc.hypotheses:
        return
    entry = doc.hypotheses[pick % len(doc.hypotheses)]
    made = set_result(doc, entry.number, status, RESULT)
    again = read(made)
    changed = again.hypothesis(entry.number)
    assert changed.status is status
    assert changed.result["gpu util after"] == "2.0%"
    assert set(changed.runs) >= {"0009-h1", "0010-h1"}
    assert changed.result["runs"] == "runs/0009-h1, runs/0010-h1"
    assert values(again, entry.number) == values(doc, entry.number)
    assert (changed.description, changed.test_method) == (entry.description, entry.test_method)
    assert outside(again, changed.start, changed.end) == outside(doc, entry.start, entry.end)
    for own in (b"own bullet", b"own text", b"Mine: stays", b"**Owner**: me", b"no entry", b"quoted"):
        assert made.count(own) == data.count(own)
    assert set_result(again, entry.number, Status.INVALID, RESULT, "another") == made


@given(files())
def test_a_hypothesis_is_added_and_every_byte_is_kept(data: bytes) -> None:
    doc = read(data)
    number = next_number(doc)
    made = add_hypothesis(doc, ENTRY.format(number))
    again = read(made)
    added = again.hypothesis(number)
    assert (added.title, added.description, added.status) == ("New", "d", Status.UNTESTED)
    assert values(again, number) == values(doc)
    before, after = made[: added.start], made[added.end :]
    head = before.removesuffix(b"## Hypotheses\n\n").removesuffix(b"## Hypotheses\r\n\r\n")
    assert any(
        data.startswith(kept) and data[len(kept) :] == after
        for kept in (before, head, *stripped(before), *stripped(head))
    )


@given(files(), st.sampled_from(["workload", "reference"]))
def test_a_baseline_changes_and_nothing_else(data: bytes, role: str) -> None:
    doc = read(data)
    rendered = BASELINE.replace("workload", role)
    made = set_baseline(doc, role, rendered)
    again = read(made)
    changed = again.baseline(role)
    assert changed is not None and changed.runs == ("0007-w", "0008-w")
    assert changed.fields["gpu util"] == "9%"
    assert values(again, role) == values(doc, role)
    old = doc.baseline(role)
    if old is not None:
        assert outside(again, changed.start, changed.end) == outside(doc, old.start, old.end)
    assert set_baseline(again, role, rendered) == made


def stripped(head: bytes) -> list[bytes]:
    """`head` without the one or two line endings that set a new block apart."""
    found, rest = [], head
    for _ in range(2):
        rest = rest.removesuffix(b"\n").removesuffix(b"\r")
        found.append(rest)
    return found


def test_a_large_file_is_spliced_in_a_moment() -> None:
    doc = read(many_hypotheses(3000))
    for number in range(1, 3000, 100):
        made = set_result(doc, number, Status.REJECTED, RESULT)
        assert len(made) != len(doc.data)
    assert read(made).hypotheses[-1].number == 3000
