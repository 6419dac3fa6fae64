from __future__ import annotations

import pytest

from gpudebug.core.progress import parse
from gpudebug.core.progress.entries import HypothesisEntry
from gpudebug.core.words import Status


def one(body: str) -> HypothesisEntry:
    [entry] = parse(f"# T\n\n### Hypothesis 7: Title\n{body}".encode(), "p.md").hypotheses
    return entry


def test_a_bare_heading_is_an_untested_hypothesis() -> None:
    entry = one("")
    assert (entry.number, entry.title, entry.status, entry.line) == (7, "Title", Status.UNTESTED, 3)
    assert (entry.description, entry.test_method, entry.intervention) == ("", "", None)
    assert (entry.status_note, entry.status_line, entry.result, entry.runs) == ("", None, {}, ())


@pytest.mark.parametrize(
    ("bullet", "cause"),
    [
        ("- **Cause**: dl-no-workers\n", "dl-no-workers"),
        ("- **Cause**: `dl-no-workers`\n", "dl-no-workers"),
        ("* Cause: py-gc\n- Status: REJECTED\n- **Result**:\n  - Loss: UNKNOWN\n", "py-gc"),
        ("- **Result**:\n  - Loss: UNKNOWN\n- **Cause**: py-gc\n", "py-gc"),
        ("- **Cause**: the loader waits\n", None),
        ("- **Cause**:\n", None),
        ("- **Description**: x\n", None),
    ],
)
def test_a_cause_is_the_id_of_one(bullet: str, cause: str | None) -> None:
    assert one(bullet).cause == cause


def test_runs_come_from_the_result_and_from_a_bullet_of_their_own() -> None:
    entry = one("- **Result**:\n  - Runs: runs/0005-h7\n- **Runs**: runs/0006-h7, runs/0005-h7\n")
    assert entry.runs == ("0005-h7", "0006-h7")


def test_the_line_of_a_status_is_that_of_its_value() -> None:
    assert one("\n- **Status**:\n  TESTING since noon\n").status_line == 6
    assert one("\n- **Status**:\n  TESTING since noon\n").status_note == "since noon"


@pytest.mark.parametrize("note", ["", " since noon", " - no effect", " (twice)"])
def test_a_status_reads_the_same_with_and_without_words_after_it(note: str) -> None:
    assert one(f"- **Status**: REJECTED{note}\n").status is Status.REJECTED


def test_an_entry_names_itself_in_a_debugger() -> None:
    assert repr(one("- Status: INVALID")) == "HypothesisEntry(7, 'Title', INVALID, line 3)"


def test_a_baseline_is_found_by_its_role() -> None:
    doc = parse(b"### Baseline: workload\n- Runs: runs/0001-a\n### Baseline: reference\n", "p.md")
    assert [doc.baselines[0], doc.baselines[1], None] == [
        doc.baseline(role) for role in ("workload", "reference", "other")
    ]


ENTRY = """\
# T

### Baseline: workload
- **GPU util**: 27.4%
- **Runs**: runs/0001-a

### Hypothesis 7: Title
- **Description**: It trains
  for long.
- **Status**: VALIDATED
- **Loss**: an own bullet
- **Result**: better
  - GPU util before: 27.4%
  - Loss: CONVERGING
    and more
  - Own: text
  - Runs: runs/0002-h7
"""

LINES = {
    "status": 10,
    "result": 12,
    "gpu util before": 13,
    "loss": 14,
    "own": 16,
    "runs": 17,
    "throughput": 12,
    "intervention": 7,
}


@pytest.mark.parametrize(("name", "line"), LINES.items())
def test_each_value_of_an_entry_has_its_line(name: str, line: int) -> None:
    doc = parse(ENTRY.encode(), "p.md")
    assert doc.line_of(doc.hypothesis(7), name) == line


def test_each_value_of_a_baseline_has_its_line() -> None:
    doc = parse(ENTRY.encode().replace(b"\n", b"\r\n"), "p.md")
    [entry] = doc.baselines
    assert [doc.line_of(entry, name) for name in ("gpu util", "runs", "loss")] == [4, 5, 3]
