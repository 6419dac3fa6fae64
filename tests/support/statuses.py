"""Answers of `status` for tests: compared without their age, and one of many hypotheses, made by hand."""

from __future__ import annotations

import re
import shutil
from typing import Any

from tests.support.answers import read
from tests.support.campaigns import Campaign
from tests.support.tampering import reseal, rewrite

from gpudebug.core.answers.status import HypothesisRow, StatusAnswer

_UNKNOWN = (
    "verified replayed intervention cause claim accepted why delta_pp delta_ci metric improvement "
    "improvement_ci throughput_ratio throughput_source loss cost_s ended age_s claimed sparks problem"
)
SPARK = [round(100 * i / 39, 1) for i in range(40)]


def ageless(answer: Any) -> Any:
    """The same without what the time of day makes of it."""
    if isinstance(answer, dict):
        return {k: ageless(v) for k, v in answer.items() if k != "age_s"}
    return [ageless(v) for v in answer] if isinstance(answer, list) else answer


def hypothesis(number: int, status: str = "UNTESTED", **more: Any) -> dict[str, Any]:
    """One of `status`'s hypotheses."""
    given = {"number": number, "title": f"Cause {number}", "status": status, "runs": []}
    none = {"weaker_terms": [], "doubts": [], "accepted_by_hand": False}
    return {**dict.fromkeys(_UNKNOWN.split()), **none, **given, **more}


def judged(number: int, status: str = "VALIDATED", **more: Any) -> dict[str, Any]:
    """One whose verdict stands on a run."""
    given = {
        "verified": True,
        "why": "delta: as it is",
        "metric": "gpu_util",
        "delta_pp": 75.0,
        "delta_ci": [60.4, 89.6],
        "throughput_ratio": 4.2,
        "loss": "CONVERGING",
        "cost_s": 14.1,
        "age_s": 130,
        "runs": [f"{number:04d}-h{number}"],
        "sparks": [{"run": f"{number:04d}-h{number}", "spark": SPARK}],
    }
    return hypothesis(number, status, **given | more)


def row(number: int, **more: Any) -> HypothesisRow:
    """A record of `hypothesis`."""
    return read(HypothesisRow, hypothesis(number, **more))


STORY = (
    judged(1, "REJECTED", delta_pp=-0.6, delta_ci=[-16.1, 14.9], throughput_ratio=1.03),
    hypothesis(2, title="Single precision moves twice the bytes that half precision would move, as we know"),
    judged(3, "INCONCLUSIVE", loss=None, why="throughput is unknown (1.03x): more runs would tell"),
    hypothesis(4, "TESTING", claim={"session": "a-1", "since": "2026-01-01T10:00:00+00:00"}),
    hypothesis(5, "VALIDATED", verified=False, claimed="+71.6pp"),
    judged(6, cost_s=4000.0, age_s=400_000, accepted=1),
)
"""A campaign of every kind of hypothesis."""


def baseline(**more: Any) -> dict[str, Any]:
    """One of `status`'s baselines."""
    return {
        "valid": True,
        "why": None,
        "verified": True,
        "replayed": False,
        "gpu_util": 24.9,
        "gpu_util_text": "24.9% (95% CI 18.4 to 31.4, 2 runs)",
        "steps_per_s": 12.4,
        "metric_text": None,
        "throughput_text": "12.4 steps/s",
        "loss": "CONVERGING",
        "advice": [],
        "runs": ["0001-baseline-workload"],
        "cost_s": 6.0,
        "ended": "2026-01-01T00:00:00+00:00",
        "age_s": 7300,
        "sparks": [{"run": "0001-baseline-workload", "spark": SPARK}],
        **more,
    }


def answer(*hypotheses: dict[str, Any], **more: Any) -> StatusAnswer:
    """`status`'s answer of these hypotheses."""
    document = {
        "campaign": "demo",
        "goal": "Keep the device busy.",
        "device": {"setting": "cpu:1", "devices": [{"name": "AMD EPYC", "uuid": "CPU"}], "replayed": False},
        "running": False,
        "progress": None,
        "metric": "gpu_util",
        "target": 89.9,
        "target_text": "89.9%",
        "baselines": {"workload": baseline(), "reference": None},
        "hypotheses": list(hypotheses),
        "shown": [h["number"] for h in hypotheses],
        "unlisted": [],
        "sweeps": [],
        "resolution": None,
        "expected": [],
        "next": {
            "action": "stop",
            "hypothesis": 4,
            "role": None,
            "why": "solved: hypothesis 4 reaches 100.0%, the target is 89.9%",
        },
        "budget": {
            "hypotheses": 20,
            "hypotheses_used": 2,
            "hypotheses_left": 18,
            "device_time_s": 7200.0,
            "device_time_used_s": 47.3,
            "device_time_left_s": 7152.7,
        },
        "order": None,
        "recorded": None,
        "settings": {"pinned": True, "differences": [], "problem": None, "replayed": False},
        "files": {"progress": "/a/progress/demo.md", "runs": "/a/runs"},
        **more,
    }
    return read(StatusAnswer, document)


def multiply(campaign: Campaign, count: int) -> None:
    """`count` more hypotheses like the campaign's first, each with a run and a verdict of its own, numbered
    from 101."""
    text = campaign.text
    start = text.index("### Hypothesis 1:")
    end = text.find("\n### ", start)
    entry = text[start : end if end > 0 else len(text)].rstrip()
    runs = campaign.folder / "runs"
    run = min(runs.glob("*-h1"))
    (verdict,) = runs.glob("*/verdict.json")
    entry = re.sub(r"  - Runs: .*", f"  - Runs: runs/{run.name}", entry)
    for number in range(101, 101 + count):
        name = f"{number + 1000:04d}-h{number}"
        folder = shutil.copytree(run, run.with_name(name))
        shutil.copy(verdict, folder)
        for file, changes in (
            ("run.json", {"name": name, "hypothesis": number, "role": f"h{number}"}),
            ("verdict.json", {"hypothesis": number}),
            ("manifest.json", {"files": {"run.json": "", "verdict.json": "", "evidence.json": ""}}),
        ):
            rewrite(folder / file, **changes)
        reseal(folder)
        campaign.add(
            "\n" + entry.replace("Hypothesis 1:", f"Hypothesis {number}:").replace(run.name, name) + "\n"
        )
