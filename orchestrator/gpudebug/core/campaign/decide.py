"""The state machine: what the files say -> exactly one action. There is no hidden state to lose."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpudebug.core.statistics.metrics import UTILISATION, Metric
from gpudebug.core.statistics.numbers import figure
from gpudebug.core.words import VERDICTS, Status, Word, counted

DEFAULT_TARGET = 80.0
SMALL = 0.02
"""Of the time: an expected gain below this is within the error of such an estimate, and orders nothing."""
AGREED = 2
"""Sessions in a row that have nothing to propose end a campaign; a person alone does."""


class ActionKind(Word):
    """What one cycle does. The values are `status`'s `next.action`."""

    RECOVER = "recover"
    RECORD_BASELINE = "record_baseline"
    TEST = "test"
    PROPOSE = "propose"
    IMPLEMENT = "implement"
    STOP = "stop"


class Ending(Word):
    """Why a campaign stops."""

    SOLVED = "solved"
    EXHAUSTED = "exhausted"
    OUT_OF_BUDGET = "out of budget"
    NOTHING_LEFT = "nothing left"


class Claimed(Word):
    """Whose claim a TESTING hypothesis is under: the caller's own, or another session's that still holds."""

    MINE = "mine"
    OTHERS = "others"


@dataclass(frozen=True)
class Action:
    """The one next thing: `role` of a baseline, number of a hypothesis, or name of a run, and why."""

    kind: ActionKind
    why: str
    role: str | None = None
    hypothesis: int | None = None
    run: str | None = None
    ending: Ending | None = None


@dataclass(frozen=True)
class BaselineState:
    """A baseline that the campaign needs. `why` is None when it is valid, else what is wrong with it;
    `figure` is the campaign's metric, in its own unit."""

    role: str
    why: str | None
    figure: float | None = None


@dataclass(frozen=True)
class HypothesisState:
    """A hypothesis as the progress file and the runs tell it.

    `mechanical` says that gpudebug can make the change by itself, `written` that the code was written
    that was missing; `claimed` whose claim it is under, None if no claim holds; `verified` that a
    verdict has its runs; `after` is the trial's figure of the campaign's metric. `share` is
    that of the time (0 to 1) that its fix is expected to bring, which orders what waits as it orders the
    causes; None: not known. `problem`: its change cannot be tested
    as it is written. `counts` is False for a verdict by
    weaker terms than the pinned ones, or on recordings: it solves nothing.
    """

    number: int
    status: Status
    mechanical: bool
    verified: bool = False
    after: float | None = None
    claimed: Claimed | None = None
    written: bool = False
    share: float | None = None
    problem: bool = False
    counts: bool = True


@dataclass(frozen=True)
class RunState:
    """A run folder that asks for something: not sealed, or judged without its entry in the file."""

    name: str
    sealed: bool
    hypothesis: int | None = None


@dataclass(frozen=True)
class Campaign:
    """All that a decision depends on.

    `loose_runs` are the run folders of this campaign that no live process owns and that are unsealed
    or hold a verdict that the progress file lacks. `target` is in the metric's unit, None for the default;
    `failure` is in pp, or a ratio. `untold` counts verdicts that no entry lists. Device time in seconds.
    `accepted` says that changes were accepted, `unweighed` why it is unknown what its hypotheses are
    worth. `nothing` are the sessions (None: a person) that had nothing to propose since the last change.
    """

    baselines: tuple[BaselineState, ...]
    hypotheses: tuple[HypothesisState, ...]
    loose_runs: tuple[RunState, ...] = ()
    target: float | None = None
    failure: float = 10.0
    hypothesis_budget: int = 20
    untold: int = 0
    device_time: float = 0.0
    device_time_budget: float | None = None
    metric: Metric = UTILISATION
    accepted: bool = False
    unweighed: str | None = None
    nothing: tuple[str | None, ...] = ()

    @property
    def tested(self) -> int:
        """How many hypotheses were tested, as the budget counts: a test that is in runs/ alone counts."""
        return sum(h.status in VERDICTS for h in self.hypotheses) + self.untold


def decide(campaign: Campaign) -> Action:
    """Return the one next thing to do. Total: every campaign has exactly one."""
    return (
        _recover(campaign)
        or _measure_accepted(campaign)
        or _solved(campaign)
        or _out_of_budget(campaign)
        or _record(campaign.baselines)
        or _mine(campaign)
        or _test(campaign)
        or _implement(campaign)
        or _nothing_left(campaign)
        or _propose(campaign)
    )


def _recover(c: Campaign) -> Action | None:
    if c.loose_runs:
        run = c.loose_runs[0]
        why = (
            "was judged but is not in the progress file" if run.sealed else "was cut off before it was sealed"
        )
        return Action(ActionKind.RECOVER, f"run {run.name} {why}", run=run.name, hypothesis=run.hypothesis)
    stuck = next((h for h in c.hypotheses if h.status is Status.TESTING and h.claimed is None), None)
    if stuck is None:
        return None
    return Action(
        ActionKind.RECOVER,
        f"hypothesis {stuck.number} is TESTING but no run is under way",
        hypothesis=stuck.number,
    )


def _measure_accepted(c: Campaign) -> Action | None:
    """The workload with what was accepted, also where the campaign is over: else it cannot be handed over."""
    workload = tuple(b for b in c.baselines if b.role == "workload")
    return _record(workload) if c.accepted else None


def goal(c: Campaign) -> float | None:
    """Return the figure that solves the campaign: `target`, else the reference's less `failure`, else 80 %.

    80 % replaces a reference that is not recorded yet. None: another metric has no such figure.
    """
    if c.target is not None:
        return c.target
    reference = next((b.figure for b in c.baselines if b.role == "reference"), None)
    if reference is None:
        return DEFAULT_TARGET if c.metric.points else None
    return c.metric.target(reference, c.failure)


def _goal_is_open(c: Campaign) -> bool:
    """Tell whether the target follows from a reference that was not measured yet."""
    unmeasured = any(b.role == "reference" and b.why is not None and b.figure is None for b in c.baselines)
    return c.target is None and unmeasured


def _solved(c: Campaign) -> Action | None:
    target = goal(c)
    if target is None or _goal_is_open(c):
        return None
    for h in c.hypotheses:
        if h.status is not Status.VALIDATED or not (h.verified and h.counts) or h.after is None:
            continue
        if c.metric.reached(h.after, target):
            reached, wanted = (figure(c.metric, v) for v in (h.after, target))
            why = f"solved: hypothesis {h.number} reaches {reached}, the target is {wanted}"
            return Action(ActionKind.STOP, why, hypothesis=h.number, ending=Ending.SOLVED)
    return None


def over(c: Campaign) -> Action | None:
    """Return why nothing is to be measured any more, whatever has to be put in order first."""
    return _solved(c) or _out_of_budget(c)


def _out_of_budget(c: Campaign) -> Action | None:
    if c.tested >= c.hypothesis_budget:
        tested = counted(c.tested, "hypothesis", "hypotheses")
        why = f"exhausted: {tested} tested, the budget is {c.hypothesis_budget}"
        return Action(ActionKind.STOP, why, ending=Ending.EXHAUSTED)
    if c.device_time_budget is not None and c.device_time >= c.device_time_budget:
        used, budget = c.device_time, c.device_time_budget
        why = f"out of budget: {used:.0f} s of device time used, the budget is {budget:.0f} s"
        return Action(ActionKind.STOP, why, ending=Ending.OUT_OF_BUDGET)
    return None


def _record(baselines: tuple[BaselineState, ...]) -> Action | None:
    for b in baselines:
        if b.why is not None:
            return Action(ActionKind.RECORD_BASELINE, f"baseline {b.role}: {b.why}", role=b.role)
    return None


def _mine(c: Campaign) -> Action | None:
    """Return what the caller has claimed and not finished: a session gets no second hypothesis."""
    h = next((h for h in c.hypotheses if h.status is Status.TESTING and h.claimed is Claimed.MINE), None)
    if h is None:
        return None
    if h.mechanical or h.written:
        return Action(
            ActionKind.TEST, f"hypothesis {h.number} is yours and has its change", hypothesis=h.number
        )
    why = f"hypothesis {h.number} is yours and has no change yet"
    return Action(ActionKind.IMPLEMENT, why, hypothesis=h.number)


def waiting(c: Campaign, mechanical: bool) -> list[HypothesisState]:
    """Return the untested hypotheses of one kind, in the file's order."""
    return [h for h in c.hypotheses if h.status is Status.UNTESTED and h.mechanical is mechanical]


def only(c: Campaign, number: int) -> Campaign:
    """Return the campaign as if no other hypothesis waited for a test."""
    kept = (h for h in c.hypotheses if h.status is not Status.UNTESTED or h.number == number)
    return replace(c, hypotheses=tuple(kept))


def _most_wanted(c: Campaign, mechanical: bool) -> HypothesisState | None:
    """Return the one that promises most, a trial of each takes as long; the first of equals, and if nothing
    is known."""
    return max(waiting(c, mechanical), key=wanted, default=None)


def wanted(h: HypothesisState) -> tuple[int, float]:
    """Order by what is promised: an unknown or small share goes before none, a problem last."""
    if h.problem:
        return (-1, 0.0)
    if h.share is None or 0 < h.share < SMALL:
        return (1, 0.0)
    return (2, h.share) if h.share > 0 else (0, 0.0)


def _test(c: Campaign) -> Action | None:
    h = _most_wanted(c, mechanical=True)
    if h is None:
        return None
    return Action(
        ActionKind.TEST, f"hypothesis {h.number}{_promise(c, h) or ' is untested'}", hypothesis=h.number
    )


def _implement(c: Campaign) -> Action | None:
    h = _most_wanted(c, mechanical=False)
    if h is None:
        return None
    why = f"hypothesis {h.number} has no change to test yet{_promise(c, h)}"
    return Action(ActionKind.IMPLEMENT, why, hypothesis=h.number)


def _promise(c: Campaign, h: HypothesisState) -> str:
    """Say why this one of several."""
    among = len(waiting(c, h.mechanical))
    if among < 2:
        return ""
    if c.unweighed is not None:
        return f", the first in the file: {c.unweighed}"
    if wanted(h)[0] < 2:
        return ""
    return f", the best expected gain of {among} untested ({h.share:.1%} of the time)"


def _nothing_left(c: Campaign) -> Action | None:
    """Return what is being tested may still change what there is to propose."""
    if any(h.status is Status.TESTING for h in c.hypotheses):
        return None
    if None not in c.nothing and len(set(c.nothing)) < AGREED:
        return None
    who = "a person" if None in c.nothing else f"sessions {', '.join(sorted(set(map(str, c.nothing))))}"
    why = f"nothing left to propose, by the word of {who}; any `gpudebug propose` continues the campaign"
    return Action(ActionKind.STOP, why, ending=Ending.NOTHING_LEFT)


def _propose(c: Campaign) -> Action:
    taken = [h.number for h in c.hypotheses if h.status is Status.TESTING]
    if taken:
        numbers = ", ".join(map(str, taken))
        return Action(
            ActionKind.PROPOSE,
            f"hypothesis {numbers} is claimed by another session and none is left: propose a new one",
        )
    won = next((h for h in c.hypotheses if h.status is Status.VALIDATED and h.verified and h.counts), None)
    if won is None or goal(c) is not None:
        tested = "every hypothesis has its verdict: propose a new one"
        return Action(ActionKind.PROPOSE, tested if c.hypotheses else "no hypothesis yet: propose one")
    why = (
        f"hypothesis {won.number} is VALIDATED, and no target is set: you can stop here, or propose a new one"
    )
    return Action(ActionKind.PROPOSE, why)
