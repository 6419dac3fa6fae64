"""What the training processes reported: the figures of each side, and the sections that their code named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class CopyFigures:
    """Copies of a mean run in its steady window; MB of 2**20 bytes, `pinned_share` is 0 to 1."""

    count: float | None
    mb: float | None
    seconds: float | None
    pinned_share: float | None


@dataclass(frozen=True, kw_only=True)
class SiteFigures:
    """A place of the training's code that reads from the device; counts and seconds are of a mean run."""

    site: str
    kind: str
    device: str
    count: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ProbeFigures:
    """What `core.records.ProbeEvidence` says of a run, of one run or of several as of one. None is not known.

    Means of the runs, the largest of retries and peaks, and the sites that took the most time; `rank`,
    `world_size` and `facts` are the last run's. `facts` is as the training process wrote it.
    """

    steps: float | None
    span_steps: float | None
    steps_per_s: float | None
    samples_per_s: float | None
    step_time_p50_s: float | None
    step_time_p95_s: float | None
    data_wait_share: float | None
    eval_data_share: float | None
    background_data_share: float | None
    loader_start_share: float | None
    forward_share: float | None
    backward_share: float | None
    optimizer_share: float | None
    backwards_per_step: float | None
    inputs_per_step: float | None
    blocking_reads_per_step: float | None
    blocking_read_share: float | None
    syncs_per_step: float | None
    device_time_share: float | None
    gc_share: float | None
    cpu_cores: float | None
    alloc_retries: float | None
    peak_host_mb: float | None
    peak_device_mb: float | None
    h2d: CopyFigures | None
    d2h: CopyFigures | None
    rank: int | None
    world_size: int | None
    facts: Mapping[str, Any]
    sites: tuple[SiteFigures, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ProbeSide:
    """One side: `part` is baseline, trial or a baseline's role. `reason` says why there are no figures."""

    part: str
    runs: tuple[str, ...]
    figures: ProbeFigures | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class SectionMean:
    """A section of one side's runs: the mean seconds a call, and its share of the profiled time, 0 to 1."""

    mean_s: float
    share: float


@dataclass(frozen=True, kw_only=True)
class SectionRow:
    """A section of two sides; a side is None if one of its runs lacks it. `ratio` is B's speed over A's."""

    name: str
    a: SectionMean | None
    b: SectionMean | None
    ratio: float | None
