"""Texts of others made fit to be shown: in Markdown, or as a terminal has them; and titles that are alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

from gpudebug.core.lazy import regex
from gpudebug.core.progress.sanitise import harmless, visible

# An underline inside a word, as in num_workers, is not Markdown's.
_ESCAPED = regex(r"[\\`*\[\]|~&<>$\u200b]|(?<![^\W_])_|_(?![^\W_])")
_OTHERWISE = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "<span>$</span>", "\u200b": "&#8203;"}
# What begins a list, a rule or a heading where the text begins a block.
_BLOCK = regex(r"\A(?:(?=[-+](?:\s|\Z)|--|=|#)|(\d{1,9})(?=[.)](?:\s|\Z)))")
# People, issues, addresses and emoji are looked for in what was rendered: a backslash does not stop that.
_LINKED = regex(r"(?<=[@#])(?=\w)|(?<=\bGH-)(?=\d)|(?<=:)(?=//|[\w+-]+:)|(?<=\bwww)(?=\.)", re.I)
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


_CONTROL = regex(
    r"\r\n|[\r\n]|(?P<back>\x08+)|\x1b\[(?P<count>[0-9;?]{0,16})[ -/]{0,4}(?P<verb>[@-~])"
    r"|\x1b\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|\x1b[@-Z\\^-~]?"
)
_TAB = 4


def rows(text: str) -> list[str]:
    """The lines that `text` leaves on a screen, blank ones left out; no control or direction characters.

    A carriage return starts a line again, and the cursor's way up leads back to earlier lines, so that each
    of several progress bars is there once. What clears a screen begins below what was there.
    """
    screen = _TerminalRows()
    at = 0
    for control in _CONTROL.finditer(text):
        screen.write(text[at : control.start()])
        screen.obey(control)
        at = control.end()
    screen.write(text[at:])
    found = (visible(row.expandtabs(_TAB)).rstrip() for row in screen.rows)
    return [row for row in found if row]


class _TerminalRows:
    """Rows of any length; `anew` if the next text replaces its row."""

    def __init__(self) -> None:
        self.rows = [""]
        self.at = 0
        self.anew = False

    def write(self, text: str) -> None:
        if text:
            self.rows[self.at] = text if self.anew else self.rows[self.at] + text
            self.anew = False

    def obey(self, control: re.Match[str]) -> None:
        if control["back"]:
            kept = len(self.rows[self.at]) - len(control["back"])
            self.rows[self.at] = self.rows[self.at][: max(0, kept)]
        elif control["verb"]:
            self._move(control["verb"], control["count"])
        elif control[0].endswith("\n"):
            self._go(self.at + 1)
        elif control[0] == "\r":
            self.anew = True

    def _move(self, verb: str, count: str) -> None:
        far = int(count) if count.isdigit() and len(count) < 5 else 1
        if verb in "AF":
            self._go(max(0, self.at - far))
        elif verb in "BE":
            self._go(min(self.at + far, len(self.rows)))
        elif verb in "Hf" or (verb == "J" and count in ("2", "3")):
            self._go(len(self.rows))
        elif verb == "J" and count in ("", "0"):
            del self.rows[self.at + 1 :]
        elif verb == "K" and (self.anew or count in ("1", "2")):
            self.rows[self.at] = ""
        elif verb == "G" and count in ("", "0", "1"):
            self.anew = True

    def _go(self, row: int) -> None:
        if row == len(self.rows):
            self.rows.append("")
        self.at = row
        self.anew = True


ALIKE = 0.72
"""Share from which two titles are alike; set on the table in tests/core/text/test_shown.py."""

_WORD = regex(r"\w+")
_ENDINGS = ("ing", "ed", "es", "s")
_SHORTEST_STEM = 3
_EMPTY = frozenset(
    (
        *(
            "a",
            "an",
            "and",
            "are",
            "as",
            "at",
            "be",
            "by",
            "for",
            "from",
            "has",
            "have",
            "in",
            "is",
            "it",
            "its",
        ),
        *("not", "of", "on", "or", "so", "that", "the", "then", "there", "this", "to", "too", "was", "when"),
        *("while", "with"),
    )
)


def most_alike(title: str, others: Iterable[tuple[int, str]]) -> int | None:
    """The number of the title that is most like this one, None if none is `ALIKE`; the first of equals."""
    words = _words(title)
    scored = [(_likeness(words, _words(other)), number) for number, other in others]
    best = max(scored, key=lambda each: each[0], default=(0.0, None))
    return best[1] if best[0] >= ALIKE else None


def _likeness(one: list[str], other: list[str]) -> float:
    """The larger of two shares: of words in common (Jaccard), and of letters in the words put in order."""
    if not one or not other:
        return 0.0
    common = len(set(one) & set(other)) / len(set(one) | set(other))
    if common == 0.0:
        return 0.0
    letters = SequenceMatcher(None, " ".join(one), " ".join(other), autojunk=False)
    # The exact ratio takes a time that grows with the square of the length.
    return max(common, letters.ratio() if letters.quick_ratio() >= ALIKE else 0.0)


def _words(title: str) -> list[str]:
    """Return the words that mean something, folded, without endings, in order of the alphabet, each once."""
    text = unicodedata.normalize("NFKC", title).casefold().replace("_", " ")
    return sorted({_stem(word) for word in _WORD.findall(text)} - _EMPTY)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word
