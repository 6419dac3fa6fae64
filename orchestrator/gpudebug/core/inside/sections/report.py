"""What a process timed of its own sections, as one frozen record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpudebug.core.answers.sections import Section, SectionNode


@dataclass(frozen=True, slots=True)
class MeasuredOn:
    """What a report was measured on; None is unknown.

    `compiled` says that torch.compile was in use, `settings` are the program's options that decide how much
    a call does, by name.
    """

    machine: str | None = None
    cpus: int | None = None
    device: str | None = None
    torch: str | None = None
    compiled: bool | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What one process timed, or several: `processes`, merged, `parts_s` their profiled time together.

    `iterations` leave the `warmup` ones out; `enabled_s` is the time in which sections were recorded.
    `categories` are names by the prefix of a section's name. `capped` counts the names beyond the library's
    limit, `open` are sections that were still open at the end; `sync` says that it waited for the device.
    """

    sections: tuple[Section, ...]
    tree: tuple[SectionNode, ...] = ()
    rank: int | None = None
    pid: int | None = None
    python: str | None = None
    surroundings: MeasuredOn = field(default_factory=MeasuredOn)
    wall_s: float | None = None
    enabled_s: float | None = None
    warmup: int = 0
    iterations: int | None = None
    sync: bool = False
    categories: Mapping[str, str] = field(default_factory=dict)
    capped: int = 0
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    processes: int = 1
    parts_s: float | None = None

    @property
    def iterations_per_s(self) -> float | None:
        """Of one process; None if it reported no iterations."""
        if not self.iterations or not self.enabled_s:
            return None
        return self.iterations / self.enabled_s
