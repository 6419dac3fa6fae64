"""Whether a run did other work than the runs of the same command beside it: they have no common mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.records import Evidence, LossEvidence
from gpudebug.core.words import Outcome, Trend

# A run that does less than this of what another does was not given the same work.
LEAST_WORK = 0.6
# It was over sooner, too: in less than this share of the time.
SOONER = 0.8
# A run begins later if it does so by this share of what the other one does.
LATER = 0.1
# A run from the beginning prints its first count within this many of the intervals at which it prints.
INTERVALS = 3
# A loss that falls by this share of itself shows where on its way a run begins; a run that begins with this
# share of the way behind it has learned before, one with that share has not.
LEAST_FALL = 0.3
BEHIND = 0.75
NOT_BEHIND = 0.25
FEWEST_LOSSES = 10
# A single count is soon missed.
FEWEST_COUNTS = 2
_LONGEST = 80
# What is only loaded may be pretrained weights, or the best ones at the end.
_SAYS_SO = regex(r"\bresum|\bcontinu|auto-?resum", re.I)


class CountedWork(NamedTuple):
    """The first and the last count of a run, and what it counts."""

    unit: str
    first: int
    last: int

    @property
    def done(self) -> int:
        return self.last - self.first + 1


def unlike(run: Evidence, beside: Sequence[Evidence], *, changed: bool = False) -> str | None:
    """Why a run is unlike every one of those beside it; None if it is like one, or if nothing shows it.

    A run that resumes, or begins behind where another began, had a snapshot of an earlier run; one that ends
    by itself after far fewer steps, and sooner, was given less to do. It is the same the other way round. A
    `changed` run may have fewer steps, and print them at other intervals.
    """
    found = [_against(run, other, changed) for other in beside]
    return found[0] if found and all(found) else None


def unlike_notes(sides: Sequence[Sequence[Evidence]]) -> list[str]:
    """Return a line for each run that is unlike the first of its side, or that alone of the sides resumes."""
    found = [(e, unlike(e, side[:1])) for side in sides for e in side[1:]]
    found += [
        (side[0], unlike(side[0], sides[0][:1], changed=True)) for side in sides[1:] if side and sides[0]
    ]
    return [f"run {e.run} did other work: {why}" for e, why in found if why is not None]


def _against(run: Evidence, other: Evidence, changed: bool) -> str | None:
    return _resumed(run, other, changed) or _begins(run, other, changed) or _amount(run, other, changed)


def _resumed(run: Evidence, other: Evidence, changed: bool) -> str | None:
    """What one of them says of an earlier run; of a state that was loaded counts and losses say more."""
    if (run.resumed is None) is (other.resumed is None):
        return None
    if not _SAYS_SO.search(run.resumed or other.resumed or "") and _begin_alike(run, other):
        return None
    if run.resumed is not None:
        return f"it goes on where an earlier run ended ({_short(run.resumed)}), and {other.run} does not"
    if changed or other.resumed is None:
        return None
    return f"{other.run} goes on where an earlier run ended ({_short(other.resumed)}), and it does not"


def _begin_alike(run: Evidence, other: Evidence) -> bool:
    """Tell whether both count from the same, as far, and learn from the same loss on."""
    mine, theirs = _work(run), _work(other)
    behind = _behind(run.loss, other.loss)
    if mine is None or theirs is None or mine.unit != theirs.unit or behind is None:
        return False
    return mine.first == theirs.first and abs(behind) <= NOT_BEHIND


def _begins(run: Evidence, other: Evidence, changed: bool) -> str | None:
    """Return which of the two begins behind the other, by its counts or by its loss."""
    mine, theirs = _work(run), _work(other)
    if mine is not None and theirs is not None and mine.unit == theirs.unit:
        apart = mine.first - theirs.first
        whole = theirs.done if apart > 0 else mine.done
        skipped = apart > 0 and _skips(run, mine) and not _skips(other, theirs)
        if abs(apart) >= max(1.0, LATER * (whole - 1)) and (skipped or not changed):
            return f"it begins at {mine.unit} {mine.first}, and {other.run} at {theirs.unit} {theirs.first}"
    return None if changed else _learned_before(run, other)


def _skips(e: Evidence, work: CountedWork) -> bool:
    """Tell whether a run's first count is far beyond the interval at which it prints."""
    lines = (e.occasions or {}).get("log", 0)
    if lines < INTERVALS:
        return False
    return work.first > 1 + INTERVALS * (work.last - work.first) / (lines - 1)


def _amount(run: Evidence, other: Evidence, changed: bool) -> str | None:
    """Return which of the two did far less, if both ended by themselves and that one sooner."""
    mine, theirs = _work(run), _work(other)
    whole = run.outcome is Outcome.COMPLETED and other.outcome is Outcome.COMPLETED
    if changed or not whole:
        return None
    if mine is None or theirs is None:
        idle, busy = (run, other) if mine is None else (other, run)
        counted = theirs or mine
        if counted is None or counted.done < FEWEST_COUNTS or not _over_sooner(idle, busy):
            return None
        who = ("it", other.run) if idle is run else (other.run, "it")
        return f"{who[0]} made no {counted.unit}, and {who[1]} ended at {counted.unit} {counted.last}"
    if mine.unit != theirs.unit:
        return None
    less, more = (
        ((run, mine), (other, theirs)) if mine.done <= theirs.done else ((other, theirs), (run, mine))
    )
    if less[1].done >= LEAST_WORK * more[1].done or not _sooner(less, more):
        return None
    return f"it ended at {mine.unit} {mine.last}, and {other.run} at {theirs.unit} {theirs.last}"


def _sooner(less: tuple[Evidence, CountedWork], more: tuple[Evidence, CountedWork]) -> bool:
    """Whether a run was over sooner; a training that a clock ends makes fewer steps, but in the same time.

    Its time is that of its counts at the rate of its window, which start-up has no part in, else the whole.
    """
    times = [work.done / e.progress_per_s for e, work in (less, more) if e.progress_per_s]
    return times[0] < SOONER * times[1] if len(times) == 2 else _over_sooner(less[0], more[0])


def _over_sooner(run: Evidence, other: Evidence) -> bool:
    times = [e.duration_s for e in (run, other) if e.duration_s is not None]
    return len(times) == 2 and times[0] < SOONER * times[1]


def _learned_before(run: Evidence, other: Evidence) -> str | None:
    """Return which of the two has a loss that begins near the end of the other's, at an equal step."""
    name = run.loss.name
    for whose, here, there, which in (
        ("its", run, other, "it"),
        (f"{other.run}: its", other, run, "that one"),
    ):
        behind = _behind(here.loss, there.loss)
        if behind is not None and behind >= BEHIND:
            step, begins = here.loss.curve[0]
            where = there.run if here is run else "this one"
            usual = _at(there.loss, step)
            return (
                f"{whose} {name} begins at {begins:.3g}, at that step {usual:.3g} in {where}: "
                f"{which} goes on from what an earlier run kept"
            )
    return None


def _behind(run: LossEvidence, other: LossEvidence) -> float | None:
    """Return the share of the way that the other one's loss falls which the run's first loss has behind it,
    at an equal step; None if too few losses, or too small a fall, show it."""
    enough = min(run.points, other.points) >= FEWEST_LOSSES and run.name == other.name
    if not enough or other.trend is not Trend.CONVERGING or not run.curve or not other.curve:
        return None
    step, begins = run.curve[0]
    usual = _at(other, step)
    fall = usual - other.curve[-1][1]
    return None if fall <= LEAST_FALL * abs(usual) else (usual - begins) / fall


def _at(loss: LossEvidence, step: float) -> float:
    """Return a loss at a step, else the first one behind it."""
    return next((value for at, value in reversed(loss.curve) if at <= step), loss.curve[0][1])


def _work(e: Evidence) -> CountedWork | None:
    """What a run did: by its log's counts, else the steps that its process reported, else its latencies."""
    if e.first_count is not None and e.last_count is not None:
        return CountedWork(e.step_unit or "step", e.first_count, e.last_count)
    if e.probe is not None and e.probe.steps:
        return CountedWork("step of an optimizer", 1, e.probe.steps)
    if e.latency is not None and e.latency.count:
        return CountedWork("inference", 1, e.latency.count + e.latency.warmup)
    return None


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


# Below this, in MB a second, nothing waits for a disk: logs and modules that are imported late.
LEAST_MB_S = 5.0
# A loader that reads all its data from disk in every run reads alike.
TIMES = 4.0
# A run that fills a cache in its steps makes fewer of them a second: less than this of the later ones.
SLOWER = 0.8


def is_cold(runs: Sequence[Evidence]) -> bool:
    """Tell whether the first run read far more from disk in its steady window than the usual later one.

    Page caches are filled by the first run that reads, and serve those after it. False if unknown,
    and for a single run.
    """
    return _far_more([e.conditions.read_mb_s for e in runs])


def fills_cache(runs: Sequence[Evidence]) -> str | None:
    """Return how the first run shows that it made what each later one found; None if it does not.

    Either the later ones say so, or it wrote far more to disk beside fewer steps a second.
    """
    first, later = runs[0] if runs else None, runs[1:]
    if first is None or not later:
        return None
    if first.cached is None and all(e.cached is not None for e in later):
        return f"the next one found a cache that it made ({later[0].cached})"
    own, usual = first.progress_per_s, [e.progress_per_s for e in later if e.progress_per_s is not None]
    slower = own is not None and bool(usual) and own < SLOWER * median(usual)
    if slower and _far_more([e.conditions.write_mb_s for e in runs]):
        wrote, then = (e.conditions.write_mb_s or 0.0 for e in runs[:2])
        return f"it filled a cache: it wrote {wrote:.0f} MB/s, the next one {then:.0f} MB/s"
    return None


def finds_cache(run: Evidence, recorded: Sequence[Evidence]) -> str | None:
    """The line by which a run says that it found a cache, if none of the recorded ones did; None else."""
    return run.cached if recorded and all(e.cached is None for e in recorded) else None


def _far_more(rates: Sequence[float | None]) -> bool:
    """Tell whether the first is far above the usual later one."""
    later = [rate for rate in rates[1:] if rate is not None]
    if not rates or rates[0] is None or not later:
        return False
    return rates[0] > max(LEAST_MB_S, TIMES * median(later))
