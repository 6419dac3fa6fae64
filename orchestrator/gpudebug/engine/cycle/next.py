"""One `gpudebug next`, every stage in order: read, decide, do the one thing, record it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.answers.next import NextAnswer, SessionDone
from gpudebug.core.campaign.decide import Action, ActionKind, Campaign, Claimed, decide, only
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
from gpudebug.engine.hypotheses.reopen import goes_on, more, refuse_decided
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
ANY = store.NextWish()


def next_cycle(
    directory: Path, report: Report, session: str | None = None, wish: store.NextWish = ANY
) -> NextAnswer:
    """Do the one next thing of the campaign, exactly once. A session that has had its hypothesis stops.

    BusyError if another command runs something in it, NotReopened if the hypothesis of `wish` does not wait.
    """
    with claimed_campaign(directory, report, "gpudebug next", session) as cycle:
        done = finished(cycle.loaded)
        if done is not None:
            return done
        cycle.within_s = wish.within_s
        tidied = _tidied(cycle)
        if wish.hypothesis is not None:
            chosen = refuse_decided(cycle.loaded, wish.hypothesis)
            turn = _Turn(cycle, only(cycle.loaded.campaign, wish.hypothesis), chosen=chosen)
        else:
            turn = _Turn(cycle, weighed(cycle.loaded))
        answer = None
        while answer is None:
            action = turn.decided()
            answer = DO[action.kind](turn, action)
        if cycle.setup.workspace.element is None:
            record(cycle.setup.workspace.root, session, cycle.command)
        return replace(answer, notes=(*tidied, *answer.notes))


@dataclass
class _Turn:
    """What one command has met on the way to the one thing that it does.

    A hypothesis that cannot be tested leaves its turn to another: it is `unready`, and none of `campaign`.
    `added` says which one the catalogue has proposed, `chosen` that a person chose one.
    """

    cycle: Cycle
    campaign: Campaign
    unready: list[Unready] = field(default_factory=list)
    added: str | None = None
    chosen: str | None = None

    def decided(self) -> Action:
        """Return what is next. Raises the error of the first hypothesis that is unready if none is left."""
        action = decide(self.campaign)
        if self.unready and action.kind is not ActionKind.TEST:
            raise self.unready[0].error
        own = action.why if self.chosen is None or action.kind is not ActionKind.TEST else None
        return replace(action, why="; ".join(filter(None, (own, self.chosen, self.added))))


def go_on(directory: Path, report: Report, session: str | None, number: int) -> NextAnswer | None:
    """Claim INCONCLUSIVE hypothesis `number` for more runs; the answer instead if the campaign is over."""
    loaded = load(directory, session)
    if goes_on(loaded.setup, loaded.entries.document, number):
        return None
    with claimed_campaign(directory, report, "gpudebug next", session) as cycle:
        action = more(cycle.loaded, number)
        return ask(cycle, action) if action is not None and action.kind is ActionKind.STOP else None


def _tidied(cycle: Cycle) -> tuple[str, ...]:
    """Put in order what others left, and read the campaign again if that changed it; a line on each thing."""
    setup, loaded = cycle.setup, cycle.loaded
    claims.tidy(setup.workspace, loaded.entries.document)
    tidied = (
        *_of_arrays(cycle),
        *upkeep.tidy(setup, loaded.entries.document),
        *offer_again(setup, loaded.entries, loaded.history),
    )
    if tidied:
        cycle.loaded = cycle.again().loaded
    return tidied


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


def _in_arrays(cycle: Cycle) -> NextAnswer | None:
    """Return that elements test what there is to test, if a person has nothing to do but wait for them."""
    setup = cycle.setup
    if setup.session is not None or setup.workspace.element is not None:
        return None
    if any(h.status is Status.UNTESTED for h in cycle.loaded.entries.document.hypotheses):
        return None
    notes = store.Elements(setup.workspace).notes(setup.config.campaign)
    return under_way(setup.config.campaign, notes) if notes else None


def _recover(turn: _Turn, action: Action) -> NextAnswer:
    return recover.recover(turn.cycle, action)


def _record_baseline(turn: _Turn, action: Action) -> NextAnswer:
    assert action.role is not None
    return _in_arrays(turn.cycle) or baseline.record(turn.cycle, action.role, action.why)


def _test(turn: _Turn, action: Action) -> NextAnswer | None:
    """Prepare, run, judge and record one hypothesis; None if another may be tested instead."""
    assert action.hypothesis is not None
    cycle = turn.cycle
    try:
        answer = trial.run_trial(cycle, action.hypothesis, action.why)
        return replace(answer, unready=tuple(map(str, turn.unready)))
    except CodeCrashed as e:
        return mend(cycle.again(), e)
    except BaselineOutdated as e:
        return baseline.record(cycle, "workload", f"baseline workload: {e.message}")
    except Unready as e:
        entry = cycle.loaded.entries.document.hypothesis(action.hypothesis)
        if cycle.loaded.entries.claimed(entry) is Claimed.MINE:
            raise e.error from None  # Its author's to mend: a session is not handed a second one.
        turn.unready.append(e)
        others = tuple(h for h in turn.campaign.hypotheses if h.number != action.hypothesis)
        turn.campaign = replace(turn.campaign, hypotheses=others)
        return None


def _propose(turn: _Turn, action: Action) -> NextAnswer | None:
    """Ask for a hypothesis; None if the catalogue has one, which is proposed."""
    from gpudebug.engine.diagnosis.offer import outlook

    elsewhere = _in_arrays(turn.cycle)
    if elsewhere is not None:
        return elsewhere
    found = outlook(turn.cycle.loaded)
    if turn.added is not None or not found.adds:
        return ask(turn.cycle, replace(action, why=found.why(action.why)), found)
    turn.added = _add(turn.cycle, found)
    turn.campaign = weighed(turn.cycle.loaded)
    return None


def _ask(turn: _Turn, action: Action) -> NextAnswer:
    return ask(turn.cycle, action)


DO: Mapping[ActionKind, Callable[[_Turn, Action], NextAnswer | None]] = {
    ActionKind.RECOVER: _recover,
    ActionKind.RECORD_BASELINE: _record_baseline,
    ActionKind.TEST: _test,
    ActionKind.IMPLEMENT: _ask,
    ActionKind.PROPOSE: _propose,
    ActionKind.STOP: _ask,
}


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
