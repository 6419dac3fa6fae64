"""The pages of docs/reference that the product's own tables write: `python -m tests.support.reference`."""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from tests.support.json_reference import described

from gpudebug.cli import app
from gpudebug.cli.options import GROUPS, spelling
from gpudebug.core import errors
from gpudebug.core.catalogue.signals import SIGNALS
from gpudebug.core.config import pins, print_defaults
from gpudebug.core.statistics.assumed import TABLE
from gpudebug.engine.diagnosis import catalogue_view

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"
_NOTE = "<!-- Written by `python -m tests.support.reference`; edit the code instead. -->"

_EVERYWHERE = ("directory", "json")
_STATUSES = (
    ("0", "done, whatever the verdict"),
    ("1", "expected error: one line says what, where and what to do next"),
    ("2", "usage: the command line cannot be parsed"),
    ("3", "a defect of gpudebug; it names a log file, and `--debug` shows the traceback"),
    ("4", "nothing left to do: solved, exhausted or out of budget"),
    ("5", "your turn: propose a hypothesis or write its change"),
    ("6", "busy: who holds the lock, claim or device, and since when"),
    ("7", "this session has had its hypothesis: stop"),
    ("130", "interrupted"),
)
_SAMPLE_STATUSES = (
    ("0 to 123", "the command's own exit status"),
    ("124", "time-out"),
    ("125", "gpudebug failed before the launch, or stopped the command before it overwrote a file"),
    ("126", "the command is not executable"),
    ("127", "the command was not found"),
    ("128+N", "ended by signal N"),
)


def commands() -> str:
    """Each command with its arguments, options and examples, as its `--help` has them."""
    group: Any = typer.main.get_command(app)
    parts = [
        "# Commands",
        group.help,
        "Before any command, and `-C` and `--json` behind it too:",
        _options(group.params),
    ]
    for name in (name for names in GROUPS.values() for name in names):
        parts += [f"## gpudebug {name}", *_described(name, group.commands[name])]
    return _joined(parts)


def _described(name: str, command: Any) -> Iterator[str]:
    yield inspect.cleandoc(command.help or "")
    arguments = "".join(f" {spelling(p)}" for p in command.params if p.param_type_name == "argument")
    yield f"```console\ngpudebug {name} [OPTIONS]{arguments}\n```"
    yield _options([p for p in command.params if p.name not in _EVERYWHERE])
    examples = [line.removeprefix("Example: ") for line in (command.epilog or "").split("\n\n") if line]
    if examples:
        yield "```bash\n" + "\n".join(examples) + "\n```"


def _options(params: Sequence[Any]) -> str:
    if not params:
        return ""
    return table(("option", "meaning"), [(f"`{spelling(p)}`", _meaning(p)) for p in params])


def _meaning(param: Any) -> str:
    default = param.default
    shown = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    return (param.help or "") + (f" Default: {default}." if shown and not param.required else "")


def configuration() -> str:
    """gpudebug.yaml with its defaults, and what pinning means for each setting."""
    rows = [(f"`{key}`", rule.kind.value, rule.text) for key, rule in pins.TABLE.items()]
    return _joined(
        [
            "# gpudebug.yaml",
            "Every setting with its default, as `gpudebug init --print-defaults` prints it. Only\n"
            "`workload.command` is required. Durations and sizes take units. Unknown keys, wrong types and\n"
            "impossible values are refused with file, line, what was expected and the nearest valid key.",
            f"```yaml\n{print_defaults().rstrip()}\n```",
            "## Pinned settings",
            "[Security](../security.md#settings) says what pinning is. *Ordered*: a value can be weaker\n"
            "than the pinned one. *Different*: another value asks for a new baseline. *Free*: no verdict\n"
            "depends on it.",
            table(("setting", "class", "means"), rows),
        ]
    )


def catalogue() -> str:
    """The root causes by group, and the evidence that they read."""
    with tempfile.TemporaryDirectory(prefix="gpudebug-reference-") as folder:
        overview = catalogue_view.overview(Path(folder))
    parts = [
        "# Catalogue of root causes",
        f"{overview.count} root causes; `gpudebug catalogue ID` shows one in full.\n"
        "[Diagnosis](../diagnosis.md) says how they are ranked,\n"
        "[hypotheses/README.md](../../hypotheses/README.md) how to add one.",
    ]
    for group in overview.groups:
        rows = [(f"`{cause.id}`", _plain(cause.title), _plain(cause.shows)) for cause in group.causes]
        parts += [f"## {group.group}", table(("id", "root cause", "shows"), rows)]
    rows = [(f"`{name}`", signal.unit, signal.source, signal.said) for name, signal in SIGNALS.items()]
    parts += ["## Signals", "What conditions can read, as `gpudebug catalogue --signals` lists it."]
    return _joined([*parts, table(("signal", "unit", "source", "as a fact"), rows)])


def exit_statuses() -> str:
    """Exit statuses, and the codes of expected errors in `--json`."""
    named = [e for e in vars(errors).values() if inspect.isclass(e) and issubclass(e, errors.GpudebugError)]
    codes = {e.code: (f"`{e.code}`", str(e.exit_code)) for e in named if "code" in vars(e)}
    return _joined(
        [
            "# Exit statuses",
            table(("status", "means"), _STATUSES),
            "`gpudebug verify` ends with 1 if something differs, `gpudebug doctor` if something is amiss, "
            "`gpudebug check` if what was accepted gains less than it did.",
            "`gpudebug why` ends with 1 if the command failed.",
            "`gpudebug doctor --gpu` ends with 2 if there is no GPU, and with 6 if one is in use.",
            "`gpudebug sample` ends as the command did, as `timeout` does:",
            table(("status", "means"), _SAMPLE_STATUSES),
            "## Codes of errors",
            '`--json` prints an expected error as `{"error": {"code", "message", "file", "line", "next"}}`.\n'
            "Common codes, with the exit status; a command may have codes of its own, with status 1:",
            table(("code", "status"), list(codes.values())),
        ]
    )


def json() -> str:
    """What each command prints with `--json`."""
    return _joined(
        [
            "# JSON",
            "With `--json` standard output is one JSON document and nothing else; progress goes to\n"
            "standard error. Keys may be added, never renamed or changed. Unknown is `null`. Units:\n"
            "seconds, `_mb` is 2^20 bytes, utilisation in per cent, differences of utilisation in\n"
            "percentage points, shares from 0 to 1, ratios trial over baseline. The columns of the samples\n"
            "are in [samples.csv](samples.md).",
            'An expected error is `{"error": {"code", "message", "file", "line", "next"}}` with its\n'
            "[exit status](exit-statuses.md).",
            *described(),
        ]
    )


def assumptions() -> str:
    """What verdicts take for granted, and what a recording of a GPU would replace."""
    rows = [
        (f"`{name}`", f"{row.value:.3g} {row.unit}", row.meaning, row.source, row.by)
        for name, row in TABLE.items()
    ]
    return _joined(
        [
            "# What verdicts take for granted",
            "Figures of programs, hosts and devices that are no setting. Noise counts until a campaign has"
            " shown its own ([verdicts](../verdicts.md)), the rest holds throughout; *simulated* is read by"
            " [the simulation of verdicts](../benchmarks.md#verdicts) alone. None was measured on a GPU: the"
            " last column is the part of `python -m tests.gpu` whose recording replaces it.",
            table(("name", "value", "of", "from", "replaced by"), rows),
        ]
    )


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "configuration.md": configuration,
    "catalogue.md": catalogue,
    "exit-statuses.md": exit_statuses,
    "json.md": json,
    "assumptions.md": assumptions,
}
"""One function for each page of docs/reference that is not written by hand."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; cells keep their text, line ends and bars made harmless."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _plain(text: str) -> str:
    """Text in which nothing is Markdown: signs have regular expressions in them."""
    return re.sub(r"([\\`*_\[\]<>])", r"\\\1", text)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _joined(parts: Sequence[str]) -> str:
    title, *rest = parts
    return "\n\n".join([title, _NOTE, *(part for part in rest if part)]) + "\n"


def main() -> None:
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
