"""Draw what a command printed: `python -m tests.support.picture TITLE < output > docs/pictures/why.svg`."""

from __future__ import annotations

import re
import sys
from io import StringIO

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

WIDTH = 121


def picture(title: str, text: str) -> str:
    """Return the text as an SVG of a terminal; a command behind `$ ` stands out."""
    console = Console(record=True, width=WIDTH, file=StringIO(), highlight=False)
    for line in text.splitlines():
        console.print(Text(line, style="bold" if line.startswith("$ ") else ""), soft_wrap=False)
    drawn = console.export_svg(title=title, theme=MONOKAI, unique_id="terminal")
    # A picture asks no other host for a font: the reader's own monospace does.
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL).replace("Fira Code, ", "")


if __name__ == "__main__":
    print(picture(sys.argv[1], sys.stdin.read()))
