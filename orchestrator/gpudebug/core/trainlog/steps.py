"""Which counter is the training's step, how far it got and how fast.

A log has many counters: bars of training, evaluation and downloads, `step`, `epoch`, samples seen. Each
is followed as one source; the source with the best name and the most distinct values leads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple

from gpudebug.core.trainlog.names import words
from gpudebug.core.trainlog.series import Thinned

MAX_SOURCES = 64
SAMPLES_DIVISOR = 32
"""Positions that are all multiples of this count samples: batches are such multiples, intervals are not."""

BUFFERED_TIMES = 3
"""Fewer distinct arrival times than this say when a buffer was flushed, not when steps were made."""

MOVING = 3
"""Times that a total has grown, where the counter's plan is no plan."""

SAME = 0.1
"""Counters whose values differ by at most this share count the same thing."""

ABOUT = 0.15
"""As much may differ of a counter through the run and one that begins again each epoch."""
BAR = "bar"
"""Marks the key of an epoch counter that is a bar."""

Key = tuple[str, ...]


class CounterReading(NamedTuple):
    """A counter's value; `epoch_here` where the same line names the epoch, `loss` if it has one, `tested` if
    it is a table's row with an evaluation."""

    n: int
    total: int | None
    time: float | None
    epoch: float | None = None
    epoch_here: bool = False
    loss: bool = False
    tested: bool = False


@dataclass(frozen=True, slots=True)
class CountedBar:
    """A progress bar with a total: all its positions are multiples of `granularity`, `times` are (position,
    seconds since launch). `of_environment`: its label or the unit of its rate says that it counts frames."""

    label: str
    total: int
    granularity: int
    times: tuple[tuple[int, float], ...]
    of_environment: bool = False


@dataclass(slots=True, eq=False)
class StepCounter:
    """One counter. `kind`: step, bar, other (no optimiser step) or epoch; `value` counts over epochs.

    `guessed`: it was printed at intervals of `usual`, and how many an epoch has beyond the last is unknown.
    `anew`: it goes on from where it began, and no epoch tells why; `adrift`: nor does the loss. `spans`: it
    went on where an epoch ended, so that it counts through all; `rounds` are the epochs in which it was seen,
    `round` the last of them. `between`: how often it was drawn between the rounds of another bar.
    """

    key: Key
    kind: str
    weight: float
    order: int
    first: int = 0
    n: int = -1
    total: int | None = None
    epoch: float | None = None
    base: int = 0
    rolls: int = 0
    value: int = 0
    seen: int = 0
    unit: int = 0
    gap: int = 1
    usual: int = 1
    guessed: bool = False
    anew: bool = False
    adrift: bool = False
    with_loss: int = 0
    at_zero: bool = False
    tested: bool = False
    spans: bool = False
    rounds: int = 0
    round: float | None = None
    between: int = 0
    time: float | None = None
    fallen: int | None = None
    restarts: int = 0
    times: Thinned[tuple[int, float]] = field(default_factory=Thinned)

    def update(self, reading: CounterReading) -> bool:
        """Takes a reading in; True if the counter moved on."""
        n, total, time = reading.n, reading.total, reading.time
        self.with_loss += reading.loss
        if reading.loss and self.seen == self.with_loss == 1 and n < self.n:
            self.n, self.value, self.seen = -1, 0, 0  # What came first, beside no loss, was a setting.
        if reading.epoch is not None and reading.epoch != self.round:
            self.round, self.rounds = reading.epoch, self.rounds + 1
        if self.n < 0:
            self.first, self.at_zero, self.tested = n, n == 0 and reading.loss, reading.tested
        elif n <= self.n and self._rolled(reading):
            self.base += self.total or self.n + (self.gap if self.at_zero else 0)
            self.rolls += 1
            self.guessed = self.guessed or (not self.total and 1 < self.gap == self.usual)
        elif self.kind == "epoch" and self._begins_again(n):
            self.value, self.times = -1, Thinned()
            self.restarts += 1
        elif n <= self.n:
            alone = self.kind == "step" and reading.epoch in (None, self.epoch) and not reading.epoch_here
            self.anew = self.anew or (alone and self._begins_again(n))
            return False
        else:
            self.usual, self.gap = self.gap, n - self.n
            later = reading.epoch is not None and (self.epoch is None or reading.epoch > self.epoch)
            self.spans = self.spans or (later and not reading.epoch_here)
        if self.unit != 1 and n and (total is None or n < total):
            self.unit = gcd(self.unit, n)
        self.n, self.total, self.epoch = n, total, reading.epoch
        value = self.base + n
        if value <= self.value and self.seen:
            return False
        self.value = value
        self.seen += 1
        if time is not None:
            self.times.add((value, time))
            self.time = time
        return True

    def _rolled(self, reading: CounterReading) -> bool:
        """Tell whether a counter that did not rise began again: in a later epoch, or after its end."""
        n, total = reading.n, self.total
        if self.with_loss >= self.seen > 2 and not reading.loss:
            return False  # It was never without a loss: another loop's, or prose.
        if reading.epoch is not None and not self.spans:
            if self.epoch is None:
                return n < self.n and n <= self.first
            if int(reading.epoch) > int(self.epoch):
                # Once more the same count is the next epoch's if it is all of one, or on the epoch's own
                # line: a bar is redrawn.
                whole = total is not None and n >= total
                return n < self.n or whole or (reading.epoch_here and self.kind == "step")
            if reading.epoch_here:
                return False
        if total is None or n > 0.5 * total:
            return False
        return n < self.n and (self.n >= 0.9 * total or self.n + self.gap >= total)

    def _begins_again(self, n: int) -> bool:
        """Tell whether epochs go on from their first number once more, as those of another run or fold."""
        before, self.fallen = self.fallen, n if n <= self.first < self.n else None
        if before is not None and n == before:
            self.fallen = before
        return before is not None and before < n < self.n

    def begins_with_figures(self) -> None:
        """A loss was printed below the counter, or a table's row with it: at 0, it counts from there."""
        if self.n == 0 and self.seen == 1 and self.kind in ("step", "epoch"):
            self.at_zero = True

    @property
    def samples(self) -> bool:
        return self.key[-1] == "#" and self.seen >= 3 and self.unit > 0 and self.unit % SAMPLES_DIVISOR == 0

    def score(self) -> tuple[int, float]:
        if self.kind == "epoch":
            counts = self.with_loss > 0 or self.total or self.gap in (1, self.usual)
            return (0 if counts else -1, self.seen + (self.with_loss > 0) / 2)
        if self.kind == "other" or self.samples or self.between > 1:
            return (1, self.seen)
        named = self.seen > 1 and (self.key[-1] != "#" or self.total is not None)
        often = max(self.seen, self.with_loss if self.key[-1] != "#" else 0) * self.weight
        return (2 if named or self.kind == "bar" or self.with_loss else -1, often)

    @property
    def counts(self) -> bool:
        """Whether it is known to count; twice, far apart, without a loss it may be a setting."""
        often = 1 if self.value <= 2 * self.first else 2
        return self.seen > often or self.kind == "bar" or self.with_loss > 0 or self.total is not None

    @property
    def reached(self) -> int:
        """Steps done: a counter that began at 0 beside a loss had done one by then; not if it tested the
        model before any step, and then after each so many."""
        return self.value + (self.at_zero and self.n != self.total and not (self.tested and self.gap > 1))


class StepCounters:
    """All counters of a log and the one that leads."""

    def __init__(self) -> None:
        self._sources: dict[Key, StepCounter] = {}
        self.at_zero: list[StepCounter] = []
        self._totals: dict[Key, tuple[int, int]] = {}
        self._drawn: StepCounter | None = None
        self.leader: StepCounter | None = None
        self.epoch_counter: StepCounter | None = None
        self.epochs: int | None = None
        self.limit: int | None = None
        self.stopped: int | None = None

    def source(self, key: Key, kind: str, weight: float, n: int = 0) -> StepCounter | None:
        """Return the counter of this key; of a bar that changed its words, the one that stands at `n`."""
        found = self._sources.get(key)
        if found is not None or len(self._sources) >= MAX_SOURCES:
            return found
        found = self._continued(key, n) if kind == "bar" and n else None
        self._sources[key] = found or StepCounter(key, kind, weight, len(self._sources))
        return self._sources[key]

    def _continued(self, key: Key, n: int) -> StepCounter | None:
        bars = [s for s in self._sources.values() if s.kind == "bar" and (s.key[2], s.key[3]) == key[2:]]
        open_ = [s for s in bars if key[2] and 0 < s.n <= n and s.n < int(key[2])]
        return max(open_, key=lambda s: s.n, default=None)

    def between(self, keys: Iterable[Key]) -> bool:
        return any(key in self._sources and self._sources[key].between > 0 for key in keys)

    def begins_with_figures(self) -> None:
        """Take in a loss on a line without a counter, or a row of a table."""
        for source in self.at_zero:
            source.begins_with_figures()
        self.at_zero.clear()

    def ends_epoch(self, over: bool = True) -> None:
        """Take in whether an epoch is over: a bar's last frame in it may not be drawn."""
        bar = self.leader if over else None
        if bar is not None and bar.kind != "epoch" and bar.total and bar.n + bar.gap >= bar.total > bar.n:
            bar.n, bar.value = bar.total, bar.base + bar.total

    def stop_in(self, batch: int) -> None:
        """Take in that the training was ended in this batch, counted from 0: the epoch's row shows all."""
        leader = self.leader
        whole = leader is not None and leader.total is not None and leader.n >= leader.total
        self.stopped = (0 if leader is None else leader.value if whole else leader.base) + batch + 1

    def goes_on(self, positions: Sequence[tuple[Key, str, float, int, int | None]]) -> bool:
        """Tell whether a line's counters go on from where they were, or a bar of theirs begins again."""
        known = [(self._sources[key], n) for key, _, _, n, _ in positions if key in self._sources]
        return any(source.kind == "bar" or n > source.n for source, n in known)

    def moving_total(self, key: Key, total: int) -> bool:
        """Tell whether what stands as a total grows, as that of batches in wenet's `Batch 4/203700`."""
        before, moves = self._totals.get(key, (total, 0))
        if len(self._totals) < MAX_SOURCES or key in self._totals:
            self._totals[key] = (total, moves + (total > before) - (total < before))
        return self._totals.get(key, (0, 0))[1] >= MOVING

    def take_limit(self, key: Key, limit: int) -> None:
        """Take in how many steps are planned; a `total` that grows counts what was done."""
        self.limit = None if self.moving_total(key, limit) else limit

    def update(self, source: StepCounter, reading: CounterReading) -> bool:
        """Take a reading in; True if epochs that lead began again with it."""
        restarts, rolls = source.restarts, source.rolls
        moved = source.update(reading)
        if source.kind == "bar":
            self._interlude(source, source.rolls > rolls)
        if not moved:
            return False
        if source.seen == 1 and not reading.n:
            self.at_zero.append(source)
        if source is self.leader:
            return source.restarts > restarts
        if source.kind == "epoch":
            self.epoch_counter = max(self.epoch_counter or source, source, key=StepCounter.score)
        if self.leader is None or source.score() > self.leader.score():
            self.leader = source
        return False

    def _interlude(self, bar: StepCounter, again: bool) -> None:
        """Take in that a bar was drawn, `again` from 0: a later one without a loss is of another loop."""
        drawn, self._drawn = self._drawn, bar
        if again and drawn is not None and drawn.order > bar.order and drawn.key[1] == bar.key[1]:
            drawn.between += drawn.with_loss <= max(drawn.seen // 2, bar.with_loss)

    def counted(self, watched: bool = False) -> StepCounter | None:
        """Return the leader, or the best named step where the leading bar counts what `timesteps` count, or
        the one that counts through the run what the leader counts in each epoch, or the epochs.

        None if all that is left of a bar is its end in a later epoch. Of a run that is `watched`, a rate by
        batches is worth more than their exact number."""
        leader, outer = self.leader, self.epoch_counter
        if leader is None:
            return None
        if leader.kind == "bar" and leader.seen == 1 and leader.epoch is not None and leader.epoch > 1:
            return None
        if leader.kind == "bar" and not leader.value and outer and outer.value and not self.round_of(leader):
            return outer  # A bar that is drawn at its beginnings alone counts nothing.
        if leader.kind == "bar" and leader.n == leader.total and not (leader.rolls or leader.with_loss):
            alike = [s for s in self._sources.values() if (s.kind, s.key[1]) == ("bar", leader.key[1])]
            longer = [s for s in alike if s.order > leader.order and (s.total or 0) > leader.n]
            leader = longer[-1] if longer else leader  # What was over when it began prepared for it.
        named = [s for s in self._sources.values() if s.kind == "step" and s.seen > 1 and s.key[-1] != "#"]
        if leader.rolls:
            near = [s for s in named if abs(s.value - leader.value) <= ABOUT * leader.value]
            through = [s for s in near if not s.rolls and 2 * s.seen > leader.seen]
            otherwise = outer if outer and leader.guessed and not watched else leader
            return max(through, key=StepCounter.score, default=otherwise)
        others = [s.value for s in self._sources.values() if s.kind == "other" and s.seen > 1]
        if leader.kind == "bar" and any(abs(n - leader.value) <= SAME * leader.value for n in others):
            return max(named, key=StepCounter.score, default=leader)
        return leader

    def reached(self, counter: StepCounter) -> int:
        """Return how far a counter came; the bar of the epochs says which rounds of a bar are whole."""
        if self.stopped is not None and counter.kind != "epoch":
            return self.stopped
        outer, whole = self.epoch_counter, self.round_of(counter)
        if outer is None or whole is None or 2 * counter.rounds < outer.value:
            return counter.reached
        within = counter.n if counter.epoch == outer.value and counter.n < whole[1] else 0
        return max(counter.reached, outer.value * whole[1] + within)

    def round_of(self, counter: StepCounter | None) -> tuple[Key, int] | None:
        """Return the bar of the epochs in each of which a bar comes to its total, and that total."""
        outer = self.epoch_counter
        if outer is None or counter is None or counter.kind != "bar" or outer.key[-1] != BAR:
            return None
        return (outer.key, counter.total) if counter.total else None

    def bar_of(self, counter: StepCounter | None) -> Key | None:
        """Return the bar that counts what `counter` counts."""
        bars = [s for s in self._sources.values() if s.kind == "bar"]
        if counter is not None and counter.kind == "bar":
            return counter.key
        if counter is not None and counter.key[-1] != "#":
            bars = [s for s in bars if abs(s.value - counter.value) <= SAME * counter.value]
        best = max(bars, key=StepCounter.score, default=None)
        return best.key if best else None

    def bars(self) -> tuple[CountedBar, ...]:
        """The bars that ran once, with a total; one that began again counts something of each round."""
        return tuple(
            CountedBar(s.key[1], s.total, s.unit, s.times.items(), s.key[-1] == "env")
            for s in dict.fromkeys(self._sources.values())
            if s.kind == "bar" and s.total and not s.rolls and len(s.times.items()) >= BUFFERED_TIMES
        )

    @property
    def current(self) -> int | None:
        return self.leader.value if self.leader and self.leader.n >= 0 else None

    def total(self, leader: StepCounter | None) -> int | None:
        """Steps of the whole run, as printed; a bar that starts again each epoch counts for all epochs.

        None in the middle of an epoch if their number is unknown.
        """
        if leader is None:
            return None
        if leader.total is None:
            return self.limit if self.limit and self.limit >= leader.reached else None
        of_epoch = leader.rolls > 0 or "epoch" in leader.key[1]
        if self.epochs and of_epoch and self.epochs > leader.rolls:
            return leader.total * self.epochs
        if of_epoch and leader.n + leader.gap < leader.total:
            return None  # How many epochs follow is not known, and what was seen is no plan.
        return leader.total * (leader.rolls + 1)


def unit_of(leader: StepCounter | None) -> str | None:
    """Return what a counter counts: step, timesteps, samples or epoch."""
    if leader is None:
        return None
    if leader.samples:
        return "samples"
    return {"other": "timesteps", "epoch": "epoch"}.get(leader.kind, "step")


_UNITS = {
    **dict.fromkeys(("iter", "iters", "iteration", "iterations", "itr", "it", "iterat"), "iterations"),
    **dict.fromkeys(("batch", "batches", "minibatch", "minibatches"), "batches"),
    **dict.fromkeys(("update", "updates", "up"), "updates"),
    **{word.removesuffix(end): word for word in ("rounds", "frames", "episodes") for end in ("", "s")},
}


def unit_name(counter: StepCounter) -> str:
    """Return what a counter counts by its own words, in the plural: iterations, batches, epochs, …."""
    printed = counter.key[1]  # The style of a field, one character or `row`, is before its name.
    parts = words(printed.removeprefix("row") if printed.startswith("row") else printed.lstrip("q=: "))
    if counter.samples:
        return "samples"
    if counter.kind == "bar":
        return {"env": "environment steps", "batch": "batches"}.get(counter.key[3], "iterations")
    if counter.kind == "step" and {"optimizer", "optim"} & {*parts}:
        return "optimizer steps"
    plain = {"epoch": "epochs", "other": "environment steps"}.get(counter.kind, "steps")
    return plain if counter.kind == "epoch" else _UNITS.get(parts[-1] if parts else "", plain)
