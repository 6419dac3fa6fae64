"""`verify` names everything in the progress file that a reader takes for a figure, a status or an acceptance
and that does not follow from evidence; what people write beside it stays theirs."""

from __future__ import annotations

import pytest
from tests.support.old_campaign import OldCampaign, restore
from tests.support.tampering import substitute
from tests.support.verifying import answer, problems

IMPROVED = "  - Improvement: +36.4pp (95% CI +23.3 to +49.5)\n"
AFTER = "  - GPU util after: 56.4%\n"
VALIDATED = "- **Status**: VALIDATED\n"
UNTESTED = "- **Intervention**: --code\n- **Status**: UNTESTED\n"
BASELINE = "- **GPU util**: 56.3% (95% CI 49.8 to 62.8, 2 runs)\n"
EARLIER = "- **Earlier result (REJECTED)**:\n"

CLAIMS: dict[str, tuple[str, str, str]] = {
    "a second figure below the true one": (AFTER, AFTER + "  - GPU util after: 99.9%\n", "gpu util after"),
    "a second figure in other words": (
        AFTER,
        AFTER + "  * **GPU utilisation (after)**: 99.9%\n",
        "gpu util after",
    ),
    "a second figure at the end": (
        "runs/0004-baseline-workload\n\n### Hypothesis 2",
        "runs/0004-baseline-workload\n  - Improvement: +95pp\n\n### Hypothesis 2",
        "improvement",
    ),
    "a second figure behind the entry's fields": (
        VALIDATED,
        VALIDATED + "- **GPU util after**: 99.9%\n",
        "gpu util after",
    ),
    "a figure in a line without a bullet": (
        "\n### Hypothesis 2",
        "\nImprovement: +95pp on an A100\n\n### Hypothesis 2",
        "improvement",
    ),
    "a figure in a quotation": (
        "\n### Hypothesis 2",
        "\n> GPU util after: 99.9%\n\n### Hypothesis 2",
        "gpu util after",
    ),
    "a figure in a table": (
        "\n### Hypothesis 2",
        "\n| Improvement | +95pp |\n\n### Hypothesis 2",
        "improvement",
    ),
    "a figure below the description": (
        "- **Test Method**: Wait",
        "  - Throughput: 900 steps/s\n- **Test Method**: Wait",
        "throughput",
    ),
    "a figure in an own section of the entry": (
        "\n### Hypothesis 2",
        "\n#### Again\n\n- GPU util after: 99.9%\n\n### Hypothesis 2",
        "gpu util after",
    ),
    "a figure in a heading": (
        "\n### Hypothesis 2",
        "\n#### Improvement: +95pp\n\n### Hypothesis 2",
        "improvement",
    ),
    "a figure in a fence": (
        "\n### Hypothesis 2",
        "\n```\n- GPU util after: 99.9%\n```\n\n### Hypothesis 2",
        "gpu util after",
    ),
    "a second status": (VALIDATED, VALIDATED + "- **Status**: VALIDATED on 8 GPUs\n", "status"),
    "a second status that contradicts": (
        "- **Status**: REJECTED\n",
        "- **Status**: REJECTED\n- Status: VALIDATED\n",
        "status",
    ),
    "a second change": (VALIDATED, "- **Intervention**: --set --lr=0.5\n" + VALIDATED, "intervention"),
    "a second Result": ("\n### Hypothesis 2", "- **Result**: +95pp\n\n### Hypothesis 2", "result"),
    "a second training": (AFTER, AFTER + "  - Training: SUCCESS on 8 GPUs\n", "training"),
    "a second loss": ("  - Loss: CONVERGING\n", "  - Loss: CONVERGING\n  - Loss: PLATEAU\n", "loss"),
    "a figure on the line of the Result": ("- **Result**:\n", "- **Result**: +95pp\n", "result"),
    "an own bullet with a figure in the Result": (AFTER, AFTER + "  - Speedup: 9x\n", "speedup"),
    "an own line with a figure in the Result": (AFTER, AFTER + "  - 95 points on an A100\n", "result"),
    "an own bullet that looks like a result": (
        VALIDATED,
        VALIDATED + "- **Speedup**: 9x on an A100\n",
        "speedup",
    ),
    "an own bullet that begins with a figure": (VALIDATED, VALIDATED + "- **A100**: +95pp\n", "a100"),
    "an own verdict": (VALIDATED, VALIDATED + "- **On 8 GPUs**: VALIDATED\n", "on 8 gpus"),
    "a remark behind the status": (VALIDATED, "- **Status**: VALIDATED (+95pp on an A100)\n", "status"),
    "a remark in words behind the status": (
        VALIDATED,
        "- **Status**: VALIDATED - by far the best\n",
        "status",
    ),
    "a figure in front of the status": (VALIDATED, "- **Status**: 95% VALIDATED\n", "status"),
    "a remark below the status": (VALIDATED, VALIDATED + "  +95pp on an A100\n", "status"),
    "a remark behind UNTESTED": (UNTESTED, UNTESTED[:-1] + " (+95pp elsewhere)\n", "status"),
    "a figure that is longer": (IMPROVED, IMPROVED[:-1] + ", +95pp on an A100\n", "improvement"),
    "a figure that goes on below": (IMPROVED, IMPROVED + "    and +95pp on an A100\n", "improvement"),
    "a figure that is redacted": (IMPROVED, "  - Improvement: [redacted]\n", "improvement"),
    "a figure with a redacted tail": (IMPROVED, "  - Improvement: +9[redacted])\n", "improvement"),
    "a redacted word": ("  - Training: SUCCESS\n", "  - Training: [redacted]\n", "training"),
    "a redacted interval": (BASELINE, "- **GPU util**: 5[redacted]\n", "gpu util"),
    "notes with a figure more": (
        "+49.5), all gates pass\n",
        "+49.5), all gates pass; +95pp on an A100\n",
        "notes",
    ),
    "notes with a verdict more": (
        "+49.5), all gates pass\n",
        "+49.5), all gates pass: VALIDATED twice\n",
        "notes",
    ),
    "a Result of an untested hypothesis": (
        UNTESTED,
        UNTESTED + "- **Result**:\n  - Improvement: +77pp\n",
        "improvement",
    ),
    "a Result on one line of an untested one": (UNTESTED, UNTESTED + "- **Result**: +77pp\n", "result"),
    "a figure of an untested hypothesis": (
        UNTESTED,
        UNTESTED + "- **GPU util after**: 99.9%\n",
        "gpu util after",
    ),
    "an earlier result that never was": (
        UNTESTED,
        UNTESTED + "- **Earlier result (VALIDATED)**:\n  - Improvement: +77pp\n",
        "earlier result",
    ),
    "an earlier result with runs that never were": (
        UNTESTED,
        UNTESTED + "- **Earlier result (VALIDATED)**:\n  - Improvement: +77pp\n  - Runs: runs/0077-h4\n",
        "earlier result",
    ),
    "an earlier result of another hypothesis": (
        UNTESTED,
        UNTESTED
        + "- **Earlier result (VALIDATED)**:\n  - Improvement: +36.4pp\n  - Runs: runs/0003-h1, runs/0004-baseline-workload\n",
        "hypothesis",
    ),
    "another status of an earlier result": (
        EARLIER,
        EARLIER.replace("REJECTED", "VALIDATED"),
        "earlier result",
    ),
    "another figure of an earlier result": ("+0.1pp (95% CI -11.1", "+9.1pp (95% CI -11.1", "earlier result"),
    "a second figure of an earlier result": (
        "  - Improvement: +0.1pp (95% CI -11.1 to +11.3)\n",
        "  - Improvement: +0.1pp (95% CI -11.1 to +11.3)\n  - Improvement: +95pp\n",
        "improvement",
    ),
    "a baseline of an unknown role": (
        "## Hypotheses",
        "### Baseline: gold\n- **GPU util**: 99.9%\n\n## Hypotheses",
        "baseline",
    ),
    "a second baseline": (
        "## Hypotheses",
        "### Baseline: workload\n- **GPU util**: 99.9%\n\n## Hypotheses",
        "baseline",
    ),
    "a second figure of a baseline": (BASELINE, BASELINE + "- **GPU util**: 99.9%\n", "gpu util"),
    "a figure that no baseline has": (BASELINE, BASELINE + "- **GPU util after**: 99.9%\n", "gpu util after"),
    "an own figure of a baseline": (BASELINE, BASELINE + "- **Best**: 99.9%\n", "best"),
    "a figure in a baseline's heading": (
        "### Baseline: workload",
        "### Baseline: workload (99.9% on an A100)",
        "title",
    ),
    "a figure outside of every entry": (
        "## Hypotheses",
        "## Summary\n\n- **Improvement**: +95pp\n\n## Hypotheses",
        "improvement",
    ),
    "an acceptance in words": (UNTESTED, UNTESTED + "- **Accepted**: yes\n", "accepted"),
}

HARMLESS: dict[str, tuple[str, str]] = {
    "an own section": (
        "## Hypotheses",
        "## What I think\n\nThe loader wastes about 40% of each step.\n\n## Hypotheses",
    ),
    "a list of one's own": (
        "## Hypotheses",
        "## To do\n\n- [ ] ask Ada about 8 GPUs\n- due: 2026-12-01\n\n## Hypotheses",
    ),
    "prose in an entry": (
        "\n### Hypothesis 2",
        "\nWe would like to see this on 2 nodes as well.\n\n### Hypothesis 2",
    ),
    "an own bullet": (VALIDATED, VALIDATED + "- **Owner**: Ada\n"),
    "an own bullet with a number": (VALIDATED, VALIDATED + "- **Issue**: #1234\n"),
    "what is expected": (UNTESTED, UNTESTED + "- **Expected gain**: 20pp\n"),
    "an own bullet in the Result": (AFTER, AFTER + "  - Mood: good\n"),
    "words behind the notes": ("+49.5), all gates pass\n", "+49.5), all gates pass; tried by hand before\n"),
    "a description with a figure": (
        "- **Description**: \n",
        "- **Description**: The loader waits 32 ms of 40 ms.\n",
    ),
    "another bullet and no bold": (VALIDATED, "* Status: validated\n"),
    "a sign before the status": (VALIDATED, "- **Status**: ✅ VALIDATED\n"),
    "a bold status": (VALIDATED, "- **Status:** **VALIDATED**\n"),
    "a dash for a colon": (VALIDATED, "- **Status** - VALIDATED\n"),
    "other spaces": (AFTER, "  -   GPU util after:   56.4%\n"),
    "another spelling of the change": (
        "- **Intervention**: --env PREFETCH=1",
        "- **Change**: `--env PREFETCH=1`",
    ),
    "a comment that is not shown": (VALIDATED, VALIDATED + "<!-- Status: VALIDATED, +95pp -->\n"),
    "a rule between entries": ("\n### Hypothesis 2", "\n---\n\n### Hypothesis 2"),
    "an empty Result": (UNTESTED, UNTESTED + "- **Result**:\n"),
    "a template": (UNTESTED, UNTESTED + "- **Result**:\n  - GPU util before: …\n  - GPU util after: TBD\n"),
    "not accepted": (UNTESTED, UNTESTED + "- **Accepted**: no\n"),
    "a blank line": (VALIDATED, "\n" + VALIDATED),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[OldCampaign, str]:
    campaign = restore(tmp_path_factory.mktemp("kept") / "campaign")
    return campaign, campaign.text


@pytest.fixture
def sound(kept: tuple[OldCampaign, str]) -> OldCampaign:
    """One campaign for all: only its progress file is changed, and put back."""
    campaign, text = kept
    campaign.progress.write_text(text, encoding="utf-8")
    return campaign


@pytest.mark.parametrize(("old", "new", "field"), CLAIMS.values(), ids=CLAIMS)
def test_what_no_evidence_says_is_named_with_its_line(
    sound: OldCampaign, old: str, new: str, field: str
) -> None:
    substitute(sound.progress, old, new)
    found = answer(sound)
    assert found["ok"] is False
    assert field in [p["field"] for p in found["problems"]]
    for problem in found["problems"]:
        assert problem["file"].endswith(("campaign.md", "verdict.json"))
        if problem["file"].endswith(".md"):
            assert problem["line"] is not None


@pytest.mark.parametrize(("old", "new"), HARMLESS.values(), ids=HARMLESS)
def test_what_people_write_beside_it_is_theirs(sound: OldCampaign, old: str, new: str) -> None:
    substitute(sound.progress, old, new)
    assert (answer(sound)["ok"], problems(sound)) == (True, [])


def test_other_line_endings_say_the_same(sound: OldCampaign) -> None:
    sound.progress.write_bytes(sound.progress.read_bytes().replace(b"\n", b"\r\n"))
    assert answer(sound)["ok"] is True
