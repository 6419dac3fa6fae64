"""One campaign's host: what surrounds its runs, and what each of them shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tests.bench.verdicts.runs import Library, Run
from tests.bench.verdicts.traces import BASELINE, HIGHEST, LOWEST, Floats, Program

from gpudebug.core.statistics.level import relative_variance

STEPS = Program()
CORES = 8
_GAP_S = 2.0
"""Between two runs."""
_LONGEST = 1000
_NEIGHBOUR, _OFTEN = 8.0, 0.3
_OUTLIER, _OUTLIERS = 15.0, 0.05
_BUSY_S, _OF_S = 40.0, 90.0
_SHARE_SD = 2.0


@dataclass(frozen=True)
class Scenario:
    """Surroundings; levels in pp, times in runs. Runs of one command differ by `sd`.

    `drift` is gained with every run. A `step` comes at one run of the campaign, `inside` at one of the first
    three of a trial. A neighbour takes 8 pp for `stays` runs on average, in three of ten; one with `periodic`
    works for 40 s of each 90 and takes so many. `recorded` is whether runs record what others took of them.
    With `outliers` one run in twenty is 15 low. A trial leaves `poison` to the runs of the baseline after it.
    """

    program: Program = STEPS
    sd: float = 3.5
    drift: float = 0.0
    step: float = 0.0
    inside: float = 0.0
    stays: float = 0.0
    periodic: float = 0.0
    recorded: bool = False
    outliers: bool = False
    poison: float = 0.0

    @property
    def special(self) -> bool:
        """Whether one trial of the campaign is what the scenario is about."""
        return bool(self.inside or self.poison)


@dataclass(frozen=True, slots=True)
class Made:
    """One run of a campaign; `others` is the percent of its time that others took, None if not recorded."""

    start: float
    seconds: float
    changed: bool
    value: float
    others: float | None
    variance: float
    run: Run


class Host:
    """A machine and a program; `run` makes the campaign's next run."""

    def __init__(self, scenario: Scenario, library: Library, rng: np.random.Generator) -> None:
        self.scenario, self.library, self.rng = scenario, library, rng
        self.now = 0.0
        self._made = 0
        self._phase = rng.uniform(0, _OF_S)
        self._step = int(rng.integers(2, 28))
        self._there = _visits(scenario.stays, rng) if scenario.stays else np.zeros(_LONGEST)
        self._jump = _LONGEST
        self._spoils = self._poisoned = False

    def begin(self, *, special: bool) -> None:
        """A trial begins; the special one has the step inside, or leaves something behind."""
        self._jump = self._made + int(self.rng.integers(0, 3)) if special else _LONGEST
        self._spoils, self._poisoned = special, False

    def run(self, delta: float | None) -> Made:
        """The next run: of the baseline if `delta` is None."""
        s, rng, changed = self.scenario, self.rng, delta is not None
        level = BASELINE + (delta or 0.0) + self._moved(changed=changed) + s.sd * rng.standard_normal()
        self._poisoned |= changed and self._spoils
        level = min(max(level, LOWEST), HIGHEST)
        run = self.library.draw(level, rng)
        window = run.evidence.window
        assert window is not None
        value, taken = level + run.above, self._there[self._made]
        if s.periodic:
            taken = (self._busy(window.end_s) - self._busy(window.start_s)) / window.duration_s
            value = max(value - s.periodic * taken, 0.0)
        others = max(0.0, 100 / CORES * taken + _SHARE_SD * rng.standard_normal()) if s.recorded else None
        variance = relative_variance(window.duration_s)
        made = Made(self.now, run.seconds, changed, value, others, variance, run)
        self.now += run.seconds + _GAP_S + rng.uniform(-1, 1)
        self._made += 1
        return made

    def _moved(self, *, changed: bool) -> float:
        """What the host adds to the level of the next run."""
        s, at = self.scenario, self._made
        moved = s.drift * at + s.step * (at >= self._step) + s.inside * (at >= self._jump)
        moved -= _NEIGHBOUR * self._there[at]
        if s.outliers and self.rng.random() < _OUTLIERS:
            moved -= _OUTLIER
        return float(moved + s.poison * (self._poisoned and not changed))

    def _busy(self, seconds: float) -> float:
        """Seconds that the periodic neighbour has worked until so many after the start of this run."""
        periods, rest = divmod(self._phase + self.now + seconds, _OF_S)
        return periods * _BUSY_S + min(rest, _BUSY_S)


def _visits(stays: float, rng: np.random.Generator) -> Floats:
    """1 for each run beside which the neighbour is there."""
    there, found = rng.random() < _OFTEN, []
    for chance in rng.random(_LONGEST):
        found.append(float(there))
        there = chance >= 1 / stays if there else chance < _OFTEN / (1 - _OFTEN) / stays
    return np.array(found)
