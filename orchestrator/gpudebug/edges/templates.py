"""The packaged jinja2 templates: the one place that knows jinja2, imported on the first rendering."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress.sanitise import without_controls

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.nodes import EvalContext


_TICKS = re.compile("`+")
_PLACE = ("package_data", "plotly.min.js")
_NEXT = "pip install --force-reinstall 'plotly>=6.0'"
# A map library among its parts adds a style sheet unless an element of this id is there.
_GUARD = re.compile(r'getElementById\("([0-9a-f]{64})"\)')


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


@dataclass(frozen=True)
class Script:
    """`text` may be in a `<script>` as it is, line ends are `\\n`.

    Where a policy keeps it from adding style sheets, it asks for empty elements with the ids `guards`, and
    for a `<style>` with the id `styles`, into which it puts its rules.
    """

    text: str
    guards: tuple[str, ...]
    styles: str = "plotly.js-style-global"


def script() -> Script:
    """GpudebugError if the package or its script lacks."""
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise GpudebugError("the page's plots need plotly, which is not installed", next=_NEXT)
    path = Path(spec.submodule_search_locations[0], *_PLACE)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise GpudebugError(
            f"the installed plotly lacks the script that draws plots: {e}", file=str(path), next=_NEXT
        ) from None
    return Script(_inert(text), tuple(dict.fromkeys(_GUARD.findall(text))))


def _inert(text: str) -> str:
    """Return what would end a `<script>` or hide its end is in strings, where a backslash changes nothing."""
    return re.sub(r"<(?=!--|/script)", r"<\\", text, flags=re.IGNORECASE)
