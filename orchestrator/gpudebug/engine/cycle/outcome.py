"""The results of runs that others started, as their folders and the progress file record them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gpudebug.core.answers.next import NextAnswer, RecordedBaseline, RecordedVerdict
from gpudebug.core.campaign.decide import Campaign
from gpudebug.engine.campaign.campaign import Loaded, Setup
from gpudebug.engine.campaign.load import load
from gpudebug.engine.run.prepare import stored_run
from gpudebug.engine.trial import baseline
from gpudebug.engine.trial.sides import of_trial
from gpudebug.engine.trial.trial import answer_of

WHY = "it was under way when this command was started"


def ending_of(directory: Path, runs: Collection[str], session: str | None = None) -> NextAnswer | None:
    """`next`'s answer for the trial or baseline that some of these runs decided; None if they did none."""
    if not runs:
        return None
    loaded = load(directory, session)
    for entry in loaded.entries.document.hypotheses:
        judged = loaded.entries.trials[entry.number]
        if judged.verified and judged.verdict and set(entry.runs) & set(runs):
            return _tested(loaded, entry.number, judged.verdict)
    for role, found in loaded.history.baselines.items():
        if found.why is None and set(found.runs) & set(runs):
            return _recorded(loaded.setup, loaded.campaign, role, found.runs)
    return None


def _tested(loaded: Loaded, number: int, verdict: dict[str, object]) -> RecordedVerdict:
    entry = loaded.entries.document.hypothesis(number)
    sides = of_trial(loaded.setup.workspace, loaded.history.baselines, number, entry.runs, verdict)[0]
    return answer_of(loaded, number, verdict, WHY, entry.runs, sides)


def _recorded(setup: Setup, campaign: Campaign, role: str, runs: Collection[str]) -> RecordedBaseline:
    return baseline.answer(setup, campaign, role, WHY, [stored_run(setup.workspace, name) for name in runs])
