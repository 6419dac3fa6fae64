"""The brief's page: parts that share one limit, history that folds from its oldest end, text made harmless.

A page for an agent is read whole, so it stays short however long a campaign grows. What it tells of
other texts (titles, notes, training output) can neither open a block of it nor leave its quotes.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.progress.sanitise import harmless, visible

LIMIT = 4600
"""Characters of a page at most."""
Say = Callable[[str], str]
"""Redacts a text of others and makes it one harmless line, of any length."""
_NARROW, _WIDE = 110, 260
"""Characters of a line of history, at least and at most."""
_WHOLE = 60
"""A flag up to so long is shown with its value or not at all."""
_COUNTED = 60
"""Characters that a line of counts needs at least."""
_QUOTE = "'"
_TICKS = regex("`+")


class PagePart(NamedTuple):
    """One part of a page. `write` gives its text in at most so many characters, empty if it has none.

    It gets `least` characters in any case and up to `most` of what the others leave, a low `rank` first.
    """

    write: Callable[[int], str]
    least: int
    most: int
    rank: int = 0


class Tried(NamedTuple):
    """A judged hypothesis: `mark` is its verdict and standing, `write` gives its line in about so many
    characters."""

    number: int
    mark: str
    write: Callable[[int], str]


def page(head: str, parts: Sequence[PagePart], end: str, limit: int = LIMIT) -> str:
    """Return the page: `head` and `end` whole, between them what the parts say in the room that is left."""
    room = limit - len(head) - len(end) - 2 * (len(parts) + 1)
    wanted = [part.write(part.most) for part in parts]
    given = shares(
        [(len(text), part.least, part.rank) for text, part in zip(wanted, parts, strict=True)], room
    )
    texts, spare = wanted[:], room - sum(given)
    for i in sorted(range(len(parts)), key=lambda i: parts[i].rank):
        # A part that ends at a line leaves room for those behind it.
        size = min(parts[i].most, given[i] + max(0, spare))
        if len(wanted[i]) > size:
            texts[i] = parts[i].write(size)
        spare += given[i] - len(texts[i])
    return "\n\n".join([head, *filter(None, texts), end])


def unseen(text: str, seen: Collection[str], digest: Callable[[bytes], str]) -> tuple[str, tuple[str, ...]]:
    """A page without the sections of which a session has `seen` the digests, and the digests of all of it.

    The head and the last section, which says what to do now, stay; one line names what is left out.
    """
    head, *sections = text.split("\n\n## ")
    if not sections:
        return text, ()
    *body, last = sections
    digests = tuple(digest(part.encode("utf-8", "replace")) for part in body)
    fresh = [part for part, known in zip(body, digests, strict=True) if known not in seen]
    gone = [part.partition("\n")[0].partition(" (")[0] for part in body if part not in fresh]
    if gone:
        head += f"\n\nAs on your last page (`gpudebug next --whole` repeats it): {'; '.join(gone)}."
    return "\n\n## ".join([head, *fresh, last]), digests


def shares(asked: Sequence[tuple[int, int, int]], room: int) -> list[int]:
    """Return how many characters of `room` each part gets, given as (wanted, least, rank): first the least of
    all, then the rest, a low rank first. None gets more than it wants."""
    given = [0] * len(asked)
    in_turn = sorted(range(len(asked)), key=lambda i: asked[i][2])
    for least_only in (True, False):
        for i in in_turn:
            wanted, least, _ = asked[i]
            bound = min(wanted, least) if least_only else wanted
            given[i] += max(0, min(bound - given[i], room - sum(given)))
    return given


def longest(sizes: Sequence[int], room: int) -> int:
    """Return to how many characters texts of these sizes are cut, the longest first, to fit in `room`."""
    for place, size in enumerate(sorted(sizes)):
        share = room // (len(sizes) - place)
        if size > share:
            return share
        room -= size
    return max(sizes, default=0)


def quoted(text: str, limit: int) -> str:
    """Quote a text of others as one harmless line that it cannot close; empty for no text."""
    line = harmless(text, limit=limit).replace('"', "'")
    return f'"{line}"' if line else ""


def code(text: str) -> str:
    """Return a markdown code span with as many backticks as the text needs."""
    ticks = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def words(command: str) -> list[str]:
    """Return the words of a command, each as a shell takes it; an open quote makes them plain words."""
    try:
        return [shlex.quote(word) for word in shlex.split(command)]
    except ValueError:
        return command.split()


def whole(words: Sequence[str], limit: int, rest: str = "") -> str:
    """Join the words of a command that fit, none cut: a flag that is too long stays as `--name=…`.

    The words that are missing are counted, `rest` says where they are.
    """
    if len(" ".join(words)) <= limit:
        return " ".join(words)
    made: list[str] = []
    left = limit - len(f"… and {len(words)} more{rest}")
    for word in words:
        name, equals, _ = word.partition("=")
        shown = f"{name.lstrip(_QUOTE)}=…" if equals and len(word) > max(left, _WHOLE) else word
        if len(shown) < left:
            made.append(shown)
            left -= len(shown) + 1
    gone = len(words) - len(made)
    return " ".join([*made, *([f"… and {gone} more{rest}"] if gone else [])])


def section(title: str, lines: Sequence[str]) -> str:
    """Return a heading with its lines; nothing if there are no lines."""
    return "\n".join([f"## {title}", "", *lines]) if lines else ""


def fitting(lines: Sequence[str], limit: int, more: Callable[[int], str]) -> list[str]:
    """Return the first lines that fit in `limit` characters, and `more` of those that do not."""
    if _size(lines) <= limit:
        return list(lines)
    kept: list[str] = []
    left = limit - max(len(more(n)) for n in (1, len(lines))) - 1
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    last = more(len(lines) - len(kept))
    return [*kept, last] if _size([*kept, last]) <= limit else []


def bullets(title: str, lines: Sequence[str], limit: int, more: str) -> str:
    """Return a section of bullets, as many as fit; `more` says where the rest is."""
    shown = fitting(
        [f"- {line}" for line in lines], limit - len(title) - 5, lambda n: f"- and {n} more: {more}"
    )
    return section(title, shown)


def fenced(lines: Sequence[str], limit: int, width: int = 160) -> str:
    """Untrusted lines in a code fence that none of them can close, the last ones that fit.

    Control sequences and characters are gone, a line has at most `width` characters.
    """
    shown = [line for text in lines for part in text.splitlines() if (line := _log_line(part, width))]
    ticks = max((len(run) for line in shown for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, ticks + 1)
    left = limit - 2 * len(fence) - len("text") - 40
    kept: list[str] = []
    for line in reversed(shown):
        left -= len(line) + 1
        if left < 0:
            break
        kept.insert(0, line)
    if not kept:
        return ""
    gone = len(shown) - len(kept)
    return "\n".join([f"{fence}text", *([f"[{gone} lines left out]"] if gone else []), *kept, fence])


def _log_line(text: str, width: int) -> str:
    line = visible(text[: 8 * width]).rstrip()
    return line if len(line) <= width else line[: width - 1] + "…"


def block_quote(text: str, limit: int, more: str) -> str:
    """Quote a text of several lines, cut behind a line or word; `more` says where the rest is."""
    lines = [f"> {visible(line).rstrip()}".rstrip() for line in text[: 4 * limit].strip().splitlines()]
    if len(text) <= 4 * limit and _size(lines) <= limit:
        return "\n".join(lines)
    left = limit - len(more) - 3
    kept: list[str] = []
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            part = line[: max(0, left + len(line) - 1)].rpartition(" ")[0]
            kept += [f"{part} …"] if len(part) > 2 else []
            break
        kept.append(line)
    return "\n".join([*kept, f"> {more}"]) if kept else ""


def history(newest: Sequence[Tried], older: Sequence[tuple[int, str]], limit: int) -> list[str]:
    """Return what was tried, newest first: a line each in equal shares of the room, then counts.

    `older` are number and mark of what is before `newest`. At most `limit` characters.
    """
    width = min(_WIDE, max(_NARROW, (limit - (_COUNTED if older else 0)) // max(1, len(newest)) - 3))
    lines = [f"- {tried.write(width)}" for tried in newest]
    for kept in range(len(lines), -1, -1):
        rest = [*((t.number, t.mark) for t in newest[kept:]), *older]
        for shown in (8, 3, 1, 0):
            what = "more" if kept else "tried"
            made = [*lines[:kept], *([f"- {len(rest)} {what}: {counts(rest, shown)}"] if rest else [])]
            if _size(made) <= limit:
                return made
    return []


def counts(rest: Iterable[tuple[int, str]], shown: int) -> str:
    """`4 VALIDATED (h3, h9, …), 27 REJECTED (h1, …)`: at most `shown` numbers each, the best first."""
    rest = list(rest)
    totals = Counter(mark for _, mark in rest)
    parts = []
    for mark in sorted(totals, key=lambda mark: (not mark.startswith("VALIDATED"), mark)):
        numbers = [f"h{number}" for number, m in rest if m == mark] if shown else []
        names = ", ".join([*numbers[:shown], *(["…"] if len(numbers) > shown else [])])
        parts.append(f"{totals[mark]} {mark}" + (f" ({names})" if names else ""))
    return ", ".join(parts)


def _size(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + max(0, len(lines) - 1)
