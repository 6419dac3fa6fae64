"""One `gpudebug next`, every stage in order: read, decide, do the one thing, record it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudebug.core import present, progress
from gpudebug.core.errors import UsageError
from gpudebug.core.machine import Action, Kind, decide
from gpudebug.core.words import VERDICTS
from gpudebug.engine import baseline, recover, trial
from gpudebug.engine.bench import Cycle, claimed_campaign
from gpudebug.engine.campaign import Loaded
from gpudebug.engine.watch import Report

STOPPED = 4
YOUR_TURN = 5


def next_cycle(directory: Path, report: Report) -> dict[str, Any]:
    """Do the one next thing of the campaign, exactly once. The answer is `next`'s JSON."""
    with claimed_campaign(directory, report, "gpudebug next") as cycle:
        action = decide(cycle.loaded.campaign)
        if action.kind is Kind.RECOVER:
            return recover.recover(cycle, action)
        if action.kind is Kind.RECORD_BASELINE:
            assert action.role is not None
            return baseline.record(cycle, action.role, action.why)
        if action.kind is Kind.TEST:
            assert action.hypothesis is not None
            try:
                return trial.run_trial(cycle, action.hypothesis, action.why)
            except trial.BaselineOutdated as e:
                return baseline.record(cycle, "workload", f"baseline workload: {e.message}")
        return _ask(cycle, action)


def record_baseline(directory: Path, role: str | None, report: Report) -> dict[str, Any]:
    """`gpudebug baseline`: record one baseline now, valid or not; without a role, each that is needed."""
    with claimed_campaign(directory, report, "gpudebug baseline") as cycle:
        action = decide(cycle.loaded.campaign)
        if action.kind is Kind.RECOVER:
            recover.recover(cycle, action)
    with claimed_campaign(directory, report, "gpudebug baseline") as cycle:
        roles = (role,) if role else _needed(cycle)
        if not set(roles) <= set(cycle.loaded.roles):
            raise UsageError(
                f"this campaign has no {role}: baselines are {', '.join(cycle.loaded.roles)}",
                file=str(cycle.loaded.workspace.config),
                next="name one of them, or add `reference:` to gpudebug.yaml",
            )
        answers = [baseline.record(cycle, r, "asked for by `gpudebug baseline`") for r in roles]
    return answers[-1] | {"baselines": answers}


def _needed(cycle: Cycle) -> tuple[str, ...]:
    stale = tuple(b.role for b in cycle.loaded.baselines.values() if b.why is not None)
    return stale or cycle.loaded.roles


_NEXT_COMMAND = {
    Kind.PROPOSE: "gpudebug propose --title T --description D --method M --set FLAG=VALUE",
    Kind.IMPLEMENT: "gpudebug status",
    Kind.STOP: "gpudebug status",
}


def _ask(cycle: Cycle, action: Action) -> dict[str, Any]:
    """Nothing to measure: what the caller is asked for, or why the campaign stops."""
    loaded = cycle.loaded
    return {
        "action": action.kind.value,
        "campaign": loaded.config.campaign,
        "hypothesis": action.hypothesis,
        "verdict": None,
        "gates": [],
        "brief": _brief(cycle, action) if action.kind is not Kind.STOP else None,
        "why": action.why,
        "next_command": _NEXT_COMMAND[action.kind],
        "files": [str(loaded.progress_path)],
    }


def _figure(entry: progress.BaselineEntry, loaded: Loaded) -> str:
    """A baseline's figure, marked where no run bears it out."""
    found = loaded.baselines.get(entry.role)
    mark = "" if found and found.evidence and not found.unverified else " UNVERIFIED"
    return entry.fields.get("gpu util", present.UNKNOWN) + mark


def _outline(h: progress.HypothesisEntry, loaded: Loaded) -> tuple[int, str, str, str]:
    """Number, status, title and reason of a judged hypothesis; a hand-written verdict is marked."""
    judged = loaded.trials[h.number]
    if judged.verified and judged.verdict:
        return h.number, h.status.value, h.title, str(judged.verdict["why"])
    return h.number, h.status.value, h.title, f"UNVERIFIED {h.result.get('improvement', '')}".strip()


def _wanted(loaded: Loaded) -> str:
    """What a hypothesis must achieve, in the metric's terms."""
    least = present.threshold(loaded.metric, loaded.config.criteria.success)
    if loaded.metric.points:
        return f"utilisation rises by at least {least}"
    return f"{loaded.metric.name} is better by at least {least}"


def exit_status(answer: dict[str, Any]) -> int:
    """The documented exit status of `next`."""
    if answer["action"] == Kind.STOP.value:
        return STOPPED
    if answer["action"] in (Kind.PROPOSE.value, Kind.IMPLEMENT.value):
        return YOUR_TURN
    return 0


def _brief(cycle: Cycle, action: Action) -> str:
    """What to do now, as a short markdown page."""
    from gpudebug.edges import templates

    loaded = cycle.loaded
    entry = next((h for h in loaded.document.hypotheses if h.number == action.hypothesis), None)
    return templates.render(
        "brief.md.j2",
        kind=action.kind.value,
        campaign=loaded.config.campaign,
        goal=loaded.config.goal,
        why=action.why,
        command=loaded.workspace.scrub(loaded.config.workload.text),
        criteria=loaded.config.criteria,
        wanted=_wanted(loaded),
        least=present.threshold(loaded.metric, loaded.config.criteria.failure),
        baselines=[(b.role, _figure(b, loaded)) for b in loaded.document.baselines],
        hypotheses=[_outline(h, loaded) for h in loaded.document.hypotheses if h.status in VERDICTS],
        entry=entry,
        locked=list(loaded.config.locked),
        guidelines=loaded.config.guidelines,
        context=list(loaded.config.context),
        progress=str(loaded.progress_path),
    )
