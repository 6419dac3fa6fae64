"""Progress files for tests: as gpudebug writes them, with many hypotheses, and in any style."""

from __future__ import annotations

from hypothesis import strategies as st

from gpudebug.core.progress import ProgressFile

CONTRACT = """\
# GPU utilization debugging: act-relative-rtc

Fix the poor GPU utilisation of act_relative_rtc training.

## Baselines

### Baseline: workload
- **Command**: `lerobot-train --steps=200`
- **GPU util**: 27.4% (95% CI 26.1 to 28.6, 4 runs)
- **Throughput**: 6.1 steps/s
- **Training**: SUCCESS
- **Loss**: CONVERGING
- **Runs**: runs/0001-baseline-workload, runs/0002-baseline-workload

## Hypotheses

### Hypothesis 1: Unused image frames are copied to the GPU
- **Description**: Two frames are loaded and one is used.
- **Test Method**: Load one frame.
- **Intervention**: --set --dataset.frames=1
- **Status**: VALIDATED
- **Result**:
  - GPU util before: 27.4%
  - GPU util after: 61.0%
  - Improvement: +33.6pp (95% CI +31.2 to +36.0)
  - Training: SUCCESS
  - Loss: CONVERGING
  - Throughput: 6.1 to 13.4 steps/s
  - Notes: none
  - Runs: runs/0005-h1, runs/0006-h1

### Hypothesis 2: The loader has too few workers
- **Description**: One worker decodes every frame.
- **Test Method**: Give it four.
- **Intervention**: --set --num_workers=4
- **Status**: UNTESTED
"""

_ENTRY = """
### Hypothesis {n}: The loader waits for the store, variant {n}
- **Description**: Each shard is fetched anew for every epoch.
- **Test Method**: Keep shard {n} in memory.
- **Intervention**: --set --loader.cache={n}
- **Status**: {status}
- **Result**:
  - GPU util before: 27.4%
  - GPU util after: 61.0%
  - Improvement: +33.6pp (95% CI +31.2 to +36.0)
  - Training: SUCCESS
  - Loss: CONVERGING
  - Throughput: 6.1 to 13.4 steps/s
  - Notes: interval from 4 runs a side
  - Runs: runs/{run:04d}-h{n}, runs/{next_run:04d}-h{n}
"""


def many_hypotheses(count: int) -> bytes:
    """A progress file of `count` hypotheses, each with a Result; 10,000 of them make 5.8 MB."""
    head, _, _ = CONTRACT.partition("\n### Hypothesis 1")
    statuses = ("VALIDATED", "REJECTED", "INCONCLUSIVE", "INVALID")
    entries = (
        _ENTRY.format(n=n, status=statuses[n % 4], run=2 * n + 5, next_run=2 * n + 6)
        for n in range(1, count + 1)
    )
    return (head + "".join(entries)).encode()


# Entries and own text in many styles, put together in any order and with any line ending.
OWN = st.sampled_from(
    [
        "own text\n",
        "- own bullet\n  goes on\n",
        "```\n### Hypothesis 1: no entry\n- **Status**: nonsense\n```\n",
        "<!-- ### Hypothesis 1: no entry -->\n",
        "| a | b |\n|---|---|\n",
        "---\n",
        "> quoted\n",
        "\n",
        "\n\n\n",
        "#### own section\n- **Status**: nothing of ours\n",
        "## own section\n- Result: mine\n",
        "tr\N{LATIN SMALL LETTER E WITH ACUTE}s \N{GRINNING FACE}\t \n",
    ]
)
FIELDS = st.sampled_from(
    [
        "- **Description**: what\n  it is\n",
        "* Test Method: how\n",
        "- **Intervention**: `--set --a=1`\n",
        "- **Status**: UNTESTED\n",
        "* __Status:__ ✅ **validated** - by hand\n",
        "**Status**: rejected\n",
        "- **Result**: none yet\n",
        "- **Result**:\n\t- GPU util before: 27%\n\t- Mine: stays\n\t- Runs: runs/0001-h1\n",
        "- **Result**:\n- Training: SUCCESS\n- Notes: n\n",
        "- **Owner**: me\n",
        "- GPU util: 7%\n",
        "- Runs: none\n",
    ]
)
HEADINGS = st.sampled_from(["### Hypothesis {}: T", "## Hypothesis {} - T", "#### **Hypothesis {}** — T ##"])
BASELINES = st.sampled_from(["### Baseline: workload\n", "## Reference baseline\n", "### Baseline: other\n"])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    text = draw(st.sampled_from(["", "# T\n\n", "\ufeff# T\n"]))
    text += "".join(draw(st.lists(OWN, max_size=3)))
    text += draw(st.sampled_from(["", "## Baselines\n"])) + draw(st.one_of(st.just(""), BASELINES))
    text += "".join(draw(st.lists(FIELDS | OWN, max_size=3))) + draw(st.sampled_from(["", "## Hypotheses\n"]))
    for number in draw(st.lists(st.integers(1, 20), max_size=4, unique=True)):
        text += draw(HEADINGS).format(number) + "\n" + "".join(draw(st.lists(FIELDS | OWN, max_size=6)))
    lines = text.splitlines(keepends=True)
    style = draw(st.sampled_from(["lf", "crlf", "mixed"]))
    for index, line in enumerate(lines):
        if line.endswith("\n") and (style == "crlf" or (style == "mixed" and index % 3 == 0)):
            lines[index] = line[:-1] + "\r\n"
    data = "".join(lines).encode()
    return data.rstrip(b"\r\n") if draw(st.booleans()) else data


def values(doc: ProgressFile, without: object = None) -> list[object]:
    kept: list[object] = [
        (h.number, h.title, h.status, h.description, h.test_method, h.intervention, h.result, h.status_note)
        for h in doc.hypotheses
        if h.number != without
    ]
    return kept + [(b.role, b.title, b.fields) for b in doc.baselines if b.role != without]


def outside(doc: ProgressFile, start: int, end: int) -> tuple[bytes, bytes]:
    return doc.data[:start], doc.data[end:]
