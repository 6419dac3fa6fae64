"""Two groups of section reports side by side: which is faster, by how much, or undecided."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence

from gpudebug.core.answers.sections import (
    Check,
    ReportSide,
    Section,
    SectionAdvice,
    SectionPair,
    SectionsComparison,
    SideSection,
)
from gpudebug.core.compare.faster import WHOLE_RUN, SpeedAnswer, judge
from gpudebug.core.inside.sections.analysis import merge
from gpudebug.core.inside.sections.cost import Report, hint_for, profiled_s, share
from gpudebug.core.lazy import regex
from gpudebug.core.records import Estimate
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.intervals import CONFIDENCE
from gpudebug.core.statistics.level import RATIOS, Noise, Seen, follow
from gpudebug.core.verdict.gates.case import ratio_estimate

THROUGHPUT = "throughput"
# Fewer iterations than this tell little beside start-up and noise.
LEAST_ITERATIONS = 10
# A share of the time from which on it is worth a look.
SIGNIFICANT = 0.1
# A section this much slower is one that people notice.
_NOTICED = 1.05
_NAMED = 5
_CAUSES = 3
LEAST_HORIZON = 10
_WORK = regex(
    r"horizon|chunk_size|n_action_steps|batch_?size|denois|num_envs|n_obs_steps|dtype|precision", re.I
)
_QUEUES = ("queue", "merge", "merging", "buffer")


def compare(
    a: Sequence[Report], b: Sequence[Report], labels: tuple[str, str] = ("A", "B")
) -> SectionsComparison:
    """Return a and B: their sections, throughput, and the verdict of B.

    What is compared is iterations a second; if one side has none, the mean time of the section that
    both spent the most time in. With one report a side the interval rests on the usual spread between runs.
    """
    merged = (merge(a), merge(b))
    figure, ratio = _ratio(a, b, merged)
    verdict = judge(ratio)
    return SectionsComparison(
        verdict=str(verdict),
        figure=figure,
        ratio=ratio.value if ratio else None,
        ratio_ci=(ratio.low, ratio.high) if ratio else None,
        a=_side(labels[0], a, merged[0]),
        b=_side(labels[1], b, merged[1]),
        sections=_sections(*merged),
        checklist=_checklist(*merged),
        why=None if ratio else "they have neither iterations nor a section in common",
        advice=_advice(verdict, *merged),
    )


def _ratio(
    a: Sequence[Report], b: Sequence[Report], merged: tuple[Report, Report]
) -> tuple[str | None, Estimate | None]:
    rates = [_per_run(side, lambda r: r.iterations_per_s) for side in (a, b)]
    if all(rates):
        # What follows left-out iterations is a steady rate; else start-up is in it.
        steady = all(r.warmup for r in (*a, *b))
        return THROUGHPUT, _of_runs(rates[0], rates[1], RATIOS if steady else WHOLE_RUN)
    name = _main(*merged)
    times = [_per_run(side, lambda r: _mean_of(r, name)) for side in (a, b)]
    if name is None or not all(times):
        return None, None
    return name, _of_runs([1 / s for s in times[0]], [1 / s for s in times[1]], RATIOS)


def _of_runs(a: Sequence[float], b: Sequence[float], noise: Noise) -> Estimate | None:
    """B's speed over A's. Reports do not say when they were made: those of A count as the earlier ones."""
    seen = [Seen(place, place >= len(a), math.log(value)) for place, value in enumerate((*a, *b))]
    return ratio_estimate(follow(seen, noise), CONFIDENCE)


def _per_run(reports: Sequence[Report], figure: Callable[[Report], float | None]) -> list[float]:
    """One figure a run; none if a run lacks it. Reports of different ranks are of one run."""
    of_rank: dict[int | None, list[Report]] = {}
    for report in reports:
        of_rank.setdefault(report.rank, []).append(report)
    runs = [merge([r for r in one if r is not None]) for one in itertools.zip_longest(*of_rank.values())]
    found = [figure(run) for run in runs]
    return [v for v in found if v] if all(found) else []


def _mean_of(report: Report, name: str | None) -> float | None:
    return next((s.mean_s for s in report.sections if s.name == name), None)


def _main(a: Report, b: Report, *, own: bool = False) -> str | None:
    """Return the section that both spent the most time in; by `own` without what is below it."""
    weights = []
    for report in (a, b):
        total = profiled_s(report) or 1.0
        weights.append({s.name: (s.self_s if own else s.total_s) / total for s in report.sections})
    both = [name for name in weights[0] if name in weights[1]]
    return max(both, key=lambda n: min(w[n] for w in weights), default=None)


def _side(label: str, reports: Sequence[Report], merged: Report) -> ReportSide:
    return ReportSide(
        label=label,
        reports=len(reports),
        iterations=merged.iterations,
        iterations_per_s=merged.iterations_per_s,
        warmup=merged.warmup,
        profiled_s=profiled_s(merged),
    )


def _sections(a: Report, b: Report) -> tuple[SectionPair, ...]:
    """Return all sections of both, those with the most time first."""
    sides = [{s.name: s for s in report.sections} for report in (a, b)]
    names = sorted(
        dict.fromkeys((*sides[0], *sides[1])),
        key=lambda n: (-max(s[n].total_s for s in sides if n in s), n),
    )
    pairs = ((name, sides[0].get(name), sides[1].get(name)) for name in names)
    return tuple(
        SectionPair(name=name, a=_figures(one), b=_figures(other), ratio=_speed(one, other))
        for name, one, other in pairs
    )


def _figures(section: Section | None) -> SideSection | None:
    if section is None:
        return None
    return SideSection(
        calls=section.calls,
        total_s=section.total_s,
        mean_s=section.mean_s,
        min_s=section.min_s,
        max_s=section.max_s,
    )


def _speed(a: Section | None, b: Section | None) -> float | None:
    return a.mean_s / b.mean_s if a and b and a.mean_s > 0 and b.mean_s > 0 else None


def _advice(verdict: SpeedAnswer, a: Report, b: Report) -> tuple[SectionAdvice, ...]:
    """Why the slower one is slower: its sections with the most time of their own beyond the other's."""
    if verdict is SpeedAnswer.CANNOT_TELL:
        return ()
    slower, faster, letter = (a, b, "A") if verdict is SpeedAnswer.FASTER else (b, a, "B")
    before, now = _costs(faster), _costs(slower)
    lost = {name: cost - before.get(name, 0.0) for name, cost in now.items()}
    gone = math.fsum(value for value in lost.values() if value > 0)
    unit = "an iteration" if a.iterations and b.iterations else "a call"
    found = []
    for name in sorted(lost, key=lambda n: -lost[n])[:_CAUSES]:
        if lost[name] <= SIGNIFICANT * gone:
            break
        instead = (
            f" instead of {_ms(before[name])}" if name in before else ", and the other has no such section"
        )
        helps = hint_for(name) or "look inside it: time what it calls (profile_object)"
        part = f"{100 * lost[name] / gone:.0f}% of what {letter} loses"
        text = f"{name!r} takes {_ms(now[name])} {unit}{instead} ({part}): {helps}"
        found.append(SectionAdvice(level=letter, section=name, text=text))
    return tuple(found)


def _costs(report: Report) -> dict[str, float]:
    """Seconds of each section's own an iteration; a call if there are no iterations."""
    return {s.name: s.self_s / (report.iterations or s.calls) for s in report.sections if s.calls}


def _checklist(a: Report, b: Report) -> tuple[Check, ...]:
    """Return what to ask before a comparison is believed, answered as far as the reports tell."""
    return (
        _slower(a, b),
        _queues(a, b),
        _enough(a, b),
        _waits(a, b),
        _lacking(a, b),
        _surroundings(a, b),
        _compiled(a, b),
        _work_of_a_call(a, b),
    )


def _slower(a: Report, b: Report) -> Check:
    question = "Is the section that takes the most time of its own slower in B?"
    name = _main(a, b, own=True)
    first, second = _mean_of(a, name), _mean_of(b, name)
    if name is None or not first or not second:
        return Check(question)
    slower = second > first * _NOTICED
    text = f"{'yes' if slower else 'no'}: {name!r} {_ms(first)} a call in A, {_ms(second)} in B"
    return Check(question, text, slower)


def _queues(a: Report, b: Report) -> Check:
    question = "Do queue operations take significant time?"
    found = [
        f"{section.name!r} {100 * part:.0f}% in {letter}"
        for letter, report in (("A", a), ("B", b))
        for section in report.sections
        if any(word in section.name.lower() for word in _QUEUES)
        and (part := share(section, profiled_s(report))) > SIGNIFICANT
    ]
    if found:
        return Check(question, f"yes: {', '.join(found)}", True)
    named = any(word in s.name.lower() for r in (a, b) for s in r.sections for word in _QUEUES)
    return Check(question, f"no: at most {100 * SIGNIFICANT:.0f}% of the time" if named else None)


def _enough(a: Report, b: Report) -> Check:
    question = "Are there enough iterations to outweigh warm-up?"
    if a.iterations is None or b.iterations is None:
        return Check(question)
    few = min(a.iterations, b.iterations) < LEAST_ITERATIONS
    text = ", ".join(
        f"{r.iterations} in {letter} ({r.warmup} of warm-up left out)" for letter, r in (("A", a), ("B", b))
    )
    return Check(question, f"{'no' if few else 'yes'}: {text}", few)


def _waits(a: Report, b: Report) -> Check:
    question = "Does a section end when the device is done (sync=), not when its work is queued?"
    if a.sync and b.sync:
        return Check(question, "yes, in both")
    if a.sync != b.sync:
        return Check(question, f"only in {'A' if a.sync else 'B'}: their times are not comparable", True)
    return Check(question, "no, in neither: on a GPU they time the host alone")


def _lacking(a: Report, b: Report) -> Check:
    question = "Were the same sections timed in both?"
    names = [{s.name for s in r.sections} for r in (a, b)]
    texts = [
        f"only in {letter}: {', '.join(map(repr, sorted(own)[:_NAMED]))}"
        + (f" and {len(own) - _NAMED} more" if len(own) > _NAMED else "")
        for letter, own in (("A", names[0] - names[1]), ("B", names[1] - names[0]))
        if own
    ]
    return Check(question, f"no: {'; '.join(texts)}", True) if texts else Check(question, "yes")


def _surroundings(a: Report, b: Report) -> Check:
    question = "Was it the same hardware, device and software?"
    pairs = [("Python", a.python, b.python)]
    for what, key in (("device", "device"), ("machine", "machine"), ("cores", "cpus"), ("PyTorch", "torch")):
        pairs.append((what, getattr(a.surroundings, key), getattr(b.surroundings, key)))
    other = [f"{what} {x} in A, {y} in B" for what, x, y in pairs if x and y and x != y]
    if other:
        return Check(question, f"no: {'; '.join(other)}", True)
    known = [f"{what} {x}" for what, x, y in pairs if x and y]
    return Check(question, f"yes, as far as is known: {', '.join(known)}" if len(known) > 1 else None)


def _compiled(a: Report, b: Report) -> Check:
    question = "Is torch.compile used in both, or in neither?"
    first, second = a.surroundings.compiled, b.surroundings.compiled
    if first is None or second is None:
        return Check(question)
    if first != second:
        return Check(question, f"only in {'A' if first else 'B'}", True)
    return Check(question, "yes, in both" if first else "no, in neither: try it in both")


def _work_of_a_call(a: Report, b: Report) -> Check:
    question = "Does a call do enough work, the same in both (batch size, execution horizon of 10 or more)?"
    first, second = ({k: v for k, v in r.surroundings.settings.items() if _WORK.search(k)} for r in (a, b))
    other = [
        f"{name} {first.get(name, 'not given')} in A, {second.get(name, 'not given')} in B"
        for name in dict.fromkeys((*first, *second))
        if first.get(name) != second.get(name)
    ]
    if other:
        return Check(question, f"no: {'; '.join(other[:_NAMED])}", True)
    short = [
        f"{k} {v}" for k, v in first.items() if "horizon" in k and v.isdigit() and int(v) < LEAST_HORIZON
    ]
    if short:
        return Check(question, f"no: {', '.join(short)} in both, fewer than {LEAST_HORIZON}", True)
    return Check(question, f"the same: {', '.join(f'{k} {v}' for k, v in first.items())}" if first else None)


def _ms(seconds: float) -> str:
    return numbers.number(1000 * seconds, "ms")
