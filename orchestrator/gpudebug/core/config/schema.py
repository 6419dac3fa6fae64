"""gpudebug.yaml as frozen records: each key with its type, default, help, and what changing it means.

Seconds, bytes and percent.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from gpudebug.core.change.permits import Allowed
from gpudebug.core.config import criteria as of_criteria
from gpudebug.core.config import rules, runners, values
from gpudebug.core.config.rules import Rule, different, free, ordered
from gpudebug.core.config.values import Boolean, Count, Duration
from gpudebug.core.errors import ConfigError
from gpudebug.core.lazy import regex
from gpudebug.core.text import shell_words
from gpudebug.core.text.values import DeviceChoice, parse_device
from gpudebug.core.words import PHASE
from gpudebug.core.yaml.document import Path, plain
from gpudebug.core.yaml.models import models

_PLACE = regex(r"\{(run|run_dir)\}")
_EMPTY: dict[str, Any] = {"[]": [], "{}": {}, '""': ""}


def setting(default: str, help: str = "") -> Any:
    """Return the field of a key: its default as gpudebug.yaml has it, and what it is."""
    value = _EMPTY[default] if default in _EMPTY else plain(default)
    return Field(value, validate_default=True, description=help, examples=[default])


def unset(example: str, help: str = "") -> Any:
    """Return the field of a key without a default."""
    return Field(None, description=help, examples=[example])


class SettingsGroup(BaseModel):
    """A frozen group of settings that knows all of its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ServerSettings(SettingsGroup):
    """A server that the workload needs, started by gpudebug before each run and ended after it.

    `{port}` in its command, its variables and the workload's is replaced by `port`, a free one if that is
    None. It is `ready` if a line of its output matches (`log`), a path is answered (`http`), or else if it
    accepts connections, within `timeout` seconds.
    """

    command: values.Command = Field(examples=["python serve.py --port={port}"])
    ready: runners.Ready = Field({}, examples=["{http: /health}"])
    port: runners.Port = setting("auto")
    timeout: Annotated[Duration, rules.LONGER] = setting("2m")
    shell: Boolean = setting("false")
    cwd: values.Path = setting(".")
    env: values.Variables = setting("{}")

    def argv(self) -> tuple[str, ...]:
        """Return the words to launch, `{port}` still in them. Raises ConfigError as `Workload.argv` does."""
        try:
            return split_command(self.command, shell=self.shell)
        except shell_words.ShellSyntaxError as error:
            raise ConfigError(f"server.command: {error}", next=SPLIT_NEXT) from None


class Workload(SettingsGroup):
    """A training command and how it is launched. `env` is added to the surrounding environment; `timeout`
    bounds the whole run, `stall_timeout` the time without a new step; `max_output` is in bytes."""

    command: values.Command = Field(
        examples=["python train.py --output_dir=outputs/{run}"],
        description="required; text, or a list of words; {run} and {run_dir} are replaced",
    )
    shell: Boolean = setting("false", "true: the command is a shell's text; its flags cannot be changed then")
    cwd: values.Path = setting(".", "folder inside the repository")
    env: values.Variables = setting("{}", "variables that are added, with {run} as there; quote true, false")
    timeout: Annotated[Duration, rules.LONGER] = setting("30m", "the whole run")
    stall_timeout: Annotated[Duration, rules.LONGER] = setting(
        "5m", "no new step, counted from the first step seen"
    )
    max_output: Annotated[values.Size, ordered("larger is weaker", rules.higher)] = setting(
        "2GB", "what the command may print"
    )
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

    success: Annotated[values.Threshold, ordered("lower is weaker", rules.lower)] = setting(
        "20", "percentage points of utilisation; a ratio such as 1.2x for a rate or a time"
    )
    failure: Annotated[values.Threshold, ordered("lower is weaker: less is rejected", rules.lower)] = setting(
        "10", "below it a hypothesis is rejected"
    )
    loss: Annotated[
        Literal["converging", "any"],
        ordered("any is weaker than converging", rules.later_in("converging", "any")),
    ] = setting("converging", "or any: learning is not judged")
    learning: Annotated[of_criteria.Learning, rules.OTHER_FIGURE] = setting(
        "auto",
        "what learning is judged by, by the baseline; or loss, reward, {metric: log:NAME, direction: higher}",
    )
    throughput: Annotated[
        Literal["better", "not_worse", "any"],
        ordered("weaker in the order better, not_worse, any", rules.later_in("better", "not_worse", "any")),
    ] = setting("better", "or not_worse, any")
    devices: Annotated[values.Devices, ordered("another figure: any change is weaker", rules.any_other)] = (
        setting("mean", "or least, working: which of several GPUs utilisation is judged by")
    )
    also: Annotated[
        of_criteria.Also | None,
        ordered("fewer figures, or more room to get worse, are weaker", rules.fewer_figures),
    ] = unset(
        "{log:success_rate: not_worse}",
        "further figures that must not get worse; or {direction: lower, not_worse: 1.05x}",
    )


class Protocol(SettingsGroup):
    """How a trial is run. `interval` and `warmup` (None: found from the data) are seconds; `max_runs` is how
    many runs of the change a trial may make, twice as many of short ones.

    `run_for` is the steady window in seconds after which gpudebug ends a run, `phase NAME` that of a phase;
    `end`: every run ends by itself, None: only what would go on for long is ended.
    """

    interval: values.Interval = setting("0.2s", "between two samples, 0.02s to 10s")
    warmup: values.Warmup = setting("auto", "or a duration that is cut from the start")
    max_runs: Annotated[
        values.Several, ordered("more are weaker: more looks at the same question", rules.higher)
    ] = setting("8", "runs of the change at most, 2 or more; of short ones twice as many")
    run_for: Annotated[values.RunFor, different("runs of another length")] = setting(
        "auto",
        "a long run ends after 30s of steady training; or 90s; phase ppo 60s: so much of it; end: by itself",
    )


class Budget(SettingsGroup):
    """How many hypotheses may be tested, and for how many seconds a device may be held."""

    hypotheses: Annotated[Count, rules.MORE] = setting("20", "hypotheses tested")
    device_time: Annotated[Duration, rules.MORE] = setting("2h", "time on the device")


class WorktreeSettings(SettingsGroup):
    """Paths that a trial's worktree borrows from the repository."""

    link: Annotated[values.Paths, different("trials find other files")] = setting(
        "[]", "paths that are linked, such as [.venv, data]"
    )


_T = TypeVar("_T")
_Elsewhere = Annotated[_T, rules.ELSEWHERE]


class SlurmSettings(SettingsGroup):
    """The allocation that a campaign asks Slurm for; None leaves it to the cluster.

    `time`, `idle` are seconds: the allocation's limit, and how long it stays without anything to do. `setup`
    is shell that runs on the first node before gpudebug; `srun` and `extra` are further options of steps and
    of `sbatch`. `shared`: the nodes see the campaign's folder, whatever its path looks like. `parallel` is
    how many hypotheses `submit` has tested at once, in jobs of their own.
    """

    partition: _Elsewhere[runners.Name | None] = unset("gpu", "by default the cluster's")
    account: _Elsewhere[runners.Name | None] = unset("my-project", "by default the cluster's")
    qos: _Elsewhere[runners.Name | None] = unset("normal", "by default the cluster's")
    nodes: _Elsewhere[Count] = setting("1", "nodes of the allocation")
    gpus_per_node: _Elsewhere[runners.Gpus] = setting("1", "a number, or a100:8; 0 asks for none")
    cpus_per_task: _Elsewhere[Count | None] = unset("16", "cores of a node; by default the cluster's")
    time: Annotated[runners.Time | None, rules.MORE_OF_THE_CLUSTER] = unset(
        "4h", "limit of the allocation; by default the partition's"
    )
    constraint: _Elsewhere[runners.Name | None] = unset("h100", "features of the nodes")
    exclusive: _Elsewhere[Boolean] = setting("false", "true: nobody else on the nodes")
    shared: _Elsewhere[Boolean] = setting("false", "true: nodes see this folder, though it is in /tmp, say")
    setup: _Elsewhere[runners.Setup] = Field(
        "", examples=["module load cuda"], description="shell that runs before gpudebug, a line or more"
    )
    srun: _Elsewhere[runners.Options] = setting("[]", "further options of srun, such as [--mpi=pmix]")
    extra: _Elsewhere[runners.Options] = setting("[]", "further options of sbatch, such as [--mem=64G]")
    idle: Annotated[Duration, rules.MORE_OF_THE_CLUSTER] = setting(
        "10m", "the allocation ends after this time without a run"
    )
    parallel: Annotated[Count, rules.MORE_OF_THE_CLUSTER] = setting(
        "1", "hypotheses that `submit` has tested at once, a job each"
    )


class RunnerSettings(SettingsGroup):
    """Where runs happen: in an allocation of a cluster, or on this host itself if none is named."""

    slurm: SlurmSettings | None = Field(
        None, description="in an allocation of Slurm; inherits /etc/gpudebug/cluster.yaml"
    )

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

    campaign: Annotated[values.Slug, different("another name is another campaign")] = unset(
        "act-relative-rtc", "name of the campaign; by default from the folder"
    )
    progress: Annotated[values.FilePath, different("another file has other baselines")] = unset(
        "progress/act-relative-rtc.md", "by default progress/CAMPAIGN.md"
    )
    goal: Annotated[values.Text, rules.READ] = setting(
        '""', "what is to be achieved, for the people and agents who read it"
    )
    workload: Workload = Field(description="the training command under investigation")
    reference: Workload | None = unset(
        "{command: python train_reference.py}", "a workload with good utilisation; inherits the rest"
    )
    server: ServerSettings | None = unset(
        "{command: 'python serve.py --port={port}', ready: {http: /health}}",
        "a server that the workload needs; ready: {port: 5555}, {http: /path} or {log: 'a line'}; also port, "
        "timeout, shell, cwd, env",
    )
    metric: Annotated[values.Metric, rules.OTHER_FIGURE] = setting(
        "gpu_util",
        "or steps_per_s, samples_per_s, work_per_s, step_time_p50, step_time_p95, "
        "latency_p50 (p95, p99), joules_per_step, section:NAME, log:NAME",
    )
    direction: Annotated[Literal["higher", "lower"], rules.OTHER_FIGURE] = setting(
        "higher", "lower for a time or an energy"
    )
    work: Annotated[values.Work, rules.OTHER_FIGURE] = setting(
        "auto",
        "what throughput counts: environment steps, tokens, samples, optimizer steps, epochs, log:NAME",
    )
    criteria: CriteriaSettings = Field(CriteriaSettings(), description="what a hypothesis must achieve")
    target: Annotated[values.Target, ordered("easier to reach is weaker", rules.lower)] = unset(
        "80", "solved at this figure; by default the reference's less failure, else 80 percent"
    )
    log: values.Patterns = setting(
        "{}",
        r"named patterns with a group value, only if the log is misread: {loss: 'loss=(?P<value>\S+)'}",
    )
    phases: values.Phases | None = unset(
        "{supervised: 'teacher on', ppo: 'teacher off'}",
        "what a run does in turn, and the line of its log that begins each",
    )
    phase: Annotated[values.Phase | None, rules.OTHER_FIGURE] = unset(
        "ppo", "the phase that is judged; by default the whole run"
    )
    locked: Annotated[values.Words, ordered("fewer locked flags are weaker", rules.fewer)] = setting(
        "[]", "flags that no hypothesis may change, such as [--batch_size]"
    )
    allow_env: Annotated[values.VariableNames, ordered("more allowed variables are weaker", rules.more)] = (
        setting("[]", "variables that a hypothesis may set beside those that steer libraries")
    )
    allow_flags: Annotated[
        values.LauncherFlags, ordered("more allowed flags are weaker", rules.more_of_each)
    ] = setting("{}", "launchers' flags that it may change: {torchrun: [--nproc_per_node]}")
    protocol: Protocol = Field(Protocol(), description="how a trial is measured")
    budget: Budget = Field(Budget(), description="when the campaign is exhausted")
    runner: RunnerSettings | None = Field(
        None, description="where runs happen; by default on this host itself"
    )
    device: values.Device = setting("auto", "or nvml, cpu, cpu:N, replay:PATH")
    probe: Annotated[
        Boolean,
        ordered("false is weaker: throughput is then the program's own claim", rules.later_in(True, False)),
    ] = setting("true", "false: nothing is injected into the training process")
    auto_propose: Annotated[Boolean, free("who proposes changes no measurement")] = setting(
        "false", "true: the catalogue proposes when no hypothesis is left to test"
    )
    worktree: WorktreeSettings = Field(WorktreeSettings(), description="what a trial's worktree borrows")
    expected: Annotated[values.Expectations, free("figures to compare with; no verdict uses them")] = setting(
        "{}", "known figures by device: {steps_per_s: {default: [150, 250]}}"
    )
    context: Annotated[values.Paths, rules.READ] = setting("[]", "files that an agent should read")
    guidelines: Annotated[values.Text, rules.READ] = setting(
        '""', "rules for those who propose and implement"
    )

    @property
    def allowed(self) -> Allowed:
        """What a hypothesis may change beside the program's flags and the variables that steer libraries."""
        theirs = self.workload.server.env if self.workload.server is not None else ()
        return Allowed(frozenset((*self.workload.env, *theirs, *self.allow_env)), self.allow_flags)

    @property
    def patterns(self) -> dict[str, str]:
        """How the log is read: `log:`, what `criteria.also` names without a pattern, and `phases:`."""
        phases = {f"{PHASE}{name}": text for name, text in (self.phases or {}).items()}
        return {**of_criteria.patterns(self.log, self.criteria.also), **phases}

    @property
    def device_choice(self) -> DeviceChoice:
        return parse_device(self.device)


def group_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the group of settings that a key leads to; None for a value."""
    return next(models(field.annotation), None)


def all_keys(model: type[BaseModel] = Config, around: Path = ()) -> Iterator[tuple[Path, FieldInfo]]:
    """Yield every key of gpudebug.yaml with its field, groups before what is in them."""
    for name, field in model.model_fields.items():
        if not field.exclude:
            yield (*around, name), field
            group = group_of(field)
            if group is not None:
                yield from all_keys(group, (*around, name))


def rule_of(field: FieldInfo) -> Rule:
    """Return what another value of this key means."""
    return next((of for of in field.metadata if isinstance(of, Rule)), rules.OTHER_BASELINE)
