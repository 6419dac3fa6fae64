"""Secrets taken out of text that arrives in pieces: the result is that of the whole text at once."""

from __future__ import annotations

import re
from collections.abc import Callable

LONGEST = 1 << 18
"""Characters held back at most: longer lines and keys are cut, at white space if there is some."""
_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_KEY_END = "-----END"
# A login and the password behind it may stand on lines of their own, this far apart at most.
_LOGIN = "login"
_LOGIN_REACH = 300


class RedactedStream:
    """Feed it text as it comes. It hands on, redacted, what no later text can make part of a secret."""

    def __init__(self, redact: Callable[[str], str], longest: int = LONGEST) -> None:
        self._redact = redact
        self._longest = longest
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what can be handed on by now; it ends with a line's end."""
        self._held += text
        ready = self._take(safe_end(self._held))
        while len(self._held) > self._longest:
            ready += self._take(_forced_end(self._held, self._longest))
        return ready

    def finish(self) -> str:
        """Return the rest."""
        return self._take(len(self._held))

    def _take(self, end: int) -> str:
        text, self._held = self._held[:end], self._held[end:]
        return self._redact(text) if text else ""


def safe_end(text: str) -> int:
    """How much of `text` can be redacted without what follows: whole lines, no open key, no lone login."""
    end = text.rfind("\n") + 1
    for key in _KEY.finditer(text, 0, end):
        closed = text.find(_KEY_END, key.end(), end)
        if closed < 0:
            end = text.rfind("\n", 0, key.start()) + 1
            break
    login = text.find(_LOGIN, max(0, end - _LOGIN_REACH), end)
    return end if login < 0 else text.rfind("\n", 0, login) + 1


def _forced_end(text: str, longest: int) -> int:
    found = max(text.rfind(c, 0, longest) for c in "\n \t")
    return found + 1 if found >= 0 else longest
