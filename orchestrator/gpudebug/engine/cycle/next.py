"""One `gpudebug next`, every stage in order: read, decide, do the one thing, record it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.answers.next import NextAnswer, SessionDone
from gpudebug.core.campaign.decide import Action, ActionKind, Claimed, decide
from gpudebug.core.errors import BusyError
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign import claims, upkeep
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.runner import cluster_of
from gpudebug.engine.cycle.array_wait import under_way
from gpudebug.engine.cycle.finished import finished
from gpudebug.engine.cycle.request import ask, mend
from gpudebug.engine.cycle.taken_in import take_in_ended
from gpudebug.engine.diagnosis.weights import weighed
from gpudebug.engine.hypotheses.reopen import goes_on, more
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import Cycle, claimed_campaign
from gpudebug.engine.status.summary import record
from gpudebug.engine.trial import baseline, recover, trial
from gpudebug.engine.trial.crashes import CodeCrashed
from gpudebug.engine.trial.offered_again import offer_again
from gpudebug.engine.trial.premises import BaselineOutdated, Unready

if TYPE_CHECKING:
    from gpudebug.engine.diagnosis.offer import Outlook

STOPPED = 4
YOUR_TURN = 5
SESSION_DONE = 7


def next_cycle(directory: Path, report: Report, session: str | None = None) -> NextAnswer:
    """Do the one next thing of the campaign, exactly once.

    A session that has had its hypothesis has to stop, and one that calls again while its run is under
    way gets that run's answer.
    """
    from gpudebug.engine.cycle.detached import attach

    found = attach(directory, report, session)
    if found is not None:
        return found
    try:
        return _claimed_cycle(directory, report, session)
    except BusyError:
        found = finished(load(directory, session)) if session is not None else None
        if found is None:
            raise
        return found


def go_on(directory: Path, report: Report, session: str | None, number: int) -> NextAnswer | None:
    """Claim INCONCLUSIVE hypothesis `number` for more runs; the answer instead if the campaign is over."""
    loaded = load(directory, session)
    if goes_on(loaded.setup, loaded.entries.document, number):
        return None
    with claimed_campaign(directory, report, "gpudebug next", session) as cycle:
        action = more(cycle.loaded, number)
        return ask(cycle, action) if action is not None and action.kind is ActionKind.STOP else None


def _claimed_cycle(directory: Path, report: Report, session: str | None) -> NextAnswer:
    """One cycle while the campaign is ours: read, tidy, decide and do, record, answer."""
    with claimed_campaign(directory, report, "gpudebug next", session) as cycle:
        done = finished(cycle.loaded)
        if done is not None:
            return done
        claims.tidy(cycle.setup.workspace, cycle.loaded.entries.document)
        tidied = (
            *_of_arrays(cycle),
            *upkeep.tidy(cycle.setup, cycle.loaded.entries.document),
            *offer_again(cycle.setup, cycle.loaded.entries, cycle.loaded.history),
        )
        if tidied:
            cycle.loaded = cycle.again().loaded
        answer = _one_thing(cycle)
        if cycle.setup.workspace.element is None:
            record(cycle.setup.workspace.root, session, cycle.command)
        return replace(answer, notes=(*tidied, *answer.notes))


def _of_arrays(cycle: Cycle) -> list[str]:
    """Take in what elements of job arrays have measured by now; a line on each."""
    workspace = cycle.setup.workspace
    if workspace.element is not None or not store.Elements(workspace).notes(cycle.setup.config.campaign):
        return []
    cluster = cluster_of(workspace, cycle.setup.config)
    return [
        one.line
        for one in take_in_ended(cycle.setup, cycle.loaded.entries.acceptances, cluster, cycle.report)
    ]


def _all_in_arrays(cycle: Cycle) -> tuple[store.ElementNote, ...]:
    """The elements that test what there is to test, if a person has nothing to do but wait for them."""
    loaded = cycle.loaded
    if loaded.setup.session is not None or loaded.setup.workspace.element is not None:
        return ()
    if any(h.status is Status.UNTESTED for h in loaded.entries.document.hypotheses):
        return ()
    return store.Elements(loaded.setup.workspace).notes(loaded.setup.config.campaign)


def _one_thing(cycle: Cycle) -> NextAnswer:
    """Decide what is next and do it.

    A hypothesis that cannot be tested leaves its turn to another; its error is raised if none is left.
    """
    campaign, unready = weighed(cycle.loaded), list[Unready]()
    added: str | None = None
    while True:
        action = decide(campaign)
        if added:
            action = replace(action, why=f"{action.why}; {added}")
        if action.kind is ActionKind.TEST:
            try:
                return _test(cycle, action, unready)
            except Unready as e:
                unready.append(e)
                others = tuple(h for h in campaign.hypotheses if h.number != action.hypothesis)
                campaign = replace(campaign, hypotheses=others)
                continue
        if unready:
            raise unready[0].error
        if action.kind is ActionKind.RECOVER:
            return recover.recover(cycle, action)
        if action.kind in (ActionKind.RECORD_BASELINE, ActionKind.PROPOSE) and (
            notes := _all_in_arrays(cycle)
        ):
            return under_way(cycle.setup.config.campaign, notes)
        if action.kind is ActionKind.RECORD_BASELINE:
            assert action.role is not None
            return baseline.record(cycle, action.role, action.why)
        if action.kind is not ActionKind.PROPOSE:
            return ask(cycle, action)
        from gpudebug.engine.diagnosis.offer import outlook

        found = outlook(cycle.loaded)
        if added is not None or not found.adds:
            return ask(cycle, replace(action, why=found.why(action.why)), found)
        added = _add(cycle, found)
        campaign = weighed(cycle.loaded)


def _test(cycle: Cycle, action: Action, unready: list[Unready]) -> NextAnswer:
    """Prepare, run, judge and record one hypothesis. Raises Unready if another may be tested instead."""
    assert action.hypothesis is not None
    try:
        answer = trial.run_trial(cycle, action.hypothesis, action.why)
        return replace(answer, unready=tuple(map(str, unready)))
    except CodeCrashed as e:
        return mend(cycle.again(), e)
    except BaselineOutdated as e:
        return baseline.record(cycle, "workload", f"baseline workload: {e.message}")
    except Unready as e:
        entry = cycle.loaded.entries.document.hypothesis(action.hypothesis)
        if cycle.loaded.entries.claimed(entry) is Claimed.MINE:
            raise e.error from None  # Its author's to mend: a session is not handed a second one.
        raise


def _add(cycle: Cycle, found: Outlook) -> str:
    """Put the catalogue's best fit into the progress file; what to report of it."""
    from gpudebug.engine.diagnosis.from_catalogue import likelihood
    from gpudebug.engine.hypotheses.propose import Duplicate, add

    assert found.offer is not None
    ranked, note = found.offer.ranked, ""
    try:
        add(cycle.loaded, found.offer.proposal)
        note = f"proposed by the catalogue: {ranked.id}, {likelihood(ranked)}"
    except Duplicate:
        pass  # Proposed by another in between: that one is tested.
    cycle.loaded = cycle.again().loaded
    return note


def exit_status(answer: NextAnswer) -> int:
    """Return the documented exit status of `next`."""
    if isinstance(answer, SessionDone):
        return SESSION_DONE
    if answer.action == ActionKind.STOP.value:
        return STOPPED
    if answer.action in (ActionKind.PROPOSE.value, ActionKind.IMPLEMENT.value):
        return YOUR_TURN
    return 0
