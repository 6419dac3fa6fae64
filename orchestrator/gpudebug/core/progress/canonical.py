"""Values of the progress file as gpudebug writes them, whatever a formatter made of them."""

from __future__ import annotations

import re

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPAN = re.compile(r"(?<=[\d%x]) [–—] (?=[-+\d])")
# No word of a change begins like this.
_OPTION = re.compile(r"(?<!\S)(?:\\-\\?-|-\\-|[–—])(?=[A-Za-z])")


def unescaped(text: str) -> str:
    """Return a text without Markdown's backslashes in front of punctuation."""
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def plain(text: str) -> str:
    """Return a figure without a formatter's escapes and dashes."""
    text = unescaped(text)
    return text if text.isascii() else _SPAN.sub(" to ", text.replace("−", "-"))


def options(text: str) -> str:
    """Return a change whose options begin with two hyphens, whatever a formatter made of them."""
    return _OPTION.sub("--", text)
