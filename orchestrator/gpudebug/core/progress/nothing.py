"""Who has nothing to propose: a section of the progress file of its own, which earlier readers leave alone.

One line each, in a code fence, so that no word of it is taken for an entry, a figure or a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.progress.blocks import Heading
from gpudebug.core.progress.entries import ProgressFile

LONGEST = 500
"""Characters of a reason: it is one line of the file."""
_TITLE = "Nothing to propose"
_ROW = regex(
    rb"^(?:a person|session (?P<session>[A-Za-z0-9._:@-]{1,64})), since (?P<since>[0-9T:+Z.-]{10,40}), "
    rb"standing (?P<standing>[0-9a-f]{16}): (?P<why>[^\r\n]*)(?:\r\n|\r|\n|\Z)",
    re.MULTILINE,
)


class NothingToPropose(NamedTuple):
    """Session (None: a person), UTC time, digest of what was tested until then, and the reason given."""

    session: str | None
    since: str
    standing: str
    why: str

    @property
    def line(self) -> str:
        """Write it as `read` reads it back."""
        who = "a person" if self.session is None else f"session {self.session}"
        return f"{who}, since {self.since}, standing {self.standing}: {self.why}"


def read(doc: ProgressFile) -> tuple[NothingToPropose, ...]:
    """Return all that is recorded, in the order of the file."""
    if _TITLE.lower().encode() not in doc.data.lower():
        return ()
    return tuple(_record(row) for section in _sections(doc) for row in _rows(doc, section))


def add(doc: ProgressFile, said: NothingToPropose) -> bytes:
    """Return the file with one line more, in the section of its own, which is made at the end if absent.

    Raises ProgressError if an unclosed fence would swallow it.
    """
    # `status` only reads.
    from gpudebug.core.progress.sanitise import harmless
    from gpudebug.core.progress.splice import _apply, _insert, _lines_after

    said = said._replace(why=harmless(said.why, limit=LONGEST))
    sections = list(_sections(doc))
    rows = _rows(doc, sections[-1]) if sections else []
    if rows:
        return _apply(doc.data, [_lines_after(doc, rows[-1].end(), f"{said.line}\n".encode())])
    fenced = f"```text\n{said.line}\n```"
    if sections:
        return _insert(doc, _end(doc, sections[-1]), fenced.encode())
    return _insert(doc, len(doc.data), f"## {_TITLE}\n\n{fenced}".encode())


def _record(row: re.Match[bytes]) -> NothingToPropose:
    session = row["session"]
    return NothingToPropose(
        session.decode("ascii") if session else None,
        row["since"].decode("ascii"),
        row["standing"].decode("ascii"),
        row["why"].decode("utf-8", "replace"),
    )


def _sections(doc: ProgressFile) -> Iterator[Heading]:
    for heading in doc.outline.headings:
        if heading.text.decode("utf-8", "replace").strip().strip(":*_").casefold() == _TITLE.casefold():
            yield heading


def _rows(doc: ProgressFile, section: Heading) -> list[re.Match[bytes]]:
    return list(_ROW.finditer(doc.data, section.end, _end(doc, section)))


def _end(doc: ProgressFile, section: Heading) -> int:
    """Return where the next heading of any level begins."""
    later = (heading.start for heading in doc.outline.headings if heading.start > section.start)
    return min(later, default=len(doc.data))
