"""Whether what got done is what log, probe and command agree on: without that, throughput is not known."""

from __future__ import annotations

from typing import NamedTuple

from gpudebug.core.inside.probe import counts
from gpudebug.core.records import Evidence
from gpudebug.core.statistics.numbers import number
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.harmless import harmless, unread
from gpudebug.core.verdict.gates.rates import probed

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
