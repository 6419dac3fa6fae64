"""gpudebug.yaml as text: every setting with its default and meaning, and the file that `init` writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.config.schema import SPLIT_NEXT, split_command
from gpudebug.core.errors import ConfigError
from gpudebug.core.text import shell_words
from gpudebug.core.yaml.document import Path


class _DefaultSetting(NamedTuple):
    """One key: `value` is its default in YAML, or an example if `unset` (it has no default)."""

    path: tuple[str, ...]
    value: str
    comment: str
    unset: bool = False


def _setting(path: str, value: str, comment: str, unset: bool = False) -> _DefaultSetting:
    return _DefaultSetting(tuple(path.split(".")), value, comment, unset)


SETTINGS: tuple[_DefaultSetting, ...] = (
    _setting("campaign", "act-relative-rtc", "name of the campaign; by default from the folder", True),
    _setting("progress", "progress/act-relative-rtc.md", "by default progress/CAMPAIGN.md", True),
    _setting("goal", '""', "what is to be achieved, for the people and agents who read it"),
    _setting("workload", "", "the training command under investigation"),
    _setting(
        "workload.command",
        "python train.py --output_dir=outputs/{run}",
        "required; text, or a list of words; {run} and {run_dir} are replaced",
    ),
    _setting(
        "workload.shell", "false", "true: the command is a shell's text; its flags cannot be changed then"
    ),
    _setting("workload.cwd", ".", "folder inside the repository"),
    _setting("workload.env", "{}", "variables that are added; quote true and false"),
    _setting("workload.timeout", "30m", "the whole run"),
    _setting("workload.stall_timeout", "5m", "no new step, counted from the first step seen"),
    _setting("workload.max_output", "2GB", "what the command may print"),
    _setting(
        "reference",
        "{command: python train_reference.py}",
        "a workload with good utilisation; inherits the rest",
        True,
    ),
    _setting(
        "server",
        "{command: 'python serve.py --port={port}', ready: {http: /health}}",
        "a server that the workload needs; ready: {port: 5555}, {http: /path} or {log: 'a line'}; also port, "
        "timeout, shell, cwd, env",
        True,
    ),
    _setting(
        "metric",
        "gpu_util",
        "or steps_per_s, samples_per_s, work_per_s, step_time_p50, step_time_p95, "
        "latency_p50 (p95, p99), joules_per_step, section:NAME, log:NAME",
    ),
    _setting("direction", "higher", "lower for a time or an energy"),
    _setting(
        "work",
        "auto",
        "what throughput counts: environment steps, tokens, samples, optimizer steps, epochs, log:NAME",
    ),
    _setting("criteria", "", "what a hypothesis must achieve"),
    _setting(
        "criteria.success",
        "20",
        "percentage points of utilisation; a ratio such as 1.2x for a rate or a time",
    ),
    _setting("criteria.failure", "10", "below it a hypothesis is rejected"),
    _setting("criteria.loss", "converging", "or any: learning is not judged"),
    _setting(
        "criteria.learning",
        "auto",
        "what learning is judged by, by the baseline; or loss, reward, {metric: log:NAME, direction: higher}",
    ),
    _setting("criteria.throughput", "better", "or not_worse, any"),
    _setting("criteria.devices", "mean", "or least, working: which of several GPUs utilisation is judged by"),
    _setting(
        "criteria.also",
        "{log:success_rate: not_worse}",
        "further figures that must not get worse; or {direction: lower, not_worse: 1.05x}",
        True,
    ),
    _setting(
        "target",
        "80",
        "solved at this figure; by default the reference's less failure, else 80 percent",
        True,
    ),
    _setting(
        "log",
        "{}",
        r"named patterns with a group value, only if the log is misread: {loss: 'loss=(?P<value>\S+)'}",
    ),
    _setting("locked", "[]", "flags that no hypothesis may change, such as [--batch_size]"),
    _setting("allow_env", "[]", "variables that a hypothesis may set beside those that steer libraries"),
    _setting("allow_flags", "{}", "launchers' flags that it may change: {torchrun: [--nproc_per_node]}"),
    _setting("protocol", "", "how a trial is measured"),
    _setting("protocol.interval", "0.2s", "between two samples, 0.02s to 10s"),
    _setting("protocol.warmup", "auto", "or a duration that is cut from the start"),
    _setting("protocol.max_runs", "8", "runs of the change at most, 2 or more; of short ones twice as many"),
    _setting(
        "protocol.run_for",
        "auto",
        "a long run ends after 30s of steady training; or 90s; end: by itself",
    ),
    _setting("budget", "", "when the campaign is exhausted"),
    _setting("budget.hypotheses", "20", "hypotheses tested"),
    _setting("budget.device_time", "2h", "time on the device"),
    _setting("runner", "", "where runs happen; by default on this host itself", True),
    _setting("runner.slurm", "", "in an allocation of Slurm; inherits /etc/gpudebug/cluster.yaml", True),
    _setting("runner.slurm.partition", "gpu", "by default the cluster's", True),
    _setting("runner.slurm.account", "my-project", "by default the cluster's", True),
    _setting("runner.slurm.qos", "normal", "by default the cluster's", True),
    _setting("runner.slurm.nodes", "1", "nodes of the allocation", True),
    _setting("runner.slurm.gpus_per_node", "1", "a number, or a100:8; 0 asks for none", True),
    _setting("runner.slurm.cpus_per_task", "16", "cores of a node; by default the cluster's", True),
    _setting("runner.slurm.time", "4h", "limit of the allocation; by default the partition's", True),
    _setting("runner.slurm.constraint", "h100", "features of the nodes", True),
    _setting("runner.slurm.exclusive", "false", "true: nobody else on the nodes", True),
    _setting("runner.slurm.shared", "false", "true: nodes see this folder, though it is in /tmp, say", True),
    _setting(
        "runner.slurm.setup", "module load cuda", "shell that runs before gpudebug, a line or more", True
    ),
    _setting("runner.slurm.srun", "[]", "further options of srun, such as [--mpi=pmix]", True),
    _setting("runner.slurm.extra", "[]", "further options of sbatch, such as [--mem=64G]", True),
    _setting("runner.slurm.idle", "10m", "the allocation ends after this time without a run", True),
    _setting("runner.slurm.parallel", "1", "hypotheses that `submit` has tested at once, a job each", True),
    _setting("device", "auto", "or nvml, cpu, cpu:N, replay:PATH"),
    _setting("probe", "true", "false: nothing is injected into the training process"),
    _setting("auto_propose", "false", "true: the catalogue proposes when no hypothesis is left to test"),
    _setting("worktree", "", "what a trial's worktree borrows"),
    _setting("worktree.link", "[]", "paths that are linked, such as [.venv, data]"),
    _setting("expected", "{}", "known figures by device: {steps_per_s: {default: [150, 250]}}"),
    _setting("context", "[]", "files that an agent should read"),
    _setting("guidelines", '""', "rules for those who propose and implement"),
)


def all_keys() -> tuple[tuple[str, ...], ...]:
    """Return every valid key as a path; the reference has the workload's."""
    paths = [setting.path for setting in SETTINGS]
    return (*paths, *(("reference", *path[1:]) for path in paths if path[0] == "workload" and len(path) > 1))


def example(path: Path) -> str:
    """`key: value` for the setting at `path` or, for an entry inside it, the setting around it."""
    names = tuple(str(part) for part in path)
    if names[0] == "reference" and len(names) > 1:
        names = ("workload", *names[1:])
    for length in range(len(names), 0, -1):
        for setting in SETTINGS:
            if setting.path == names[:length]:
                value = setting.value or "{" + _first_child(setting.path) + "}"
                return f"{names[length - 1]}: {value}"
    return f"{names[-1]}: …"


def _first_child(path: tuple[str, ...]) -> str:
    child = next(setting for setting in SETTINGS if setting.path[:-1] == path)
    return f"{child.path[-1]}: {child.value}"


def print_defaults() -> str:
    """Return a gpudebug.yaml that says every default, each with a comment; what has none is commented out."""
    lines = ["# Every setting of gpudebug.yaml with its default. Only workload.command is required."]
    for setting in SETTINGS:
        key = f"{setting.path[-1]}:" + (f" {setting.value}" if setting.value else "")
        indent = "  " * (len(setting.path) - 1)
        lines.append(f"{indent}{'# ' if setting.unset else ''}{key}  # {setting.comment}")
    return "\n".join(lines) + "\n"


def config_text(
    campaign: str,
    command: str,
    reference: str | None = None,
    *,
    goal: str = "",
    progress: str | None = None,
    locked: Sequence[str] = (),
    shell: bool = False,
) -> str:
    """The gpudebug.yaml that `init` writes: the commands as blocks, byte for byte; variables set before the
    program become `env`. `load` reads it back. Raises ConfigError for a command that cannot be split."""
    parts = [
        "# What gpudebug tests and how. All settings: gpudebug init --print-defaults",
        f"campaign: {_scalar(campaign)}",
        *([f"progress: {_scalar(progress)}"] if progress else []),
        *([f"goal: {_scalar(goal)}"] if goal else []),
        "workload:",
        "  # Split as a shell would; {run} is replaced by the run's name, for a new output folder each time.",
        *_command_block(command, shell),
        *(
            ["reference:  # known good utilisation on the same machine", *_command_block(reference, shell)]
            if reference
            else []
        ),
        "metric: gpu_util",
        "criteria:",
        "  success: 20  # percentage points gained: VALIDATED",
        "  failure: 10  # less than this: REJECTED",
        "# A run that would go on for long is ended by gpudebug after 30 s of steady training. To let every",
        "# run end by itself: protocol: {run_for: end}",
        "# Flags that no hypothesis may change.",
        f"locked: [{', '.join(_scalar(knob) for knob in locked)}]",
    ]
    return "\n".join(parts) + "\n"


def _command_block(command: str, shell: bool) -> list[str]:
    variables, rest = ({}, command) if shell else _separated(command)
    text = rest.strip("\n")
    lines = text.split("\n")
    if text.strip() and all(char.isprintable() or char in "\t\n" for char in text):
        block = [
            "  command: |2" if text[0] in " \t" else "  command: |",
            *(f"    {line}" if line else "" for line in lines),
        ]
    else:
        block = [f"  command: {_scalar(rest)}"]
    if shell:
        block.append("  shell: true")
    if variables:
        block += ["  env:", *(f"    {name}: {_scalar(value)}" for name, value in variables.items())]
    return block


def _separated(command: str) -> tuple[dict[str, str], str]:
    try:
        variables, rest = shell_words.leading_assignments(command)
        split_command(rest)
    except shell_words.ShellSyntaxError as error:
        raise ConfigError(f"{error} in {command!r}", next=SPLIT_NEXT) from None
    return variables, rest


def _scalar(text: str) -> str:
    """One line of YAML that reads back as `text`: plain if that is safe, else in double quotes."""
    if re.fullmatch(r"[a-z][a-z0-9_./-]*", text) and text not in ("null", "true", "false"):
        return text
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else f"\\U{ord(char):08x}"
