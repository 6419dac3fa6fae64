"""Ranks of one training -> which of them the others wait for, and why: docs/diagnosis.md has the policy.

All-reduce lets each rank's step take equally long. The rank that holds the others up is the one that waits
least for others, because it arrives last; what it does meanwhile, and the others do less of, is why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from statistics import median
from typing import Any, NamedTuple

from pydantic import ValidationError

from gpudebug.core.answers.sample import LateRank, RankRow, RanksFinding, StragglerRank
from gpudebug.core.diagnosis import rank_notes
from gpudebug.core.inside.ranks import others_share
from gpudebug.core.inside.stacks.shares import CodeLine
from gpudebug.core.records import RankEvidence, RankLine

COVERAGE = 0.8
"""Of all ranks, what has to be seen before one is named: among those that were not may be the slower one."""
LEAST_GAP = 0.1
"""Of the time: what the others wait less than that for one rank is not worth a fix (1.11x at best)."""
ERRORS = 3.0
"""Standard errors of the difference of two shares of looks: less is chance (1 of 700 differences)."""
TOGETHER = 1 / 3
"""Of the gap: a second rank that is as near to the last one arrives with it."""
MOST_OF_IT = 0.5
"""Of the gap: what takes less of it is not why."""
IN_STEP = 1.1
"""Ranks whose step rates differ by more do not wait for each other in each step."""
UNEVEN = 1.1
FEWER = 0.75
UNSEEN = "no host waits longer than another, and hosts do not show what devices wait for each other"
"""On a GPU the host queues collectives and goes on: that no thread waits says nothing of the devices."""
LATE_S = 5.0
"""Waits before the training are seen to 1.5 s at each end; starts of Python processes differ by as much."""

_PARTS: Mapping[str, tuple[str, ...]] = {
    "data": ("data_share",),
    "evaluation": ("evaluation_share",),
    "save": ("save_share",),
    "log": ("log_share",),
    "compute": ("forward_share", "backward_share", "optimizer_share"),
    "other": ("other_share",),
}
_DOES = {
    "data": "waits for batches",
    "evaluation": "evaluates",
    "save": "writes checkpoints",
    "log": "logs",
    "compute": "computes",
    "other": "is in code of its own",
}
_OF_PART = {
    "evaluation": "evaluation",
    "save": "checkpoint",
    "log": "logging",
    "data": "loader",
    "other": "own-work",
}
TITLES = {
    "checkpoint": "it writes checkpoints while the others wait",
    "evaluation": "it evaluates while the others wait",
    "logging": "it logs while the others wait",
    "loader": "its batches come later than the others'",
    "uneven-batches": "its batches hold more than the others'",
    "fewer-cores": "it has fewer cores than the others",
    "slower-device": "it computes the same more slowly than the others",
    "own-work": "it does what the others do not",
    "unknown": "nothing that was seen says why",
}


class Excess(NamedTuple):
    """What a rank does more of than the others: shares of the time of both."""

    part: str
    own: float
    others: float

    @property
    def more(self) -> float:
        return self.own - self.others


def finding(evidence: Sequence[Mapping[str, Any]]) -> RanksFinding | None:
    """Return what the ranks of one command's runs show, of several runs the means; None of a training without
    any."""
    runs = [ranks for e in evidence if (ranks := _read(e.get("ranks")))]
    if not runs:
        return None
    ranks = joined(runs)
    world = max([len(ranks), *(r.world_size for r in ranks if r.world_size is not None)])
    straggler, abstains = judged(ranks, world)
    return RanksFinding(
        world_size=world,
        reported=len(ranks),
        rows=tuple(_row(one) for one in ranks),
        straggler=straggler,
        late=late(ranks, world),
        abstains=abstains,
        notes=rank_notes.notes(ranks, world),
    )


def _read(rows: object) -> list[RankEvidence]:
    """Return the ranks of one evidence.json; one that is not what a run writes is left out."""
    found = []
    for row in rows if isinstance(rows, (list, tuple)) else ():
        with suppress(ValidationError):
            found.append(RankEvidence.model_validate(row))
    return found


def gap_of(found: RanksFinding | None) -> float | None:
    """What the others wait for one rank, a share of the time: 0 if none holds them up, None if unknown."""
    if found is None or found.abstains is not None:
        return None
    return found.straggler.gap if found.straggler is not None else 0.0


def joined(runs: Sequence[Sequence[RankEvidence]]) -> list[RankEvidence]:
    """Return each rank once: the means of its figures, of all else what its last run says."""
    found: dict[int | None, list[RankEvidence]] = {}
    for one in (one for run in runs for one in run):
        found.setdefault(one.rank, []).append(one)
    return [_mean(found[rank]) for rank in sorted(found, key=lambda rank: (rank is None, rank or 0))]


def _mean(ones: Sequence[RankEvidence]) -> RankEvidence:
    if len(ones) == 1:
        return ones[0]
    means = {}
    for name, value in ones[-1]:
        known = [v for one in ones if (v := getattr(one, name)) is not None]
        if isinstance(value, float) and known:
            means[name] = math.fsum(known) / len(known)
    samples = [one.samples for one in ones if one.samples is not None]
    return ones[-1].model_copy(update={**means, "samples": sum(samples) if samples else None})


def judged(ranks: Sequence[RankEvidence], world: int) -> tuple[StragglerRank | None, str | None]:
    """Return the straggler, or why it is not known whether there is one."""
    seen = [one for one in ranks if one.rank is not None and one.wait_share is not None and one.samples]
    if len(seen) < max(2, math.ceil(COVERAGE * world)):
        return None, (
            f"the threads of {len(seen)} of {world} ranks were seen, and "
            f"{math.ceil(max(2, COVERAGE * world))} are needed"
        )
    rates = [one.steps_per_s for one in seen if one.steps_per_s]
    if rates and max(rates) > IN_STEP * min(rates):
        return None, (
            f"the ranks do not step together: {min(rates):.3g} to {max(rates):.3g} steps/s in the same time"
        )
    on_devices = [one for one in seen if one.device != "cpu"]
    if unlike := _unlike(on_devices):
        return None, unlike
    last, *others = sorted(seen, key=_waits)
    gap = median([_waits(one) for one in others]) - _waits(last)
    if gap < max(LEAST_GAP, ERRORS * _error(last, others)):
        return None, UNSEEN if on_devices else None
    if len(others) > 1 and _waits(others[0]) - _waits(last) < TOGETHER * gap:
        return None, (
            f"ranks {last.rank} and {others[0].rank} both arrive late: the others wait {_percent(gap)} longer"
        )
    return _named(last, others, gap), None


def _waits(one: RankEvidence) -> float:
    return one.wait_share or 0.0


def _unlike(on_devices: Sequence[RankEvidence]) -> str | None:
    """Return why hosts that block on their devices unequally do not compare, None if they block alike.

    A read or a copy waits for the device's own work as well as for what that waits for others: a rank that
    alone reads the loss waits there for what the others' devices do as long, and their hosts do not.
    """
    blocks = [((o.read_share or 0.0) + (o.copy_share or 0.0), o.rank or 0) for o in on_devices]
    if not blocks:
        return None
    (least, seldom), (most, often) = min(blocks), max(blocks)
    if most - least < LEAST_GAP:
        return None
    return (
        f"rank {often} blocks {_percent(most)} of the time in reads and copies and rank {seldom} "
        f"{_percent(least)}: it may wait there for its own device as well as for others"
    )


def _error(last: RankEvidence, others: Sequence[RankEvidence]) -> float:
    """Return the standard error of the gap, were each look at a thread an independent one."""
    variances = [(w := _waits(one)) * (1 - w) / (one.samples or 1) for one in (last, *others)]
    return math.sqrt(variances[0] + median(variances[1:]))


def _named(last: RankEvidence, others: Sequence[RankEvidence], gap: float) -> StragglerRank:
    assert last.rank is not None
    excess = max((_excess(part, last, others) for part in _PARTS), key=lambda one: one.more)
    cause, because = _cause(excess, last, others) if excess.more >= MOST_OF_IT * gap else ("unknown", [])
    line = _line(last, others) if cause != "unknown" else None
    does = f"{_DOES[excess.part]} {_percent(excess.own)} of the time, the others {_percent(excess.others)}"
    facts = [] if cause == "unknown" else [does, *because]
    return StragglerRank(
        rank=last.rank,
        node=last.node,
        cause=cause,
        title=TITLES[cause],
        gap=gap,
        certain=not any(one.sharded or one.device != "cpu" for one in (last, *others)),
        for_=tuple(facts),
        line=line,
    )


def _excess(part: str, last: RankEvidence, others: Sequence[RankEvidence]) -> Excess:
    def share(one: RankEvidence) -> float:
        return math.fsum(getattr(one, name) or 0.0 for name in _PARTS[part])

    return Excess(part, share(last), median([share(one) for one in others]))


def _cause(excess: Excess, last: RankEvidence, others: Sequence[RankEvidence]) -> tuple[str, list[str]]:
    """Its name, and the facts beside what the rank does more of."""
    if excess.part in ("save", "evaluation", "log"):
        return _OF_PART[excess.part], []
    inputs = _beside(last, others, lambda one: one.inputs_per_step)
    if excess.part == "compute" and inputs and inputs[0] >= UNEVEN * inputs[1]:
        return "uneven-batches", [f"takes in {inputs[0]:.4g} numbers a step, the others {inputs[1]:.4g}"]
    cores = _beside(last, others, lambda one: one.cores)
    if cores and cores[0] <= FEWER * cores[1]:
        return "fewer-cores", [
            f"may use {cores[0]:g} of the host's cores, the others {cores[1]:g}",
            *_workers(last, others),
        ]
    starved = _beside(last, others, lambda one: one.starved_share)
    if starved and starved[0] - starved[1] >= MOST_OF_IT * excess.more:
        return "fewer-cores", [
            f"is ready and has no core {_percent(starved[0])} of the time, the others {_percent(starved[1])}"
        ]
    if excess.part != "compute":
        return _OF_PART[excess.part], _workers(last, others) if excess.part == "data" else []
    if last.device == "cpu" and all(
        _slower(name, last, others) for name in ("forward_share", "backward_share")
    ):
        return "slower-device", []
    return "own-work", []


def _workers(last: RankEvidence, others: Sequence[RankEvidence]) -> list[str]:
    found = _beside(last, others, lambda one: one.loader_workers)
    return (
        [f"has {found[0]:g} loader workers, the others {found[1]:g}"]
        if found and found[0] != found[1]
        else []
    )


def _slower(name: str, last: RankEvidence, others: Sequence[RankEvidence]) -> bool:
    found = _beside(last, others, lambda one: getattr(one, name))
    return found is not None and found[0] >= UNEVEN * found[1]


def _beside(
    last: RankEvidence,
    others: Sequence[RankEvidence],
    value: Callable[[RankEvidence], float | None],
) -> tuple[float, float] | None:
    """Return a figure of the rank and the median of the others'; None if one of them lacks it."""
    own, theirs = value(last), [value(one) for one in others]
    known = [v for v in theirs if v is not None]
    return (own, median(known)) if own is not None and len(known) == len(theirs) else None


def _line(last: RankEvidence, others: Sequence[RankEvidence]) -> str | None:
    """Return the line in which the rank spends most more than the others do."""

    def more(line: RankLine) -> float:
        beside = line.others
        if beside is None:
            beside = median([others_share(line, one) for one in others])
        return line.share - beside

    most = max(last.lines, key=more, default=None)
    return str(CodeLine(most.frame, most.line, most.code, most.state)) if most and more(most) > 0 else None


def late(ranks: Sequence[RankEvidence], world: int) -> LateRank | None:
    """The rank that began last: before a training each rank waits for the one that is not there yet."""
    known = [one for one in ranks if one.rank is not None and one.met_s is not None]
    if len(known) < max(2, math.ceil(COVERAGE * world)):
        return None
    last, *others = sorted(known, key=lambda one: one.met_s or 0.0)
    waited = min(one.met_s or 0.0 for one in others) - (last.met_s or 0.0)
    if last.rank is None or waited < LATE_S:
        return None
    return LateRank(rank=last.rank, node=last.node, seconds=waited)


def _row(one: RankEvidence) -> RankRow:
    return RankRow(
        rank=one.rank,
        node=one.node,
        device=one.uuid or one.device,
        gpu_index=one.gpu_index,
        wait_share=one.wait_share,
        data_share=one.data_share,
        own_s=one.own_s,
        cores=one.cores,
        loader_workers=one.loader_workers,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
