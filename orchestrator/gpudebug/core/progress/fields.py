"""The bullets of one entry: which lines belong to which field, and what they say.

People and agents write `- **Status**: X`, `* Status: X`, `**Status:** X` and more. A field is found by
its key; what cannot be understood is left as the own text that it is. If a key is there twice the
first one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.progress.blocks import plain, width
from gpudebug.core.words import Status

EARLIER_RESULT = "earlier result"
EARLIER_RUNS = "earlier runs"
ENTRY_KEYS = frozenset({"description", "test method", "intervention", "status", "accepted", "result"})
RESULT_KEYS = frozenset(
    {
        *("gpu util before", "gpu util after", "metric", "improvement"),
        *("training", "loss", "throughput", "notes", "runs"),
    }
)
KNOWN_KEYS = ENTRY_KEYS | RESULT_KEYS | {"command", "gpu util", "work"}
_OTHER_NAMES = {"results": "result", "method": "test method", "run": "runs", "change": "intervention"}

_BULLET = regex(rb"([ \t]*)[-*+](?:[ \t]+(?:\[[ xX]\][ \t]+)?|\Z)")
_KEY = regex(rb"((?:[^\w\n:]|_){0,40})([A-Za-z][A-Za-z0-9 _/().#%-]{0,60}?)([*_`]*)[ \t]*(?::|\xef\xbc\x9a)")
_BOLD_KEY_DASH = regex(
    rb"(\*\*|__)([A-Za-z][A-Za-z0-9() -]{0,60}?)(\*\*|__)[ \t]*(?:-+|\xe2\x80[\x93\x94])[ \t]+"
)
_RULE = regex(rb" {0,3}([-*_])(?:[ \t]*\1){2,}\Z")
_SPACING = regex(r"[\s_/()#-]+")
_INLINE_KEY = regex(
    r"(?:\A|(?<=[\s;,|*(]))[*_`]*(gpu[ _]util(?:i[sz]ation)?[ _]\(?(?:before|after)\)?"
    r"|improvement|training|loss|throughput|notes|runs?)[*_`]*:[*_`]*",
    re.IGNORECASE,
)
_RUN = regex(r"(?<![\w.-])\d{4,}-[A-Za-z][\w.-]*")
_NOISE = regex(rb"<!--.{0,200}?-->|~~[^~]{0,200}~~|:[a-z0-9_+-]{1,40}:", re.IGNORECASE)
_WORD = regex(rb"[A-Za-z]+")
_STATUS_WORDS = {status.value.encode(): status for status in Status}
_LONGEST_STATUS = 2000
_EARLIER = regex(rf"({EARLIER_RESULT}|{EARLIER_RUNS})(?: (\d{{1,6}}))?")


class FileLine(NamedTuple):
    """One line without its ending; `hidden` if it is in a fence or comment."""

    offset: int
    end: int
    text: bytes
    hidden: bool


class Key(NamedTuple):
    """A key on a line: its name, where name and value begin, and emphasis still open at the value."""

    name: str
    at: int
    length: int
    value_at: int
    open: bytes
    bold: bool


@dataclass(slots=True)
class Field:
    """One field: offsets of its lines, its key, its first line and the lines that continue it.

    `marker` is the bullet character, empty for a line without one. `name` is empty for a bullet
    without a key.
    """

    name: str
    key: Key | None
    first: FileLine
    end: int
    indent: int
    marker: bytes
    flat: bool = False
    rest: list[FileLine] = field(default_factory=list)

    @property
    def value(self) -> bytes:
        """The text after the key on the first line."""
        if self.key is None:
            return b""
        return _unmark(self.first.text[self.key.value_at :].strip(), self.key.open)

    def text(self, joint: str = "\n") -> str:
        """Return the whole value, continuation lines joined by `joint`."""
        lines = [self.value, *(line.text.strip() for line in self.rest)]
        return joint.join(line.decode("utf-8", "replace") for line in lines if line)


class ResultItem(NamedTuple):
    """One value of a Result block: its key (empty for own text), its text and its lines."""

    name: str
    text: str
    start: int
    end: int


class StatusReading(NamedTuple):
    """A status line: `status` is None if its first word, `word`, is not one of the six.

    `start` and `end` are the offsets of the value; `opening` and `closing` the emphasis round the word.
    """

    status: Status | None
    word: str
    note: str
    start: int
    end: int
    opening: bytes
    closing: bytes


def read_fields(data: bytes, start: int, end: int, opaque: Sequence[tuple[int, int]] = ()) -> list[Field]:
    """Return the fields between two byte offsets, in order. `opaque` are the fences and comments there."""
    found: list[Field] = []
    current: Field | None = None
    gap = bulleted = False
    for line in _lines(data, start, end, opaque):
        if not line.text:
            gap = True
            continue
        opened = None if line.hidden else _open(line, current, bulleted)
        if opened is not None:
            current = opened
            found.append(opened)
            bulleted = bulleted or bool(opened.marker)
        elif current is not None and _continues(line, current, gap, opaque):
            current.rest.append(line)
            current.end = line.end
        else:
            current = None
        gap = False
    return found


def is_known(name: str) -> bool:
    """Tell whether a key of this name is gpudebug's own, and no word of an own text."""
    return name in KNOWN_KEYS or earlier(name) > 0


def earlier(name: str) -> int:
    """Return which of an entry's earlier results a key belongs to: 1 for `earlier result`, 2 for `earlier
    result 2`, 0 for every other key."""
    match = _EARLIER.fullmatch(name) if name.startswith("earlier") else None
    return int(match[2] or 1) if match else 0


def is_result(name: str) -> bool:
    """Tell whether this is the key of a Result, the present one or an earlier one."""
    return name == "result" or (name.startswith(EARLIER_RESULT) and earlier(name) > 0)


def first_of(fields: Sequence[Field], name: str) -> Field | None:
    return next((each for each in fields if each.name == name), None)


def result_items(result: Field) -> list[ResultItem]:
    """Return the values nested under a Result, own text of people included, in order."""
    grouped: list[tuple[str, int, list[FileLine]]] = []
    texts: list[list[bytes]] = []
    seen: set[str] = set()
    for line in result.rest:
        opened = None if line.hidden else _open_item(line, grouped[-1][1] if grouped else None, seen)
        if opened is None:
            if grouped:
                grouped[-1][2].append(line)
                texts[-1].append(line.text.strip())
            continue
        name, indent, value = opened
        seen.add(name)
        grouped.append((name, indent, [line]))
        texts.append([value])
    return [
        ResultItem(
            name, b" ".join(filter(None, words)).decode("utf-8", "replace"), lines[0].offset, lines[-1].end
        )
        for (name, _, lines), words in zip(grouped, texts, strict=True)
    ]


def result_pairs(result: Field) -> list[ResultItem]:
    """Return the values of a Result in order, those on its own line first; `summary` is text there without
    a key."""
    inline = result.value.decode("utf-8", "replace")
    matches = list(_INLINE_KEY.finditer(inline))
    begin, end = result.first.offset, result.first.end
    pairs: list[ResultItem] = []
    if summary := inline[: matches[0].start() if matches else None].strip(" \t;,|"):
        pairs.append(ResultItem("summary", summary, begin, end))
    ends = [*(match.start() for match in matches[1:]), len(inline)]
    for match, until in zip(matches, ends, strict=False):
        value = inline[match.end() : until].strip(" \t;,|*")
        pairs.append(ResultItem(_normal(match[1].encode()), value, begin, end))
    return pairs + result_items(result)


def result_values(result: Field) -> dict[str, str]:
    """Return a Result as values by lower-case key; the first counts of a key that is there twice."""
    values: dict[str, str] = {}
    for item in result_pairs(result):
        if item.name:
            values.setdefault(item.name, item.text)
    return {key: value if key == "notes" else plain(value) for key, value in values.items()}


def run_names(text: str) -> tuple[str, ...]:
    """Names of run folders in a Runs value, without folder and without doubles: `0005-h1`."""
    return tuple(dict.fromkeys(match.rstrip(".-") for match in _RUN.findall(plain(text))))


def read_status(status: Field) -> StatusReading:
    """Return what a Status field says, without judging whether that is allowed."""
    line, at = status.first, status.key.value_at if status.key else 0
    if not line.text[at:].strip():
        line, at = next(((each, 0) for each in status.rest if not each.hidden), (line, at))
        bullet = _BULLET.match(line.text) if line is not status.first else None
        at = bullet.end() if bullet else at
    at += len(line.text[at:]) - len(line.text[at:].lstrip())
    value = line.text[at:]
    start, end = line.offset + at, line.offset + len(line.text)
    plain = _NOISE.sub(lambda match: b" " * len(match[0]), value[:_LONGEST_STATUS])
    match = _WORD.search(plain)
    if match is None:
        text = value.decode("utf-8", "replace")
        return StatusReading(None if text else Status.UNTESTED, text, "", start, end, b"", b"")
    opening = _edge_marks(plain[: match.start()]) or _leading_marks(plain)
    closing = value[match.end() : match.end() + len(_leading_marks(value[match.end() :]))]
    carried = status.key.open if status.key else b""
    note = _unmark(value[match.end() + len(closing) :], carried or opening).lstrip(b" \t-:,.;|/])")
    note = re.sub(rb"\A(?:\xe2\x80[\x93\x94][ \t]*)+", b"", note)
    word = match[0].upper()
    meant = _STATUS_WORDS.get(word)
    if meant and _is_choice(plain[match.start() :]):
        meant = Status.UNTESTED
    return StatusReading(
        meant,
        match[0].decode("ascii"),
        note.decode("utf-8", "replace").strip(),
        start,
        end,
        opening,
        closing or opening or carried,
    )


def uncode(text: str) -> str:
    """Return the content of a value that is one code span, else the value."""
    ticks = len(text) - len(text.lstrip("`"))
    inner = text[ticks:-ticks] if ticks else ""
    if not inner or not text.endswith("`" * ticks) or "`" * ticks in inner.strip("`"):
        return text
    padded = inner[:1] == inner[-1:] == " " and inner.strip()
    return inner[1:-1] if padded else inner


def _lines(data: bytes, start: int, end: int, opaque: Sequence[tuple[int, int]]) -> Iterator[FileLine]:
    offset = start
    for raw in data[start:end].splitlines(keepends=True):
        after = offset + len(raw)
        hidden = bool(opaque) and any(begin <= offset < close for begin, close in opaque)
        yield FileLine(offset, after, raw.rstrip(), hidden)
        offset = after


def _open(line: FileLine, current: Field | None, bulleted: bool) -> Field | None:
    """Return the field that begins on this line, or None when it goes on with `current` or is own text."""
    text = line.text
    bullet = _BULLET.match(text)
    if bullet and not _RULE.match(text):
        indent = width(bullet[1])
        if current is not None and current.marker and indent >= current.indent + 2:
            return None
        key = _read_key(text, bullet.end())
        name = key.name if key else ""
        if (current is None and indent > 3) or (current is not None and _nested(current, indent, name)):
            return None
        return Field(name, key, line, line.end, indent, text[len(bullet[1]) : len(bullet[1]) + 1])
    if text[:1] in b" \t":
        return None
    key = _read_key(text, 0)
    if key is None or not is_known(key.name) or (bulleted and not key.bold):
        return None
    if current is not None and is_result(current.name) and key.name in RESULT_KEYS:
        return None
    return Field(key.name, key, line, line.end, 0, b"")


def _nested(current: Field, indent: int, name: str) -> bool:
    if not current.marker:
        return name not in ENTRY_KEYS and not earlier(name)
    if not is_result(current.name) or (name in ENTRY_KEYS and indent < current.indent + 2):
        return indent >= current.indent + 2
    if indent == current.indent and name in RESULT_KEYS:
        # Values that a person forgot to indent: a Result holds nothing else.
        current.flat = current.flat or not (current.value or current.rest)
        return current.flat
    return indent > current.indent


def _continues(line: FileLine, current: Field, gap: bool, opaque: Sequence[tuple[int, int]]) -> bool:
    text = line.text
    if line.hidden and not any(begin == line.offset for begin, _ in opaque):
        return True
    indented = width(text[: len(text) - len(text.lstrip())]) > current.indent
    if not line.hidden and _BULLET.match(text) and not _RULE.match(text):
        return bool(current.marker) or is_result(current.name) or not gap
    if line.hidden or gap:
        return indented
    if is_result(current.name) and not indented:
        # Replacing a Result must not remove a person's prose below it.
        key = _read_key(text, 0)
        return key is not None and key.name in RESULT_KEYS
    return indented or not (_RULE.match(text) or text[:1] in b">|")


def _open_item(line: FileLine, above: int | None, seen: set[str]) -> tuple[str, int, bytes] | None:
    """Name, indent and value of the Result item that begins here; None when the line goes on with one."""
    text = line.text
    bullet = _BULLET.match(text)
    indent = width(text[: len(text) - len(text.lstrip())])
    at = bullet.end() if bullet else len(text) - len(text.lstrip())
    key = _read_key(text, at)
    sibling = above is None or indent <= above
    if key and key.name in RESULT_KEYS and (sibling or key.name not in seen):
        return key.name, indent, _unmark(text[key.value_at :].strip(), key.open)
    if not bullet or not sibling:
        return None
    if key:
        return key.name, indent, _unmark(text[key.value_at :].strip(), key.open)
    return "", indent, text[at:].strip()


def _read_key(text: bytes, at: int) -> Key | None:
    match = _KEY.match(text, at)
    if match is None:
        match = _BOLD_KEY_DASH.match(text, at)
        if match is None or not is_known(_name(match[2])):
            return None
        return Key(_name(match[2]), match.start(2), len(match[2]), match.end(), b"", True)
    name = _name(match[2])
    value_at = match.end()
    if not is_known(name) and text[value_at : value_at + 1] not in b" \t*_":
        return None
    marks = _edge_marks(match[1])
    still_open = b"" if match[3] else marks
    if still_open and text.startswith(still_open, value_at):
        value_at += len(still_open)
        still_open = b""
    after = text[value_at:]
    value_at += len(after) - len(after.lstrip(b" \t"))
    return Key(name, match.start(2), len(match[2]), value_at, still_open, b"*" in marks or b"_" in marks)


def _name(key: bytes) -> str:
    """Return the key's name; parentheses behind a known one are about its value."""
    name = _normal(key)
    base = _normal(key.split(b"(")[0])
    return base if not is_known(name) and is_known(base) else name


@lru_cache(maxsize=512)
def _normal(key: bytes) -> str:
    name = _SPACING.sub(" ", key.decode("ascii").lower()).strip(" .")
    name = name.replace("utilization", "util").replace("utilisation", "util")
    return _OTHER_NAMES.get(name, name)


def _is_choice(value: bytes) -> bool:
    """Tell whether a value is a template's unfilled choice, `VALIDATED | REJECTED`, and so no status yet."""
    words = [word.strip(b" \t*_`]").upper() for word in re.split(rb"[|/]", value)]
    return len(words) > 1 and all(word in _STATUS_WORDS for word in words)


def _edge_marks(before: bytes) -> bytes:
    return before[len(before.rstrip(b"*_`")) :]


def _leading_marks(after: bytes) -> bytes:
    return after[: len(after) - len(after.lstrip(b"*_`"))]


def _unmark(value: bytes, opened: bytes) -> bytes:
    """`value` without the closing half of emphasis that was opened before it."""
    return value[: -len(opened)].rstrip() if opened and value.endswith(opened) else value
