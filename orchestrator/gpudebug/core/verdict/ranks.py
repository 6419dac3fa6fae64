"""What ranks had otherwise on two sides of runs: each rank of a training against itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from gpudebug.core.change.intervention import SingleChange
from gpudebug.core.command import loader_settings
from gpudebug.core.command.synonyms import Synonyms, long_name
from gpudebug.core.inside.ranks import bare_uuid, named, place_of
from gpudebug.core.records import Evidence, RankEvidence
from gpudebug.core.text.values import same_value
from gpudebug.core.words import Outcome

COUNT, DEVICE, CORES, THREADS = "count", "device", "cores", "threads"
"""What a change may set of ranks: such a difference is the trial's own doing."""
_REBORN = "run `gpudebug baseline` to record the baseline again"
_LISTED = 5
_WHOLE = frozenset({Outcome.COMPLETED, Outcome.ENDED_BY_PLAN})
_FLAG = {
    COUNT: r"nprocs?|nproc_per_node|num_processes|world_?size|n?nodes|num_?machines|n?gpus?|devices|ntasks|np"
    r"|workers_per_node",
    DEVICE: r"cuda|no_cuda|devices?|gpus?|gpu_?ids?|accelerator|use_cpu|local_?rank|visible|mig",
    CORES: r"affinity|taskset|numactl|numa|cpus?|cores?|bind|places",
    THREADS: r"omp|threads?",
}
_CODE = {
    COUNT: r"nprocs?|world_?size|nproc_per_node|ntasks|num_processes|num_machines|mp\.spawn",
    DEVICE: r"set_device|device_ids?|cuda:|local_?rank|LOCAL_RANK|CUDA_VISIBLE_DEVICES|torch\.device\("
    r"|\.cuda\(\s*\w",
    CORES: r"affinity|taskset|numactl|cpu_?bind|cpus[-_]per|cpuset",
    THREADS: r"OMP_|threads",
}


class RankAspect(NamedTuple):
    """A surrounding of a rank: `values` of all records of one, None of a record that lacks it; `key` is what
    values are compared by. A change that sets one of `by` sets it, too."""

    name: str
    values: Callable[[Sequence[RankEvidence]], list[str | None]]
    by: frozenset[str] = frozenset()
    key: Callable[[str], str] = str


class RanksApart(NamedTuple):
    """What differs between two sides, and why it is not known of what a record lacks."""

    differences: tuple[str, ...] = ()
    unknown: str | None = None


def set_by_flags(words: Iterable[str]) -> frozenset[str]:
    """Return what of ranks a change of these flags and variables may set, by their names and values."""
    text = " ".join(words)
    found = {what for what, names in _FLAG.items() if re.search(rf"(?i)(?<![a-z])(?:{names})(?![a-z])", text)}
    return frozenset(found | ({COUNT} if re.search(r"(?<!\S)-n(?![\w-])", text) else set()))


def set_by_code(lines: Iterable[str]) -> frozenset[str]:
    """Return what of ranks a change of these lines of code may set."""
    text = "\n".join(lines)
    return frozenset(what for what, names in _CODE.items() if re.search(names, text))


def _devices(ones: Sequence[RankEvidence]) -> list[str | None]:
    """By UUID if one of the records has it, else as each process numbers it."""
    if any(one.uuid is not None for one in ones):
        return [one.uuid or (one.device if one.device == "cpu" else None) for one in ones]
    return [place_of(one) or one.device for one in ones]


def _each(
    value: Callable[[RankEvidence], str | None],
) -> Callable[[Sequence[RankEvidence]], list[str | None]]:
    return lambda ones: [value(one) for one in ones]


def _omp(one: RankEvidence) -> str:
    return one.omp if one.omp is not None else "unset"


def _cores(one: RankEvidence) -> str | None:
    return None if one.cores is None else f"{one.cores:g}"


_BY_CORES = frozenset({COUNT, CORES})
_DEVICE, _AFFINITY = "device", "affinity"
_CHOSEN = frozenset({_DEVICE, _AFFINITY})
"""What a launcher may choose anew for each run, as the baseline's own runs then show."""
ASPECTS = (
    RankAspect("node", _each(lambda one: one.node), frozenset({COUNT})),
    RankAspect(_DEVICE, _devices, frozenset({COUNT, DEVICE}), bare_uuid),
    RankAspect("Python", _each(lambda one: one.python)),
    RankAspect("PyTorch", _each(lambda one: one.torch)),
    RankAspect("cores", _each(_cores), _BY_CORES),
    RankAspect(_AFFINITY, _each(lambda one: one.affinity), _BY_CORES),
    RankAspect("OMP_NUM_THREADS", _each(_omp), frozenset({COUNT, CORES, THREADS})),
)


def ranks_apart(
    before: Sequence[Evidence], after: Sequence[Evidence], meant: Collection[str] = ()
) -> RanksApart:
    """Return what differs of the ranks' number, nodes, devices, software and cores, named by rank.

    `meant` is what the trial's change sets of ranks. Runs that failed need not have all ranks. Which cores
    and which device a rank has is not compared if the baseline's own runs differ in it: the launcher chooses
    them anew.
    """
    if not any(e.ranks for e in (*before, *after)):
        return RanksApart()
    found = [] if COUNT in meant else [*_missing(before, after)]
    unknown = None if COUNT in meant else _unrecorded(before, after)
    lacking: list[str] = []
    for aspect in ASPECTS:
        if aspect.by.isdisjoint(meant):
            found += _of_aspect(aspect, before, after, lacking)
    lacks = f"the record lacks {'; '.join(lacking)}; {_REBORN}" if lacking else None
    return RanksApart(tuple(found), unknown or lacks)


def rank_count(e: Evidence) -> int | None:
    """Return how many ranks a run trained with; None if nothing reported it."""
    if e.ranks:
        return max([len(e.ranks), *(one.world_size for one in e.ranks if one.world_size is not None)])
    if e.probe is None:
        return None
    return e.probe.world_size or max(1, len(e.probe.ranks))


def _unrecorded(before: Sequence[Evidence], after: Sequence[Evidence]) -> str | None:
    """Why the ranks of a run that trained to its end are unknown, though those of another are known."""
    for part, runs in (("baseline", before), ("trial", after)):
        for e in runs:
            if e.ranks or e.outcome not in _WHOLE:
                continue
            count = rank_count(e)
            if count is None or count > 1:
                why = e.probe_reason or "its record has none of them"
                remedy = f"; {_REBORN}" if part == "baseline" else ""
                return f"the ranks of {part} run {e.run} are unknown: {why}{remedy}"
    return None


def _missing(before: Sequence[Evidence], after: Sequence[Evidence]) -> Iterator[str]:
    """Another number of ranks; else each rank that all whole runs of one side have, and one of the other
    lacks."""
    sides = [[e for e in runs if e.outcome in _WHOLE] for runs in (before, after)]
    counts = [{n for e in runs if (n := rank_count(e)) is not None} for runs in sides]
    if all(counts) and counts[0] != counts[1]:
        yield " and ".join(" or ".join(map(str, sorted(side))) for side in counts) + " ranks"
        return
    known = [[{one.rank for one in e.ranks} for e in runs if e.ranks] for runs in sides]
    if not all(known):
        return
    for here, there, part in ((0, 1, "trial"), (1, 0, "baseline")):
        always = set.intersection(*known[here])
        for e in sides[there]:
            absent = sorted(rank for rank in always - {one.rank for one in e.ranks} if rank is not None)
            if e.ranks and absent:
                yield f"{named(absent)} missing in {part} run {e.run}"


def _of_aspect(
    aspect: RankAspect, before: Sequence[Evidence], after: Sequence[Evidence], lacking: list[str]
) -> Iterator[str]:
    texts: dict[str, list[int]] = {}
    lacked: list[int] = []
    for rank in sorted({one.rank for e in before for one in e.ranks if one.rank is not None}):
        sides = [[one for e in runs for one in e.ranks if one.rank == rank] for runs in (before, after)]
        if not all(sides):
            continue
        values = aspect.values([*sides[0], *sides[1]])
        old, new = (
            dict.fromkeys(filter(None, v)) for v in (values[: len(sides[0])], values[len(sides[0]) :])
        )
        if not (old and new):
            lacked += [rank] if old or new else []
        elif aspect.name in _CHOSEN and len(old) > 1:
            continue
        elif len({aspect.key(value) for value in (*old, *new)}) > 1:
            texts.setdefault(f"{aspect.name} {' or '.join(old)} and {' or '.join(new)}", []).append(rank)
    if lacked:
        lacking.append(f"the {aspect.name} of {named(lacked)} on one side")
    shown = [f"{text} ({named(who)})" for text, who in texts.items()]
    more = sum(map(len, list(texts.values())[_LISTED:]))
    yield from (*shown[:_LISTED], *([f"{aspect.name} of {more} more ranks"] if more else []))


_OMP = "OMP_NUM_THREADS"
_UNSET = "unset"


def lagging(
    part: SingleChange,
    before: Sequence[Sequence[RankEvidence]],
    ranks: Sequence[RankEvidence],
    synonyms: Synonyms = (),
) -> str | None:
    """Return which ranks still have what they had in the baseline, though others have what was asked for.

    `before` are the ranks of each run of the baseline. None if all have it, if none has, and if nothing shows
    it.
    """
    setting = _setting(part, synonyms)
    if setting is None or part.kind == "unset":
        return None
    asked = "true" if part.value is None else part.value
    reached, behind = 0, []
    for one in ranks:
        values = _values(one, setting)
        old = {
            v for run in before for other in run if other.rank == one.rank for v in _values(other, setting)
        }
        if any(same_value(asked, value) for value in values):
            reached += 1
        elif values and set(values) == old and one.rank is not None:
            behind.append((one.rank, values))
    if not (reached and behind):
        return None
    shown = ", ".join(dict.fromkeys(value for _, values in behind for value in values))
    has = "has" if len(behind) == 1 else "have"
    who = named([rank for rank, _ in behind])
    return f"{part.name}={asked} was asked for, {who} {has} {setting}: {shown}, as in the baseline"


def confirmed(part: SingleChange, ranks: Sequence[RankEvidence]) -> str | None:
    """Say that each rank found the variable as the change sets it; None if one did not, or of others."""
    if part.kind != "env" or part.name != _OMP or not ranks or part.value is None:
        return None
    asked = part.value
    everywhere = all(same_value(asked, value) for one in ranks for value in _values(one, _OMP))
    return f"{_OMP}: {asked} (each of {len(ranks)} ranks)" if everywhere and len(ranks) > 1 else None


def _setting(part: SingleChange, synonyms: Synonyms) -> str | None:
    """What of a rank the flag or variable sets; a batch may be a part, or several, of what a flag says."""
    if part.kind == "env" and part.name == _OMP:
        return _OMP
    found = loader_settings.meant(long_name(part.name, synonyms))
    return None if found == loader_settings.BATCH else found


def _values(one: RankEvidence, setting: str) -> tuple[str, ...]:
    if setting == _OMP:
        return (one.omp if one.omp is not None else _UNSET,)
    return one.loader.get(setting, ())
