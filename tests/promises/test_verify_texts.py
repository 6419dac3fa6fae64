"""What `verify` finds in gpudebug's own lines of an entry, and that all other text is its author's."""

from __future__ import annotations

import pytest
from tests.support.old_campaign import OldCampaign
from tests.support.tampering import substitute
from tests.support.verifying import problems

from gpudebug.engine.verify import verify

AFTER = "  - GPU util after: 56.4%\n"
VALIDATED = "- **Status**: VALIDATED\n"
REJECTED = "- **Status**: REJECTED\n"
UNTESTED = "- **Intervention**: --code\n- **Status**: UNTESTED\n"
BASELINE = "- **GPU util**: 56.3% (95% CI 49.8 to 62.8, 2 runs)\n"
EARLIER = "- **Earlier result (REJECTED)**:\n"
SECOND = "\n### Hypothesis 2"
NOTES = "+49.5), all gates pass\n"
RUNS = "runs/0004-baseline-workload\n\n### Hypothesis 2"
HYPOTHESES = "## Hypotheses"


def _in(text: str) -> tuple[str, str]:
    """A text at the end of the first entry."""
    return SECOND, f"\n{text}\n{SECOND}"


def _out(text: str) -> tuple[str, str]:
    """A text in no entry."""
    return HYPOTHESES, f"## Own\n\n{text}\n\n{HYPOTHESES}"


CLAIMS: dict[str, tuple[str, str]] = {
    "metric of a Result": (AFTER, AFTER + "  - Metric: gpu_util 20.0% to 99.9% on an A100\n"),
    "verdict in the metric": (AFTER, AFTER + "  - Metric: VALIDATED on 8xA100\n"),
    "metric of a baseline": (BASELINE, BASELINE + "- **Metric**: gpu_util 5.0%\n"),
    "behind the runs": (RUNS, RUNS.replace("\n\n", " (+95pp on A100)\n\n", 1)),
    "verdict behind the runs": (RUNS, RUNS.replace("\n\n", " VALIDATED twice\n\n", 1)),
    "below the runs": (RUNS, RUNS.replace("\n\n", "\n    +95pp on A100\n\n", 1)),
    "behind a baseline's runs": ("- **Runs**: ", "- **Runs**: (util 5%) "),
    "earlier runs": (REJECTED, "- **Earlier runs**: runs/0005-h2 gave +95pp\n" + REJECTED),
    "comment in code": _in("`<!--`\n- GPU util after: 99.9%\n`-->`"),
    "comment in a fence": _in("```\n<!--\n```\n\n- GPU util after: 99.9%\n\n```\n-->\n```"),
    "escaped comment": _in("\\<!--\n- GPU util after: 99.9%\n--\\>"),
    "indented comment": _in("    <!--\n\n- GPU util after: 99.9%\n\n    -->"),
    "empty comment of three": _in("<!--->\n- Improvement: +95pp\n<!-- -->"),
    "earlier status in small letters": (EARLIER, EARLIER.replace("REJECTED", "validated")),
    "earlier status with more": (EARLIER, EARLIER.replace("REJECTED", "VALIDATED on A100")),
}

THEIRS: dict[str, tuple[str, str]] = {
    "device": (VALIDATED, VALIDATED + "- **GPU**: A100-80GB\n"),
    "devices": (VALIDATED, VALIDATED + "- **GPU**: 2x A100\n"),
    "memory": (BASELINE, BASELINE + "- **Memory**: 40% of 80 GB\n"),
    "cost": (VALIDATED, VALIDATED + "- **Cost**: 2% of the budget\n"),
    "data": (BASELINE, BASELINE + "- **Dataset**: 10% of ImageNet\n"),
    "score": (VALIDATED, VALIDATED + "- **Score**: 3/5\n"),
    "reviewer": (VALIDATED, VALIDATED + "- **Verified by**: Ada on 2026-11-20\n"),
    "place": (VALIDATED, VALIDATED + "- **Results at**: wandb run 1234\n"),
    "node": ("### Baseline: workload", "### Baseline: workload (node 12)"),
    "estimate": (UNTESTED, UNTESTED + "- **Gain (estimate)**: 20%\n"),
    "hope": (UNTESTED, UNTESTED + "- **Speedup we hope for**: 2x\n"),
    "plan": (UNTESTED, UNTESTED + "- **Notes**: ask for 8 workers\n"),
    "setting": (UNTESTED, UNTESTED + "- **Dropout**: 10%\n"),
    "bullets of a description": (
        UNTESTED,
        "- **Description**: It waits:\n  - Loss: 3 ms\n  - Training: 200 steps of batch 8\n" + UNTESTED,
    ),
    "lines of a description": (
        UNTESTED,
        "- **Description**: See the log.\n  Throughput: at 10 steps/s the loader is slow\n" + UNTESTED,
    ),
    "choices": (
        UNTESTED,
        UNTESTED + "- **Result**:\n  - Training: SUCCESS / FAILED\n  - Loss: CONVERGING / DIVERGING\n",
    ),
    "ticket": (NOTES, NOTES[:-1] + "; see PR #12\n"),
    "date": (NOTES, NOTES[:-1] + " (reviewed 2026-11-20)\n"),
    "address": (NOTES, NOTES[:-1] + " https://wandb.ai/x/runs/12\n"),
    "sign": (VALIDATED, "- **Status**: VALIDATED \u2705\n"),
    "signs": (VALIDATED, "- **Status**: \u2705 **VALIDATED** \U0001f389\n"),
    "link": (VALIDATED, "- **Status**: [VALIDATED](#x)\n"),
    "see": (VALIDATED, "- **Status**: VALIDATED (see ticket)\n"),
    "log": _in("```console\n$ nvidia-smi\nGPU util: 99%\nTraining: 50 steps\n```"),
    "row": _in("| Run | Loss |\n|---|---|\n| Training | 12 |"),
    "comment on a line": _in("Ask Ada. <!-- VALIDATED, +95pp -->"),
    "front matter": ("# ", "---\ntags: [gpu, 99%]\nstatus: wip 2\n---\n# "),
    "week": _out("Status: week 47, waiting for 2 GPUs"),
    "idea": _out("Improvement: use 2 loaders."),
    "diary": _out("GPU util before: we saw 20% on Monday"),
    "a quoted entry in a fence": _out("```\n- **Status**: VALIDATED\n- GPU util after: 99.9%\n```"),
    "a quoted entry in notes on an entry": _in("```markdown\n- **Status**: VALIDATED\n```"),
    "own figures outside": _out("- **Improvement**: +95pp\n- Status: SOLVED\n\nH2 is VALIDATED."),
    "own figures in an entry": _in("Improvement: +95pp\n\n> GPU util after = 99.9%\n\n| after | 99.9% |"),
    "an own section of an entry": _in("#### On an A100\n\n- GPU util after: 99.9%\n- Verdict: VALIDATED"),
    "an own result": (VALIDATED, VALIDATED + "- **Speedup**: 9x on an A100\n- **Accepted by**: Ada\n"),
    "an own figure of a baseline": (BASELINE, BASELINE + "- **Best**: 99.9%\n- **Notes**: util really 5%\n"),
    "a title": ("### Hypothesis 3: ", "### Hypothesis 3: +55% faster [VALIDATED], "),
    "contents": _out("- [Hypothesis 1: VALIDATED](#h1)\n- [Hypothesis 2: REJECTED](#h2)"),
    "true summary": _out("H1 is VALIDATED, at +36.4pp."),
    "not accepted": (REJECTED, REJECTED + "- **Accepted**: \u2014\n"),
    "not accepted yet": (REJECTED, REJECTED + "- **Accepted**: pending\n"),
    "chart": (AFTER, AFTER + "  - Chart: ![x](plots/h1.png)\n  - Wandb: https://wandb.ai/r/123\n"),
}

FORMATTED = {
    "plus": (" +", " \\+"),
    "parenthesis": ("(95% CI", "\\(95% CI"),
    "hyphen": ("-baseline", "\\-baseline"),
    "escaped option": ("--set", "\\--set"),
    "dash for an option": (" --set", " \u2013set"),
    "dash for to": (" to ", " \u2013 "),
}


@pytest.mark.parametrize(("old", "new"), CLAIMS.values(), ids=CLAIMS)
def test_a_claim_is_named_however_it_is_written(sound: OldCampaign, old: str, new: str) -> None:
    substitute(sound.progress, old, new)
    told = verify(sound.folder)
    assert told.ok is False
    assert all(p.line for p in told.problems if p.file.endswith(".md"))


@pytest.mark.parametrize(("old", "new"), THEIRS.values(), ids=THEIRS)
def test_own_words_of_people_are_no_claim(sound: OldCampaign, old: str, new: str) -> None:
    substitute(sound.progress, old, new)
    assert problems(sound) == []


@pytest.mark.parametrize(("old", "new"), FORMATTED.values(), ids=FORMATTED)
def test_what_a_formatter_makes_of_it_says_the_same(sound: OldCampaign, old: str, new: str) -> None:
    assert old in sound.text
    sound.progress.write_text(sound.text.replace(old, new), encoding="utf-8")
    assert problems(sound) == []


def test_a_mask_hides_no_option(sound: OldCampaign) -> None:
    line = next(x for x in sound.text.splitlines() if x.startswith("- **Command**: "))
    head, _, word = line.rstrip("`").rpartition(" ")
    assert "=" in word
    substitute(sound.progress, line, f"{head} [redacted]`")
    assert [p.field for p in problems(sound)] == ["command"]
