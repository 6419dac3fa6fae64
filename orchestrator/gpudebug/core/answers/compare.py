"""What `compare` answers: two sides, the ratios of their speeds, and what else differs between them."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.answer import Answer
from gpudebug.core.answers.sections import Check
from gpudebug.core.answers.show import ProbeFigures, SectionRow
from gpudebug.core.answers.status import FigureAcross, WorkFigure


@dataclass(frozen=True, kw_only=True)
class RateSpread:
    """What the runs of a side make a second of `unit`."""

    mean: float
    min: float
    max: float
    unit: str


@dataclass(frozen=True, kw_only=True)
class WallTimes:
    """Seconds from launch to end of a side's runs."""

    mean_s: float
    min_s: float
    max_s: float


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Seconds that the programs of a side timed; `first_s` is the longest first one, `warmup` of the rest
    are left out of `count`. Null is not printed."""

    mean_s: float
    min_s: float | None
    max_s: float | None
    first_s: float | None
    count: int | None
    warmup: int | None


@dataclass(frozen=True, kw_only=True)
class CompareSide:
    """A or B. Memory is in MB of 2**20 bytes, utilisation in %; null is not known.

    `stand_in` says that the device was the CPU, `replayed` that a run was played back; `probe` is what the
    training processes reported, of a mean run; `work` is in the unit that both sides are compared in.
    `across` compares the devices if there are several, `joules_per_step` is the energy of all.
    """

    label: str
    runs: tuple[str, ...]
    stand_in: bool
    utilisation: float | None
    utilisation_reason: str | None
    throughput: RateSpread | None
    latency: Latencies | None
    wall_time: WallTimes | None
    peak_rss_mb: float | None
    peak_device_mb: float | None
    probe: ProbeFigures | None
    probe_reason: str | None
    replayed: bool | None
    work: WorkFigure | None = None
    across: tuple[FigureAcross, ...] = ()
    joules_per_step: float | None = None


@dataclass(frozen=True, kw_only=True)
class SpeedRatio:
    """B's speed over A's with its 95 % interval; `unit` is what a throughput counts, `s` or `s/step`."""

    value: float
    low: float | None
    high: float | None
    unit: str


@dataclass(frozen=True)
class OtherValue:
    """One thing that differs. `matters` if it can change the speed by itself; `why` says how."""

    name: str
    a: str | None
    b: str | None
    matters: bool = True
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class CompareAnswer(Answer):
    """`compare`: `verdict` is of B: faster, slower or cannot_tell, by `figure`, one of `ratios`.

    `ratio` is B's speed over A's and `ratio_ci` its 95 % interval. `same` is what is alike, by name, and
    `unknown` names what one side does not know. `work` is the unit that throughput counts and what it is read
    from, as text; null if the runs have none in common. `look` is what was seen of the slower side, and
    `next_command` what would show more of it.
    """

    ratio: float
    ratio_ci: tuple[float | None, float | None]
    verdict: str
    figure: str
    ratios: dict[str, SpeedRatio | None]
    a: CompareSide
    b: CompareSide
    sections: tuple[SectionRow, ...]
    differences: tuple[OtherValue, ...]
    same: dict[str, str]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]
    files: tuple[str, ...]
    work: str | None = None
    look: tuple[Check, ...] = ()
    next_command: str | None = None
