"""The configuration that a program prints before it trains, or saves beside its output: name -> value.

Read are an argparse Namespace and the like, dictionaries as Python or JSON write them, over several lines
too, and lines of `name: value`, nested by their indentation. Names are dotted; a name that is printed with
two values is ambiguous and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gpudebug.core.errors import ConfigError
from gpudebug.core.redaction.redact import Redactor, secret_pair
from gpudebug.core.text.json_lines import parse
from gpudebug.core.yaml import document

LONGEST = 128 << 10
"""What is read of a log, in bytes: programs print their configuration first."""

MOST = 600
_LONGEST_NAME = 100
_LONGEST_VALUE = 200
_LONGEST_LINE = 1000
_DEEPEST = 12
_ATTEMPTS = 100

# A call whose name says that it holds a configuration: the text of a module has such calls by the hundred.
_HOLDER = r"[\w.]{0,40}(?:namespace|arg|conf|cfg|option|setting|param)\w{0,40}"
_START = re.compile(rf"(?:\b{_HOLDER}\(\s*(?=[A-Za-z_]\w*\s*=))|\{{\s*(?=[\"'][\w./-]+[\"']\s*:)", re.I)
_KEYS = {
    ")": re.compile(r"([A-Za-z_]\w*)\s*=(?!=)"),
    "}": re.compile(r"(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s:,{}\[\]()\"']+))\s*:"),
}
_CALL = re.compile(r"[A-Za-z_][\w.]*\(")
_STRING = re.compile(r"[rbuf]?\"((?:[^\"\\]|\\.)*)\"|[rbuf]?'((?:[^'\\]|\\.)*)'")
_ATOM = re.compile(r"[^,()\[\]{}\"'\n]*")
_ENUM = re.compile(r"<[\w.]+:\s*['\"]?([^'\">]*)['\"]?>")
_SPACE = re.compile(r"\s*")

# A line of a configuration, behind what a logger may write in front. One value without blanks, or quoted.
_LINE = re.compile(
    r"(?:.*\b(?:INFO|DEBUG)\b[\]:\s|-]*)?"
    r"(?P<indent>[\s|>*]*)(?:-\s+)?(?P<name>[A-Za-z_][\w./-]*)\s*(?::|=|\.{2,})\s*"
    r"(?P<value>[^\s\"'][^\s,]*|\"[^\"]*\"|'[^']*'|\[[^\]]*\])?\s*"
)
# The source that a traceback quotes is no configuration.
_TRACEBACK = "Traceback (most recent call last)"
# Where training begins, metrics look like a configuration: a loss with a number, and another number.
_LOSS = re.compile(r"loss[\"']?\s{0,8}[:=]?\s{0,8}[-+]?\d", re.I)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d.]*(?:e[-+]?\d+)?\b", re.I)


def read_printed(text: str) -> dict[str, str]:
    """Reads the program's configuration from the beginning of a log, up to where it trains."""
    text = _before_training(text)
    found = _FoundSettings()
    rest = []
    position = attempts = 0
    while attempts < _ATTEMPTS and (match := _START.search(text, position)):
        attempts += 1
        reader = _ValueReader(text, match.start() if match[0][0] == "{" else text.index("(", match.start()))
        try:
            value = reader.value()
        except _Unreadable:
            rest.append(text[position : match.end()])
            position = match.end()
            continue
        found.add_all("", value)
        rest.append(text[position : match.start()])
        position = reader.at
    rest.append(text[position:])
    for name, value in _lines("".join(rest).splitlines()):
        found.add(name, value)
    return found.known()


def read_saved(name: str, text: str) -> dict[str, str]:
    """What a file of configuration says, JSON or YAML by its name; nothing if it is broken."""
    found = _FoundSettings()
    value = parsed(name, text)
    if value is not None:
        found.add_all("", _plain(value, 0))
    return found.known()


def parsed(name: str, text: str) -> Mapping[str, Any] | None:
    """The mapping in a file of configuration; None for anything else, and for YAML with aliases or tags."""
    try:
        value = parse(text) if name.endswith(".json") else document.read(text, name).value
    except (ValueError, ConfigError):
        return None
    return value if isinstance(value, Mapping) else None


def _before_training(text: str) -> str:
    lines = text[:LONGEST].split("\n")
    for index, line in enumerate(lines):
        if _TRACEBACK in line:
            return "\n".join(lines[:index])
        held = _START.search(line)
        if _LOSS.search(line) and len(_NUMBER.findall(line)) > 1 and (held is None or held[0][0] == "{"):
            return "\n".join(lines[:index])
    return "\n".join(lines)


class _FoundSettings:
    """Names with their values; None if a name has several."""

    def __init__(self) -> None:
        self._values: dict[str, str | None] = {}

    def add_all(self, prefix: str, value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                self.add_all(f"{prefix}.{key}" if prefix else str(key), inner)
        elif isinstance(value, list):
            self.add(prefix, "[" + ", ".join(v for v in value if isinstance(v, str)) + "]")
        else:
            self.add(prefix, str(value))

    def add(self, name: str, value: str) -> None:
        if not name or len(name) > _LONGEST_NAME or len(value) > _LONGEST_VALUE or len(self._values) >= MOST:
            return
        if self._values.setdefault(name, value) != value:
            self._values[name] = None

    def known(self) -> dict[str, str]:
        """Without secrets, as far as their names or shapes tell."""
        redact = Redactor().redact
        return {
            name: value
            for name, value in self._values.items()
            if value is not None
            and not secret_pair(name, value)
            and redact(text := f"{name}={value}") == text
        }


class _Unreadable(ValueError):
    """The text at hand is no configuration."""


class _ValueReader:
    """Reads a value as Python or JSON write it: texts, lists of values, dictionaries by key."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self._depth = 0

    def value(self) -> object:
        self._skip()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Unreadable
        try:
            return self._value()
        finally:
            self._depth -= 1

    def _value(self) -> object:
        here = self.text[self.at : self.at + 1]
        if here == "{":
            return self._group("}")
        if here == "[":
            return self._group("]")
        if here == "(":
            return self._group(")")
        if _STRING.match(self.text, self.at):
            return self._string()
        if enum := _ENUM.match(self.text, self.at):
            self.at = enum.end()
            return enum[1]
        if call := _CALL.match(self.text, self.at):
            self.at = call.end() - 1
            inner = self._group(")")
            return inner[0] if isinstance(inner, list) and len(inner) == 1 else inner
        atom = _ATOM.match(self.text, self.at)
        assert atom is not None
        if not atom[0].strip():
            raise _Unreadable
        self.at = atom.end()
        return atom[0].strip()

    def _string(self) -> str:
        """A text; Python joins those that follow one another."""
        parts = []
        while string := _STRING.match(self.text, self.at):
            parts.append(string[1] if string[1] is not None else string[2])
            self.at = string.end()
            self._skip()
        return "".join(parts)

    def _group(self, end: str) -> object:
        """The values up to `end`: a dictionary if they have keys, else a list."""
        self.at += 1
        keyed: dict[str, object] = {}
        plain: list[object] = []
        while True:
            self._skip()
            if self._takes(end):
                return keyed or plain
            name = self._key(end)
            value = self.value()
            if name is None:
                plain.append(value)
            else:
                keyed[name] = value
            self._skip()
            if not self._takes(",") and self.text[self.at : self.at + 1] != end:
                raise _Unreadable

    def _takes(self, mark: str) -> bool:
        here = self.text[self.at : self.at + 1] == mark
        self.at += here
        return here

    def _key(self, end: str) -> str | None:
        """Return the text before `=` in a call and before `:` in a dictionary."""
        word = _KEYS[end].match(self.text, self.at) if end in _KEYS else None
        if word is None:
            return None
        self.at = word.end()
        return next(part for part in word.groups() if part is not None)

    def _skip(self) -> None:
        space = _SPACE.match(self.text, self.at)
        assert space is not None
        self.at = space.end()


def _lines(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield (dotted name, value) of the lines that are settings; any other line ends what was nested."""
    above: list[tuple[int, str]] = []
    for line in lines:
        match = _LINE.fullmatch(line) if len(line) <= _LONGEST_LINE else None
        if match is None:
            above = []
            continue
        depth = len(match["indent"])
        while above and above[-1][0] >= depth:
            above.pop()
        name = ".".join([*(section for _, section in above), match["name"]])
        if match["value"] is None:
            above.append((depth, match["name"]))
        else:
            yield name, match["value"].strip("\"'")


def _plain(value: object, depth: int) -> object:
    """Values as texts, lists and dictionaries, as the reader of printed ones makes them."""
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {str(k): _plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple) and depth < _DEEPEST:
        return [_plain(v, depth + 1) for v in value]
    return str(value)
