"""A patch with a head as mail has it: `git apply` reads past it, `git am` makes title and message of it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from datetime import datetime, timezone
from email.utils import format_datetime

_WIDTH = 76
_SENDER = "gpudebug <gpudebug@localhost>"
FIRST_LINE = b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
"""That of every file of ours, as `git format-patch` begins one."""

# What `git am` takes for a header or for the end of the message, and `git apply` for a patch's beginning.
_MEANT = re.compile(r"[-+@*>]|(?:diff|index|Index|From|Date|Subject|GIT)\b|\w+:")


def patch_mail(
    diff: bytes, *, title: str, paragraphs: Sequence[str], place: tuple[int, int], date: datetime
) -> bytes:
    """`diff` with its head. `place` is which of how many patches; each paragraph is one line of text.

    `title` and `paragraphs` have no line breaks and no control characters (`progress.harmless`).
    """
    number, count = place
    head = [
        f"From: {_SENDER}",
        f"Date: {format_datetime(date.astimezone(timezone.utc))}",
        f"Subject: [PATCH {number}/{count}] {title}",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Transfer-Encoding: 8bit",
    ]
    body = "\n\n".join("\n".join(_wrapped(text)) for text in paragraphs if text)
    text = "\n".join(head) + f"\n\n{body}\n---\n\n"
    return FIRST_LINE + text.encode("utf-8", "replace") + diff


def _wrapped(text: str) -> list[str]:
    """Return the lines of a paragraph; one that means something to git is indented."""
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f" {line}" if _MEANT.match(line) else line for line in lines]
