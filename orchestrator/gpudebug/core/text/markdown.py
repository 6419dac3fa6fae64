"""Free text and code inside GitHub-flavoured Markdown: shown as they are, no markup, no mention, no link."""

from __future__ import annotations

import re

from gpudebug.core.progress.sanitise import harmless, visible

# An underline inside a word, as in num_workers, is not Markdown's.
_ESCAPED = re.compile(r"[\\`*\[\]|~&<>$\u200b]|(?<![^\W_])_|_(?![^\W_])")
_OTHERWISE = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "<span>$</span>", "\u200b": "&#8203;"}
# What begins a list, a rule or a heading where the text begins a block.
_BLOCK = re.compile(r"\A(?:(?=[-+](?:\s|\Z)|--|=|#)|(\d{1,9})(?=[.)](?:\s|\Z)))")
# People, issues, addresses and emoji are looked for in what was rendered: a backslash does not stop that.
_LINKED = re.compile(r"(?<=[@#])(?=\w)|(?<=\bGH-)(?=\d)|(?<=:)(?=//|[\w+-]+:)|(?<=\bwww)(?=\.)", re.I)
# A space without width: it parts what would be found.
_PARTED = "\u200b"


def inline(text: str, limit: int = 300) -> str:
    """`text` in at most `limit` characters, for a paragraph, a list item or a cell of a table."""
    parted = _LINKED.sub(_PARTED, harmless(text, limit=limit))
    escaped = _ESCAPED.sub(lambda m: _OTHERWISE.get(m[0], f"\\{m[0]}"), parted)
    return _BLOCK.sub(r"\1\\", escaped, count=1)


def verbatim(text: str, limit: int = 300) -> str:
    """`text` as one line of what can be seen, for a code span; in at most `limit` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def legible(line: str) -> str:
    """Return a line of code: what is not to be seen in it, and may turn the order of what is, by its code."""
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in line)
