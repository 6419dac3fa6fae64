"""What is odd about the ranks of a training, in a line each: missing, ended, unlike each other, or
crowded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

from gpudebug.core.inside.ranks import MOST_RANKS, named, place_of
from gpudebug.core.records import RankEvidence

CROWDED = 4
"""Loader workers a core from which on they wait for each other, whatever they read."""
GONE_S = 15.0
"""Ranks of one training end within it of each other, and a report waits for the end of a step."""


def notes(ranks: Sequence[RankEvidence], world: int) -> tuple[str, ...]:
    """Each names the ranks that it is about; () if there is nothing odd."""
    found = (_missing(ranks, world), _ended(ranks), _torch(ranks), _clocks(ranks), _shared(ranks))
    return tuple(chain(chain.from_iterable(found), _cores(ranks), _inherited(ranks)))


def _missing(ranks: Sequence[RankEvidence], world: int) -> Iterator[str]:
    if world > MOST_RANKS:
        yield f"the first {MOST_RANKS} of {world} ranks are looked at"
    absent = sorted(set(range(min(world, MOST_RANKS))) - {one.rank for one in ranks})
    if absent:
        why = "dead before the first step, or unable to write into the run's folder"
        yield f"no report of {named(absent)}: {why}"
    for one in ranks:
        if one.off:
            yield f"rank {one.rank} stopped reporting: {one.off}"


def _ended(ranks: Sequence[RankEvidence]) -> Iterator[str]:
    latest = max((one.last_step_s for one in ranks if one.last_step_s is not None), default=0.0)
    known = [(one.last_step_by_s, one.rank) for one in ranks]
    gone = sorted(rank for by, rank in known if by is not None and rank is not None and latest - by > GONE_S)
    if gone:
        yield f"{named(gone)} took no step any more while the others did"


def _torch(ranks: Sequence[RankEvidence]) -> Iterator[str]:
    versions: defaultdict[str, list[int]] = defaultdict(list)
    for one in ranks:
        if one.torch and one.rank is not None:
            versions[one.torch].append(one.rank)
    if len(versions) > 1:
        yield "PyTorch differs: " + "; ".join(
            f"{version} on {named(who)}" for version, who in versions.items()
        )


def _clocks(ranks: Sequence[RankEvidence]) -> Iterator[str]:
    own = sorted(one.rank for one in ranks if one.own_clock and one.rank is not None)
    if own:
        why = "shares are of their own steady steps, and their times do not compare"
        yield f"{named(own)} ran on another host: {why}"


def _shared(ranks: Sequence[RankEvidence]) -> Iterator[str]:
    """Ranks on one device: by its UUID, else by the device that their CUDA_VISIBLE_DEVICES makes of a
    number."""
    places: defaultdict[tuple[str | None, str], list[int]] = defaultdict(list)
    for one in ranks:
        device = place_of(one)
        if device is not None and one.rank is not None:
            places[(one.node, device)].append(one.rank)
    for (_, device), who in places.items():
        if len(who) > 1:
            yield f"{named(sorted(who))} train on one device ({device})"


def _cores(ranks: Sequence[RankEvidence]) -> Iterator[str]:
    """Ranks that are alike are named together."""
    crowded: defaultdict[str, list[int]] = defaultdict(list)
    for one in ranks:
        cores, workers = one.cores, one.loader_workers
        if one.rank is not None and cores and workers and workers >= CROWDED * cores:
            counted = f"{cores:g} core{'s' if cores != 1 else ''}"
            crowded[f"{counted} for {workers} loader workers{_given(one)}"].append(one.rank)
    for text, who in crowded.items():
        yield f"{named(sorted(who))} {'has' if len(who) == 1 else 'have'} {text}"


def _inherited(ranks: Sequence[RankEvidence]) -> Iterator[str]:
    """Ranks that have fewer cores than their job asked for a task: steps of Slurm 22.05 and 23.02 do not
    inherit them."""
    fewer: defaultdict[str, list[int]] = defaultdict(list)
    for one in ranks:
        asked = int(one.slurm_cpus) if one.slurm_cpus and one.slurm_cpus.isdecimal() else None
        if one.rank is not None and asked is not None and one.cores is not None and one.cores < asked:
            fewer[f"may use {one.cores:g} of the {asked} cores that the job asked for a task"].append(
                one.rank
            )
    for text, who in fewer.items():
        yield f"{named(sorted(who))} {text}: srun --cpus-per-task gives them to a step"


def _given(one: RankEvidence) -> str:
    return f" (SLURM_CPUS_PER_TASK={one.slurm_cpus})" if one.slurm_cpus else ""
