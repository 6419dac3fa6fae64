"""Whether what got done is what log, probe and command agree on: without that, throughput is not known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudebug.core.inside.probe import counts
from gpudebug.core.records import Evidence
from gpudebug.core.statistics.loss_curve import same
from gpudebug.core.statistics.numbers import number
from gpudebug.core.verdict import machine
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.figures import mean, probed
from gpudebug.core.verdict.gates.learning import agrees
from gpudebug.core.words import Outcome

SAME = 1.02
"""Elements that reach parameters, of other looks at the same program."""
LEAST, MOST = 0.8, 1.1
"""The share of what the model is given that reaches parameters: below, some was not seen to, as in compiled
code; above, it is blown up first, so that equal sizes prove nothing."""


def harmless(case: TrialCase, moved: counts.Moved) -> str | None:
    """Why fewer elements or weights are the same work: nothing of what is missing can change the result.

    None if nothing shows that, and for any other count.
    """
    if moved.name not in (counts.INPUTS, counts.WEIGHTS):
        return None
    # Losses that the change itself prints prove nothing of it.
    own = case.setting.prints
    before, after = ([e.loss.begin for e in side] for side in (case.before, case.after))
    alike = same([*before, *after])
    if alike and not own:
        return "both sides print the same losses at their first steps"
    if moved.name == counts.WEIGHTS:
        return None
    reached = [_reached(e) for e in case.before], [_reached(e) for e in case.after]
    # Of a program that repeats its losses to the digit, other ones are of other input: another frame, say.
    other = alike is False and same(before)
    if _same_reached(*reached) and not other:
        return "as many elements reach the parameters as before"
    if case.setting.redundant and not own and not _fewer_reached(*reached) and agrees(case):
        return f"{case.setting.redundant} is about input that is never read, and the losses agree"
    return None


def unread(case: TrialCase) -> bool:
    """Tell whether the losses show that what a flag drops is never read."""
    return agrees(case) or same([e.loss.begin for e in (*case.before, *case.after)]) is True


Reach = tuple[float, float]
"""Elements that the model is given, and those that reach a parameter."""


def _reached(e: Evidence) -> Reach | None:
    """By the probe's looks at the run; None if it had none, or saw nothing reach a parameter."""
    inside = counts.counted(e)
    record = inside.facts.get("input") if inside is not None else None
    if not isinstance(record, Mapping):
        return None
    given, reached = record.get("given"), record.get("reached")
    if not isinstance(given, (int, float)) or not isinstance(reached, (int, float)):
        return None
    return (given, reached) if math.isfinite(given + reached) and given > 0 and reached > 0 else None


def _same_reached(before: Sequence[Reach | None], after: Sequence[Reach | None]) -> bool:
    """Tell whether what is missing never reached a parameter, by all runs."""
    old, new = [one for one in before if one], [one for one in after if one]
    if not old or len(old) + len(new) < len(before) + len(after):
        return False
    reached = [one[1] for one in (*old, *new)]
    whole = all(LEAST <= there / given <= MOST for given, there in new)
    return whole and max(reached) <= SAME * min(reached)


def _fewer_reached(before: Sequence[Reach | None], after: Sequence[Reach | None]) -> bool:
    """Tell whether a run of the trial was seen to have fewer elements reach its parameters."""
    old, new = [one[1] for one in before if one], [one[1] for one in after if one]
    return bool(old and new) and min(new) * SAME < min(old)


# Start-up that takes less than this longer, in seconds, or less than this share, varies from run to run.
LEAST_S = 2.0
LEAST_SHARE = 0.5
# Of what the steps of the planned length save, what start-up may take: a gain keeps most of itself.
MOST_OF_SAVED = 0.5


def eats_gain(case: TrialCase) -> str | None:
    """Return why the gain is none over the length that the command plans.

    None if start-up does not take longer, if the length is not known, or if a person confirmed the change:
    what compiles or caches first is tested short and pays in a long run.
    """
    ratio = case.ratio or (case.delta if case.metric.throughput else None)
    longer, planned = _longer(case), _planned_s(case)
    if case.setting.confirmed or ratio is None or ratio.value <= 1:
        return None
    if longer is None or planned is None:
        return None
    saved = planned * (1 - 1 / ratio.value)
    if longer <= MOST_OF_SAVED * saved:
        return None
    return (
        f"start-up takes {longer:.0f} s longer, and the steps of the planned length save {saved:.0f} s: "
        "plan as many steps as a real training has"
    )


def _longer(case: TrialCase) -> float | None:
    """Seconds that start-up takes longer in the trial, by the quickest runs; None if not, or unknown."""
    sides = [[_first_s(e) for e in side] for side in (case.before, case.after)]
    before, after = ([value for value in side if value is not None] for side in sides)
    if len(before) + len(after) < len(case.before) + len(case.after):
        return None
    longer = min(after) - min(before)
    return longer if longer > max(LEAST_S, LEAST_SHARE * max(before)) else None


def _first_s(e: Evidence) -> float | None:
    """Seconds to the first step, as the probe saw it, less what others kept the run from."""
    first = e.probe.first_step_s if e.probe is not None else None
    return first * (1 - (machine.share(e) or 0.0) / 100) if first is not None else None


def _planned_s(case: TrialCase) -> float | None:
    """Seconds that the steps of the baseline's planned length take; None if its runs do not tell."""
    return mean(found) if (found := _lengths(case.before, case.setting.planned_steps)) else None


def _lengths(before: Sequence[Evidence], planned_steps: float | None) -> list[float]:
    found = []
    for e in before:
        steps = planned_steps or e.total_steps or (e.steps if e.outcome is Outcome.COMPLETED else None)
        if not steps or not e.steps_per_s:
            return []
        found.append(steps / e.steps_per_s)
    return found


BY_PROBE = "the probe"
LOG, PROBE, BOTH = "log", "probe", "both"
OWN_WORD = "by the program's own word"
# Where samples are steps times a batch that the command's flags set, or counted by the log as steps are, the
# optimizer's steps confirm them; nothing confirms a size or a rate that is printed.
_COUNTED = frozenset({PROBE, "flags", "counted"})


class Unfit(NamedTuple):
    """Why the counts say nothing of throughput; `invalid`: the log prints steps that no optimizer made."""

    why: str
    invalid: bool = False


def source(case: TrialCase) -> str | None:
    """Name the source of throughput: the `log` alone, the `probe`, or `both`; None if it has none."""
    runs = (*case.before, *case.after)
    if case.ratio is None and case.delta is None:
        return None
    if not is_probed(case):
        return LOG
    if case.unit is not None:
        return PROBE if case.rates.source == BY_PROBE else BOTH
    by_probe = all(e.samples_by == PROBE for e in runs) if case.other_batch else all(map(probed, runs))
    return PROBE if by_probe else BOTH


def is_probed(case: TrialCase) -> bool:
    """Tell whether the probe counted what throughput and metric rest on, in all runs."""
    runs, metric = (*case.before, *case.after), case.metric
    if not all(counts.counted(e) for e in runs):
        return False
    if case.unit is not None and case.rates.source != BY_PROBE:
        # Steps of the optimizer confirm the log's work as long as one of them is as much work as before.
        other = case.setting.explained or case.other_batch or case.other_step is not None
        return not other and (metric.points or metric.throughput or metric.by_steps)
    if case.other_batch or metric.name == "samples_per_s":
        return all(e.samples_by in _COUNTED for e in runs)
    if metric.name.startswith("step_time"):
        return all(e.step_time_by == PROBE for e in runs)
    return metric.points or metric.by_steps


def unfit(case: TrialCase) -> Unfit | None:
    """What does not fit between log, probe and command; None if all does, or if a person confirmed it."""
    setting = case.setting
    if setting.confirmed:
        return None
    found = _ratios(case)
    if found is None and setting.beyond and not setting.explained:
        found = Unfit(setting.beyond)
    before, after = (all(counts.counted(e) for e in side) for side in (case.before, case.after))
    if found is None and before != after:
        sides = ("baseline", "trial") if before else ("trial", "baseline")
        found = Unfit("the probe counted the steps of the {}, and not those of the {}".format(*sides))
    if found is None and setting.redundant and not (setting.code or before or unread(case)):
        found = Unfit(f"the losses do not show that what is dropped is never read ({setting.redundant})")
    if found is None and setting.touches and not is_probed(case):
        found = Unfit(f"no probe counts what got done, and the change touches what does ({setting.touches})")
    return found


def same_all_the_same(case: TrialCase) -> str | None:
    """Return what a step takes less of, and why it is the same work; None if there is no such thing."""
    if case.setting.confirmed:
        return None
    found = counts.moved(case.before, case.after)
    return next((f"{_said(one)}, but {why}" for one in found if (why := harmless(case, one))), None)


def _ratios(case: TrialCase) -> Unfit | None:
    setting = case.setting
    found = counts.moved(case.before, case.after, missing=setting.code)
    if case.larger_log_steps:
        # The log's count of work and the optimizer's agree: only what it calls a step is another.
        found = [one for one in found if one.name != "log"]
    if setting.explained:
        # A batch explains what a step takes, and not that it trains a smaller model.
        found = [one for one in found if one.name == counts.WEIGHTS]
    found = [one for one in found if harmless(case, one) is None]
    if not found:
        return None
    for one in found:
        if one.name != "log" or one.new is None or not setting.code or one.what != counts.STEPS:
            continue
        more = one.factor > 1 and one.new > counts.APART
        if more and not counts.is_accumulated(case.before, case.after, one.factor):
            return Unfit(f"{_said(one)}{_totals(case.after)}", invalid=True)
    one = found[0]
    return Unfit(f"{_said(one)}{_totals(case.after) if one.name == 'log' else ''}")


def _said(one: counts.Moved) -> str:
    new = "no" if one.new is None else number(one.new)
    return f"{new} {one.what} for each step of the optimizer in the trial, {number(one.old)} in the baseline"


def _totals(runs: tuple[Evidence, ...]) -> str:
    """Write both counts of the first run that has them."""
    run = next((e for e in runs if e.step_unit == "step" and e.steps and e.probe), None)
    if run is None or run.probe is None:
        return ""
    return f" (run {run.run}: {run.steps} steps by the log, {run.probe.steps} by the optimizer)"
