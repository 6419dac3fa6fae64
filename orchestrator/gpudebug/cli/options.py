"""What all commands share: the application, common options, printing an answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.terminal import output

GROUPS = {
    "Start": ("demo", "init", "doctor"),
    "Measure": ("baseline", "next", "wait", "submit", "stop", "sample"),
    "Explain": ("why", "diagnose", "analyze", "compare", "catalogue"),
    "Hypotheses": ("propose", "accept", "reopen", "export"),
    "Agents": ("loop", "mcp", "release"),
    "Look": ("status", "show", "report"),
    "Check": ("verify", "check", "settings", "clean"),
}
"""The commands as `--help` lists them, in the order in which a user needs them."""
COMMANDS = frozenset(name for names in GROUPS.values() for name in names)


class Grouped(TyperGroup):
    """The group of all commands; its help lists them by purpose."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for names in GROUPS.values() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group, and a line for each of its commands."""
        width = max(map(len, self.commands))
        for title, names in GROUPS.items():
            with formatter.section(title):
                summaries = (self.commands[name].get_short_help_str(limit=66) for name in names)
                formatter.write_dl([(n.ljust(width), text) for n, text in zip(names, summaries, strict=True)])


F = TypeVar("F", bound=Callable[..., Any])


def spelling(param: Any) -> str:
    """Return how an argument or an option is written: its names, and a word for its value."""
    value = str(param.metavar or param.name.strip("_").upper())
    if param.param_type_name == "argument":
        return value
    # Those of help come in any order.
    names = ", ".join(sorted(param.opts, key=len))
    return names if param.is_flag else f"{names} {value}"


class PlainCommand(TyperCommand):
    """A command whose help spells its parameters as the reference does, without Python's types."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *(spelling(p) for p in self.params if p.param_type_name == "argument")]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options."""
        for title in ("Arguments", "Options"):
            kind = title[:-1].lower()
            records = [(p, p.get_help_record(ctx)) for p in self.get_params(ctx) if p.param_type_name == kind]
            rows = [(spelling(p), record[1]) for p, record in records if record]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class _App(typer.Typer):
    def command(self, *args: Any, **more: Any) -> Callable[[F], F]:
        """As typer's, for a command with plain help."""
        return super().command(*args, cls=PlainCommand, **more)


app = _App(
    cls=Grouped,
    help="Finds why a GPU sits idle in training, one measured hypothesis at a time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Directory = Annotated[
    Path | None, typer.Option("-C", metavar="DIR", help="Work as if started in DIR, as git does.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")
]


_DIGITS = 9
_SHOWN = 40


def hypothesis_number(text: str) -> int:
    """Parse a hypothesis's number: `1`, or `h1` as in the names of runs."""
    digits = text.strip().removeprefix("h").removeprefix("H")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        raise typer.BadParameter(f"{shown!r} is not the number of a hypothesis, such as 1 or h1")
    return int(digits)


def _hypothesis(about: str) -> Any:
    return typer.Argument(metavar="H", help=about, parser=hypothesis_number)


Hypothesis = Annotated[int, _hypothesis("Number of the hypothesis: 1 or h1.")]
AnyHypothesis = Annotated[int | None, _hypothesis("Number of a hypothesis; default: everything.")]
TorchProfile = Annotated[
    str | None,
    typer.Option(
        "--torch-profile",
        metavar="SPEC",
        help="Record iterations with PyTorch's profiler: default, or "
        "wait=2,warmup=2,active=4[,record_shapes][,with_stack][,profile_memory].",
    ),
]

Force = Annotated[bool, typer.Option("--force", help="Replace even a file that gpudebug did not write.")]

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Let the program overwrite files that were there before.")
]

Interval = Annotated[
    float, typer.Option("--interval", min=0.02, max=60.0, metavar="S", help="Seconds between samples.")
]
Device = Annotated[str, typer.Option("--device", help="auto, nvml, cpu, cpu:N or replay:FOLDER.")]
Timeout = Annotated[
    str | None, typer.Option("--timeout", metavar="TIME", help="End a command after this time, e.g. 10m.")
]

SAMPLE_FAILED = 125

chosen: dict[str, Any] = {"directory": None, "json": False, "debug": False, "own_failure": None}


def choose(directory: Path | None, json: bool, *, anywhere: bool = False) -> Path:
    """Remember the options before or after the command's name; return the folder to work in.

    GpudebugError on macOS and Windows, but for a command that works `anywhere`.
    """
    if directory is not None:
        chosen["directory"] = directory
    chosen["json"] = chosen["json"] or json
    on_linux = sys.platform == "linux"
    if not (anywhere or on_linux):
        raise GpudebugError(
            "Linux only: this command runs where you train",
            next="copy the run's folder here and run gpudebug analyze FOLDER",
        )
    folder = output.working_folder(chosen["directory"] or Path())
    if on_linux and output.in_session():
        from gpudebug.engine.campaign.renewal import renew

        renew(folder)
    return folder


def permit(overwrite: bool) -> None:
    """Let this command's programs overwrite files that were there before, if a person asks for it."""
    if overwrite:
        from gpudebug.engine.campaign.session import persons_only
        from gpudebug.engine.run.kept import OVERWRITE

        persons_only("overwriting files that were there before", "give each run a folder of its own")
        os.environ[OVERWRITE] = "1"


def print_(answer: output.A, text: Callable[[output.A], str]) -> None:
    """Print an engine's answer as JSON, or as `text` renders it; its next command repeats `-C`."""
    output.print_answer(answer, text, chosen["directory"], as_json=bool(chosen["json"]))


def seconds(option: str, text: str | None) -> float | None:
    """Return the value of an option that takes a time. UsageError if it is none."""
    from gpudebug.core.text.values import QuantityError, parse_duration

    try:
        return None if text is None else parse_duration(text)
    except QuantityError as e:
        raise UsageError(f"{option}: {e}", next="write it as 90s, 9m or 1h") from None
