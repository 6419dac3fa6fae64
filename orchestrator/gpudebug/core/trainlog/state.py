"""What has been read of a log so far, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from gpudebug.core.text.expressions import Expression
from gpudebug.core.trainlog.bars import Bar
from gpudebug.core.trainlog.failure import FailureScan
from gpudebug.core.trainlog.latency import LatencyReader
from gpudebug.core.trainlog.learned import LearnedLine, LearnedLines
from gpudebug.core.trainlog.losses import Losses, Printer, UnnamedPlace
from gpudebug.core.trainlog.names import Role
from gpudebug.core.trainlog.occasions import Objectives, Occasions
from gpudebug.core.trainlog.origin import OF_ENVIRONMENTS, SourceLines, rank_of
from gpudebug.core.trainlog.phase_lines import PhaseLines, declared_in, phase_in
from gpudebug.core.trainlog.readings import LONGEST_LINE, Line, LineReadings
from gpudebug.core.trainlog.sections import (
    EVALUATION,
    PAGE,
    REPORTED,
    STOPPED,
    TRAIN,
    WHOLE,
    LogSection,
    PageLines,
    stopped_in,
)
from gpudebug.core.trainlog.series import Point, Thinned
from gpudebug.core.trainlog.shape import LoggedNumber, Shape
from gpudebug.core.trainlog.steps import BAR, CounterReading, Key, StepCounters
from gpudebug.core.trainlog.tables import Head, read_head, read_row
from gpudebug.core.trainlog.text import clock, number, plain, readable, skeleton, stamp_seconds
from gpudebug.core.trainlog.text import total as total_of
from gpudebug.core.trainlog.timing import Stamps, Timing
from gpudebug.core.trainlog.work import NamedStep, WorkLog

MAX_STEP = 1 << 53
USER_LINE = 4096
PATTERN_SECONDS = 20.0
"""What the user's own expressions may take of one log: a log that is made to slow them down is not read."""

MAX_NAMES = 64
GROUP = "value"
"""Of the user's own patterns: the number."""

TRACEBACK = b"Traceback (most recent call last)"
STEP_WEIGHTS = (1.1, 1.0, 0.8)


class LogState:
    def __init__(
        self,
        patterns: dict[str, Expression],
        clock: Callable[[], float] = float,
        declared: dict[str, Expression] | None = None,
    ) -> None:
        self.patterns = patterns
        self.declared = declared or {}
        self.phases = PhaseLines(tuple(self.declared))
        self.clock = clock
        self.learned = LearnedLines()
        self.steps = StepCounters()
        self.losses = Losses()
        self.timing = Timing()
        self.speech: dict[str, Thinned[Line]] = {}
        self.occasions = Occasions()
        self.objectives = Objectives()
        self.latencies = LatencyReader()
        self.work = WorkLog()
        self.scan = FailureScan()
        self.sources = SourceLines()
        self.head: Head | None = None
        self.epoch: float | None = None
        self.frameworks: dict[str, int] = {}
        self.named: dict[str, Thinned[Point]] = {}
        self.stamps = Stamps()
        self.told: float | None = None
        self.pages = PageLines()
        self.arrivals = False
        self.fractional: set[str] = set()
        self.pattern_seconds = 0.0
        self.trained = 0
        self.section = LogSection()
        self.announced = ""

    def read(self, segment: bytes, time: float | None) -> None:
        text, raised = segment if segment.isascii() else plain(segment), -1
        key = skeleton(text)
        learned = self.learned.get(key)
        if learned is None or learned.alert:
            text = plain(segment)
            raised = text.find(TRACEBACK)
            if raised >= 0:
                self.sources.traceback(text[:raised], segment)
            if raised > 0:
                text = text[:raised]
            key = skeleton(text)
            learned = self.learned.get(key) or self.learned.learn(key)
        shape = learned.shape
        if (learned.section == PAGE or self.pages.left) and self.pages.holds(learned.section, segment):
            return
        self.arrivals = self.arrivals or time is not None
        if raised < 0 and shape is not None and shape.bars:
            self.scan.redraw(segment, learned.alert, self.progress)
        else:
            self.scan.feed(segment, learned.alert or raised >= 0, self.progress)
        speaks = learned.speaks or self.sources.following
        if speaks and (self.sources.quotes(key, segment) or learned.usage):
            self._recognise(shape)
            return
        if learned.speaks or self.declared:
            self._listen(learned, segment, text, time)
        self.announced = learned.section
        named = self._named(segment) if self.patterns else []
        for name, value in named:
            if name == "step":
                self._user_step(value, time)
        step, at = self._apply(shape, text, time) if shape is not None else (None, time)
        self.work.read(learned.work, text, step, at, self.steps.current)
        for name, value in named:
            self._take_named(name, value, time)

    def _listen(self, learned: LearnedLine, segment: bytes, text: bytes, time: float | None) -> None:
        """Takes in what a line says in words."""
        self._phase(learned.turn, segment, text, time)
        if learned.section == WHOLE:
            self.steps.ends_epoch()
        elif learned.section == STOPPED:
            self.steps.stop_in(stopped_in(text))
        elif learned.section:
            self.section.read(learned.section, self.trained > 1)
        self.occasions.read(learned.occasion, text, self.seen, self.losses.begun, learned.state)
        for topic in learned.about:
            if topic == "latency":
                self.latencies.line(text, time)
            else:
                line = text[:LONGEST_LINE].decode("ascii")
                self.speech.setdefault(topic, Thinned()).add((line, time))

    def _phase(self, may_turn: bool, segment: bytes, text: bytes, time: float | None) -> None:
        """Takes in which phase a line names, and whether it turns to another objective: of phases that the
        user names, to one that comes for the first time, else also by other words."""
        begun = self.losses.begun
        name = self._declared(segment) if self.declared else phase_in(text) if may_turn else None
        turned = name is not None and self.phases.take(name, time) and begun
        if turned:
            self.objectives.changed = text[:LONGEST_LINE].decode("ascii").strip()
        if (may_turn and self.objectives.read(text, begun)) or turned:
            self.losses.turn()
            self.section.read(TRAIN, begun=True)

    def _declared(self, segment: bytes) -> str | None:
        """Return the phase of `phases:` in gpudebug.yaml that begins with this line."""
        if self.pattern_seconds > PATTERN_SECONDS:
            return None
        start = self.clock()
        text = readable(segment, USER_LINE)
        matching = [name for name, one in self.declared.items() if next(one.finditer(text), None)]
        self.pattern_seconds += self.clock() - start
        return declared_in(matching, self.phases.current, self.phases.order)

    @property
    def of_environment(self) -> bool:
        """Whether a library is seen that trains on an environment, whose steps are what it counts."""
        return not OF_ENVIRONMENTS.isdisjoint(self.frameworks)

    @property
    def seen(self) -> int:
        """How often the leading counter moved."""
        return self.steps.leader.seen if self.steps.leader else 0

    @property
    def progress(self) -> int:
        """How often the training was seen to go on, by its counter or its losses."""
        return max(self.seen, self.trained)

    def _recognise(self, shape: Shape | None) -> None:
        if shape is not None and shape.framework:
            self.frameworks[shape.framework] = self.frameworks.get(shape.framework, 0) + 1

    def _apply(self, shape: Shape, text: bytes, time: float | None) -> tuple[NamedStep | None, float | None]:
        """Takes a line in: (the step that it names beside no loss, its time)."""
        if shape.framework:
            self._recognise(shape)
        if shape.header:
            self.head = read_head(text, *shape.header)
            return None, time
        at = time
        if shape.stamp and not self.arrivals:
            self.stamps.read(stamp_seconds(text[slice(*shape.stamp)].decode("ascii")))
        if not self.arrivals and (shape.stamp or not shape.bars):
            at = self.stamps.last  # A bar goes on where the line above it was stamped long ago.
        ranks = shape.ranks
        line = LineReadings(at, rank_of(text, ranks) if ranks.sure or ranks.process else "")
        in_row = bool(shape.rows) and self._row(text, shape, line)
        for item in shape.fields:
            if not (in_row and item.bare):
                self._field(item, text, line)
        for bar in shape.bars:
            self._bar(bar, text, line)
        if shape.unnamed and not in_row:
            line.unnamed = self._unnamed(shape.unnamed, text, time)
        self._settle(line, time, int(text[slice(*ranks.numbered)]) if ranks.numbered else None)
        if in_row and self.steps.at_zero and self.head is not None and self.head.measures:
            self.steps.begins_with_figures()
        if line.losses or not line.positions:
            return None, at
        steps = ((key[1].lstrip("=:q "), n) for key, kind, _, n, _ in line.positions if kind == "step")
        return next((step for step in steps if step[0] != "#"), None), at

    def _unnamed(self, place: UnnamedPlace, text: bytes, time: float | None) -> bool:
        """Takes in a number without a name; whether such lines are a course over steps by now."""
        step, value = number(text[slice(*place.step)]), number(text[slice(*place.value)])
        if "loss" not in self.patterns and step is not None and value is not None:
            self.losses.unnamed.column = place.column
            self.losses.unnamed.add(int(step), value, time)
        return self.losses.unnamed.sure

    def _field(self, item: LoggedNumber, text: bytes, line: LineReadings) -> None:
        printed = text[item.at]
        value = total_of(printed) if item.terms else number(printed)
        if value is None:
            return
        key = item.key
        if item.named:
            key = item.style, text[item.named[0] : item.named[1]].decode("ascii").lower()
        total = number(text[item.total[0] : item.total[1]]) if item.total else None
        if item.grain:
            line.grain = max(line.grain, item.grain)
        self._take(item.role, key, value, total, line, item.scale)

    def _take(
        self,
        role: Role,
        key: tuple[str, str],
        value: float,
        total: float | None,
        line: LineReadings,
        scale: float = 1.0,
    ) -> None:
        """Takes in a number of a line; `key` is the style and the name in which it is printed."""
        kind, phase, (style, name) = role.kind, role.phase, key
        if kind == "epochs" and total:
            kind = "epoch"
        if kind == "loss":
            line.losses.append(((style, "val" if phase == "val" else "", name), role.tier, value))
        elif kind in ("step", "other"):
            self._position(role, key, value, total, line)
        elif kind == "epoch" and isfinite(value) and phase != "val":
            line.epoch = value
            self.steps.epochs = _whole(total) or self.steps.epochs
            if value != int(value):
                self.fractional.add(name)
            elif name not in self.fractional and len(self.fractional) < MAX_NAMES:
                line.positions.append(((line.rank, name), "epoch", 1.0, int(value), _whole(total)))
        elif kind == "epochs" and 0 < value < MAX_STEP:
            self.steps.epochs = int(value)
        elif kind == "limit" and 0 < value < MAX_STEP:
            self.steps.take_limit(key, int(value))
        elif kind == "round" and isfinite(value) and phase != "val":
            self.timing.epoch(value * scale, line.time)
        elif kind == "gradient":
            line.gradient_lost = line.gradient_lost or not isfinite(value)
        elif phase != "val" and isfinite(value) and value >= 0:
            if kind == "rate" and not self.of_environment:
                self.timing.rate(value, name != "")
            line.duration(kind, role.tier, value * scale)

    def _position(
        self, role: Role, key: tuple[str, str], value: float, total: float | None, line: LineReadings
    ) -> None:
        if role.phase == "val" or not 0 <= value < MAX_STEP or value != int(value):
            return
        (style, name), whole = key, _whole(total)
        if whole and self.steps.moving_total((line.rank, style, name), whole):
            value, whole = float(whole), None
        source = (line.rank, f"{style}{name}", str(whole or ""), "#" if not name else "")
        weight = STEP_WEIGHTS[min(role.tier, 2)]
        if name == "#":
            line.positions = [entry for entry in line.positions if entry[0] != source]
        line.positions.append((source, role.kind, weight, int(value), whole))

    def _bar(self, bar: Bar, text: bytes, line: LineReadings) -> None:
        n = number(text[bar.n[0] : bar.n[1]])
        total = number(text[bar.total[0] : bar.total[1]]) if bar.total else None
        if n is None or bar.phase == "val" or not 0 <= n < MAX_STEP:
            return
        line.trains = line.trains or bar.phase == "train"
        whole = _whole(total)
        key: Key = ("bar", bar.label, str(whole or ""), bar.counts)
        kind = "bar"
        if bar.counts == "epoch" or (line.epoch == n and whole and whole == self.steps.epochs):
            key, kind = (line.rank, bar.label, BAR), "epoch"
            line.epoch, self.steps.epochs = n, whole or self.steps.epochs
        line.positions.append((key, kind, 1.0, int(n), whole))
        speed = number(text[bar.rate[0] : bar.rate[1]]) if bar.rate else None
        if speed and bar.inverse:
            speed = 1 / speed
        line.clocks[key] = clock(text[bar.elapsed[0] : bar.elapsed[1]]) if bar.elapsed else None, speed

    def _row(self, text: bytes, shape: Shape, line: LineReadings) -> bool:
        """Takes in a row of the table whose head was seen last; False if the line is not a row."""
        found = read_row(self.head, text, shape.rows) if self.head else None
        line.summed = self.head.steps_since(found) if found and self.head else 1.0
        for column, value, total in found or ():
            if column.role.kind not in ("data", "update", "total", "part", "rate"):
                self._take(column.role, ("row", column.name), value, total, line)
        line.tested = bool(found) and self.head is not None and self.head.evaluates
        return bool(found)

    def _settle(self, line: LineReadings, time: float | None, numbered: int | None) -> None:
        here, epoch = line.epoch is not None, None
        self._tell(line)
        self._place(line)
        if line.epoch is not None:
            epoch = int(line.epoch) if line.epoch != self.epoch else None
            self.epoch = line.epoch
        if self.section.phase or (line.clocks and self.steps.between(line.clocks)):
            line.within(self.section)
        trained = line.trained()
        self.trained += trained
        if trained and not line.positions:
            self.steps.begins_with_figures()
        self.steps.ends_epoch(trained and line.of_epoch())
        named = step = None
        if "step" not in self.patterns:
            for key, kind, weight, n, total in line.positions:
                if key[1].endswith("#") and not (line.losses or line.unnamed):
                    continue
                source = self.steps.source(key, kind, weight, n)
                if source is not None:
                    if key in line.clocks:
                        self.timing.bar(source.key, n, *line.clocks[key])
                    told = self.section.phase == REPORTED and bool(line.losses)
                    within = (kind, n) == ("epoch", 0) and any(
                        k == "step" and m for _, k, _, m, _ in line.positions
                    )
                    begun = trained or told or within or self.announced == WHOLE
                    reading = CounterReading(n, total, line.time, self.epoch, here, begun, line.tested)
                    if self.steps.update(source, reading):
                        self.losses.begin_again()
                    if kind == "step" and not key[1].endswith("#"):
                        named, step = n, source.value
        if line.losses and "loss" not in self.patterns:
            step = step if line.rank and step is not None else self.steps.current
            named = epoch if named is None else named
            printer = Printer(line.rank, numbered, named, bool(line.clocks), line.summed)
            for name, tier, value in line.losses:
                self.losses.add(name, tier, value, step, time, line.gradient_lost, printer)
        line.time_steps(self.timing, time)

    def _tell(self, line: LineReadings) -> None:
        """Take in the time that a line names as a number, in a log without any other."""
        if line.told is not None and not self.arrivals and (line.time is None or line.time == self.told):
            self.stamps.read(line.told)
            line.time = self.told = line.told

    def _place(self, line: LineReadings) -> None:
        """Leave the section of evaluation if the line is of training: by its own word, or as it goes on."""
        if line.epoch is None and self.section.phase != EVALUATION:
            return
        later = line.epoch is not None and self.epoch is not None and line.epoch > self.epoch
        announces = line.epoch is not None and not line.losses and self.announced != EVALUATION
        if announces or (
            self.section.phase == EVALUATION and (line.trains or later or self.steps.goes_on(line.positions))
        ):
            self.section.read(TRAIN, begun=True)

    def _named(self, segment: bytes) -> list[tuple[str, float]]:
        if self.pattern_seconds > PATTERN_SECONDS:
            return []
        start = self.clock()
        text = readable(segment, USER_LINE)
        found = [
            (name, number(match[GROUP] or ""))
            for name, pattern in self.patterns.items()
            for match in pattern.finditer(text)
        ]
        self.pattern_seconds += self.clock() - start
        return [(name, value) for name, value in found if value is not None]

    def _take_named(self, name: str, value: float, time: float | None) -> None:
        if name == "loss":
            self.losses.add(("user", "train", "loss"), 0, value, self.steps.current, time, False)
        elif name != "step":
            series = self.named.setdefault(name, Thinned())
            series.add(Point(self.steps.current, value, time))

    def _user_step(self, value: float, time: float | None) -> None:
        source = self.steps.source(("user", "step", ""), "step", 1.0)
        if source is not None and 0 <= value < MAX_STEP:
            self.steps.update(source, CounterReading(int(value), None, time, loss=True))


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and 1 <= value < MAX_STEP else None
