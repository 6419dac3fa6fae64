"""What a log counts of work, the rates that it prints of it, and the rewards, each over the work done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.names import VALIDATION, words
from gpudebug.core.trainlog.origin import rank_of
from gpudebug.core.trainlog.quantities import LoggedQuantity, Quantity, QuantityLine
from gpudebug.core.trainlog.series import Point, Thinned
from gpudebug.core.trainlog.text import number
from gpudebug.core.words import WorkName

MAX_NAMES = 48
MAX_PENDING = 256
AGAIN = 0.5
"""A counter that falls below this share of what it had reached has begun again; by less, lines came late."""

THE_STEPS = "the log's steps"
"""What rewards are over where the log counts no work of an environment."""

_GROUP_ROW = regex(rb"\|\s*([A-Za-z_]\w*)/\s*\|\s*\|\s*$")


@dataclass(frozen=True, slots=True)
class WorkCounter:
    """A counter of work: (value, seconds since launch), and where it began again, if it did.

    `lines` are the first and the last line of the log that moved it.
    """

    unit: str
    name: str
    tier: int
    times: tuple[tuple[int, float], ...]
    last: int
    seen: int
    began_again: tuple[int, int] | None = None
    lines: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class PrintedRate:
    """A rate of work as printed. `unit` is empty where only the rest of the log says what it counts."""

    unit: str
    name: str
    tier: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class LoggedReward:
    """One reward as printed: a point's `step` is the work done by then, of the counter `over`; else None.

    Without such a counter it is over the log's steps.
    """

    name: str
    phase: str
    tier: int
    points: tuple[Point, ...]
    count: int
    over: str | None = None


@dataclass(frozen=True, slots=True)
class LoggedWork:
    """All that a log of so many `lines` tells of work and rewards, the plainest names first."""

    counters: tuple[WorkCounter, ...] = ()
    rates: tuple[PrintedRate, ...] = ()
    rewards: tuple[LoggedReward, ...] = ()
    lines: int = 0


Key = tuple[str, str]
NamedStep = tuple[str, int]
"""The name and the value of what a line calls a step."""


@dataclass(slots=True)
class _RunningCount:
    unit: str
    name: str
    tier: int
    order: int
    value: int = -1
    seen: int = 0
    fell: int = 0
    began_again: tuple[int, int] | None = None
    lines: tuple[int, int] = (0, 0)
    times: Thinned[tuple[int, float]] = field(default_factory=Thinned)

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Its place among the counters: one that never moves, or falls more often than it rises, is last."""
        return self.seen < 2 or self.gauge, self.tier, self.order

    @property
    def gauge(self) -> bool:
        """Whether it counts what each line did, not all that was done."""
        return self.fell > self.seen

    def update(self, value: int, time: float | None) -> bool:
        """Takes a value in; False if it is no news."""
        if value == self.value:
            return False
        if value < self.value:
            self.fell += 1
            if value >= AGAIN * self.value:
                return False
            self.began_again = self.began_again or (self.value, value)
        self.value = value
        self.seen += 1
        if time is not None:
            self.times.add((value, time))
        return True


@dataclass(slots=True)
class _Reward:
    name: str
    phase: str
    tier: int
    order: int
    last: float = 0.0
    points: Thinned[Point] = field(default_factory=Thinned)
    by_steps: Thinned[Point] = field(default_factory=Thinned)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Its place among the rewards: the plainest name, then the one that is printed most."""
        return self.tier, -self.points.count, self.order


@dataclass(slots=True)
class _Pending:
    """A reward that was printed `line` lines into the log and waits for the counter that is nearest."""

    reward: _Reward
    value: float
    time: float | None
    line: int


class _Read(NamedTuple):
    """One number of a line, read. `rank` is the process that printed it, empty of one alone."""

    quantity: Quantity
    name: str
    value: float
    rank: str = ""


class WorkLog:
    """Follows them in bounded memory."""

    def __init__(self) -> None:
        self._counters: dict[Key, _RunningCount] = {}
        self._rates: dict[tuple[Key, str, int], Thinned[Point]] = {}
        self._last_rates: dict[tuple[str, int], float] = {}
        self._rewards: dict[tuple[Key, str], _Reward] = {}
        self._pending: list[_Pending] = []
        self._leader: _RunningCount | None = None
        self._counted_at: int | None = None
        self._before: int | None = None
        self._group = ""
        self._at = 0

    def read(
        self,
        line: QuantityLine | None,
        text: bytes,
        step: NamedStep | None,
        time: float | None,
        done: int | None = None,
    ) -> None:
        """Takes a line in with its quantities. `step` is what it calls a step: beside the return of an
        episode it is one of the environment. `done` are the log's steps so far. The rows below
        `| eval/ |  |` are of an evaluation."""
        self._at += 1
        if text[:1] in (b"|", b"-"):
            self._look_at_group(text)
        if line is None:
            return
        rank = rank_of(text, line.ranks) if line.ranks.sure or line.ranks.process else ""
        validating = self._group in VALIDATION and text[:1] == b"|"
        found = [_Read(*one, rank) for item in line.found if (one := _value(item, text, validating))]
        if step is not None and _of_environment(step[0], found):
            counter = Quantity("count", WorkName.ENVIRONMENT_STEPS, 1)
            found.append(_Read(counter, step[0], float(step[1]), rank))
        self._take(found, time, done)

    def _look_at_group(self, text: bytes) -> None:
        row = _GROUP_ROW.match(text)
        if row is not None:
            self._group = row[1].decode("ascii")
        elif text[:3] == b"---":
            self._group = ""

    def _take(self, found: list[_Read], time: float | None, done: int | None) -> None:
        for one in found:
            if one.quantity.kind == "count" and one.quantity.phase != "val":
                self._count(one, time)
        for one in found:
            if one.quantity.kind == "rate" and one.quantity.phase != "val":
                self._rate(one, time)
            elif one.quantity.kind == "reward":
                self._reward(one, time, done)

    def _count(self, one: _Read, time: float | None) -> None:
        if not 0 <= one.value < 1 << 53 or one.value != int(one.value):
            return
        key = (one.rank, one.name)
        counter = self._counters.get(key)
        if counter is None:
            if len(self._counters) >= MAX_NAMES:
                return
            counter = _RunningCount(one.quantity.unit, one.name, one.quantity.tier, len(self._counters))
            self._counters[key] = counter
        moved = counter.update(int(one.value), time)
        if moved:
            counter.lines = (counter.lines[0] or self._at, self._at)
        if not moved or counter.unit != WorkName.ENVIRONMENT_STEPS:
            return
        leader = self._leader
        if leader is None or counter.rank < leader.rank:
            self._leader = leader = counter
        if counter is leader:
            self._place(counter.value)
            self._counted_at = self._at

    def _place(self, value: int | None) -> None:
        """Give each reward that waits the nearer of the counter's value before it and of this one."""
        before = self._before
        for one in self._pending:
            far = self._at - one.line
            near = self._counted_at is not None and one.line - self._counted_at < far
            step = before if near or value is None else value
            one.reward.points.add(Point(step, one.value, one.time))
        self._pending.clear()
        self._before = value if value is not None else before

    def _rate(self, one: _Read, time: float | None) -> None:
        if not isfinite(one.value) or one.value <= 0:
            return
        key = ((one.rank, one.name), one.quantity.unit, one.quantity.tier)
        rates = self._rates.get(key)
        if rates is None and len(self._rates) < MAX_NAMES:
            rates = self._rates[key] = Thinned()
        if rates is not None:
            rates.add(Point(None, one.value, time))
            self._last_rates[key[1:]] = one.value

    def _reward(self, one: _Read, time: float | None, done: int | None) -> None:
        key = ((one.rank, one.name), one.quantity.phase)
        reward = self._rewards.get(key)
        if reward is None:
            if len(self._rewards) >= MAX_NAMES:
                return
            reward = _Reward(one.name, one.quantity.phase, one.quantity.tier, len(self._rewards))
            self._rewards[key] = reward
        reward.last = one.value
        reward.by_steps.add(Point(done, one.value, time))
        if self._counted_at == self._at:
            reward.points.add(Point(self._before, one.value, time))
            return
        self._pending.append(_Pending(reward, one.value, time, self._at))
        if len(self._pending) >= MAX_PENDING:
            self._place(None)

    @property
    def reward(self) -> float | None:
        """The reward of training that was printed last; NaN or infinite is None."""
        known = [one for one in self._rewards.values() if one.phase != "val"]
        last = min(known, key=lambda r: r.rank).last if known else None
        return last if last is not None and isfinite(last) else None

    @property
    def rate(self) -> tuple[float, str] | None:
        """The rate that was printed last, and what it counts."""
        known = [(tier, unit) for unit, tier in self._last_rates if unit]
        tier, unit = min(known, key=lambda one: one[0], default=(0, ""))
        return (self._last_rates[unit, tier], unit) if unit else None

    def summary(self) -> LoggedWork:
        """Return what was read so far; reading may go on afterwards."""
        waiting: dict[int, list[Point]] = {}
        for one in self._pending:
            waiting.setdefault(one.reward.order, []).append(Point(self._before, one.value, one.time))
        counters = sorted(
            (c for c in self._counters.values() if not c.gauge), key=lambda c: (c.tier, c.order)
        )
        rewards = sorted(self._rewards.values(), key=lambda r: r.rank)
        rates = sorted(self._rates.items(), key=lambda item: item[0][2])
        return LoggedWork(
            tuple(
                WorkCounter(c.unit, c.name, c.tier, c.times.items(), c.value, c.seen, c.began_again, c.lines)
                for c in counters
            ),
            tuple(PrintedRate(unit, name, tier, points.items()) for ((_, name), unit, tier), points in rates),
            tuple(self._logged(r, waiting.get(r.order, ())) for r in rewards),
            self._at,
        )

    def _logged(self, reward: _Reward, waiting: Sequence[Point]) -> LoggedReward:
        """The reward over the counter; over nothing if that began again, as then no place on it is known."""
        points: tuple[Point, ...] = reward.by_steps.items()
        over: str | None = THE_STEPS
        if self._leader is not None:
            points, over = (*reward.points.items(), *waiting), self._leader.name
            if self._leader.began_again is not None:
                points, over = tuple(Point(None, p.value, p.time) for p in points), None
        return LoggedReward(reward.name, reward.phase, reward.tier, points, reward.by_steps.count, over)


def _of_environment(step: str, found: list[_Read]) -> bool:
    """Tell whether what a line calls a step is one of the environment: beside what an episode yielded, or as
    `steps` or a `global step` beside a return; not if the line says how fast the environment is."""
    if any(one.quantity.kind == "rate" for one in found):
        return False
    parts = words(step)
    if not parts or parts[-1] not in ("step", "steps"):
        return False
    rewards = [one.name.lower() for one in found if one.quantity.kind == "reward"]
    several = parts[-1] == "steps" or "global" in parts
    return any("episod" in name or (several and "return" in name) for name in rewards)


def _value(item: LoggedQuantity, text: bytes, validating: bool) -> tuple[Quantity, str, float] | None:
    value = number(text[item.value[0] : item.value[1]])
    if value is None:
        return None
    name = text[item.named[0] : item.named[1]].decode("ascii") if item.named else item.name
    return replace(item.quantity, phase="val") if validating else item.quantity, name, value
