"""What measures, wherever the campaign's runs are made: on this host, or in its allocation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from gpudebug.core.answers.next import NextAnswer, SessionDone
from gpudebug.core.campaign.decide import ActionKind
from gpudebug.core.errors import BusyError, ClusterError
from gpudebug.core.inside.torch_profile import parse_torch_profile
from gpudebug.edges import store
from gpudebug.edges.host import now
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.runner import RunsElsewhere
from gpudebug.engine.cycle import detached
from gpudebug.engine.cycle.allocation import Allocation, allocation_of
from gpudebug.engine.cycle.finished import finished
from gpudebug.engine.cycle.next import ANY, go_on, next_cycle
from gpudebug.engine.cycle.record_baseline import record_baseline
from gpudebug.engine.cycle.retold import AllocationLost
from gpudebug.engine.cycle.stop import end
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.trial.aa import record_aa
from gpudebug.engine.trial.profile_run import record_profile

ATTEMPTS = 3
"""So many allocations in a row may be lost by one command before it gives up."""


def next_here(
    directory: Path,
    report: Report,
    session: str | None = None,
    *,
    detach: bool = False,
    more: int | None = None,
    hypothesis: int | None = None,
    within_s: float | None = None,
) -> NextAnswer:
    """`gpudebug next`: on this host as `next_or_attached`, or `detached.start` with `detach`.

    With a cluster everything that needs no device is done here, and the rest in the allocation. Hypothesis
    `more`, which ended INCONCLUSIVE, goes on; a person may name the `hypothesis` to test, and how long.
    """
    wish = store.NextWish(hypothesis, within_s)
    there = allocation_of(directory, report)
    answer = go_on(directory, report, session, more) if more is not None else None
    if there is None:
        return answer or (detached.start if detach else next_or_attached)(directory, report, session, wish)
    if answer is None:
        known = detached.attach(directory, report, session, block=not detach)
        if known is not None:
            return known
        request = replace(_request("next", session), **asdict(wish))
        answer = _made(
            lambda: next_or_attached(directory, report, session, wish), there, request, detach=detach
        )
    if answer.action == ActionKind.STOP.value and not isinstance(answer, SessionDone):
        try:
            end(directory, None, report)
        except ClusterError as e:
            there.say(f"the allocation could not be ended: {e.message}; {e.next}")
    return answer


def next_or_attached(
    directory: Path, report: Report, session: str | None = None, wish: store.NextWish = ANY
) -> NextAnswer:
    """Return the answer of a run of this caller that has ended or is under way; else do what is next.

    A session that calls again while its run is under way gets that run's answer.
    """
    found = detached.attach(directory, report, session)
    if found is not None:
        return found
    try:
        return next_cycle(directory, report, session, wish)
    except BusyError:
        found = finished(load(directory, session)) if session is not None else None
        if found is None:
            raise
        return found


def baseline_here(
    directory: Path, role: str | None, report: Report, session: str | None = None
) -> NextAnswer:
    """`gpudebug baseline`, as `record_baseline`."""
    request = replace(_request("baseline", session), role=role)
    return _measured(directory, report, lambda: record_baseline(directory, role, report, session), request)


def aa_here(
    directory: Path, report: Report, runs: int | None = None, session: str | None = None
) -> NextAnswer:
    """`gpudebug baseline --aa`, as `record_aa`."""
    request = replace(_request("aa", session), runs=runs)
    return _measured(directory, report, lambda: record_aa(directory, report, runs, session), request)


def profile_here(
    directory: Path, role: str, spec: str, report: Report, session: str | None = None
) -> NextAnswer:
    """`gpudebug baseline --torch-profile SPEC`, as `record_profile`. UsageError if SPEC is wrong."""
    profile = parse_torch_profile(spec)
    request = replace(_request("profile", session), role=role, profile=spec)
    return _measured(
        directory, report, lambda: record_profile(directory, role, profile, report, session), request
    )


def _measured(
    directory: Path, report: Report, here: Callable[[], NextAnswer], request: store.RunRequest
) -> NextAnswer:
    """What `here` answers, if it may be measured on this host; else what the allocation's worker does."""
    there = allocation_of(directory, report)
    return here() if there is None else _made(here, there, request, detach=False)


def _request(verb: str, session: str | None) -> store.RunRequest:
    since = now()
    return store.RunRequest(store.new_id(since), since, verb, session)


def _made(
    here: Callable[[], NextAnswer], there: Allocation, request: store.RunRequest, *, detach: bool
) -> NextAnswer:
    """Return what needs no device at once; else in the allocation, again in another if the cluster ends it.

    What was cut off is put in order first: that is an answer of its own.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            return here()
        except RunsElsewhere:
            pass
        try:
            with there.interruptible(request):
                there.refuse_hopeless(there.ask(request))
                return there.waiting(request) if detach else there.follow(request)
        except AllocationLost as e:
            if not left:
                raise
            there.refuse_unwanted()
            there.say(f"{e.message}; what ran is void, and is run again")
            again = _request(request.verb, request.session)
            request = replace(request, id=again.id, since=again.since)
    raise AssertionError
