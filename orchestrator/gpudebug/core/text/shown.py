"""Texts of others made fit to be shown: in Markdown, and the end of an output as a terminal has it."""

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


_CONTROL = re.compile(
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
