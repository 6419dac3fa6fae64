"""gpudebug.yaml as frozen records with their defaults. Seconds, bytes and percent."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import CoreSchema, core_schema

from gpudebug.core.change.permits import Allowed
from gpudebug.core.config import criteria as of_criteria
from gpudebug.core.config import runners, values
from gpudebug.core.config.values import DeviceChoice
from gpudebug.core.errors import ConfigError
from gpudebug.core.text import shell_words


class _FieldReader:
    """Lets one function of `values` be all of a field's validation; what it returns is serialised as it is.

    Pydantic's own PlainValidator builds the annotated type's schema, with a serialiser that refuses tuples.
    """

    def __init__(self, read: Callable[[Any], object]) -> None:
        self._read = read

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)


Text = Annotated[str, _FieldReader(values.text)]
Boolean = Annotated[bool, _FieldReader(values.boolean)]
Duration = Annotated[float, _FieldReader(values.duration)]
Count = Annotated[int, _FieldReader(values.count)]
Threshold = Annotated[float, _FieldReader(values.threshold)]
Words = Annotated[tuple[str, ...], _FieldReader(values.words)]
Paths = Annotated[tuple[str, ...], _FieldReader(values.paths)]

_PLACE = re.compile(r"\{(run|run_dir)\}")


class SettingsGroup(BaseModel):
    """A frozen group of settings that knows all of its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ServerSettings(SettingsGroup):
    """A server that the workload needs, started by gpudebug before each run and ended after it.

    `{port}` in its command, its variables and the workload's is replaced by `port`, a free one if that is
    None. It is `ready` if a line of its output matches (`log`), a path is answered (`http`), or else if it
    accepts connections, within `timeout` seconds.
    """

    command: Annotated[str | tuple[str, ...], _FieldReader(values.command)]
    ready: Annotated[dict[str, str | int], _FieldReader(runners.ready)] = {}
    port: Annotated[int | None, _FieldReader(runners.port)] = None
    timeout: Duration = 120.0
    shell: Boolean = False
    cwd: Annotated[str, _FieldReader(values.path)] = "."
    env: Annotated[dict[str, str], _FieldReader(values.variables)] = {}

    def argv(self) -> tuple[str, ...]:
        """Return the words to launch, `{port}` still in them. Raises ConfigError as `Workload.argv` does."""
        try:
            return split_command(self.command, shell=self.shell)
        except shell_words.ShellSyntaxError as error:
            raise ConfigError(f"server.command: {error}", next=SPLIT_NEXT) from None


class Workload(SettingsGroup):
    """A training command and how it is launched. `env` is added to the surrounding environment; `timeout`
    bounds the whole run, `stall_timeout` the time without a new step; `max_output` is in bytes."""

    command: Annotated[str | tuple[str, ...], _FieldReader(values.command)]
    shell: Boolean = False
    cwd: Annotated[str, _FieldReader(values.path)] = "."
    env: Annotated[dict[str, str], _FieldReader(values.variables)] = {}
    timeout: Duration = 1800.0
    stall_timeout: Duration = 300.0
    max_output: Annotated[int, _FieldReader(values.size)] = 2 * 2**30
    # Not written here: `server:` is a key beside the workload, and every workload of the campaign needs it.
    server: ServerSettings | None = Field(default=None, exclude=True)

    @property
    def text(self) -> str:
        """The command on paper: as written, without the line end of a block."""
        return self.command.strip(" \t\r\n") if isinstance(self.command, str) else shlex.join(self.command)

    def argv(self) -> tuple[str, ...]:
        """Return the words to launch, `{run}` still in them; `/bin/sh -c TEXT` for a shell command.

        Raises ConfigError for text that cannot be split into a command.
        """
        try:
            return split_command(self.command, shell=self.shell)
        except shell_words.ShellSyntaxError as error:
            raise ConfigError(f"workload.command: {error}", next=SPLIT_NEXT) from None


SPLIT_NEXT = "quote literal text, or set shell: true next to the command"


def split_command(command: str | tuple[str, ...], *, shell: bool = False) -> tuple[str, ...]:
    """Return the words of a command. Raises ShellSyntaxError with the offset of what cannot be split."""
    if isinstance(command, tuple):
        if shell:
            raise shell_words.ShellSyntaxError("a list of words needs no shell: true", 0)
        if not command or not command[0]:
            raise shell_words.ShellSyntaxError("the command is empty", 0)
        return command
    if shell:
        return ("/bin/sh", "-c", command)
    variables, rest = shell_words.leading_assignments(command)
    if variables:
        raise shell_words.ShellSyntaxError(
            f"{next(iter(variables))} is set before the program: use env for it", 0
        )
    words = tuple(word.value for word in shell_words.split(rest))
    if not words or not words[0]:
        raise shell_words.ShellSyntaxError("the command is empty", 0)
    return words


def expand(argv: Iterable[str], *, run: str, run_dir: str) -> tuple[str, ...]:
    """Every word with `{run}` and `{run_dir}` replaced by the run's name and folder, and no other brace."""
    return tuple(expand_text(word, run=run, run_dir=run_dir) for word in argv)


def expand_text(text: str, *, run: str, run_dir: str) -> str:
    replacements = {"run": run, "run_dir": run_dir}
    return _PLACE.sub(lambda match: replacements[match[1]], text)


class CriteriaSettings(SettingsGroup):
    """Thresholds of a verdict: percentage points for gpu_util, a `Ratio` for every other metric.

    `learning` is the `metric` that learning is judged by, with its `direction`; `also` holds further figures
    that must not get worse, each with its `direction` and `not_worse`. `devices` is which of several devices
    utilisation is judged by: None is their mean.
    """

    success: Threshold = 20.0
    failure: Threshold = 10.0
    loss: Annotated[Literal["converging", "any"], _FieldReader(values.one_of("converging", "any"))] = (
        "converging"
    )
    throughput: Annotated[
        Literal["better", "not_worse", "any"], _FieldReader(values.one_of("better", "not_worse", "any"))
    ] = "better"
    learning: Annotated[dict[str, str], _FieldReader(of_criteria.learning)] = {
        "metric": "auto",
        "direction": "",
    }
    also: Annotated[dict[str, dict[str, Any]] | None, _FieldReader(of_criteria.also)] = None
    devices: Annotated[Literal["least", "working"] | None, _FieldReader(values.devices)] = None


class Protocol(SettingsGroup):
    """How a trial is run. `interval` and `warmup` (None: found from the data) are seconds; `max_runs` is how
    many runs of the change a trial may make, twice as many of short ones.

    `run_for` is the steady window in seconds after which gpudebug ends a run; `end`: every run ends by
    itself, None: only what would go on for long is ended.
    """

    interval: Annotated[float, _FieldReader(values.interval)] = 0.2
    warmup: Annotated[float | None, _FieldReader(values.warmup)] = None
    max_runs: Annotated[int, _FieldReader(values.several)] = 8
    run_for: Annotated[float | Literal["end"] | None, _FieldReader(values.run_for)] = None


class Budget(SettingsGroup):
    """How many hypotheses may be tested, and for how many seconds a device may be held."""

    hypotheses: Count = 20
    device_time: Duration = 7200.0


class WorktreeSettings(SettingsGroup):
    """Paths that a trial's worktree borrows from the repository."""

    link: Paths = ()


class SlurmSettings(SettingsGroup):
    """The allocation that a campaign asks Slurm for; None leaves it to the cluster.

    `time`, `idle` are seconds: the allocation's limit, and how long it stays without anything to do. `setup`
    is shell that runs on the first node before gpudebug; `srun` and `extra` are further options of steps and
    of `sbatch`. `shared`: the nodes see the campaign's folder, whatever its path looks like. `parallel` is
    how many hypotheses `submit` has tested at once, in jobs of their own.
    """

    partition: Annotated[str | None, _FieldReader(runners.name)] = None
    account: Annotated[str | None, _FieldReader(runners.name)] = None
    qos: Annotated[str | None, _FieldReader(runners.name)] = None
    nodes: Count = 1
    gpus_per_node: Annotated[str, _FieldReader(runners.gpus)] = "1"
    cpus_per_task: Annotated[int | None, _FieldReader(runners.cores)] = None
    time: Annotated[float | None, _FieldReader(runners.time)] = None
    constraint: Annotated[str | None, _FieldReader(runners.name)] = None
    exclusive: Boolean = False
    shared: Boolean = False
    setup: Annotated[str, _FieldReader(runners.setup)] = ""
    srun: Annotated[tuple[str, ...], _FieldReader(runners.options)] = ()
    extra: Annotated[tuple[str, ...], _FieldReader(runners.options)] = ()
    idle: Duration = 600.0
    parallel: Count = 1


class RunnerSettings(SettingsGroup):
    """Where runs happen: in an allocation of a cluster, or on this host itself if none is named."""

    slurm: SlurmSettings | None = None

    @property
    def idle(self) -> float:
        """Seconds that an allocation stays without anything to do, whichever scheduler gave it."""
        return self.slurm.idle if self.slurm is not None else 0.0

    @property
    def parallel(self) -> int:
        """How many hypotheses `submit` has tested at once, whichever scheduler does it."""
        return self.slurm.parallel if self.slurm is not None else 1


class ClusterFile(SettingsGroup):
    """A cluster's own file of defaults: `runner` alone."""

    runner: RunnerSettings | None = None


class Config(SettingsGroup):
    """All of gpudebug.yaml, complete: what the file left out has its default."""

    campaign: Annotated[str, _FieldReader(values.slug)]
    progress: Annotated[str, _FieldReader(values.file_path)]
    goal: Text = ""
    workload: Workload
    reference: Workload | None = None
    server: ServerSettings | None = None
    metric: Annotated[str, _FieldReader(values.metric)] = "gpu_util"
    direction: Annotated[Literal["higher", "lower"], _FieldReader(values.one_of("higher", "lower"))] = (
        "higher"
    )
    work: Annotated[str, _FieldReader(values.work)] = "auto"
    criteria: CriteriaSettings = CriteriaSettings()
    target: Annotated[float | None, _FieldReader(values.positive)] = None
    log: Annotated[dict[str, str], _FieldReader(values.patterns)] = {}
    locked: Words = ()
    allow_env: Annotated[tuple[str, ...], _FieldReader(values.variable_names)] = ()
    allow_flags: Annotated[dict[str, tuple[str, ...]], _FieldReader(values.launcher_flags)] = {}
    protocol: Protocol = Protocol()
    budget: Budget = Budget()
    runner: RunnerSettings | None = None
    device: Annotated[str, _FieldReader(values.device)] = "auto"
    probe: Boolean = True
    auto_propose: Boolean = False
    worktree: WorktreeSettings = WorktreeSettings()
    expected: Annotated[dict[str, dict[str, tuple[float, float]]], _FieldReader(values.expectations)] = {}
    context: Paths = ()
    guidelines: Text = ""

    @property
    def allowed(self) -> Allowed:
        """What a hypothesis may change beside the program's flags and the variables that steer libraries."""
        theirs = self.workload.server.env if self.workload.server is not None else ()
        return Allowed(frozenset((*self.workload.env, *theirs, *self.allow_env)), self.allow_flags)

    @property
    def patterns(self) -> dict[str, str]:
        """How the log is read: `log:`, and what `criteria.also` names without a pattern."""
        return of_criteria.patterns(self.log, self.criteria.also)

    @property
    def device_choice(self) -> DeviceChoice:
        return values.device_choice(self.device)
