"""What a diagnosis reads and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpudebug.core.answers.diagnosis import Missing
from gpudebug.core.answers.sample import RanksFinding
from gpudebug.core.catalogue.model import Own
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.inside.stacks.shares import CodeLine
from gpudebug.core.records import SectionFigures, StacksEvidence
from gpudebug.core.words import VERDICTS, SignalValue, Status


@dataclass(frozen=True)
class DiagnosisFacts:
    """All that a diagnosis knows of one command's runs.

    `signals` by the names of `core.catalogue.signals`, absent if unknown; `flags` are the command's
    options and `printed` the configuration that the program printed, both by folded name (no dashes, `_` for
    `-`). `kind` is one of the catalogue's kinds of workload. `reference` are the facts of the workload that
    is known to be good. `runs` names where they come from, `run_s` the seconds that one run takes,
    `steps_per_s` the optimizer's, `absent` says of each missing source (`probe`, `log`, `device`, `stacks`,
    `steps` if there are too few, `layer_quiet` and its like for a layer test that was made) why it did not.
    `places` are the lines that signals of stacks are of. `ranks` is what the processes of a training on
    several devices show.
    """

    signals: Mapping[str, SignalValue] = field(default_factory=dict)
    stacks: StacksEvidence | None = None
    sections: tuple[SectionFigures, ...] = ()
    flags: Mapping[str, str | bool] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict)
    framework: str | None = None
    kind: str = "other"
    reference: DiagnosisFacts | None = None
    runs: tuple[str, ...] = ()
    run_s: float | None = None
    steps_per_s: float | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, CodeLine] = field(default_factory=dict)
    ranks: RanksFinding | None = None


@dataclass(frozen=True)
class Tested:
    """What a judged hypothesis says of the causes that it tested. `power` is the chance that its test would
    have shown the cause; `before_accepting` that a change was accepted since."""

    causes: tuple[str, ...]
    status: str
    power: float
    number: int
    before_accepting: bool = False


@dataclass(frozen=True)
class Ranked:
    """A root cause with what speaks for and against it, strongest first.

    `probability` is that fixing it is what helps, over all causes and none. `exposed` is the share of the
    time that only it explains, `line` the one to read (None: not known), `ceiling_pp` what utilisation can
    gain by its fix in percentage points, `expected_util` utilisation after it, `ceiling_ratio` and
    `ceiling_steps_per_s` throughput at best.
    """

    id: str
    title: str
    probability: float
    exposed: float | None = None
    ceiling_pp: float | None = None
    expected_util: float | None = None
    ceiling_ratio: float | None = None
    ceiling_steps_per_s: float | None = None
    speaks_for: tuple[str, ...] = ()
    speaks_against: tuple[str, ...] = ()
    line: CodeLine | None = None


@dataclass(frozen=True)
class Diagnosis:
    """`gates` are causes that need no run to be known; `abstains` says why no cause is named as likely,
    `no_help` of usual fixes that ask for more of something why they do not help here."""

    causes: tuple[Ranked, ...] = ()
    gates: tuple[Ranked, ...] = ()
    missing: tuple[Missing, ...] = ()
    abstains: str | None = None
    kind: str = "other"
    no_help: tuple[str, ...] = ()


WRITTEN, FLAG, UNMOVED = 0.9, 0.6, 0.3
"""Of code that was written for this cause; of a flag or variable; of a change that moved nothing of its
own. Judgements (knowledge of the field, not measured)."""
_MOVED = 0.1
_GONE = 0.05
"""A figure moved where it changed by a tenth of what it was; it is gone below a twentieth of it."""


def power_of(
    change: Intervention | None,
    own: Sequence[Own],
    before: Mapping[str, SignalValue],
    after: Mapping[str, SignalValue],
) -> float:
    """Of a trial of `change` (None: unknown) for a cause with these `own_signal`s.

    `before` and `after` are the signals of baseline and trial. Where none of those that are known on both
    sides moved as it should, the change hardly took effect; if none is known, nothing speaks against it.
    """
    shares = [moved(one, before.get(one.signal), after.get(one.signal)) for one in own]
    if False in shares and True not in shares:
        return UNMOVED
    return WRITTEN if change is not None and (change.patch or change.needs_code) else FLAG


def moved(own: Own, before: SignalValue | None, after: SignalValue | None) -> bool | None:
    """Tell whether a figure went where it should; None if it is not known or is a word."""
    if before is None or after is None or isinstance(before, str) or isinstance(after, str):
        return None
    then, now = float(before), float(after)
    if own.direction == "is_zero":
        return now <= _GONE * abs(then)
    change = (now - then) if own.direction == "rises" else (then - now)
    return change > 0 and change >= _MOVED * abs(then)


def judged(
    number: int, status: Status, powers: Mapping[str, float], *, before_accepting: bool
) -> tuple[Tested, ...]:
    """Return what a hypothesis with this status says of the causes that it tested, `powers` by their ids.

    Nothing if it has no verdict, or an INVALID one: that trial was none.
    """
    if status not in VERDICTS or status is Status.INVALID:
        return ()
    groups: dict[float, list[str]] = {}
    for cause, power in powers.items():
        groups.setdefault(power, []).append(cause)
    return tuple(
        Tested(tuple(causes), status.value, power, number, before_accepting)
        for power, causes in groups.items()
    )
