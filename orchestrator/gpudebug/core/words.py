"""The words that everything shares: outcomes, trends, statuses, gate results.

Apart from the records so that reading a progress file does not pay for pydantic.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Word(str, Enum):
    """An enumeration whose members read as their value in text and in JSON."""

    def __str__(self) -> str:
        return str(self.value)


class Outcome(Word):
    """How a run ended. ENDED_BY_PLAN: by gpudebug, once its planned window was full."""

    COMPLETED = "COMPLETED"
    CRASHED = "CRASHED"
    TIMED_OUT = "TIMED_OUT"
    STALLED = "STALLED"
    OUTPUT_LIMIT = "OUTPUT_LIMIT"
    INTERRUPTED = "INTERRUPTED"
    DEVICE_LOST = "DEVICE_LOST"
    SAMPLER_LOST = "SAMPLER_LOST"
    ENDED_BY_PLAN = "ENDED_BY_PLAN"


AS_PLANNED = frozenset({Outcome.COMPLETED, Outcome.ENDED_BY_PLAN})
"""How a run ends that did all it was meant to do: by itself with status 0, or at the end of its window."""


LOST_TREE = "the training left something else in place of its worktree"
"""How the reason of a run begins whose code cannot be looked at again."""
OWN_CODE = "the training changed the code that it ran"
"""How the reason of a run begins that wrote its own tracked files: which code it measured is unknown."""


def ended_as_planned(outcome: object) -> bool:
    """Tell whether a record's outcome, which may be anything, is one of `AS_PLANNED`."""
    return isinstance(outcome, str) and outcome in AS_PLANNED


INFRASTRUCTURE = frozenset({Outcome.INTERRUPTED, Outcome.DEVICE_LOST, Outcome.SAMPLER_LOST})


class Trend(Word):
    """Loss trend of a run, as defined for the recorded training logs."""

    CONVERGING = "CONVERGING"
    PLATEAU = "PLATEAU"
    DIVERGING = "DIVERGING"
    NAN = "NAN"
    UNKNOWN = "UNKNOWN"


class Status(Word):
    """A hypothesis's place in the progress file: UNTESTED, TESTING, or its verdict."""

    UNTESTED = "UNTESTED"
    TESTING = "TESTING"
    VALIDATED = "VALIDATED"
    REJECTED = "REJECTED"
    INCONCLUSIVE = "INCONCLUSIVE"
    INVALID = "INVALID"


VERDICTS = frozenset({Status.VALIDATED, Status.REJECTED, Status.INCONCLUSIVE, Status.INVALID})


class Result(Word):
    """What one gate says. Unknown is never a pass."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


class DeviceKind(NamedTuple):
    """What a kind of device can do; `name` is its word in run.json and in the sampler's order.

    `shares_cores`: others compute on what it measures; `is_recording`: it plays back what a run showed.
    """

    name: str
    is_gpu: bool = False
    shares_cores: bool = False
    is_recording: bool = False


GPU = DeviceKind("nvml", is_gpu=True)
CPU = DeviceKind("cpu", shares_cores=True)
RECORDING = DeviceKind("replay", is_recording=True)
_KINDS = {kind.name: kind for kind in (GPU, CPU, RECORDING)}


def device_kind(name: object) -> DeviceKind:
    """Return the kind of device that a word names; an unknown one can do nothing."""
    return _KINDS.get(str(name), DeviceKind(str(name)))


STAND_IN = "CPU"
"""The UUID of the CPU where it stands in for a GPU, also in a recording."""


def is_stand_in(uuid: object) -> bool:
    return uuid == STAND_IN


LOOKS = frozenset({"sample", "why"})
"""Roles of runs that a person looks at: they are no part of what a campaign does."""

SignalValue = float | bool | str
"""What a signal of the catalogue can be: a figure, a yes or no, or a word; a missing one is None."""


class WorkName(Word):
    """What a program processes: the units that throughput may count."""

    ENVIRONMENT_STEPS = "environment steps"
    TOKENS = "tokens"
    SAMPLES = "samples"
    OPTIMIZER_STEPS = "optimizer steps"
    EPOCHS = "epochs"


LOG = "log:"
"""Before the name of the user's own pattern of a log."""
PHASE = "phase:"
"""The same of the expression of a phase."""
FLIPS = "the run changes between "
"""Begins the reason why what a log names are no phases: it changes within the steps."""


def counted(count: int, noun: str, many: str | None = None) -> str:
    """`1 run`, `3 runs`; `many` is a plural that is not the noun with an s."""
    return f"{count} {noun if count == 1 else many or f'{noun}s'}"


def from_to(option: str, first: int, last: int) -> str:
    """Return the values of an option that a person may choose: `--run 33 to --run 40`, of one `--run 33`."""
    return f"{option} {first}" + (f" to {option} {last}" if last > first else "")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list in one text, as tables of them are written here."""
    return frozenset(text.split())


def short(name: str, width: int) -> str:
    """A name on one line, its middle left out if it is longer: what tells names apart is at their ends."""
    plain = "".join(c if c.isprintable() else "?" for c in name)
    if not plain:
        return "(no name)"
    if len(plain) <= width:
        return plain
    tail = (width - 1) // 2
    return f"{plain[: width - 1 - tail]}…{plain[-tail:]}"
