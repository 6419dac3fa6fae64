"""gpudebug.yaml as text: every setting with its default and meaning, and the file that `init` writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from gpudebug.core.config.schema import SPLIT_NEXT, Config, group_of, split_command
from gpudebug.core.errors import ConfigError
from gpudebug.core.text import shell_words


def print_defaults() -> str:
    """Return a gpudebug.yaml that says every default, each with a comment; what has none is commented out."""
    head = "# Every setting of gpudebug.yaml with its default. Only workload.command is required."
    return "\n".join((head, *_lines(Config, "", False))) + "\n"


def _lines(group: type[BaseModel], indent: str, unset: bool) -> Iterator[str]:
    for name, field in group.model_fields.items():
        if field.exclude:
            continue
        out = unset or field.default is None
        value = f" {field.examples[0]}" if field.examples else ""
        yield f"{indent}{'# ' if out else ''}{name}:{value}  # {field.description}"
        inner = group_of(field)
        if inner is not None and not value:
            yield from _lines(inner, indent + "  ", out)


_BY_UTILISATION = (
    "metric: gpu_util",
    "criteria:",
    "  success: 20  # percentage points gained: VALIDATED",
    "  failure: 10  # less than this: REJECTED",
)
_BY_RATE = (
    "metric: steps_per_s",
    "criteria:",
    "  success: 1.2x  # so much faster: VALIDATED",
    "  failure: 1.1x  # less than this: REJECTED",
)


def config_text(
    campaign: str,
    command: str,
    reference: str | None = None,
    *,
    goal: str = "",
    progress: str | None = None,
    locked: Sequence[str] = (),
    shell: bool = False,
    rate: bool = False,
) -> str:
    """The gpudebug.yaml that `init` writes: the commands as blocks, byte for byte; variables set before the
    program become `env`. With `rate` it is judged by steps a second, else by utilisation.

    `load` reads it back. Raises ConfigError for a command that cannot be split."""
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
        *(_BY_RATE if rate else _BY_UTILISATION),
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
