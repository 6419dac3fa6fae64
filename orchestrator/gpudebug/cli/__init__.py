"""The command line: parse, call the engine, print, map errors to exit statuses. Commands import lazily."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gpudebug.cli import agents, campaign, check, diagnosis, measure, report
from gpudebug.cli.options import COMMANDS, SAMPLE_FAILED, Directory, Json, app, choose, chosen
from gpudebug.core.errors import GpudebugError, LaunchError, UsageError
from gpudebug.terminal import output

__all__ = ["agents", "app", "campaign", "check", "diagnosis", "measure", "report", "run"]

Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback if gpudebug itself fails.")]


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import PackageNotFoundError, distribution

        from gpudebug import __version__

        # orchestrator/commit.py puts it there; an editable install is of no commit.
        try:
            commit = distribution("gpudebug").read_text("extra_metadata/commit.txt")
        except PackageNotFoundError:
            commit = None
        print(f"gpudebug {__version__}" + (f" (commit {commit[:12]})" if commit else ""))
        raise typer.Exit


@app.callback()
def _global(
    directory: Directory = None,
    json: Json = False,
    debug: Debug = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version and its commit."),
    ] = False,
) -> None:
    choose(directory, json, anywhere=True)
    chosen["debug"] = debug


_TOO_LONG = "Unable to parse input string as an integer, exceeded maximum size"
"""What pydantic, which typer asks, says of a number of thousands of digits."""


def run(words: list[str]) -> int:
    """Parse and run one command line; return its exit status."""
    # `--json` after a command's name counts even if that command's options cannot be parsed.
    chosen["json"] = "--json" in (words[: words.index("--")] if "--" in words else words)
    return output.run(
        lambda: _invoke(words), json=lambda: bool(chosen["json"]), debug=lambda: bool(chosen["debug"])
    )


def _invoke(words: list[str]) -> int:
    # typer 0.16 and later bring their own click; its usage error is reached through a public name.
    usage_error = typer.BadParameter.__mro__[1]
    try:
        result = app(words, prog_name="gpudebug", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except usage_error as e:  # type: ignore[misc]
        return _usage(e, words)
    except GpudebugError as e:
        if chosen["own_failure"] is None or e.exit_code == output.INTERRUPTED:
            raise
        status = e.status if isinstance(e, LaunchError) else SAMPLE_FAILED
        return output.report(e, status, as_json=bool(chosen["json"]))
    return result if isinstance(result, int) else 0


def _usage(e: Any, words: list[str]) -> int:
    """Report a command line that cannot be parsed; `sample` exits with 125, as `timeout` does."""
    if type(e).__name__ == "NoArgsIsHelpError":
        print(e.format_message())
        return UsageError.exit_code
    command = next((word for word in words if word in COMMANDS), None)
    name = e.ctx.command_path if getattr(e, "ctx", None) else " ".join(filter(None, ("gpudebug", command)))
    own = chosen["own_failure"] is not None or name.endswith(" sample")
    message = e.format_message().rstrip(".").replace(_TOO_LONG, "the number is too large")
    error = UsageError(message, next=f"{name} --help")
    return output.report(error, SAMPLE_FAILED if own else error.exit_code, as_json=bool(chosen["json"]))
