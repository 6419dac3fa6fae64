"""Root causes and training frameworks as the catalogue's files say them; their values and versions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from pydantic import ConfigDict, Field

from gpudebug.core.change import intervention as interventions
from gpudebug.core.command.synonyms import Synonyms, merged
from gpudebug.core.lazy import regex
from gpudebug.core.records.parts import Record

_NUMBERS = regex(r"v?(\d{1,9}(?:\.\d{1,9}){0,5})(?![\d])")
_BOUND = regex(r"(>=|<=|==|!=|>|<)\s*(\d{1,9}(?:\.\d{1,9}){0,5})")


class Bound(NamedTuple):
    """One bound of a range, such as `>=` and `0.4`."""

    sign: str
    version: str

    def holds(self, version: str) -> bool:
        order = compare(version, self.version)
        return {
            ">=": order >= 0,
            "<=": order <= 0,
            "==": order == 0,
            "!=": order != 0,
            ">": order > 0,
            "<": order < 0,
        }[self.sign]


def numbers(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a version; None if it begins with none."""
    match = _NUMBERS.match(version.strip())
    return tuple(int(part) for part in match[1].split(".")) if match else None


def compare(a: str, b: str) -> int:
    """-1, 0 or 1 as `a` is before, the same as, or after `b`; what is no version is before every version."""
    pairs = zip_longest(numbers(a) or (), numbers(b) or (), fillvalue=0)
    return next((1 if x > y else -1 for x, y in pairs if x != y), 0)


def bounds(text: str) -> tuple[Bound, ...]:
    """Return the bounds of a range such as `>=0.4,<0.6`. ValueError if it is not a range."""
    matches = [_BOUND.fullmatch(part.strip()) for part in text.split(",")]
    if not all(matches):
        raise ValueError(f"expected a range of versions, found {text!r}")
    return tuple(Bound(match[1], match[2]) for match in matches if match)


def within(version: str, range_: str) -> bool:
    return all(bound.holds(version) for bound in bounds(range_))


def reaches_below(range_: str, version: str) -> bool:
    """Tell whether a range holds versions before this one."""
    lower = [b for b in bounds(range_) if b.sign in (">=", ">", "==")]
    return all(compare(b.version, version) < 0 for b in lower)


def reaches_from(range_: str, version: str) -> bool:
    """Tell whether a range holds this version or later ones."""
    upper = [b for b in bounds(range_) if b.sign in ("<", "<=", "==")]
    return all(compare(b.version, version) >= (1 if b.sign == "<" else 0) for b in upper)


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

    `signal` names one of `core.catalogue.signals`. `stack` is a regular expression, searched without regard
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

    `whole` says that the figure is what the functions take that the matching lines are in, with all that they
    call: what a line makes is worked on in the lines behind it. `within` names a signal that the figure is a
    share of and is multiplied by: what loader workers spend their time on counts within `data_wait_share`.
    Unknown if that signal is.
    """

    times: float = 1.0
    within: str | None = None
    whole: bool = False


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
    instructions for writing the change. `versions` says of which versions it holds (`>=0.4`), `needs` names
    modules of which the code that takes the time has to call one."""

    set: dict[str, str | float | bool] = {}
    unset: tuple[str, ...] = ()
    env: dict[str, str] = {}
    code: str | None = None
    versions: str | None = None
    needs: tuple[str, ...] = ()
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
    for it although no CPU is used, so that it shows in utilisation without a GPU, too. `asks_for` is what its
    fix has more of. `interventions` are
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
    asks_for: str | None = None
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


def written(value: str | float | bool) -> str:
    """`true`, `4`, `0.5`: a value as written on a command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(float(value))
    return str(value)


def words_of(intervention: CatalogueIntervention) -> dict[str, Any]:
    """Return the arguments of `core.change.intervention.from_options` for a mechanical intervention."""
    return {
        "set": [f"{name}={written(value)}" for name, value in intervention.set.items()],
        "unset": list(intervention.unset),
        "env": [f"{name}={value}" for name, value in intervention.env.items()],
        "compound": len(intervention.set) + len(intervention.unset) + len(intervention.env) > 1,
    }


def text_of(intervention: CatalogueIntervention) -> str | None:
    """Return a mechanical intervention in `propose`'s syntax, None if it needs code."""
    if not (intervention.set or intervention.unset or intervention.env):
        return None
    return interventions.from_options(**words_of(intervention)).text


GENERAL = ("env", "any")
"""Keys of a cause's `interventions` that name no framework."""


class Flag(Strict):
    """In which versions an option exists: from `since` on, before `until`. `formerly` is the name that it
    had before `since`."""

    since: str | None = None
    until: str | None = None
    formerly: str | None = None


class LogFlag(Strict):
    """The option that sets how many steps lie between two lines of the log, and its default."""

    flag: str
    default: int


class BatchFlag(Strict):
    """The option that sets how many samples a device takes in a step, and its default if it has one."""

    flag: str
    default: int | None = None


class FrameworkMarks(Strict):
    """Options that identify a framework if at least `needs` of them are in the command."""

    flags: tuple[str, ...]
    needs: int = 2


class Framework(Strict):
    """One framework; options are without leading dashes.

    `programs` match a word of the command by its last path part, or by as many as they have themselves, with
    `*` for any text (`cleanrl/*.py`). `imports` are dotted names of which one is imported or used by its
    programs (`transformers.Trainer`); a `weak` framework counts by them where no other does, as what others
    are built upon. With one of `parses` among them the framework itself reads the command line, else its
    options are arguments of `configured_by` in the program's code; `callees` names another call for some.
    `variables` are numbers that it takes from the environment, with their defaults.
    `base` names the framework that it is built upon and whose options it takes, too: what tests a cause
    there does so here, and what this file does not say is as in that one. In which versions the base has an
    option does not count here: its own package's version is another one.
    `kind` is the kind of workload that it trains, if there is one; `unit` what its log counts as work;
    `checked` which of its versions this file was read from.
    `package` is the one whose version counts, `packages` are other names that it has. `output` must be new
    for each run, or what the variable `results` names; `steps` sets the length of the run; `locked` change
    what is learnt, so that no hypothesis should touch them. `quiet` turns logging, evaluation and saving
    off, `batch` sets the size of a batch: the layer tests use them. `flags` are options that not every
    version has, `bare` those that stand without a value, `arguments` those that are set in code or a file,
    never in the command; dotted ones stand as words behind the option that `through` names, if there is one
    (`--cfg-options a.b=1`). `short` is another name of an option: `n` of `n-timesteps`; `every` are the
    defaults of those that say how often the training evaluates, saves and logs.
    """

    name: str
    title: str
    base: str | None = None
    kind: Literal["vision", "llm", "rl", "inference"] | None = None
    unit: Literal["environment steps", "tokens", "samples", "optimizer steps", "epochs"] | None = None
    package: str | None = None
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    marks: FrameworkMarks = FrameworkMarks(flags=())
    imports: tuple[str, ...] = ()
    weak: bool = False
    parses: tuple[str, ...] = ()
    configured_by: tuple[str, ...] = ()
    callees: dict[str, str] = Field(default_factory=dict)
    output: tuple[str, ...] = ()
    results: str | None = None
    variables: dict[str, int] = Field(default_factory=dict)
    log: LogFlag | None = None
    steps: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    quiet: CatalogueIntervention = CatalogueIntervention()
    batch: BatchFlag | None = None
    flags: dict[str, Flag] = Field(default_factory=dict)
    bare: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    through: str | None = None
    checked: str | None = None
    short: dict[str, str] = Field(default_factory=dict)
    every: dict[str, float] = Field(default_factory=dict)
    sources: tuple[str, ...] = ()

    @property
    def of_training(self) -> tuple[str, ...]:
        """Its options that set the training's own batch and length, and others that change what is learnt."""
        return (*self.locked, *self.steps, *((self.batch.flag,) if self.batch is not None else ()))

    @property
    def synonyms(self) -> Synonyms:
        """Its options with several names, with their dashes."""
        return merged((f"--{name}", f"-{short}") for name, short in self.short.items())


_INHERITED = ("log", "output", "steps", "locked", "quiet", "batch", "every", "bare", "short", "flags")
"""What a framework says of its options, and has from its base if its own file does not say it."""


def derived(found: Iterable[Framework]) -> tuple[Framework, ...]:
    """Return the frameworks with what each has from its base. KeyError for a base that is none of them."""
    by_name = {framework.name: framework for framework in found}
    return tuple(
        framework if framework.base is None else _upon(framework, by_name[framework.base])
        for framework in by_name.values()
    )


def _upon(framework: Framework, base: Framework) -> Framework:
    inherited: dict[str, Any] = {
        name: getattr(base, name) for name in _INHERITED if name not in framework.model_fields_set
    }
    # An older name counts if the command has it: every version is after 0.
    former = {n: Flag(since="0", formerly=flag.formerly) for n, flag in base.flags.items() if flag.formerly}
    return framework.model_copy(update={**inherited, "flags": {**former, **framework.flags}})
