"""Two sides of one or more runs each -> is B faster, slower, or is it undecided.

Three figures of speed are compared, as far as every run has them: throughput, latency and wall time.
The first that is sound decides. A ratio is always B's speed over A's: above 1 means that B is faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from gpudebug.core.command import batch
from gpudebug.core.compare import checklist, compared_run
from gpudebug.core.compare.checklist import Checklist
from gpudebug.core.compare.compared_run import ComparedRun, SectionRates
from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside.probe import counts
from gpudebug.core.records import Estimate, WorkUnit
from gpudebug.core.statistics import units
from gpudebug.core.statistics.intervals import CONFIDENCE
from gpudebug.core.statistics.level import HELD, RATIOS, Noise, Seen, follow, places, relative_variance
from gpudebug.core.trainlog.latency import LEAST_FOR_WARMUP
from gpudebug.core.verdict import machine, work
from gpudebug.core.verdict.gates.case import ratio_estimate
from gpudebug.core.verdict.gates.figures import alike, probed
from gpudebug.core.verdict.unlike import unlike_notes
from gpudebug.core.words import Word, WorkName

WHOLE_RUN = RATIOS._replace(sd=1.5 * RATIOS.sd)
"""Of a wall time, or a rate without a steady window: start-up, the page cache and the sampler's grid are in
it. Twice as much would leave 1.5x open after two runs a side."""

# Seconds by which two equal programs differ in starting and ending, measured on a busy machine.
LAUNCH_JITTER_S = 0.01


class SpeedAnswer(Word):
    """What a comparison says of B."""

    FASTER = "faster"
    SLOWER = "slower"
    CANNOT_TELL = "cannot_tell"


class Name(Word):
    """A figure of speed."""

    THROUGHPUT = "throughput"
    LATENCY = "latency"
    WALL_TIME = "wall_time"


@dataclass(frozen=True, slots=True)
class SpeedFigure:
    """B's speed over A's by one figure. `unit` is what a throughput counts, and `s` or `s/step` of a time.

    `whole` says that warm-up is in it. Where some run lacks it there is no `ratio`, and `why` says which.
    """

    name: Name
    unit: str = ""
    ratio: Estimate | None = None
    whole: bool = False
    why: str | None = None


@dataclass(frozen=True, slots=True)
class SpeedComparison:
    """`figure` is the one that decided, `figures` holds all three.

    `other_batch` says that a step of B may take another number of samples than one of A, `work` is the unit
    of work that throughput counts: None is steps as the logs count them; `timed` are calls of a section if
    throughput counts those.
    """

    figure: SpeedFigure
    figures: tuple[SpeedFigure, ...]
    answer: SpeedAnswer
    checklist: Checklist
    notes: tuple[str, ...]
    other_batch: bool = False
    work: WorkUnit | None = None
    timed: SectionRates | None = None

    @property
    def ratio(self) -> Estimate:
        assert self.figure.ratio is not None
        return self.figure.ratio


def compare(
    a: Sequence[ComparedRun], b: Sequence[ComparedRun], configured: str = units.AUTO
) -> SpeedComparison:
    """Compare two sides, each with one completed run or more. `configured` is a unit of work, or `auto`.

    Raises GpudebugError if no figure of speed is known of every run.
    """
    a, b = _alike(a, b), _alike(b, a)
    other = batch.differs([r.evidence for r in (*a, *b)])
    unit = _unit(a, b, configured)
    throughput = _throughput(a, b, other, unit) if counts_work(unit) else _throughput_of_steps(a, b, other)
    timed = (
        None if throughput.ratio or other else compared_run.rates(*([r.evidence for r in s] for s in (a, b)))
    )
    if timed is not None:
        ratio = _ratio(a, b, timed.a, timed.b, whole=True)
        throughput = SpeedFigure(Name.THROUGHPUT, f"calls of {timed.section!r}", ratio, whole=True)
    own = unit is not None and unit.unit in (WorkName.ENVIRONMENT_STEPS, WorkName.TOKENS)
    latency, wall_time = _latency(a, b), _wall_time(a, b, other or own or _other_step(a, b) is not None)
    # A rate over a whole short run knows steps to the sampler's grid only: what the program timed is better.
    preferred = (latency, throughput) if throughput.whole else (throughput, latency)
    order = [f for f in (*preferred, wall_time) if f.ratio is not None]
    if not order:
        why = "; ".join(str(f.why) for f in (throughput, wall_time))
        raise GpudebugError(f"nothing to compare: {why}", next="compare runs that completed under gpudebug")
    figure = order[0]
    unseen = _work_unseen(figure, a, b)
    found = checklist.compare(_facts(a), _facts(b))
    found.add(
        "warm-up", _warmup(figure, a), _warmup(figure, b), why="start-up and compilation are in one only"
    )
    return SpeedComparison(
        figure=figure,
        figures=(throughput, latency, wall_time),
        answer=SpeedAnswer.CANNOT_TELL if unseen else judge(figure.ratio),
        checklist=found,
        notes=(
            *([unseen] if unseen else []),
            *dict.fromkeys(note for r in (*a, *b) for note in r.evidence.work_notes),
            *unlike_notes([[r.evidence for r in side] for side in (a, b)]),
            *_notes(figure, throughput, a, b),
            *(_batch_notes(figure) if other and _of_steps(figure) else _contrary(figure, wall_time)),
        ),
        other_batch=other,
        work=unit,
        timed=timed,
    )


def _work_unseen(figure: SpeedFigure, a: Sequence[ComparedRun], b: Sequence[ComparedRun]) -> str | None:
    """Why more wall time is no loss: a step of B takes another share of work, and nothing counts it."""
    knob = _other_step(a, b)
    if figure.name is not Name.WALL_TIME or knob is None or judge(figure.ratio) is not SpeedAnswer.SLOWER:
        return None
    return f"{knob} differs and no work is counted: B took longer, perhaps for more of it"


def _unit(a: Sequence[ComparedRun], b: Sequence[ComparedRun], configured: str) -> WorkUnit | None:
    """Return the unit of work of A; one that both share where A's is no more than the samples of a step."""
    chosen = work.choose([r.evidence for r in a], configured)
    if (
        chosen is None
        or not chosen.chosen
        or chosen.unit not in (WorkName.SAMPLES, WorkName.OPTIMIZER_STEPS, WorkName.EPOCHS)
    ):
        return chosen
    return work.choose([r.evidence for r in (*a, *b)], configured)


def counts_work(unit: WorkUnit | None) -> bool:
    """Tell whether throughput counts this unit, and not steps as the logs count them."""
    return unit is not None and not (unit.source and unit.unit == WorkName.OPTIMIZER_STEPS)


def _other_step(a: Sequence[ComparedRun], b: Sequence[ComparedRun]) -> str | None:
    """Return a flag beside the batch's by which a step of B takes another share of work."""
    flags = [r.evidence.step_flags for r in (*a, *b)]
    names = dict.fromkeys(name for one in flags for name in one)
    return next((name for name in names if len({one.get(name) for one in flags}) > 1), None)


def _throughput(
    a: Sequence[ComparedRun], b: Sequence[ComparedRun], other_batch: bool, unit: WorkUnit | None
) -> SpeedFigure:
    """In the unit of work."""
    assert unit is not None
    before, after = ([r.evidence for r in side] for side in (a, b))
    rates = work.rates(unit, before, after, ("of A", "of B"))
    knob = _other_step(a, b)
    if unit.unit == WorkName.SAMPLES and knob is not None and counts.sets_length(knob):
        return SpeedFigure(Name.THROUGHPUT, why=f"{knob} differs: a sample of A is not the work of one of B")
    if rates.why is not None:
        return SpeedFigure(Name.THROUGHPUT, why=rates.why)
    by = unit.model_copy(update={"source": rates.source})
    if any(r.rate_in(other_batch, by) is None for r in (*a, *b)):
        return SpeedFigure(Name.THROUGHPUT, why=f"a run is too short to count its {unit.unit}")
    whole = not all(r.evidence.window for r in (*a, *b))
    ratio = _ratio(a, b, rates.before, rates.after, whole=whole)
    return SpeedFigure(Name.THROUGHPUT, unit.unit, ratio, whole)


def _ratio(
    a: Sequence[ComparedRun],
    b: Sequence[ComparedRun],
    of_a: Sequence[float],
    of_b: Sequence[float],
    *,
    whole: bool,
    noise: Noise = WHOLE_RUN,
) -> Estimate:
    """B's speed over A's by one figure of each run: A is the level, and B what is added to it.

    `noise` is that of `whole` runs; a steady figure has less, and more in a short window.
    """
    sides = ((a, of_a, False), (b, of_b, True))
    runs = [(r, math.log(v), in_b) for side, values, in_b in sides for r, v in zip(side, values, strict=True)]
    runs.sort(key=lambda one: (one[0].record.start, one[0].record.name))
    starts = [datetime.fromisoformat(r.record.start).timestamp() for r, _, _ in runs]
    at = places(starts, [r.wall_time or 0.0 for r, _, _ in runs], HELD)
    seen = [
        Seen(place, in_b, value, machine.share(r.evidence), relative_variance(None if whole else _window(r)))
        for place, (r, value, in_b) in zip(at, runs, strict=True)
    ]
    found = ratio_estimate(follow(seen, noise if whole else RATIOS), CONFIDENCE)
    assert found is not None
    return found


def _window(run: ComparedRun) -> float | None:
    return run.evidence.window.duration_s if run.evidence.window else None


def _alike(runs: Sequence[ComparedRun], others: Sequence[ComparedRun]) -> list[ComparedRun]:
    evidence = alike([r.evidence for r in runs], [r.evidence for r in others])
    return [replace(r, evidence=e) for r, e in zip(runs, evidence, strict=True)]


def judge(ratio: Estimate | None) -> SpeedAnswer:
    """Faster if the whole interval lies above 1.00, slower if it lies below, else undecided."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return SpeedAnswer.CANNOT_TELL
    if ratio.low > 1:
        return SpeedAnswer.FASTER
    return SpeedAnswer.SLOWER if ratio.high < 1 else SpeedAnswer.CANNOT_TELL


def _throughput_of_steps(
    a: Sequence[ComparedRun], b: Sequence[ComparedRun], other_batch: bool
) -> SpeedFigure:
    """As the logs count them; in samples where the batch differs."""
    sides: list[tuple[float, ...]] = []
    units: list[str] = []
    for name, runs in (("A", a), ("B", b)):
        known = [rate for r in runs if (rate := r.rate_in(other_batch))]
        if len(known) < len(runs) or len({unit for unit, _ in known}) > 1:
            return SpeedFigure(Name.THROUGHPUT, why=f"the log of {name} prints no step rate")
        sides.append(tuple(value for _, value in known))
        units.append(known[0][0])
    if units == ["step", "step"] and len({probed(r.evidence) for r in (*a, *b)}) > 1:
        return SpeedFigure(
            Name.THROUGHPUT, why="steps come from the log in some runs and from the probe in others"
        )
    if units[0] != units[1]:
        return SpeedFigure(Name.THROUGHPUT, why=f"A counts {_plural(units[0])} and B {_plural(units[1])}")
    if other_batch and (units[0] == "step" or len({r.evidence.samples_by for r in (*a, *b)}) > 1):
        return SpeedFigure(
            Name.THROUGHPUT, why="the batch differs, and the logs do not report samples in the same way"
        )
    if units[0] in ("step", "samples") and (knob := _other_step(a, b)):
        return SpeedFigure(Name.THROUGHPUT, why=f"{knob} differs: a step of A is not the work of one of B")
    whole = not all(r.evidence.window for r in (*a, *b))
    return SpeedFigure(Name.THROUGHPUT, units[0], _ratio(a, b, sides[0], sides[1], whole=whole), whole)


def _plural(unit: str) -> str:
    return f"{unit.removesuffix('s')}s"


def _latency(a: Sequence[ComparedRun], b: Sequence[ComparedRun]) -> SpeedFigure:
    sides: list[tuple[float, ...]] = []
    for name, runs in (("A", a), ("B", b)):
        known = tuple(1 / r.latency.mean for r in runs if r.latency is not None)
        if len(known) < len(runs):
            return SpeedFigure(Name.LATENCY, why=f"{name} prints no latency")
        sides.append(known)
    whole = any(_latency_warmup(r) != "cut" for r in (*a, *b))
    return SpeedFigure(Name.LATENCY, "s", _ratio(a, b, sides[0], sides[1], whole=whole), whole)


def _wall_time(a: Sequence[ComparedRun], b: Sequence[ComparedRun], other_batch: bool) -> SpeedFigure:
    strange = [r.record.name for r in (*a, *b) if r.wall_time is None]
    if strange:
        return SpeedFigure(Name.WALL_TIME, why=f"run {strange[0]} has no duration: did its clock jump?")
    unit = "s"
    first, second = ([r.wall_time or 0.0 for r in runs] for runs in (a, b))
    noise = WHOLE_RUN._replace(sd=math.hypot(WHOLE_RUN.sd, LAUNCH_JITTER_S / min(*first, *second)))
    if not other_batch and _unequal_work(a, b):
        unit = "s/step"
        first, second = (
            [v / (r.steps or 1) for v, r in zip(values, runs, strict=True)]
            for values, runs in ((first, a), (second, b))
        )
    elif ended := [r.record.name for r in (*a, *b) if r.record.planned is not None]:
        return SpeedFigure(Name.WALL_TIME, why=f"gpudebug ended run {ended[0]}, and its steps are not known")
    speeds = ([1 / v for v in values] for values in (first, second))
    return SpeedFigure(Name.WALL_TIME, unit, _ratio(a, b, *speeds, whole=True, noise=noise), whole=True)


def _unequal_work(a: Sequence[ComparedRun], b: Sequence[ComparedRun]) -> bool:
    steps = [r.steps for r in (*a, *b)]
    return all(steps) and len(set(steps)) > 1


def _facts(runs: Sequence[ComparedRun]) -> checklist.SideFacts:
    return checklist.SideFacts(runs[0].record, runs[0].variables)


def _warmup(figure: SpeedFigure, runs: Sequence[ComparedRun]) -> str | None:
    """Tell whether start-up is cut from the figure that decided: `cut`, `not cut`, None if unknown."""
    if figure.name is Name.WALL_TIME:
        return "not cut"
    if figure.name is Name.LATENCY:
        states = {_latency_warmup(r) for r in runs}
        return states.pop() if len(states) == 1 else None
    return "cut" if all(r.evidence.window for r in runs) else "not cut"


def _latency_warmup(run: ComparedRun) -> str | None:
    found = run.latency
    if found is None or found.count is None:
        return None
    return "cut" if found.count + found.warmup >= LEAST_FOR_WARMUP else "not cut"


def _notes(
    figure: SpeedFigure, throughput: SpeedFigure, a: Sequence[ComparedRun], b: Sequence[ComparedRun]
) -> list[str]:
    notes = []
    if figure.name is Name.WALL_TIME:
        notes.append(f"wall time is compared, start-up included: {throughput.why}")
    elif figure.name is Name.LATENCY and figure.whole:
        notes.append("too few latencies to separate warm-up from the rest")
    elif figure.whole:
        notes.append("no steady window of 5 s in every run: the rate is that of whole runs")
    if figure.unit == "s/step":
        notes.append("the runs made different numbers of steps: time is per step")
    if min(len(a), len(b)) == 1:
        sides = "a side" if max(len(a), len(b)) == 1 else "of one side"
        notes.append(f"only one run {sides}: the interval rests on the usual spread between runs")
    return notes


def _contrary(figure: SpeedFigure, wall_time: SpeedFigure) -> list[str]:
    """Say that start-up outweighs the gain in runs of this length."""
    by_figure, by_wall = judge(figure.ratio), judge(wall_time.ratio)
    if SpeedAnswer.CANNOT_TELL in (by_figure, by_wall) or by_figure is by_wall:
        return []
    return [f"by wall time B is {by_wall}: in runs of this length start-up outweighs the {figure.name}"]


def _of_steps(figure: SpeedFigure) -> bool:
    """Tell whether a batch decides what the figure means: one of steps, of samples, or of whole runs."""
    return figure.unit in ("step", "samples", "s", "s/step", "")


def _batch_notes(figure: SpeedFigure) -> list[str]:
    if figure.unit == "samples":
        return ["the batch differs: samples are counted, not steps"]
    return ["the batch differs: a step of A is not the work of a step of B"]
