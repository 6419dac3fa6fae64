"""A trial compared phase by phase, where its runs or the baseline's come in several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpudebug.core.records import Evidence
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.phases import in_phase, names
from gpudebug.core.verdict.course import sides_of
from gpudebug.core.verdict.gates.case import TrialCase, measure
from gpudebug.core.verdict.gates.figures import estimate_text, improvement_text

MOST = 6


def by_phase(case: TrialCase) -> tuple[str, ...]:
    """Return a line for each phase: the metric and throughput of both sides, compared by the trial's rule.

    What decides is the case's own window: of the whole runs, or of the phase that is judged.
    """
    known = names(*(e.phases for e in (*case.before, *case.after)))
    return tuple(_line(case, name) for name in known[:MOST]) if len(known) > 1 else ()


def _line(case: TrialCase, name: str) -> str:
    before, after = ([in_phase(e, name) for e in side] for side in (case.before, case.after))
    lacking = [e for side in (before, after) for e in side].count(None)
    if lacking:
        sides = (("baseline", before), ("trial", after))
        where = " and ".join(f"{side.count(None)} of {len(side)} {of}" for of, side in sides if None in side)
        return f"phase {name}: unknown, it did not come in {where} runs"
    return f"phase {name}: {_compared(case, _known(before), _known(after))}"


def _known(runs: Sequence[Evidence | None]) -> tuple[Evidence, ...]:
    return tuple(e for e in runs if e is not None)


def _compared(case: TrialCase, before: tuple[Evidence, ...], after: tuple[Evidence, ...]) -> str:
    # Which devices are judged is known of the whole window alone: here it is their mean.
    criteria = replace(case.criteria, devices=None)
    found = measure(TrialCase(criteria, case.setting, before, after, case.number))
    shown, metric = sides_of(found), found.metric
    change = " to ".join(numbers.figure(metric, value) for value in shown.metric)
    text = f"{metric.name} {change}"
    text += f", {improvement_text(metric, found.delta)}" if found.delta is not None else ""
    if metric.throughput:
        return text
    text += f"; throughput {numbers.throughput_change(*shown.throughput, found.rates.unit)}"
    return text + (f", {estimate_text(found.ratio, 'x', digits=2)}" if found.ratio is not None else "")
