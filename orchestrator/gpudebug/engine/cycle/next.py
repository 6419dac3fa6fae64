"""One `gpudebug next`, every stage in order: read, decide, do the one thing, record it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudebug.core.campaign.decide import Action, Claimed, Kind, decide
from gpudebug.core.errors import BusyError, UsageError
from gpudebug.engine.campaign import claims, upkeep, worktrees
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.weights import weighed
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import Cycle, claimed_campaign
from gpudebug.engine.status.summary import record
from gpudebug.engine.trial import baseline, recover, trial

if TYPE_CHECKING:
    from gpudebug.engine.diagnosis.offer import Outlook

STOPPED = 4
YOUR_TURN = 5
SESSION_DONE = 7


def next_cycle(directory: Path, report: Report, session: str | None = None) -> dict[str, Any]:
    """Do the one next thing of the campaign, exactly once. The answer is `next`'s JSON.

    A session that has had its hypothesis is told to stop, and one that calls again while its run is under
    way gets that run's answer.
    """
    from gpudebug.engine.cycle.detached import attach

    found = attach(directory, report, session)
    if found is not None:
        return found
    try:
        return _claimed_cycle(directory, report, session)
    except BusyError:
        found = _finished(load(directory, session)) if session is not None else None
        if found is None:
            raise
        return found


def _claimed_cycle(directory: Path, report: Report, session: str | None) -> dict[str, Any]:
    with claimed_campaign(directory, report, "gpudebug next", session) as cycle:
        found = _finished(cycle.loaded)
        if found is not None:
            return found
        claims.tidy(cycle.loaded)
        tidied = upkeep.tidy(cycle.loaded)
        if tidied:
            cycle.loaded = cycle.again().loaded
        answer = _do(cycle)
        record(cycle.loaded.workspace.root, session, cycle.command)
        return {**answer, "notes": [*tidied, *answer.get("notes", [])]} if tidied else answer


def _do(cycle: Cycle) -> dict[str, Any]:
    """The one next thing. A hypothesis that cannot be tested as it stands is no reason not to test another:
    its error is raised where no other is left."""
    campaign, unready = weighed(cycle.loaded), list[trial.Unready]()
    added: str | None = None
    while True:
        action = decide(campaign)
        if added:
            action = replace(action, why=f"{action.why}; {added}")
        if unready and action.kind is not Kind.TEST:
            raise unready[0].error
        if action.kind is Kind.RECOVER:
            return recover.recover(cycle, action)
        if action.kind is Kind.RECORD_BASELINE:
            assert action.role is not None
            return baseline.record(cycle, action.role, action.why)
        if action.kind is Kind.PROPOSE:
            from gpudebug.engine.diagnosis.offer import outlook

            found = outlook(cycle.loaded)
            action = replace(action, why=found.why(action.why))
            if not found.adds or added is not None:
                return _ask(cycle, action, found)
            added = _add(cycle, found)
            campaign = weighed(cycle.loaded)
            continue
        if action.kind is not Kind.TEST:
            return _ask(cycle, action)
        assert action.hypothesis is not None
        try:
            answer = trial.run_trial(cycle, action.hypothesis, action.why)
        except trial.BaselineOutdated as e:
            return baseline.record(cycle, "workload", f"baseline workload: {e.message}")
        except trial.Unready as e:
            if cycle.loaded.claimed(cycle.loaded.document.hypothesis(action.hypothesis)) is Claimed.MINE:
                raise e.error from None  # Theirs to mend: nobody is handed a second one.
            unready.append(e)
            others = tuple(h for h in campaign.hypotheses if h.number != action.hypothesis)
            campaign = replace(campaign, hypotheses=others)
            continue
        return {**answer, "unready": [str(e) for e in unready]}


def _add(cycle: Cycle, found: Outlook) -> str:
    """Put the catalogue's best fit into the progress file; what is to be said of it."""
    from gpudebug.engine.diagnosis.from_catalogue import likelihood
    from gpudebug.engine.hypotheses.propose import Duplicate, add

    assert found.offer is not None
    ranked, said = found.offer.ranked, ""
    try:
        add(cycle.loaded, found.offer.proposal)
        said = f"proposed by the catalogue: {ranked.id}, {likelihood(ranked)}"
    except Duplicate:
        pass  # Somebody proposed it in between: theirs is tested.
    cycle.loaded = cycle.again().loaded
    return said


def _finished(loaded: Loaded) -> dict[str, Any] | None:
    """What a session that has had its hypothesis is told; None while it has not, and for a person."""
    had = claims.had(loaded)
    if had is None:
        return None
    said = "its result came too late and is no verdict"
    if had:
        said = f"hypothesis {had['hypothesis']} is {had['status']}: {had['why']}"
    return {
        "action": Kind.STOP.value,
        "campaign": loaded.config.campaign,
        "hypothesis": had.get("hypothesis"),
        "verdict": had.get("status"),
        "gates": [],
        "brief": None,
        "why": f"session {loaded.session} has had its hypothesis, stop here; {said}",
        "session_done": True,
        "next_command": None,
        "files": [str(loaded.progress_path)],
    }


def record_baseline(
    directory: Path, role: str | None, report: Report, session: str | None = None
) -> dict[str, Any]:
    """`gpudebug baseline`: record one baseline now, valid or not; without a role, each that is needed."""
    with claimed_campaign(directory, report, "gpudebug baseline", session, pins=True) as cycle:
        action = decide(cycle.loaded.campaign)
        if action.kind is Kind.RECOVER:
            recover.recover(cycle, action)
    with claimed_campaign(directory, report, "gpudebug baseline", session, pins=True) as cycle:
        roles = (role,) if role else _needed(cycle)
        if not set(roles) <= set(cycle.loaded.roles):
            raise UsageError(
                f"this campaign has no {role}: baselines are {', '.join(cycle.loaded.roles)}",
                file=str(cycle.loaded.workspace.config),
                next="name one of them, or add `reference:` to gpudebug.yaml",
            )
        answers = [baseline.record(cycle, r, "asked for by `gpudebug baseline`") for r in roles]
        record(cycle.loaded.workspace.root, session, cycle.command)
    return answers[-1] | {"baselines": answers}


def _needed(cycle: Cycle) -> tuple[str, ...]:
    stale = tuple(b.role for b in cycle.loaded.baselines.values() if b.why is not None)
    return stale or cycle.loaded.roles


def _ask(cycle: Cycle, action: Action, found: Outlook | None = None) -> dict[str, Any]:
    """Nothing to measure: what the caller is asked for, or why the campaign stops."""
    loaded = cycle.loaded
    worktree = None
    if action.kind is Kind.IMPLEMENT:
        assert action.hypothesis is not None
        claims.take(loaded, action.hypothesis)
        worktree = worktrees.worktree_for(loaded, action.hypothesis)
    elif action.kind is Kind.STOP:
        upkeep.end(loaded)
    page = None
    if action.kind is not Kind.STOP:
        from gpudebug.engine.brief.brief import brief

        remarks, offer = _drifted(loaded), found.offer if found else None
        page = brief(
            loaded,
            action.kind,
            action.why,
            hypothesis=action.hypothesis,
            session=loaded.session,
            worktree=worktree,
            remarks=remarks,
            diagnosis=found.lines() if found else (),
            instructions=_instructions(loaded, action),
            offer=offer.ranked.id if offer else None,
        )
    return {
        "action": action.kind.value,
        "campaign": loaded.config.campaign,
        "hypothesis": action.hypothesis,
        "verdict": None,
        "gates": [],
        "brief": page,
        "why": action.why,
        "worktree": str(worktree) if worktree else None,
        **({"diagnosis": found.json()} if found else {}),
        "next_command": (found.command if found else None) or _NEXT_COMMAND[action.kind],
        "files": [str(loaded.progress_path), *([str(worktree)] if worktree else [])],
    }


_NEXT_COMMAND = {
    Kind.PROPOSE: "gpudebug propose --title T --description D --method M --set FLAG=VALUE",
    Kind.IMPLEMENT: "gpudebug next",
    Kind.STOP: "gpudebug status",
}


def _instructions(loaded: Loaded, action: Action) -> list[str]:
    """What the catalogue says of the code that is asked for."""
    if action.kind is not Kind.IMPLEMENT or action.hypothesis is None:
        return []
    from gpudebug.engine.diagnosis.offer import instructions

    return instructions(loaded, loaded.document.hypothesis(action.hypothesis))


def _drifted(loaded: Loaded) -> list[str]:
    """What was changed in the checkout, where nothing of it is measured for a session."""
    if not loaded.code.drifted:
        return []
    return [
        "the checkout is not the code that is measured: somebody changed files in it. A change of yours "
        "belongs into the worktree that `gpudebug next` names; leave the checkout as it was"
    ]


def exit_status(answer: dict[str, Any]) -> int:
    """The documented exit status of `next`."""
    if answer.get("session_done"):
        return SESSION_DONE
    if answer["action"] == Kind.STOP.value:
        return STOPPED
    if answer["action"] in (Kind.PROPOSE.value, Kind.IMPLEMENT.value):
        return YOUR_TURN
    return 0
