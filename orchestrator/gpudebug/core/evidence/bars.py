"""Progress bars that count steps of an environment: their total, unit or label says so."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from gpudebug.core.trainlog.quantities import ENVIRONMENT_STEPS
from gpudebug.core.trainlog.reader import LogSummary
from gpudebug.core.trainlog.steps import CountedBar

SOURCE = "the progress bar"


class EnvironmentBar(NamedTuple):
    """A bar that counts steps of an environment. `leads`: it is what the log calls its steps.

    `unfit` says why it is not known to count those of all environments.
    """

    bar: CountedBar
    leads: bool
    unfit: str | None = None


def of_environment(
    log: LogSummary, plans: Collection[int], environments: int | None
) -> EnvironmentBar | None:
    """The bar that counts what `plans` plan: the steps of the environment by command and configuration.

    One that moves on by one while several environments step at once counts them together.
    """
    if log.framework == "skrl":
        return _of_all_at_once(log, environments)
    learns = bool(plans or environments or log.work.rewards)
    found = [bar for bar in log.bars if bar.total in plans or (bar.of_environment and learns)]
    if not found:
        return None
    bar = max(found, key=lambda one: (one.total in plans, one.times[-1][0]))
    unfit = None
    if environments and environments > 1 and bar.granularity % environments:
        unfit = (
            f"{SOURCE} of {bar.total} does not move on by multiples of {environments} environments: "
            f"it may not count the {ENVIRONMENT_STEPS} of all, and is not used"
        )
    return EnvironmentBar(bar, log.step_times == bar.times, unfit)


def _of_all_at_once(log: LogSummary, environments: int | None) -> EnvironmentBar | None:
    """skrl's bar: a timestep is one of all environments. How many these are the work is multiplied by."""
    bar = next((bar for bar in log.bars if bar.times == log.step_times), None)
    if bar is None or environments is not None:
        return None
    why = f"{SOURCE} counts timesteps of all environments at once, and nothing says how many these are"
    return EnvironmentBar(bar, leads=True, unfit=why)
