from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.progress_files import CONTRACT, many_hypotheses

from gpudebug.core.errors import ProgressError
from gpudebug.core.progress import parse
from gpudebug.core.progress.blocks import MOST_BLOCKS
from gpudebug.core.progress.parser import MOST_ENTRIES
from gpudebug.core.words import Status


def entries(text: str) -> list[tuple[int, str, Status]]:
    return [(h.number, h.title, h.status) for h in parse(text.encode(), "p.md").hypotheses]


def test_a_file_as_gpudebug_writes_it() -> None:
    doc = parse(CONTRACT.encode(), "p.md")
    assert doc.title == "GPU utilization debugging: act-relative-rtc"
    assert [h.number for h in doc.hypotheses] == [1, 2]
    first, second = doc.hypotheses
    assert first.title == "Unused image frames are copied to the GPU"
    assert first.description == "Two frames are loaded and one is used."
    assert first.test_method == "Load one frame."
    assert first.intervention == "--set --dataset.frames=1"
    assert (first.status, first.status_note) == (Status.VALIDATED, "")
    assert first.runs == ("0005-h1", "0006-h1")
    assert first.result == {
        "gpu util before": "27.4%",
        "gpu util after": "61.0%",
        "improvement": "+33.6pp (95% CI +31.2 to +36.0)",
        "training": "SUCCESS",
        "loss": "CONVERGING",
        "throughput": "6.1 to 13.4 steps/s",
        "notes": "none",
        "runs": "runs/0005-h1, runs/0006-h1",
    }
    lines = CONTRACT.splitlines()
    assert lines[first.line - 1].startswith("### Hypothesis 1")
    assert first.status_line is not None and lines[first.status_line - 1] == "- **Status**: VALIDATED"
    assert doc.data[second.start : second.end].decode() == CONTRACT[CONTRACT.index("### Hypothesis 2") :]
    assert (second.status, second.result, second.runs) == (Status.UNTESTED, {}, ())
    workload = doc.baseline("workload")
    assert workload is not None
    assert workload.title == "Baseline: workload"
    assert workload.fields["command"] == "lerobot-train --steps=200"
    assert workload.fields["gpu util"] == "27.4% (95% CI 26.1 to 28.6, 4 runs)"
    assert workload.runs == ("0001-baseline-workload", "0002-baseline-workload")
    assert lines[workload.line - 1] == "### Baseline: workload"
    assert doc.baseline("reference") is None


@pytest.mark.parametrize(
    "heading",
    [
        "### Hypothesis 3: Title",
        "## Hypothesis 3: Title",
        "#### Hypothesis 3: Title",
        "### Hypothesis 3 - Title",
        "### Hypothesis 3 – Title",
        "### Hypothesis 3 — Title",
        "### Hypothesis 3—Title",
        "### Hypothesis 3-Title",
        "### Hypothesis 3. Title",
        "### Hypothesis 3) Title",
        "### Hypothesis 3 Title",
        "### Hypothesis 3:Title",
        "### Hypothesis 3 : Title",
        "### Hypothesis #3: Title",
        "### Hypothesis No. 3: Title",
        "### Hypothesis 03: Title",
        "### Hypothesis-3: Title",
        "### HYPOTHESIS 3: Title",
        "### hypothesis 3: Title",
        "### **Hypothesis 3**: Title",
        "### **Hypothesis 3:** Title",
        "### **Hypothesis 3: Title**",
        "### __Hypothesis 3__ - Title",
        "### ✅ Hypothesis 3: Title",
        "### ❌ **Hypothesis 3**: Title",
        "### :x: Hypothesis 3: Title",
        "### Hypothesis 3: Title ###",
        "   ### Hypothesis 3: Title",
        "###\tHypothesis 3: Title",
        "###Hypothesis 3: Title",
        "# Hypothesis 3: Title",
    ],
)
def test_every_way_to_write_a_heading(heading: str) -> None:
    assert entries(f"# Log\n\n{heading}\n- **Status**: REJECTED\n") == [(3, "Title", Status.REJECTED)]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_line_endings_bom_and_no_final_newline(ending: str, bom: bytes, last: bool) -> None:
    text = CONTRACT if last else CONTRACT.rstrip("\n")
    data = bom + text.replace("\n", ending).encode()
    doc, plain = parse(data, "p.md"), parse(CONTRACT.encode(), "p.md")
    assert doc.newline == ending.encode()
    assert doc.title == plain.title
    for mine, other in zip(doc.hypotheses, plain.hypotheses, strict=True):
        assert (mine.number, mine.title, mine.status, mine.line, mine.status_line) == (
            other.number,
            other.title,
            other.status,
            other.line,
            other.status_line,
        )
        assert (mine.description, mine.result, mine.runs) == (other.description, other.result, other.runs)
        assert data[mine.start :].startswith(b"### Hypothesis")
    assert doc.baselines[0].fields == plain.baselines[0].fields
    assert doc.baselines[0].line == plain.baselines[0].line


def test_a_bom_right_before_an_entry_and_mixed_endings() -> None:
    data = b"\xef\xbb\xbf## Hypothesis 1: A\r\n- Status: TESTING\n\n## Hypothesis 2: B\n- Status: INVALID\r\n"
    doc = parse(data, "p.md")
    assert [(h.number, h.status, h.line, h.start) for h in doc.hypotheses] == [
        (1, Status.TESTING, 1, 3),
        (2, Status.INVALID, 4, data.index(b"## Hypothesis 2")),
    ]


def test_the_short_way_through_plain_entries_reads_what_the_long_way_reads() -> None:
    plain = many_hypotheses(20)
    other = plain.replace(b"### Hypothesis ", b"### Hypothesis #").replace(b"**Status**: ", b"**Status**:  ")
    found = [
        [(h.number, h.title, h.status, h.line, h.status_line, h.runs) for h in parse(data, "p.md").hypotheses]
        for data in (plain, other)
    ]
    assert found[0] == found[1]
    assert len({status for _, _, status, *_ in found[0]}) == 4


def test_own_sections_between_and_after_entries_belong_to_none() -> None:
    text = (
        "## Hypothesis 1: A\n- Status: TESTING\n\n### Details\n- Status: VALIDATED\n\n"
        "## Remarks\n- Status: VALIDATED\n- Result: none\n\n"
        "### Hypothesis 2: B\n\n#### Own\nx\n\n### Afterwards\n- Result: mine\n"
    )
    doc = parse(text.encode(), "p.md")
    first, second = doc.hypotheses
    assert (first.status, first.result) == (Status.TESTING, {})
    assert text[first.start : first.end].endswith("- Status: VALIDATED\n\n")
    assert text[first.end :].startswith("## Remarks")
    assert (second.status, second.result) == (Status.UNTESTED, {})
    assert text[second.end :].startswith("### Afterwards")


@pytest.mark.parametrize(
    "text",
    [
        "```markdown\n### Hypothesis N: [Title]\n- **Status**: VALIDATED | REJECTED\n```\n",
        "~~~\n### Hypothesis 1: A\n~~~\n",
        "<!--\n### Hypothesis 1: A\n- **Status**: nonsense\n-->\n",
        "```\n### Hypothesis 1: A\n",
        "    ### Hypothesis 1: A\n",
        "> ### Hypothesis 1: A\n",
        "# Hypothesis 1: the title of a document\n",
        "## Hypotheses\n",
        "## Hypothesis testing\nHow it works.\n",
        "## Hypothesis log (newest first)\n- one\n",
        "## Hypothesis-driven debugging\n",
        "## Hypothesised causes: many\n",
        "**Hypothesis 1**: A\n",
        "- Hypothesis 1: A\n",
        "### H100: notes\n",
        "**Baseline Results** (confirmed):\n- Standard ACT: Good GPU utilization (>80%)\n",
        "## Baseline Results\n- Standard ACT: >80%\n",
        "## Baselines: workload and reference\n",
        "## Workload baseline and other figures\n",
        "",
        "\n\n",
    ],
)
def test_what_is_no_entry(text: str) -> None:
    doc = parse(text.encode(), "p.md")
    assert doc.hypotheses == () and doc.baselines == ()


@pytest.mark.parametrize(
    ("heading", "role"),
    [
        ("### Baseline: workload", "workload"),
        ("## Baseline: Workload", "workload"),
        ("### Baseline - reference", "reference"),
        ("### Baseline — reference (ACT)", "reference"),
        ("### Baseline (reference)", "reference"),
        ("### Baseline workload", "workload"),
        ("### **Baseline: workload**", "workload"),
        ("### **Baseline**: workload", "workload"),
        ("### Workload baseline", "workload"),
        ("### ✅ Reference Baseline: ACT", "reference"),
        ("### Baseline: act_relative_rtc", "act_relative_rtc"),
        ("### Baseline: Standard ACT", "standard act"),
    ],
)
def test_every_way_to_write_a_baseline(heading: str, role: str) -> None:
    text = (
        f"# A\n{heading}\n* GPU Utilization: 27%\n* **Runs:** `runs/0001-a/`, runs/0002-b\n* Seen by: Ada\n"
    )
    [baseline] = parse(text.encode(), "p.md").baselines
    assert baseline.role == role
    assert baseline.fields["gpu util"] == "27%"
    assert baseline.fields["seen by"] == "Ada"
    assert baseline.runs == ("0001-a", "0002-b")
    assert baseline.line == 2


@pytest.mark.parametrize(
    "text",
    [
        "### Hypothesis 1: A\n**Status**: REJECTED\n",
        "### Hypothesis 1: A\n\n- Status: REJECTED\n",
        "### Hypothesis 1: A\nSome text.\n\n* __Status__: rejected\n\nMore text.\n",
        "### Hypothesis 1: A\n- **Description**: ```not a fence\n- **Status**: REJECTED\n",
        "### Hypothesis 1: A\n- Method:\n  ```\n  # Hypothesis 7\n  - Status: x\n  ```\n- Status: REJECTED\n",
        "### Hypothesis 1: A\n- Method: x\n\n```\n- **Status**: INVALID\n```\n\n- **Status**: REJECTED\n",
        "### Hypothesis 1: A\n<!-- - **Status**: VALIDATED -->\n- **Status**: REJECTED\n",
        "### Hypothesis 1: A\n- **Status**: REJECTED\n- **Status**: VALIDATED\n",
        "### Hypothesis 1: A\n- **Status**: REJECTED\n- **Result**:\n  - Status: VALIDATED\n",
    ],
)
def test_the_status_of_an_entry(text: str) -> None:
    assert [status for _, _, status in entries(text)] == [Status.REJECTED]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- **Intervention**: --set --a=1", "--set --a=1"),
        ("- **Intervention**: `--set --a=1`", "--set --a=1"),
        ("- **Intervention**: --set --a=1\n  --unset --b", "--set --a=1 --unset --b"),
        ("- **Intervention**:", None),
        ("- **Intervention**: none", None),
        ("", None),
    ],
)
def test_interventions(text: str, expected: str | None) -> None:
    [entry] = parse(f"### Hypothesis 1: A\n{text}\n".encode(), "p.md").hypotheses
    assert entry.intervention == expected


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("# A\n\n### Hypothesis: B\n", 3, "'Hypothesis 1"),
        ("### Hypothesis\n", 1, "no number"),
        ("### Hypothesis N: [Title]\n", 1, "no number"),
        ("### Hypothesis #: B\n", 1, "no number"),
        ("### Hypothesis two - B\n", 1, "no number"),
        ("### Hypothesis 1a: B\n", 1, "no number"),
        ("### Hypothesis 1.5: B\n", 1, "no number"),
        ("### Hypothesis 12345678901: B\n", 1, "no number"),
        ("### Hypothesis about frames\n- **Status**: UNTESTED\n", 1, "no number"),
        ("### Hypothesis 4: A\n### Hypothesis: B\n", 2, "'Hypothesis 5"),
        ("### Hypothesis 1: A\n\n### Hypothesis 1: B\n", 3, "line 1"),
        ("### Hypothesis 1: A\n## Hypothesis 01 - B\n", 2, "2 is free"),
        ("### Hypothesis 1: A\n<<<<<<< HEAD\n- Status: TESTING\n=======\n>>>>>>> b\n", 2, "merge"),
        ("text\n=======\nmore\n>>>>>>> b\n", 4, "merge"),
        ("### Hypothesis 1: A\n- **Status**: DONE\n", 2, "'DONE' is not one of UNTESTED, TESTING"),
        ("### Hypothesis 1: A\n- **Status**: Validate\n", 2, "did you mean VALIDATED"),
        ("### Hypothesis 1: A\n\n- a\n- Status:\n  ✅\n", 5, "not one of"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_what_is_broken_is_refused_with_its_line(text: str, line: int, says: str, ending: str) -> None:
    for bom in ("", "\ufeff"):
        with pytest.raises(ProgressError) as caught:
            parse((bom + text.replace("\n", ending)).encode(), "dir/p.md")
        error = caught.value
        assert (error.file, error.line) == ("dir/p.md", line)
        assert error.next
        assert says in str(error)
        assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"### Hypothesis 1: \xff\n", 1),
        (b"\xff\n### Hypothesis 1: A\n- **Description**: a\n  b\xc3\n", 4),
        (b"x\n### Baseline: workload\r\n\n- **GPU util**: \xfe\n", 4),
        (b"### Baseline: \xff\n", 1),
        (b"\xff\xfe#\x00 \x00A\x00", 1),
    ],
)
def test_invalid_utf8_in_an_entry_is_refused_with_its_line(data: bytes, line: int) -> None:
    with pytest.raises(ProgressError) as caught:
        parse(data, "p.md")
    assert caught.value.line == line
    assert caught.value.next == "save the file as UTF-8" or b"\x00" in data


@pytest.mark.parametrize(
    ("block", "count", "says"),
    [
        pytest.param(b"# a\n", MOST_BLOCKS, "100,000 headings and code blocks", id="headings"),
        pytest.param(b"```\n```\n", MOST_BLOCKS, "100,000 headings and code blocks", id="fences"),
        pytest.param(b"### Baseline: workload\n", MOST_ENTRIES, "15,000 entries", id="entries"),
    ],
)
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_more_than_a_campaign_has_is_refused(block: bytes, count: int, says: str, bom: bytes) -> None:
    parse(bom + block * count, "p.md")
    with pytest.raises(ProgressError, match=f"more than {says}") as caught:
        parse(bom + block * (count + 1), "p.md")
    assert caught.value.line == count * block.count(b"\n") + 1


def test_invalid_utf8_elsewhere_is_kept() -> None:
    data = b"# T\xff\n\n\xfe\n## Hypothesis 1: A\n- Status: TESTING\n\n### Own \xff\n\xfe\n## More\n\xff\n"
    doc = parse(data, "p.md")
    assert doc.hypotheses[0].status is Status.TESTING
    assert doc.title == "T\N{REPLACEMENT CHARACTER}"


def test_a_missing_hypothesis_is_an_error_with_the_next_action() -> None:
    with pytest.raises(ProgressError, match="there is no hypothesis 9; next: "):
        parse(CONTRACT.encode(), "p.md").hypothesis(9)


FRAGMENTS = st.sampled_from(
    [
        b"### Hypothesis 1: A\n",
        b"## Hypothesis 2 - B\r\n",
        b"### Hypothesis",
        b"### Baseline: workload\n",
        b"- **Status**: VALIDATED\n",
        b"* Status: no",
        b"- **Result**:\n",
        b"  - GPU util after: 1%\n",
        b"```\n",
        b"  ~~~\n",
        b"<!--",
        b"-->\n",
        b"=======\n",
        b"<<<<<<< a\n",
        b"\r",
        b"\n",
        b"\t",
        b"\xef\xbb\xbf",
        b"\xff",
        b"**",
        b":",
    ]
)


@given(st.binary() | st.lists(FRAGMENTS | st.binary(max_size=4), max_size=30).map(b"".join))
def test_any_bytes_parse_or_are_refused_with_a_line(data: bytes) -> None:
    try:
        doc = parse(data, "p.md")
    except ProgressError as error:
        assert error.line is not None and 1 <= error.line <= len(data.splitlines())
        assert error.next
        return
    assert doc.data is data
    position = 0
    for entry in sorted((*doc.hypotheses, *doc.baselines), key=lambda each: each.start):
        assert position <= entry.start < entry.end <= len(data)
        position = entry.end
    for hypothesis in doc.hypotheses:
        assert data[: hypothesis.start].count(b"\n") < hypothesis.line
        values = (
            hypothesis.description,
            hypothesis.test_method,
            hypothesis.intervention,
            hypothesis.status_note,
        )
        assert all(isinstance(value, str) for value in values if value is not None)
        assert isinstance(hypothesis.result, dict) and isinstance(hypothesis.runs, tuple)
        assert hypothesis.status_line is None or hypothesis.status_line >= hypothesis.line
