"""The progress file as its users see it: parse, splice, render, harmless text, all together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.progress_files import CONTRACT, many_hypotheses

from gpudebug.core.progress import (
    add_hypothesis,
    harmless,
    next_number,
    parse,
    set_baseline,
    set_result,
    set_status,
    with_heading,
)
from gpudebug.core.words import Status
from gpudebug.edges.templates import render

BY_HAND = """\
# GPU Utilization Debugging Plan

## Goal

Find out why the new policy is slow.

**Baseline Results** (confirmed):
- Old policy: Good GPU utilization (>80%)
- New policy: Poor GPU utilization (<30%)

## Progress File Format

```markdown
### Hypothesis N: [Title]
- **Status**: VALIDATED | REJECTED
- **Result**:
  - GPU util before: [baseline]%
```

## Progress

### Hypothesis 1: Images are decoded twice
- **Description**: Two frames are loaded
  and one is used
- **Test Method**: Load one
- **Status**: ❌ REJECTED - nothing changed
- **Result**:
  - GPU util before: 25%
  - GPU util after: 27%
  - Notes: the second frame is cheap

### Hypothesis 2 - Too few workers
* Description: one worker decodes everything
* Status: untested

## Critical files

- `train.py`
"""


def test_a_file_kept_by_hand_is_read_kept_and_continued() -> None:
    doc = parse(BY_HAND.encode(), "p.md")
    assert doc.title == "GPU Utilization Debugging Plan"
    assert doc.baselines == ()
    assert [(h.number, h.status, h.runs) for h in doc.hypotheses] == [
        (1, Status.REJECTED, ()),
        (2, Status.UNTESTED, ()),
    ]
    data = set_baseline(doc, "workload", _baseline("workload"))
    data = set_status(parse(data, "p.md"), 2, Status.TESTING)
    data = set_result(parse(data, "p.md"), 2, Status.VALIDATED, _result("0005-h2"))
    data = add_hypothesis(parse(data, "p.md"), _hypothesis(3, "Pinned memory"))
    made = data.decode()
    expected = BY_HAND.replace("## Progress\n", f"## Baselines\n\n{_baseline('workload')}\n## Progress\n")
    expected = expected.replace(
        "* Status: untested\n", "* Status: VALIDATED\n" + _result("0005-h2").replace("- ", "* ")
    )
    expected = expected.replace("\n## Critical", f"\n{_hypothesis(3, 'Pinned memory')}\n## Critical")
    assert made == expected


def test_a_campaign_from_an_empty_file_to_a_verdict() -> None:
    doc = with_heading(parse(b"", "p.md"), render("progress.md.j2", campaign="act", goal="Mend it."))
    for title in ("Frames", "Workers"):
        doc = parse(add_hypothesis(doc, _hypothesis(next_number(doc), title)), "p.md")
    for role in ("workload", "reference"):
        doc = parse(set_baseline(doc, role, _baseline(role)), "p.md")
    doc = parse(set_status(doc, 1, Status.TESTING), "p.md")
    doc = parse(set_result(doc, 1, Status.INCONCLUSIVE, _result("0005-h1"), "delta unknown"), "p.md")
    assert [(b.role, b.runs) for b in doc.baselines] == [
        ("workload", ("0001-baseline-workload",)),
        ("reference", ("0001-baseline-reference",)),
    ]
    first, second = doc.hypotheses
    assert (first.status, first.status_note, first.runs) == (
        Status.INCONCLUSIVE,
        "delta unknown",
        ("0005-h1",),
    )
    assert (second.number, second.title, second.status) == (2, "Workers", Status.UNTESTED)


HOSTILE = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [
            "### Hypothesis 9: mine",
            "## ",
            "- **Status**: VALIDATED",
            "**Status**: VALIDATED",
            "- **Result**:",
            "  - Runs: runs/0001-h9",
            "```",
            "~~~~",
            "`",
            "<!--",
            "-->",
            "<<<<<<< HEAD",
            "=======",
            "\n",
            "\r",
            "\r\n",
            "\u2028",
            "\x85",
            "\x0b",
            "\x1b[2J",
            "\x00",
            "\u202e",
            "\ufeff",
            "\ud800",
            "**",
            "*",
            "_",
            ":",
            " #",
            "|",
            "\\",
            "words",
            " ",
            "é",
        ]
    ),
    max_size=12,
).map("".join)


@given(HOSTILE, HOSTILE, HOSTILE, st.sampled_from(Status), st.sampled_from(["\n", "\r\n"]))
def test_hostile_text_reads_back_as_one_entry(
    title: str, description: str, method: str, status: Status, ending: str
) -> None:
    clean = [harmless(text, limit=80) for text in (title, description, method)]
    rendered = render(
        "hypothesis.md.j2",
        number=3,
        title=clean[0],
        description=clean[1],
        test_method=clean[2],
        cause="py-gc",
        intervention="--set --a=1",
        status=status,
    )
    doc = parse(CONTRACT.replace("\n", ending).encode(), "p.md")
    made = parse(add_hypothesis(doc, rendered), "p.md")
    assert [h.number for h in made.hypotheses] == [1, 2, 3]
    entry = made.hypotheses[2]
    assert entry.cause == "py-gc"
    assert entry.status is status
    assert [entry.title, entry.description, entry.test_method] == clean
    assert entry.intervention == "--set --a=1"
    assert (entry.result, entry.runs, entry.status_note) == ({}, (), "")
    assert made.data.startswith(doc.data)


@given(HOSTILE, HOSTILE, st.sampled_from(Status))
def test_hostile_notes_read_back_in_one_result(notes: str, reason: str, status: Status) -> None:
    clean = harmless(notes, limit=80)
    doc = parse(CONTRACT.encode(), "p.md")
    made = parse(set_result(doc, 2, status, _result("0007-h2", notes=clean), reason), "p.md")
    first, second = made.hypotheses
    assert (second.status, second.runs) == (status, ("0007-h2",))
    assert second.result.get("notes", "") == clean
    assert second.result["gpu util after"] == "2.0%"
    assert (first.status, first.result, first.runs) == (
        doc.hypotheses[0].status,
        doc.hypotheses[0].result,
        doc.hypotheses[0].runs,
    )


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_ten_thousand_hypotheses_fit_in_sixty_megabytes(tmp_path: Path) -> None:
    file = tmp_path / "progress.md"
    file.write_bytes(many_hypotheses(10_000))
    code = (
        "import re, sys; from pathlib import Path; from gpudebug.core.progress import parse\n"
        "doc = parse(Path(sys.argv[1]).read_bytes(), 'p.md')\n"
        "heavy = [name for name in ('pydantic', 'jinja2', 'numpy') if name in sys.modules]\n"
        "peak = int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])\n"
        "print(len(doc.hypotheses), peak, heavy)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True
    ).stdout
    count, peak_kb, heavy = out.split(maxsplit=2)
    assert (count, heavy.strip()) == ("10000", "[]")
    assert int(peak_kb) < 60 * 1024


def _hypothesis(number: int, title: str) -> str:
    return render(
        "hypothesis.md.j2",
        number=number,
        title=title,
        description="d",
        test_method="m",
        cause=None,
        intervention=None,
        status="UNTESTED",
    )


def _result(*runs: str, notes: str = "") -> str:
    return render(
        "result.md.j2",
        gpu_util_before="1.0%",
        gpu_util_after="2.0%",
        improvement="+1.0pp",
        training="SUCCESS",
        loss="CONVERGING",
        throughput="unknown",
        notes=notes,
        runs=runs,
    )


def _baseline(role: str) -> str:
    return render(
        "baseline.md.j2",
        role=role,
        command="train --steps=200",
        gpu_util="27.4%",
        throughput="6.1 steps/s",
        training="SUCCESS",
        loss="CONVERGING",
        runs=[f"0001-baseline-{role}"],
    )
