"""What `analyze` answers of section reports, alone or side by side."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.answer import Answer, omitted


@dataclass(frozen=True, slots=True)
class Section:
    """A named span of code. Seconds; `_mb` is 2**20 bytes, None if not measured.

    `calls` counts every entry, `total_s` the time of the outermost ones, `self_s` that less its children's.
    """

    name: str
    calls: int
    total_s: float
    self_s: float
    mean_s: float
    min_s: float
    max_s: float
    p50_s: float | None = None
    p95_s: float | None = None
    errors: int = 0
    category: str | None = None
    mem_peak_mb: float | None = None
    gpu_peak_mb: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSection(Section):
    """A section with its share (0 to 1) of the profiled time, and a score from 0 to 100."""

    share: float
    score: float


@dataclass(frozen=True, slots=True)
class SectionNode:
    """A section below the one that it was entered from."""

    name: str
    calls: int
    total_s: float
    children: tuple[SectionNode, ...] = ()


@dataclass(frozen=True, slots=True)
class CategoryShare:
    """`self_s` are the seconds in sections of this category and in none below; `share` of all these."""

    name: str
    self_s: float
    share: float


@dataclass(frozen=True, kw_only=True)
class SectionAdvice:
    """What to do about a section; `level` is CRITICAL, SLOW, MEMORY or GPU MEMORY."""

    level: str
    section: str
    text: str


@dataclass(frozen=True, kw_only=True)
class ReportSide:
    """A or B: how many reports it has, and their iterations without the `warmup` ones; null is not known."""

    label: str
    reports: int
    iterations: int | None
    iterations_per_s: float | None
    warmup: int
    profiled_s: float


@dataclass(frozen=True, kw_only=True)
class SideSection:
    """A section of one side, in seconds."""

    calls: int
    total_s: float
    mean_s: float
    min_s: float
    max_s: float


@dataclass(frozen=True, kw_only=True)
class SectionPair:
    """A section of both sides, null of a side without it. `ratio` is B's speed over A's in it."""

    name: str
    a: SideSection | None
    b: SideSection | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Check:
    """One question to ask of any comparison; `answer` is None if the reports cannot tell."""

    question: str
    answer: str | None = None
    concern: bool = False


@dataclass(frozen=True, kw_only=True)
class SectionsComparison:
    """`verdict` is of B: faster, slower or cannot_tell, by the `figure`: throughput, or a section's name.

    `ratio` is B's speed over A's with its 95 % interval `ratio_ci`; null says that nothing is in common, and
    `why`. `sections` are those with the most time first. `advice` is for the slower one: its level is A or B,
    its sections those that cost it the most an iteration.
    """

    verdict: str
    figure: str | None
    ratio: float | None
    ratio_ci: tuple[float | None, float | None] | None
    a: ReportSide
    b: ReportSide
    sections: tuple[SectionPair, ...]
    checklist: tuple[Check, ...]
    why: str | None
    advice: tuple[SectionAdvice, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SectionsAnswer(Answer):
    """A section report, or several together. Seconds; null is not known.

    `sections` are by total time, `bottlenecks` the names with the highest scores, `tree` the sections below
    those that they were entered from. `open` are sections that had not ended, `capped` counts names beyond
    the library's limit; `sync` says that it waited for the device. `comparison` is with `--compare`.
    """

    kind: str = "sections"
    file: str
    profiled_s: float
    wall_s: float | None
    processes: int
    rank: int | None
    iterations: int | None
    iterations_per_s: float | None
    warmup: int
    sync: bool
    capped: int
    open: tuple[str, ...]
    sections: tuple[ScoredSection, ...]
    bottlenecks: tuple[str, ...]
    recommendations: tuple[SectionAdvice, ...]
    categories: tuple[CategoryShare, ...]
    tree: tuple[SectionNode, ...]
    notes: tuple[str, ...]
    comparison: SectionsComparison | None = omitted()
    written: tuple[str, ...] | None = omitted()
