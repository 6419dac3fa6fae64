"""A root cause as the catalogue's files say it."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict

from gpudebug.core.records.base import Record

GROUPS = (
    *("data-loading", "preprocessing", "transfer", "sync", "launch", "python", "stalls", "rollout"),
    *("inference", "distributed", "memory", "hardware", "setup"),
)
KINDS = ("vision", "llm", "rl", "inference", "other")
"""Kinds of workloads that have prior odds."""


class Strict(Record):
    """A record of a file that a person wrote: a key that is not known is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Term(Strict):
    """Something that evidence has a figure for; exactly one of the first six says what.

    `signal` names one of `core.diagnosis.signals`. `stack` is a regular expression, searched without regard
    to case in each frame (`folder/file.py:function`) of the training thread's stacks, or `workers`' with
    `of: workers`, and `code` one that is searched in the source of the line that is executed: their figure
    is the share of the watched time that matching stacks take, in `phase` and `state` if these are given.
    With both, a stack counts that matches either; none counts of which a frame or the line's source matches
    `unless`: a function's name says less than what is done in it. `section` is searched in names of sections:
    the largest share of the profiled time. `flag` matches the whole name, without dashes and with `_` for
    `-`, of an option of the command: its value, true for a bare one. `printed` matches a name of the
    configuration that the program printed: its value.
    """

    signal: str | None = None
    stack: str | None = None
    code: str | None = None
    section: str | None = None
    flag: str | None = None
    printed: str | None = None
    phase: Literal["data", "forward", "eval", "act", "backward", "optimizer", "env", "other"] | None = None
    state: Literal["running", "waiting"] | None = None
    unless: str | None = None
    of: Literal["training", "workers"] = "training"


class Condition(Term):
    """Whether a figure is `above` or `below` a number, `equals` a value, or `matches` an expression.

    Exactly one of the four, or `above` and `below` for a range. Unknown if the figure is not known.
    """

    above: float | None = None
    below: float | None = None
    equals: float | bool | str | None = None
    matches: str | None = None


class Sign(Condition):
    """A condition that multiplies a cause's odds by `weight` if it is true, by `otherwise` if not."""

    weight: float
    otherwise: float = 1.0


class Share(Term):
    """A share of the training's time; `times` scales it.

    `within` names a signal that the figure is a share of and is multiplied by: what loader workers spend
    their time on counts within `data_wait_share`. Unknown if that signal is.
    """

    times: float = 1.0
    within: str | None = None


class Knob(Strict):
    """A flag or variable that a program of one's own may have.

    `names` are regular expressions for its whole name, without dashes and with `_` for `-`. `value` is what
    it is set to; `factor` multiplies the current number instead. `direction` is where a change of
    it has to go to test this cause: `up`, `down`, `on`, `off`, `to` (to `value`) or `any`. One of `side_work`
    sets how often the training evaluates, saves or logs: a proposal makes that rarer, so that some remain in
    the run, and never switches it off.
    """

    names: tuple[str, ...]
    direction: Literal["up", "down", "on", "off", "to", "any"]
    value: str | float | bool | None = None
    factor: float | None = None
    side_work: bool = False


class CatalogueIntervention(Strict):
    """What tests the cause in one framework: the flags to `set` or `unset`, variables in `env`, or `code`,
    instructions for writing the change. `versions` says of which versions it holds (`>=0.4`)."""

    set: dict[str, str | float | bool] = {}
    unset: tuple[str, ...] = ()
    env: dict[str, str] = {}
    code: str | None = None
    versions: str | None = None
    note: str | None = None


class Own(Strict):
    """The figure that must move if the intervention took effect, and where to."""

    signal: str
    direction: Literal["falls", "rises", "is_zero"]


class Cause(Strict):
    """One root cause.

    `group` is the folder's if the file does not say. `prior` are odds by kind of workload, `default` for
    the others. A cause is ruled out if one of `requires` is known to be false. `exposed` is the share of
    the time that only this cause explains: the largest of its figures. `redundant` says that the model never
    reads what is loaded in excess, so that less of it is no less work. `waits` says that the device idles
    for it although no CPU is used, so that it shows in utilisation without a GPU, too. `interventions` are
    by framework (`lerobot`, `hf_trainer`, `accelerate`, `lightning`, `torchtune`, `sb3`, `env`, `any`, …);
    `knobs` are those of other programs; `words` are expressions that a hypothesis which tests it has in its
    title or description. `layer` names the layer test that bounds it, `gate` says that it needs no run.
    """

    id: str
    title: str
    group: str | None = None
    explanation: str
    prior: dict[str, float] = {}
    waits: bool = False
    gate: bool = False
    redundant: bool = False
    requires: tuple[Condition, ...] = ()
    signature: tuple[Sign, ...] = ()
    exposed: tuple[Share, ...] = ()
    interventions: dict[str, CatalogueIntervention] = {}
    knobs: tuple[Knob, ...] = ()
    words: tuple[str, ...] = ()
    fix: str
    own_signal: tuple[Own, ...] = ()
    hollow_if: str | None = None
    layer: Literal["cached_batch", "quiet", "double_batch"] | None = None
    sources: tuple[str, ...] = ()
