"""The packaged jinja2 templates: the one place that knows jinja2, imported on the first rendering."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from gpudebug.core.progress.sanitise import without_controls

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.nodes import EvalContext

_TICKS = re.compile("`+")


def render(name: str, **values: object) -> str:
    """One packaged template as text, `progress.md.j2` for example; values are escaped in HTML alone.

    A value that the template names and the call lacks is a defect: jinja2's UndefinedError.
    """
    return _environment().get_template(name).render(**values)


def source(name: str) -> str:
    """Read a packaged file unchanged, `report.css` for example."""
    from importlib.resources import files

    return (files("gpudebug") / "templates" / name).read_text("utf-8")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_eval_context
    from markupsafe import Markup

    @pass_eval_context
    def seen(context: EvalContext, value: object) -> object:
        """In a page, whatever text is put into it: no character that turns or hides what is around it."""
        if not context.autoescape or not isinstance(value, str) or isinstance(value, Markup):
            return value
        return without_controls(value)

    environment = Environment(
        loader=PackageLoader("gpudebug", "templates"),
        undefined=StrictUndefined,
        autoescape=lambda name: name is not None and ".html" in name,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=seen,
    )
    environment.filters.update(one_line=_one_line, code=_code, cell=_cell, run_folders=_run_folders)
    return environment


def _one_line(text: str) -> str:
    """Line breaks become spaces; other white space stays, it may matter in a command."""
    return " ".join(part for line in text.splitlines() if (part := line.strip()))


def _code(text: str) -> str:
    """Return a markdown code span with as many backticks as the text needs."""
    line = _one_line(text)
    ticks = "`" * (1 + max(map(len, _TICKS.findall(line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def _cell(text: str) -> str:
    """Escape a text for one cell of a markdown table."""
    return _one_line(text).replace("|", "\\|")


def _run_folders(names: Iterable[str]) -> str:
    """Run folders as paths, joined by commas: `runs/0005-h1, runs/0006-h1`; `none` for no run."""
    return ", ".join(name if "/" in name else f"runs/{name}" for name in names) or "none"
