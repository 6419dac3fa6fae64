"""A claim on a hypothesis in the progress file: whose it is and since when."""

from __future__ import annotations

from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.progress.entries import HypothesisEntry
from gpudebug.core.words import Status

_NOTE = regex(r"(?:session (?P<session>[A-Za-z0-9._:@-]{1,64}), )?since (?P<since>[0-9T:+Z.-]{10,40})")


class Claim(NamedTuple):
    """Who holds a hypothesis, None for a person, and since when (UTC, ISO 8601 to the microsecond).

    The two together are the fencing token: a result counts only under the claim that it was measured under.
    """

    session: str | None
    since: str

    @property
    def note(self) -> str:
        """Write what follows TESTING; `read` reads it back."""
        return f"session {self.session}, since {self.since}" if self.session else f"since {self.since}"

    @property
    def holder(self) -> str:
        """The holder, for a message."""
        return f"session {self.session}" if self.session else "a person"


def read(note: str) -> Claim | None:
    """Parse the claim of a status line; None if gpudebug did not write it."""
    found = _NOTE.fullmatch(note.strip())
    return Claim(found["session"], found["since"]) if found else None


def on(entry: HypothesisEntry) -> Claim | None:
    """Return the claim that an entry is under; None if it is under none."""
    return read(entry.status_note) if entry.status is Status.TESTING else None
