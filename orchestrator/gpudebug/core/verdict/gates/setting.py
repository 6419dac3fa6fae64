"""What a trial is judged by and what it changed, beside the evidence of its runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.patches.hunks import Patch
from gpudebug.core.command import cadence, command_line
from gpudebug.core.command.synonyms import Synonyms, long_name
from gpudebug.core.lazy import regex
from gpudebug.core.records import LearningUnit, WorkUnit
from gpudebug.core.statistics.metrics import GPU_UTIL
from gpudebug.core.verdict.took_effect import ChangeEffect

_IN_CODE = {
    cadence.EVALUATION: regex(r"eval|valid|(?<![a-z])(?:val|test)(?![a-z])", re.I),
    cadence.CHECKPOINT: regex(r"sav(?:e|ing)|checkpoint|ckpt|snapshot|state_dict|dump", re.I),
    cadence.LOG: regex(r"log|print|report|wandb|tensorboard|summary|stdout", re.I),
}


@dataclass(frozen=True, slots=True)
class SideWork:
    """By kind how many of it each run has over its planned length, by its settings; a kind that is missing is
    not known. `touched` are the kinds whose settings or code the change holds, `in_code` those of the code:
    of these the settings prove nothing."""

    before: tuple[Mapping[str, int], ...] = ()
    after: tuple[Mapping[str, int], ...] = ()
    touched: frozenset[str] = frozenset()
    in_code: frozenset[str] = frozenset()

    def of_runs(self, before: Sequence[bool], after: Sequence[bool]) -> SideWork:
        """Return the same of the runs that are kept."""
        old = tuple(plan for plan, stays in zip(self.before, before, strict=False) if stays)
        new = tuple(plan for plan, stays in zip(self.after, after, strict=False) if stays)
        return SideWork(old, new, self.touched, self.in_code)


def planned(
    argv: Sequence[str], printed: Mapping[str, str], synonyms: Synonyms = (), total_steps: float | None = None
) -> dict[str, int]:
    """How many a run has by its command and by the configuration that it printed, whose last word counts."""
    options = command_line.program_options(argv)
    flags = {long_name(o.name, synonyms): "" if o.value is None else o.value for o in options}
    settings = {**cadence.short(flags), **cadence.short(printed)}
    counts = {kind: cadence.planned(settings, kind, total_steps) for kind in cadence.KINDS}
    return {kind: count for kind, count in counts.items() if count is not None}


def touched(change: Intervention | None, synonyms: Synonyms = ()) -> frozenset[str]:
    """Return the kinds that a change's flags and variables are about, by name."""
    names = [long_name(name, synonyms) for name in change.names] if change is not None else []
    kinds = {cadence.kind_of(name) for name in names}
    kinds |= {kind for kind, words in _IN_CODE.items() if any(map(words.search, names))}
    return frozenset(kind for kind in kinds if kind is not None)


def in_code(patch: Patch | None) -> frozenset[str]:
    """Return the kinds that the code around a patch's changes is about."""
    files = patch.files if patch is not None else ()
    lines = [line.decode("utf-8", "replace") for f in files for hunk in f.hunks for line in hunk.body]
    return frozenset(kind for kind, words in _IN_CODE.items() if any(map(words.search, lines)))


@dataclass(frozen=True, slots=True)
class Criteria:
    """The thresholds, fixed before the run: `success` and `failure` in pp for utilisation, a ratio for every
    other `metric`. `max_runs` is how many runs of the change a trial may make. `also` names figures that must
    not get worse. `devices` is which of several utilisation is judged by: the `least` busy, or the time they
    are `working`; None is their mean."""

    success: float
    failure: float
    loss: str
    throughput: str
    max_runs: int
    metric: str = GPU_UTIL
    direction: str = "higher"
    also: Mapping[str, Mapping[str, Any]] | None = None
    devices: str | None = None


class Order(NamedTuple):
    """The places of the runs of baseline and trial among all runs of the bench, and that of the next one."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    next: int


@dataclass(frozen=True, slots=True)
class TrialSetting:
    """What a trial changed besides its figures.

    `locked` names locked knobs that it touched, `changes` counts its single changes, `differences` names
    what differs in the surroundings of baseline and trial, `other_work` says that this is a run which
    resumed, so that another baseline would not mend it, `window_advice` the flag and value that would make
    the window long enough. `order` is where the runs stand; None: the baseline's first, then the trial's.
    `more` is how often the trial was continued after it had ended open. `elsewhere` names packages that the
    program imports from another checkout, `effect` is what the program shows of the change (None: nothing),
    `other_steps` says why a step of the trial is not one of the baseline. `batch` says that the change names
    a batch's size if no flag shows it.

    `knob` is a flag, variable or setting of the change that may set how much a step takes, `code` whether
    the change is a patch or code, `settings_alone` that it changes such settings in their files and nothing
    else, `touches` what of it touches the printing or the step loop, `beyond` what a run printed beyond its
    command's plan. `confirmed` is why a person takes counts that do not fit for explained. `work` is the
    campaign's unit of work; None compares steps as the logs count them. `learning` is what learning is
    judged by; None for the loss that the logs print. `planned_steps` are those of the baseline's command;
    None is not known. `redundant` is the cause that the hypothesis names, if it is about input that the
    model never reads; `prints` says that the patch touches the loss or the printing. `side_work` is what the
    settings say of evaluations, checkpoints and log lines. `of_ranks` is what the change may set of ranks
    (`core/verdict/ranks.py`). `shared` names other campaigns that measured on the same cores, and beside
    which runs.
    """

    locked: tuple[str, ...] = ()
    changes: int = 1
    compound: bool = False
    differences: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    of_ranks: frozenset[str] = frozenset()
    other_work: bool = False
    window_advice: str | None = None
    order: Order | None = None
    more: int = 0
    elsewhere: tuple[str, ...] = ()
    effect: ChangeEffect | None = None
    other_steps: str | None = None
    batch: bool = False
    knob: str | None = None
    code: bool = False
    settings_alone: bool = False
    touches: str | None = None
    beyond: str | None = None
    confirmed: str | None = None
    redundant: str | None = None
    prints: bool = False
    planned_steps: float | None = None
    work: WorkUnit | None = None
    side_work: SideWork = field(default_factory=SideWork)
    learning: LearningUnit | None = None

    @property
    def explained(self) -> bool:
        """Whether a step may take more or less than in the baseline; code explains nothing."""
        plain = not self.code or self.settings_alone
        return self.knob is not None and plain
