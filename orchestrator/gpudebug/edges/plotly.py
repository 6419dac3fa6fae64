"""The script that draws the page's plots, as the installed package `plotly` carries it.

Importing that package takes about a second and is not needed: its script is read as a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from gpudebug.core.errors import GpudebugError

_PLACE = ("package_data", "plotly.min.js")
_NEXT = "pip install --force-reinstall 'plotly>=6.0'"
# A map library among its parts adds a style sheet unless an element of this id is there.
_GUARD = re.compile(r'getElementById\("([0-9a-f]{64})"\)')


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
