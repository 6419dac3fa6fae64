"""The results of runs that others started, as their folders and the progress file record them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from gpudebug.core.answers.answer import plain
from gpudebug.core.statistics import numbers
from gpudebug.core.verdict.judge import worst_trend
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.load import load
from gpudebug.engine.run.prepare import stored_run
from gpudebug.engine.trial.baseline import metric_text, throughput_text, utilisation_text
from gpudebug.engine.trial.sides import of_runs, of_trial

WHY = "it was under way when this command was started"


def ending_of(directory: Path, runs: Collection[str], session: str | None = None) -> dict[str, Any] | None:
    """`next`'s JSON for the trial or baseline that some of these runs decided; None if they did none."""
    if not runs:
        return None
    loaded = load(directory, session)
    for entry in loaded.document.hypotheses:
        judged = loaded.trials[entry.number]
        if judged.verified and judged.verdict and set(entry.runs) & set(runs):
            return _tested(loaded, entry.number, judged.verdict)
    for role, found in loaded.baselines.items():
        if found.why is None and set(found.runs) & set(runs):
            return _recorded(loaded, role, found.runs)
    return None


def _tested(loaded: Loaded, number: int, verdict: dict[str, Any]) -> dict[str, Any]:
    entry = loaded.document.hypothesis(number)
    return {
        "action": "tested",
        "campaign": loaded.config.campaign,
        "hypothesis": number,
        "title": entry.title,
        "verdict": verdict["status"],
        "late": False,
        "why": verdict["why"],
        "decided": WHY,
        "gates": plain(numbers.gates(verdict["gates"])),
        "figures": numbers.result_fields(verdict),
        "notes": verdict["notes"],
        "probe": plain(of_trial(loaded, number, entry.runs, verdict)[0]),
        "brief": None,
        "next_command": "gpudebug next",
        "files": _files(loaded, entry.runs),
    }


def _recorded(loaded: Loaded, role: str, runs: Collection[str]) -> dict[str, Any]:
    evidence = [stored_run(loaded.workspace, name).evidence for name in runs]
    return {
        "action": "recorded_baseline",
        "campaign": loaded.config.campaign,
        "role": role,
        "hypothesis": None,
        "verdict": None,
        "gates": [],
        "brief": None,
        "gpu_util": loaded.baselines[role].utilisation,
        "gpu_util_text": utilisation_text(evidence),
        "metric": loaded.metric.name,
        "metric_text": metric_text(loaded.metric, evidence),
        "throughput_text": throughput_text(evidence),
        "loss": str(worst_trend(evidence)),
        "probe": [plain(of_runs(role, evidence))],
        "advice": list(dict.fromkeys(e.loss.advice for e in evidence if e.loss.advice)),
        "notes": [],
        "why": WHY,
        "next_command": "gpudebug next",
        "files": _files(loaded, runs),
    }


def _files(loaded: Loaded, runs: Collection[str]) -> list[str]:
    return [str(loaded.workspace.run(name).path) for name in runs] + [str(loaded.progress_path)]
