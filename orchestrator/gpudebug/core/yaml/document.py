"""One YAML document as plain values, with the line of every key and value.

Read from the parser's events, so that nothing is expanded, built or recursed into: anchors, aliases
and tags are refused where they stand, depth and size are capped. Scalars follow YAML 1.2's core
schema, not 1.1's: `on`, `1_000`, `1:30` and dates are text. A number remembers how it was written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import yaml

from gpudebug.core.errors import ConfigError, GpudebugError
from gpudebug.core.lazy import regex

LARGEST_BYTES = 2**20
DEEPEST = 12

# A shorter part of a name begins too many others.
_TELLING = 4
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBER = regex(
    r"[-+]?(?:([0-9]{1,18})|(?:[0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,3})?)", re.ASCII
)
_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

Path = tuple[str | int, ...]


class WrittenInt(int):
    """An integer and the text that wrote it."""

    text: str


class WrittenFloat(float):
    """A decimal and the text that wrote it."""

    text: str


@dataclass
class Document:
    """`value` is what the document says; `keys` and `lines` give the 1-based line of the key that leads to
    a path, and of the first line of its value; `blocks` are the values written as `|` blocks, whose text
    starts one line below the mark."""

    file: str
    value: Any = None
    keys: dict[Path, int] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    blocks: set[Path] = field(default_factory=set)

    def line(self, path: Path, *, key: bool = False) -> int:
        """Return the line of the path, or of the nearest thing around it."""
        while path:
            line = (self.keys if key else self.lines).get(path)
            if line is not None:
                return line
            path = path[:-1]
        return 1


@dataclass
class _OpenValue:
    """A mapping or a list whose end has not been read; `key` waits for its value."""

    value: dict[str, Any] | list[Any]
    path: Path
    key: str | None = None


def read(text: str, file: str) -> Document:
    """The document in `text`. Raises ConfigError with file and line for anything but one plain document."""
    document = Document(file)
    try:
        if len(text.encode()) > LARGEST_BYTES:
            raise ConfigError("larger than 1 MiB", file=file, next="keep only the campaign's settings in it")
        _read_events(text, document)
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise ConfigError(
            "has a character that is not text", file=file, line=line, next="remove it"
        ) from None
    except yaml.YAMLError as error:
        raise _broken(error, text, file) from None
    return document


def _broken(error: yaml.YAMLError, text: str, file: str) -> ConfigError:
    line, what = None, "no YAML"
    if isinstance(error, yaml.MarkedYAMLError):
        if "nesting depth" in (error.problem or ""):
            # libyaml has a limit of its own, which it meets while it looks ahead for a key.
            mark = error.problem_mark or error.context_mark
            return _too_deep(file, mark.line + 1 if mark else None)
        # An open quote is noticed at the end of the file; where it begins says more.
        open_quote = "quoted scalar" in (error.context or "")
        mark = error.context_mark if open_quote else error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        what = ", ".join(part for part in (error.context, error.problem) if part)
    elif isinstance(error, yaml.reader.ReaderError):
        what = f"not YAML: {error.reason}"
        line = _line_of_control(text)
    return ConfigError(
        f"broken YAML: {what}", file=file, line=line, next="mend the line, or the one above it"
    )


def _too_deep(file: str, line: int | None) -> ConfigError:
    return ConfigError(
        f"nested deeper than {DEEPEST} levels", file=file, line=line, next="no setting is that deep"
    )


def _line_of_control(text: str) -> int | None:
    match = re.search(
        r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text.lstrip("\ufeff")
    )
    return text.count("\n", 0, match.start()) + 1 if match else None


def _read_events(text: str, document: Document) -> None:
    stack: list[_OpenValue] = []
    documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 1
        _refuse_machinery(event, document.file, line)
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                _fail(document, line, "a second YAML document starts here", "keep one")
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            stack.pop()
        elif isinstance(event, yaml.NodeEvent):
            _read_node(event, line, document, stack)


def _refuse_machinery(event: Any, file: str, line: int) -> None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise ConfigError(
            "YAML anchors and aliases are not used here",
            file=file,
            line=line,
            next="write the value out, or quote it if it begins with & or *",
        )
    if getattr(event, "tag", None):
        raise ConfigError(
            "YAML tags are not used here",
            file=file,
            line=line,
            next="write the value alone, or quote it if it begins with !",
        )


def _read_node(event: Any, line: int, document: Document, stack: list[_OpenValue]) -> None:
    parent = stack[-1] if stack else None
    scalar = isinstance(event, yaml.ScalarEvent)
    if parent is not None and isinstance(parent.value, dict) and parent.key is None:
        if not scalar:
            _fail(document, line, "expected a key, found a list or mapping", "write key: value")
        _open_key(event.value, line, document, parent)
        return
    path = _path(parent)
    document.lines[path] = line
    if scalar:
        if event.style == "|":
            document.blocks.add(path)
            document.lines[path] += 1
        _put(document, parent, event.value if event.style else plain(event.value))
        return
    if len(stack) >= DEEPEST:
        raise _too_deep(document.file, line)
    value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
    _put(document, parent, value)
    stack.append(_OpenValue(value, path))


def _open_key(key: str, line: int, document: Document, parent: _OpenValue) -> None:
    path = (*parent.path, key)
    if path in document.keys:
        _fail(
            document,
            line,
            f"the key {key!r} is already on line {document.keys[path]}",
            "keep one of them",
        )
    document.keys[path] = line
    parent.key = key


def _path(parent: _OpenValue | None) -> Path:
    if parent is None:
        return ()
    if isinstance(parent.value, list):
        return (*parent.path, len(parent.value))
    return (*parent.path, parent.key or "")


def _put(document: Document, parent: _OpenValue | None, value: Any) -> None:
    if parent is None:
        document.value = value
    elif isinstance(parent.value, list):
        parent.value.append(value)
    else:
        parent.value[parent.key or ""] = value
        parent.key = None


def plain(text: str) -> object:
    """Return what a scalar without quotes says."""
    if text in _WORDS:
        return _WORDS[text]
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    number = WrittenInt(text) if match[1] else WrittenFloat(text)
    number.text = text
    return number if math.isfinite(number) else text


def _fail(document: Document, line: int, message: str, next: str) -> NoReturn:
    raise ConfigError(message, file=document.file, line=line, next=next)


class YamlProblem(NamedTuple):
    """What is wrong at `path` of a document; `key` if the key there is meant and not its value.

    `below` counts the lines from the path's own to the wrong one.
    """

    path: Path
    message: str
    next: str
    key: bool = False
    missing: bool = False
    below: int = 0


def refuse(found: Iterable[YamlProblem], document: Document, kind: type[GpudebugError]) -> None:
    """Raise the first of the problems as an error of this kind; return if there is none."""
    # What is missing is last: a misspelt key is missing too, and its own line says more.
    placed = sorted(
        ((p.missing, document.line(p.path, key=p.key) + p.below, p) for p in found), key=lambda e: e[:2]
    )
    if placed:
        _, line, first = placed[0]
        more = f" (and {len(placed) - 1} more)" if len(placed) > 1 else ""
        raise kind(first.message + more, file=document.file, line=line, next=first.next)


def named(path: Path) -> str:
    """Return a path as its reader counts: `signature 2.weight` for the weight of the second sign."""
    text = ""
    for part in path:
        text += f" {part + 1}" if isinstance(part, int) else f".{part}" if text else part
    return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was most likely meant: by its letters, else the first one a part of which
    begins a part of it, as `utilization` and `gpu_util`."""
    from difflib import get_close_matches

    names, text = list(known), word.lower()
    near = get_close_matches(text, names, n=1, cutoff=0.6)
    near = near or [name for name in names if any(_begins(a, b) for a in _parts(text) for b in _parts(name))]
    return near[0] if near else None


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"[^a-z0-9]+", name) if len(part) >= _TELLING]


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
