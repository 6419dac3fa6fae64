"""What a thread's time went to: evaluation, rollouts, a program's own computing, and the hottest lines."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudebug.core.inside.stacks.shares import CodeLine, SampledStack, Taken, in_compiler, pattern, seen
from gpudebug.core.lazy import regex
from gpudebug.core.records import Stacks

_TRAINS = ("backward", "optimizer", "forward")
_OF_EVALUATION = ("data", "env")
_ACTS = ("eval", "act")
_HARDLY = 0.02
"""Of a function's time what samples at its edges may put into the wrong phase."""
_MOSTLY, _PARTLY = 0.5, 0.2
"""Of a function's time; the smaller one where its name says that it evaluates."""
_CHECKS = regex(r"(?:^|/)distributions/\w+\.py:")
"""PyTorch's distributions: they validate what they are given, within a forward."""
_NEARLY_ALL = 0.9


def evaluation(stacks: Stacks, named: str | None = None) -> Taken:
    """Return the share of the watched time that evaluation takes, and the function that most of it is in.

    That is forwards in evaluation mode without gradients, and all else that is done in a function which
    makes such forwards, fetches batches for them, and never trains. `named`: only functions in whose name
    this expression is found.
    """
    rows = seen(stacks)
    if stacks.seconds <= 0 or not any(one.phase in _ACTS for one in rows):
        return Taken(0.0)
    evaluates = _functions(rows, _MOSTLY, ("eval",)) if named is None else evaluating(stacks, named)
    spent: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in rows:
        function = next((frame for frame in one.frames if frame in evaluates), None)
        if function is None and named is None and one.phase == "eval":
            function = one.spot[0]
        if function is not None:
            spent[function][0] += one.seconds
            spent[function][1] += one.cpu_s
    if not spent:
        return Taken(0.0)
    most = max(spent, key=lambda name: spent[name][0])
    total = sum(seconds for seconds, _ in spent.values())
    seconds, cpu_s = spent[most]
    place = CodeLine(most, None, None, "running" if cpu_s >= seconds / 2 else "waiting")
    return Taken(min(1.0, total / stacks.seconds), place, seconds / total)


def evaluating(stacks: Stacks, named: str) -> frozenset[str]:
    """Return the functions that evaluate and in whose name this expression is found: where a policy acts
    without gradients in rollouts, too, a name is asked for as well."""
    search = pattern(named).search
    return frozenset(frame for frame in _functions(seen(stacks), _PARTLY, _ACTS) if search(frame))


def _functions(rows: tuple[SampledStack, ...], least: float, by: tuple[str, ...]) -> frozenset[str]:
    """Return those in which a network is evaluated, in a phase of `by`, for so much of their time or more,
    loading and environments included, and none is trained. Of the innermost one that both makes the forwards
    and fetches their batches a fifth will do: what else such a loop does, metrics and callbacks, is
    evaluation too."""
    phases: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    within: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in rows:
        for at, frame in enumerate(one.frames):
            # What calls itself counts once.
            if frame in one.frames[:at]:
                continue
            phases[frame][one.phase] += one.seconds
            if one.phase in (*_OF_EVALUATION, *by):
                for inner in set(one.frames[at + 1 :]) - {frame}:
                    within[frame][inner] += one.seconds
    return frozenset(
        frame
        for frame, spent in phases.items()
        if any(spent[phase] > 0 for phase in by)
        and not _CHECKS.search(frame)
        and sum(spent[p] for p in _TRAINS) <= _HARDLY * (whole := sum(spent.values()))
        and _evaluating(spent, by) >= (_PARTLY if _joins(spent, within[frame], by) else least) * whole
    )


def _evaluating(spent: Mapping[str, float], by: tuple[str, ...]) -> float:
    return sum(spent[phase] for phase in (*_OF_EVALUATION, *by))


def _joins(spent: Mapping[str, float], inner: Mapping[str, float], by: tuple[str, ...]) -> bool:
    """Tell whether a function evaluates and loads, and none that it calls does both."""
    both = spent["data"] > 0 and any(spent[phase] > 0 for phase in by)
    return both and max(inner.values(), default=0.0) < _NEARLY_ALL * _evaluating(spent, by)


_LEARNS = ("forward", "backward", "optimizer")
_UPDATES = ("backward", "optimizer")
_MOST, _HALF, _MUCH = 0.8, 0.5, 0.3
_COMPUTES = 0.7
"""Of its time a function runs that computes; one that waits for files or others does something else."""


class RolloutShares(NamedTuple):
    """Shares (0 to 1) of the watched time, outside of evaluation; None where no stack shows it.

    `act`: a policy chooses actions, in forwards without gradients and in what the functions around them do
    for it, as sampling from a distribution. `collect`: that, and what a framework does around it. `env`:
    environments are stepped, one at a time. `beside`: the largest one of a function of the user's that runs
    between updates, and neither acts nor trains, as for rewards. `batches`: functions that an update calls
    before it trains, as for samples.
    """

    act: float | None = None
    collect: float | None = None
    env: float | None = None
    beside: float | None = None
    batches: float | None = None


def rollout_shares(stacks: Stacks, evaluation: str) -> RolloutShares:
    """Those of a thread; functions that evaluate are found in whose name the expression `evaluation` is."""
    if stacks.seconds <= 0:
        return RolloutShares()
    evaluates = evaluating(stacks, evaluation)
    rows = [one for one in seen(stacks) if evaluates.isdisjoint(one.frames)]
    spent = _spent(rows)
    update, acts = _update(rows, spent), _choosing(spent)
    sums: defaultdict[str, float] = defaultdict(float)
    beside: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in rows:
        if one.phase in _ACTS:
            sums["act"] += one.seconds
        elif one.phase == "env":
            sums["env"] += one.seconds
        elif one.phase == "other" and one.own is not None:
            chooses = next((acts[frame] for frame in one.frames if frame in acts), 0.0)
            if chooses:
                sums["act"] += chooses * one.seconds
            function = one.frames[one.own]
            if one.packaged and not chooses and update is not None and update not in one.frames:
                sums["around"] += one.seconds
            if chooses or _any(spent[function], (*_LEARNS, *_ACTS)):
                continue
            if update in one.frames:
                sums["batches"] += one.seconds
            elif not one.packaged:
                beside[function][0] += one.within("running")
                beside[function][1] += one.seconds
    ran = [running for running, whole in beside.values() if running >= _COMPUTES * whole]
    if ran:
        sums["beside"] = max(ran)
    if "act" in sums:
        sums["collect"] = sums["act"] + sums["around"]
    sums.pop("around", None)
    return RolloutShares(**{name: min(1.0, value / stacks.seconds) for name, value in sums.items()})


Spent = Mapping[str, Mapping[str, float]]


def _spent(rows: Sequence[SampledStack]) -> Spent:
    """Seconds by function, with all that it calls, and phase."""
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in rows:
        for frame in set(one.frames):
            found[frame][one.phase] += one.seconds
    return found


def _choosing(spent: Spent) -> dict[str, float]:
    """Return the functions that do little but have a policy choose actions, each with the part (0 to 1) of
    its time for which it does: an update may call it, too."""
    found = {}
    for frame, phases in spent.items():
        acting = sum(phases.get(phase, 0.0) for phase in _ACTS)
        forwards = acting + phases.get("forward", 0.0)
        else_ = _any(phases, _UPDATES) or _any(phases, ("env",))
        if acting and not else_ and forwards >= _MUCH * sum(phases.values()):
            found[frame] = acting / forwards
    return found


def _update(rows: Sequence[SampledStack], spent: Spent) -> str | None:
    """Return the function of an update: the innermost with most of backward and optimizer; None if
    environments are stepped, or actions chosen, below it, too."""
    sums: defaultdict[str, float] = defaultdict(float)
    for one in rows:
        sums[one.phase] += one.seconds
    within = [
        frame
        for frame, phases in spent.items()
        if all(phases.get(phase, 0.0) >= _MOST * sums[phase] > 0 for phase in _UPDATES)
    ]
    if not within:
        return None
    found = min(within, key=lambda frame: sum(spent[frame].values()))
    # A network that is asked for targets acts as well: environments tell more, if their steps are known.
    collecting = ("env",) if sums["env"] else _ACTS
    collects = sum(spent[found].get(phase, 0.0) for phase in collecting)
    return found if collects < _HALF * sum(sums[phase] for phase in collecting) else None


def _any(phases: Mapping[str, float], wanted: Sequence[str]) -> bool:
    """Tell whether more of the time is in these phases than samples at the edges put there."""
    whole = sum(phases.values())
    return sum(phases.get(phase, 0.0) for phase in wanted) > _HARDLY * whole


_EVERYWHERE = 0.95
"""Of the time: the innermost function that is in so much of it is the one that loops over steps."""


def host_share(stacks: Stacks) -> float | None:
    """Return the share of the watched time (0 to 1) in which functions that the loop over steps calls run on
    a CPU and are in none of the compiler's files. None if no such file shows, or phases of PyTorch do.

    A compiled step is called by the loop itself, and while the device works the thread waits.
    """
    rows = seen(stacks)
    compiled = any(in_compiler(frame) for one in rows for frame in one.frames)
    if not compiled or stacks.seconds <= 0 or any(one.phase != "other" for one in rows):
        return None
    depth = _loop(rows)
    called = [
        one
        for one in rows
        if one.own is not None and one.own > depth and not any(map(in_compiler, one.frames))
    ]
    return min(1.0, sum(one.within("running") for one in called) / stacks.seconds)


def _loop(rows: tuple[SampledStack, ...]) -> int:
    """Return the depth of the innermost call that nearly all stacks have in common."""
    total = sum(one.seconds for one in rows)
    seconds: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for one in rows:
        for depth in range(len(one.frames)):
            seconds[one.frames[: depth + 1]] += one.seconds
    return max((len(path) for path, s in seconds.items() if s >= _EVERYWHERE * total), default=0) - 1


_ENOUGH = 0.15
"""Of the watched time: a piece of a framework's that is smaller says less than the function around it."""


class Hot(NamedTuple):
    """A line of the program, `train.py:87`, and its shares (0 to 1) of the watched time: of all stacks in
    which it is the innermost of the program's lines, and of those the part that ran on a CPU. Lines of one
    function that neither trains nor calls what does are one, by that with the most, where a training shows.

    `phase` is the one in which most of it falls, `code` the line's source, "" if that is not known. For
    stacks with no line of the program's it is the innermost file, for a function as a whole its file.
    """

    site: str
    function: str
    share: float
    running_share: float
    phase: str
    code: str

    @property
    def state(self) -> str:
        """`runs` or `waits`, whichever takes more of it."""
        return "runs" if self.running_share >= self.share / 2 else "waits"


def hottest(stacks: Stacks) -> list[Hot]:
    """Return the lines with the most time first."""
    found: dict[tuple[str, int], _HotLine] = {}
    rows = seen(stacks)
    around = _Around(rows, _ENOUGH * stacks.seconds)
    for one in rows:
        if one.frames:
            key = around.place(one)
            line = found.setdefault(key, _HotLine((one.source or "") if key[1] else ""))
            line.add(one.seconds, one.within("running"), {one.phase: one.seconds})
    trains = frozenset(frame for one in rows if one.phase in _UPDATES for frame in one.frames)
    if trains:
        found = _by_function(found, trains)
    total = stacks.seconds or math.inf
    return [
        Hot(
            site=_site(frame, number),
            function=frame.rpartition(":")[2],
            share=min(1.0, line.seconds / total),
            running_share=min(1.0, line.cpu_s / total),
            phase=max(line.phases, key=lambda name: line.phases[name]),
            code=line.code,
        )
        for (frame, number), line in sorted(found.items(), key=lambda item: -item[1].seconds)
    ]


def _by_function(
    found: dict[tuple[str, int], _HotLine], trains: frozenset[str]
) -> dict[tuple[str, int], _HotLine]:
    """Return the lines of each function that does not train as one."""
    kept: dict[tuple[str, int], _HotLine] = {}
    places: dict[str, tuple[str, int]] = {}
    for key, line in sorted(found.items(), key=lambda item: -item[1].seconds):
        place = key if key[0] in trains else places.setdefault(key[0], key)
        if place in kept:
            kept[place].add(line.seconds, line.cpu_s, line.phases)
        else:
            kept[place] = line
    return kept


class _Around:
    """What stands for a stack: its line, its innermost file, or a function of the framework around it."""

    def __init__(self, rows: Sequence[SampledStack], enough: float) -> None:
        self._enough = enough
        self._packaged = {one.frames[one.own] for one in rows if one.packaged and one.own is not None}
        self._lines: defaultdict[tuple[str, int], float] = defaultdict(float)
        self._functions: defaultdict[str, float] = defaultdict(float)
        for one in rows:
            if one.packaged and one.own is not None:
                self._lines[one.frames[one.own], one.line] += one.seconds
                for frame in self._packaged.intersection(one.frames):
                    self._functions[frame] += one.seconds

    def place(self, one: SampledStack) -> tuple[str, int]:
        if one.own is None:
            return one.frames[-1], 0
        line = (one.frames[one.own], one.line)
        if not one.packaged or self._lines[line] >= self._enough:
            return line
        above = (frame for frame in reversed(one.frames[: one.own + 1]) if frame in self._packaged)
        return next(((frame, 0) for frame in above if self._functions[frame] >= self._enough), line)


class _HotLine:
    def __init__(self, code: str) -> None:
        self.code = code
        self.seconds = self.cpu_s = 0.0
        self.phases: defaultdict[str, float] = defaultdict(float)

    def add(self, seconds: float, cpu_s: float, phases: Mapping[str, float]) -> None:
        self.seconds += seconds
        self.cpu_s += cpu_s
        for phase, spent in phases.items():
            self.phases[phase] += spent


def _site(frame: str, line: int) -> str:
    file = frame.rpartition(":")[0].rpartition("/")[2]
    return f"{file}:{line}" if line else file
