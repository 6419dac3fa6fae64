"""What `diagnose` and `why` say of the ranks of one training: who waits for whom, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RankRow:
    """One rank: shares (0 to 1) of its time in which it waits for other ranks and for batches, `own_s` what a
    step takes it without the waits for others, `cores` what it may use, `gpu_index` the number of its device
    among those that were sampled. Null is unknown. Of a rank that does not train on a CPU `wait_share` is its
    host's alone: what its device waits is not in it."""

    rank: int | None
    node: str | None
    device: str | None
    gpu_index: int | None
    wait_share: float | None
    data_share: float | None
    own_s: float | None
    cores: float | None
    loader_workers: int | None


@dataclass(frozen=True, kw_only=True)
class StragglerRank:
    """The rank that arrives last, so that the others wait `gap` of the time (0 to 1) longer than it.

    `cause` is `checkpoint`, `evaluation`, `logging`, `loader`, `uneven-batches`, `fewer-cores`,
    `slower-device`, `own-work` (code that takes the others less) or `unknown`. `certain` is false where ranks
    meet in each layer (sharded weights), and where one does not train on a CPU: hosts do not show what
    devices wait. `line` is the line of the program to read, null if none is known.
    """

    rank: int
    node: str | None
    cause: str
    title: str
    gap: float
    certain: bool
    for_: tuple[str, ...]
    line: str | None


@dataclass(frozen=True, kw_only=True)
class LateRank:
    """The rank that began last: the others had waited `seconds` longer to begin, once a run."""

    rank: int
    node: str | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class RanksFinding:
    """The ranks of a training. `reported` of its `world_size` ranks reported.

    `straggler` is null if no rank holds the others up, or if that is not known: `abstains` says why not.
    `notes` name what is odd: ranks that died or are missing, share a device, differ in PyTorch or in clocks.
    """

    world_size: int
    reported: int
    rows: tuple[RankRow, ...]
    straggler: StragglerRank | None
    late: LateRank | None
    abstains: str | None
    notes: tuple[str, ...]
