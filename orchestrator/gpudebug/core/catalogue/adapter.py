"""A training framework as the files of hypotheses/frameworks say it."""

from __future__ import annotations

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

    `programs` match a word of the command by its last path part. `imports` are dotted names of which one is
    imported or used by its programs (`transformers.Trainer`); a `weak` framework counts by them where no
    other does, as what others are built upon. With one of `parses` among them the framework itself reads
    the command line, else its options are arguments of `configured_by` in the program's code.
    `package` is the one whose version counts, `packages` are other names that it has. `output` must be new
    for each run; `steps` sets the length of the run; `locked` change what is learnt, so that no hypothesis
    should touch them. `quiet` turns logging, evaluation and saving off, `batch` sets the size of a batch: the
    layer tests use them. `flags` are options that not every version has, `bare` those that stand without a
    value, `arguments` those that are set in code or a file, never in the command; `short` is another name of
    an option: `n` of `n-timesteps`; `every` are the defaults of those that say how often the training
    evaluates, saves and logs.
    """

    name: str
    title: str
    package: str | None = None
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    marks: FrameworkMarks = FrameworkMarks(flags=())
    imports: tuple[str, ...] = ()
    weak: bool = False
    parses: tuple[str, ...] = ()
    configured_by: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    log: LogFlag | None = None
    steps: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    quiet: CatalogueIntervention = CatalogueIntervention()
    batch: BatchFlag | None = None
    flags: dict[str, Flag] = Field(default_factory=dict)
    bare: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    short: dict[str, str] = Field(default_factory=dict)
    every: dict[str, float] = Field(default_factory=dict)
    sources: tuple[str, ...] = ()

    @property
    def synonyms(self) -> Synonyms:
        """Its options with several names, with their dashes."""
        return merged((f"--{name}", f"-{short}") for name, short in self.short.items())
