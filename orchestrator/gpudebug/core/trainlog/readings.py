"""The readings of one line, before they become those of the log."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpudebug.core.trainlog.names import TRAINING, words
from gpudebug.core.trainlog.sections import EVALUATION, LogSection
from gpudebug.core.trainlog.steps import Key
from gpudebug.core.trainlog.timing import Timing

Line = tuple[str, float | None]
"""A line's text and when it was there, in seconds since launch; None without times."""

LONGEST_LINE = 512

UNIX_TIMES = (1e9, 1e10)
"""What is printed as a time is no duration there."""


@dataclass(slots=True)
class LineReadings:
    """Readings of one line that wait for one another."""

    time: float | None
    rank: str = ""
    epoch: float | None = None
    losses: list[tuple[tuple[str, str, str], int, float]] = field(default_factory=list)
    positions: list[tuple[Key, str, float, int, int | None]] = field(default_factory=list)
    clocks: dict[Key, tuple[float | None, float | None]] = field(default_factory=dict)
    gradient_lost: bool = False
    unnamed: bool = False
    trains: bool = False
    tested: bool = False
    data: float | None = None
    weak_data: float | None = None
    update: float | None = None
    total: float | None = None
    part: float = 0.0
    grain: float = 0.0
    told: float | None = None
    summed: float = 1.0

    def duration(self, kind: str, tier: int, value: float) -> None:
        """Take in seconds of a step, or of a part of it; of several by one name the first. Or when it was."""
        if kind == "data" and tier:
            self.weak_data = value if self.weak_data is None else self.weak_data
        elif kind == "data":
            self.data = value if self.data is None else self.data
        elif kind == "update" and self.update is None:
            self.update = value
        elif kind == "total" and UNIX_TIMES[0] <= value < UNIX_TIMES[1]:
            self.told = value
        elif kind == "total" and self.total is None:
            self.total = value
        elif kind == "part":
            self.part = max(self.part, value)

    def trained(self) -> bool:
        """Whether a loss is one of training."""
        return any(key[1] != "val" for key, _, _ in self.losses)

    def within(self, section: LogSection) -> None:
        """Take a line of evaluation for what it is: its losses that do not say otherwise, and neither steps
        nor durations; in a section of training it is that of a bar in between."""
        self.losses = [
            ((style, phase if TRAINING.intersection(words(name)) else "val", name), tier, value)
            for (style, phase, name), tier, value in self.losses
        ]
        if section.phase == EVALUATION:
            self.positions, self.data, self.weak_data, self.update, self.total = [], None, None, None, None

    def of_epoch(self) -> bool:
        return {kind for key, kind, _, _, _ in self.positions if not key[1].endswith("#")} == {"epoch"}

    def time_steps(self, timing: Timing, time: float | None) -> None:
        """Give the durations on: those beside the number of an epoch and of no step are an epoch's."""
        data = self.data if self.data is not None else self.weak_data
        whole = self.total if self.total is None or self.total >= self.part else None
        if whole is not None and self.epoch is not None and self.of_epoch():
            timing.epoch(whole, time)
        elif data is not None or whole is not None or self.update is not None:
            timing.add(data, self.update, whole, time)
            timing.grain = max(timing.grain, self.grain)
