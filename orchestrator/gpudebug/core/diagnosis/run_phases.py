"""How long the phases of a run took, and which of them costs most over all that is planned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from gpudebug.core.answers.diagnosis import BusyPlace, RunPhases
from gpudebug.core.diagnosis.ofprobe import finite
from gpudebug.core.inside.stacks.evaluation import hottest
from gpudebug.core.inside.stacks.shares import seen, share
from gpudebug.core.records import Evidence, Stacks
from gpudebug.core.statistics.phases import figures
from gpudebug.core.words import Outcome, SignalValue

START_UP = "start-up"
LEAST = 0.01
"""A smaller part of the window is not told from none."""
A_PLACE = 0.25
"""Of what was seen of start-up or of a named phase, from which a place is what it is spent in."""
_NOTHING: Mapping[str, Stacks] = {}
_SAVES = (
    r"serialization\.py:([\w<>]+\.)*_?(legacy_)?save|safetensors/torch\.py:"
    r"|:([\w<>]+\.)*_?save(_\w+)?$|:([\w<>]+\.)*_?(write|dump)_?(checkpoint|ckpt|snapshot)\w*$"
)


def phases_of(
    evidence: Evidence,
    signals: Mapping[str, SignalValue],
    start_up: Stacks | None = None,
    named: Mapping[str, Stacks] = _NOTHING,
) -> RunPhases | None:
    """Return the phases of a run; None before its first step, and of one whose window is unknown.

    `signals` are those of its diagnosis, `start_up` what it did before its first step, `named` what in the
    phases of these names. A run that ended by
    itself is all that was planned. What is not known to take `LEAST` of the window is left out.
    """
    first, window = evidence.first_step_s, evidence.window
    if first is None or window is None:
        return None
    training = evidence.stacks.training if evidence.stacks else None
    parts = {
        "evaluation": finite(signals.get("eval_share")),
        "saving": share(training, stack=_SAVES).value if training is not None else None,
        "between epochs": finite(signals.get("loader_restart_share", signals.get("loader_start_share"))),
    }
    within = {name: part for name, part in parts.items() if part is not None and part >= LEAST}
    total, rate = evidence.total_steps, evidence.steps_per_s
    loop_s = total / rate if total and rate else None
    if loop_s is None and evidence.outcome is Outcome.COMPLETED and evidence.duration_s is not None:
        loop_s = max(0.0, evidence.duration_s - first)
    once = {START_UP: first, "first steps": max(0.0, window.start_s - first)}
    most = part = None
    if loop_s is not None:
        costs = {**once, **{name: seconds * loop_s for name, seconds in within.items()}}
        most = max(costs, key=lambda name: costs[name])
        part = costs[most] / (loop_s + first)
    return RunPhases(
        start_up_s=first,
        first_steps_s=once["first steps"],
        steady_s=window.duration_s,
        within=within,
        most=most,
        most_share=part,
        start_up_place=(place := _place_of(start_up)),
        start_up_caller=_caller_of(start_up, place),
        named=figures([evidence.phases], evidence.step_unit),
        named_reason=evidence.phases_reason,
        named_places={name: one for name, stacks in named.items() if (one := _place_of(stacks))},
    )


def _place_of(start_up: Stacks | None) -> BusyPlace | None:
    """Return the place with most of the time, if it is one for which start-up takes so long."""
    most = next(iter(hottest(start_up)), None) if start_up is not None else None
    if most is None or most.share < A_PLACE:
        return None
    return BusyPlace(
        site=most.site, function=most.function, share=most.share, state=most.state, code=most.code
    )


def _caller_of(start_up: Stacks | None, place: BusyPlace | None) -> str | None:
    """Return the function of another file that the place is called by for most of its time: it says why."""
    callers: defaultdict[str, float] = defaultdict(float)
    if start_up is None or place is None:
        return None
    site = place.site.rpartition(":")[0]
    for one in seen(start_up):
        file, _, function = one.frames[one.own].rpartition(":") if one.own is not None else ("", "", "")
        above = (frame for frame in reversed(one.frames[: one.own]) if not frame.startswith(f"{file}:"))
        if file.endswith(site) and function == place.function and (caller := next(above, None)):
            callers[caller] += one.seconds
    return max(callers, key=lambda caller: callers[caller], default=None)
