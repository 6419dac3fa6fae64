"""Traces of several ranks beside each other: who arrives last at their collectives, and what that costs.

A collective ends on all ranks at once, and a rank that arrives early waits in it: so wall times are equal,
and the rank that makes the others wait is the one that waits least. Ends align clocks, starts are arrivals.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, fsum, lgamma, log, log1p

import numpy as np

from gpudebug.core.answers.analyze import ComparedRank, RanksTogether
from gpudebug.core.lazy import regex
from gpudebug.core.trace.arrays import Recording
from gpudebug.core.trace.devices import TraceDevice
from gpudebug.core.trace.events import COMMUNICATION
from gpudebug.core.trace.spans import Floats

# Of the collectives of the rank with most of them: fewer matched ones say nothing of the rest.
LEAST_COVERAGE = 0.8
LEAST_COLLECTIVES = 5
# Ends further apart than this, or than this share of the collective, are no ends of one collective.
_TOGETHER_US = 500.0
_TOGETHER_SHARE = 0.2
# Who arrives last no more often than this, or costs the others no more than this share of the trace beyond
# what the next rank costs them, is not named. Of two healthy ranks each is last to about half and costs much.
LAST_SHARE = 0.5
COST_SHARE = 0.02
# As often last as this by chance, over all ranks of the job: `late_by_chance`.
CHANCE = 0.01
_MOST = 200_000
_OPERATION = regex(
    r"(all_?reduce|reduce_?scatter|all_?gather|all_?to_?all|broadcast|reduce|send_?recv)", re.IGNORECASE
)
# Sends and receives: an all-to-all of all ranks, or a pipeline's between two.
_PAIRS = "sendrecv"
_STEPLESS = -1


@dataclass(frozen=True)
class Collectives:
    """The collectives of one trace in order: times in microseconds, `key` what they are, `step` the
    profiler's step that they began in, -1 for none."""

    start: Floats
    end: Floats
    key: tuple[str, ...]
    step: tuple[int, ...]


@dataclass(frozen=True)
class RankTrace:
    """What a comparison needs of a rank's trace; seconds, shares are 0 to 1."""

    rank: int
    file: str
    collectives: Collectives
    span_s: float
    exposed_s: float | None
    busy_share: float | None


def collectives(recording: Recording, found: Sequence[TraceDevice]) -> Collectives:
    """Return the collectives of a trace, with sends and receives: an all-to-all consists of them."""
    texts, flags = recording.names.texts, recording.names.flags
    kinds = {
        i: match.group(1).lower().replace("_", "")
        for i, text in enumerate(texts)
        if flags[i] & COMMUNICATION and (match := _OPERATION.search(text))
    }
    starts, ends, keys = [], [], list[str]()
    for device in found:
        of = np.isin(device.name, np.array(list(kinds), np.int64))
        starts.append(device.start[of])
        ends.append(device.end[of])
        keys += [kinds[int(n)] for n in device.name[of]]
    start = np.concatenate(starts) if starts else np.empty(0)
    end = np.concatenate(ends) if ends else np.empty(0)
    order = np.argsort(start, kind="stable")[:_MOST]
    base = recording.base or 0.0
    names = [keys[i] for i in order.tolist()]
    return Collectives(start[order] + base, end[order] + base, tuple(names), _steps(recording, start[order]))


def _steps(recording: Recording, start: Floats) -> tuple[int, ...]:
    """Return the step that each began in: the last one that had begun."""
    if not recording.steps or not len(start):
        return (_STEPLESS,) * len(start)
    numbers = sorted(recording.steps, key=lambda n: recording.steps[n])
    begun = np.array([recording.steps[n][0] for n in numbers])
    at = np.searchsorted(begun, start, side="right") - 1
    return tuple(numbers[i] if i >= 0 else _STEPLESS for i in at.tolist())


def compare_ranks(traces: Sequence[RankTrace]) -> RanksTogether:
    """Return how the ranks of one job met; says why not if they cannot be compared."""
    traces = sorted(traces, key=lambda t: t.rank)
    numbers = [trace.rank for trace in traces]
    if len(set(numbers)) < len(numbers):
        twice = next(n for n in numbers if numbers.count(n) > 1)
        return _apart(f"two traces are of rank {twice}")
    found = [trace.collectives for trace in traces]
    whole = _meetings(traces, found)
    if whole.reason is None:
        return whole
    # A pipeline's sends and receives are of two ranks, those of an all-to-all of all.
    rest = _meetings(traces, [_without_pairs(one) for one in found])
    return rest if rest.reason is None else whole


def _without_pairs(one: Collectives) -> Collectives:
    kept = [i for i, key in enumerate(one.key) if key != _PAIRS]
    of = np.array(kept, np.int64)
    key, step = tuple(one.key[i] for i in kept), tuple(one.step[i] for i in kept)
    return Collectives(one.start[of], one.end[of], key, step)


def _meetings(traces: Sequence[RankTrace], found: Sequence[Collectives]) -> RanksTogether:
    most = max(len(one.key) for one in found)
    if not most:
        return _apart("no collective is in the traces")
    start, end = _matched(found)
    coverage = len(start) / most
    if len(start) < LEAST_COLLECTIVES or coverage < LEAST_COVERAGE:
        few = "too few: " if coverage >= LEAST_COVERAGE else ""
        why = f"{few}{len(start):,} of {most:,} collectives are on all ranks in the same order"
        return _apart(why, len(start), coverage)
    offset = np.median(end - end[:, :1], axis=0)
    start, end = start - offset, end - offset
    length = end.max(axis=1) - start.max(axis=1)
    apart = end.max(axis=1) - end.min(axis=1)
    together = apart <= np.maximum(_TOGETHER_US, _TOGETHER_SHARE * np.maximum(length, 0.0))
    if together.mean() < LEAST_COVERAGE:
        share = f"only {together.mean():.0%} of the collectives end together on all ranks"
        return _apart(f"{share}: other groups, or clocks that drift", len(start), coverage)
    return _compared(traces, start[together], len(start), coverage)


def _compared(traces: Sequence[RankTrace], start: Floats, matched: int, coverage: float) -> RanksTogether:
    order = np.sort(start, axis=1)
    last = start.argmax(axis=1)
    cost = order[:, -1] - order[:, -2]
    waits = order[:, -1:] - start
    skew = order[:, -1] - order[:, 0]
    ranks = tuple(
        ComparedRank(
            rank=trace.rank,
            file=trace.file,
            waited_s=float(waits[:, i].sum()) / 1e6,
            last=int((last == i).sum()),
            cost_s=float(cost[last == i].sum()) / 1e6,
            exposed_s=trace.exposed_s,
            busy_share=trace.busy_share,
        )
        for i, trace in enumerate(traces)
    )
    return RanksTogether(
        ranks=ranks,
        collectives=matched,
        coverage=coverage,
        skew_p50_s=float(np.median(skew)) / 1e6,
        skew_max_s=float(skew.max()) / 1e6,
        late=_late(ranks, len(start), min(trace.span_s for trace in traces)),
        reason=None,
    )


def _apart(reason: str, matched: int = 0, coverage: float | None = None) -> RanksTogether:
    """Nothing was compared, and why."""
    return RanksTogether(
        ranks=(),
        collectives=matched,
        coverage=coverage,
        skew_p50_s=None,
        skew_max_s=None,
        late=None,
        reason=reason,
    )


def _late(ranks: Sequence[ComparedRank], count: int, span_s: float) -> int | None:
    """Return the rank that makes the others wait at `count` collectives in `span_s` seconds."""
    *_, next_, worst = sorted(ranks, key=lambda r: r.cost_s)
    often = worst.last > LAST_SHARE * count and late_by_chance(worst.last, count, len(ranks)) <= CHANCE
    return worst.rank if often and worst.cost_s - next_.cost_s > COST_SHARE * span_s else None


def late_by_chance(last: int, count: int, ranks: int) -> float:
    """Return how probable it is that any of `ranks` healthy ranks comes last to `last` or more of `count`
    collectives: each to one in `ranks` of them (binomial), times the ranks (Bonferroni), at most 1."""
    hit, miss, whole = -log(ranks), log1p(-1 / ranks), lgamma(count + 1)
    tail = fsum(
        exp(whole - lgamma(k + 1) - lgamma(count - k + 1) + k * hit + (count - k) * miss)
        for k in range(last, count + 1)
    )
    return min(1.0, ranks * tail)


def _matched(found: Sequence[Collectives]) -> tuple[Floats, Floats]:
    """Start and end of the collectives that all ranks have, a column a rank.

    Of a step in which a rank has more or fewer of a kind than the others none of that kind is taken: which
    one is missing is not known.
    """
    grouped = [_grouped(one) for one in found]
    keys = [key for key in grouped[0] if len({len(g.get(key, ())) for g in grouped}) == 1]
    at = [np.array([i for key in keys for i in g[key]], np.int64) for g in grouped]
    start = np.stack([one.start[i] for one, i in zip(found, at, strict=True)], axis=1)
    end = np.stack([one.end[i] for one, i in zip(found, at, strict=True)], axis=1)
    return start, end


def _grouped(one: Collectives) -> dict[tuple[int, str], list[int]]:
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for i, key in enumerate(zip(one.step, one.key, strict=True)):
        found[key].append(i)
    return found
