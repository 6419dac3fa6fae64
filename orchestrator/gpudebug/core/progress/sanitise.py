"""Free text from agents and people, made unable to break the grammar of the progress file."""

from __future__ import annotations

import unicodedata

from gpudebug.core.lazy import regex

# CSI, then OSC and its like, then any other escape (ECMA-48), each with its tail. What opens one ends the
# search of the one before it: a text of nothing but openers takes linear time.
_ESCAPES = regex(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]?"
)
# A block marker at the beginning of a text is one wherever the text begins a line.
_BLOCK_MARKERS = regex(r"(?:(?:#{1,6}|[-*+>]|[<>|=]{7,})(?:\s+|\Z))+")
# A tag would be raw HTML, and an open one can swallow what is rendered after it.
_TAGS = regex(r"<(?=[A-Za-z/!?][^<>]*>)")
_FENCES = regex(r"([`~])\1{2,}")
# The joiners that scripts and emoji need; every other format character, bidi controls first, goes.
_JOINERS = "\u200c\u200d"
_REMOVED = frozenset({"Cc", "Cf", "Cs"})
_OBEYED = frozenset({"Cc", "Cf"})
# Letters and a symbol that show nothing.
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"


def harmless(text: str, *, limit: int) -> str:
    """`text` as one line of at most `limit` characters that cannot open a block or hide other text.

    Removes escape sequences, control, bidi and other format characters and lone surrogates; joins
    lines with a space; takes block markers from the front; shortens runs of backticks and tildes;
    breaks tags and comment openers. A text that was cut ends in `…`, one that shows nothing is empty.
    Applying it twice changes nothing.
    """
    # Removing one thing can bring another together, so until nothing changes; each round shortens.
    while (shorter := _once(text, limit)) != text:
        text = shorter
    return text if text.isascii() or any(map(_shows, text)) else ""


def visible(text: str) -> str:
    """`text` without escape sequences, control, bidi and other format characters and lone surrogates.

    White space stays as it is, but for line breaks and tabs: each becomes a space.
    """
    while (shorter := _seen(text)) != text:
        text = shorter
    return text


def without_controls(text: str) -> str:
    """`text` in its lines, without what moves a cursor, hides or turns other text; tabs stay."""
    if text.isprintable():
        return text
    return "".join(c for c in text if c in "\n\t" or c in _JOINERS or unicodedata.category(c) not in _OBEYED)


def _seen(text: str) -> str:
    text = _ESCAPES.sub("", text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_kept(character) for character in text)


def _once(text: str, limit: int) -> str:
    text = " ".join(_seen(text).split())
    text = _FENCES.sub(r"\1", text).replace("<!--", "<!- -")
    text = _TAGS.sub("< ", text)
    if _BLOCK_MARKERS.match(text):
        text = _BLOCK_MARKERS.sub("", text, count=1)
    text = _without_closing_hashes(text)
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"[:limit]


def _without_closing_hashes(text: str) -> str:
    """`title ##` closes a heading; `in C#` does not. Not a pattern, whose time would be quadratic."""
    front = text.rstrip("# ")
    tail = text[len(front) :]
    return front + tail[: len(tail) - len(tail.lstrip("#"))]


def _kept(character: str) -> str:
    if character.isspace():
        return " "
    return "" if unicodedata.category(character) in _REMOVED and character not in _JOINERS else character


def _shows(character: str) -> bool:
    """Tell whether a character alone can be seen: no joiner, no mark without its letter, no filler."""
    return character not in _JOINERS + _BLANK and unicodedata.category(character)[0] not in "MZ"
