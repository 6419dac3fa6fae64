"""A training framework as the files of hypotheses/frameworks say it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from gpudebug.core.catalogue.model import CatalogueIntervention, Strict
from gpudebug.core.command.synonyms import Synonyms, merged

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
    `base` names the framework that it is built upon and whose options it takes, too: what tests a cause
    there does so here, and what this file does not say is as in that one. In which versions the base has an
    option does not count here: its own package's version is another one.
    `kind` is the kind of workload that it trains, if there is one; `unit` what its log counts as work;
    `checked` which of its versions this file was read from.
    `package` is the one whose version counts, `packages` are other names that it has. `output` must be new
    for each run; `steps` sets the length of the run; `locked` change what is learnt, so that no hypothesis
    should touch them. `quiet` turns logging, evaluation and saving off, `batch` sets the size of a batch: the
    layer tests use them. `flags` are options that not every version has, `bare` those that stand without a
    value, `arguments` those that are set in code or a file, never in the command; dotted ones stand as
    words behind the option that `through` names, if there is one (`--cfg-options a.b=1`). `short` is another
    name of an option: `n` of `n-timesteps`; `every` are the defaults of those that say how often the training
    evaluates, saves and logs.
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
