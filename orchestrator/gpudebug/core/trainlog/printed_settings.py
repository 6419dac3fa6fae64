"""The configuration that a program prints before it trains, or saves beside its output: name -> value.

Read are an argparse Namespace and the like, dictionaries as Python or JSON write them, over several lines
too, rows of `name=value, name=value`, lines of `name: value`, nested by their indentation, and lines that say
that a setting is overridden. Names are dotted. Of a setting that is printed with several values the last word
counts, as `last_word` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpudebug.core.errors import ConfigError
from gpudebug.core.lazy import regex
from gpudebug.core.redaction.redact import Redactor, secret_pair
from gpudebug.core.text.json_lines import parse
from gpudebug.core.trainlog import overrides
from gpudebug.core.trainlog.overrides import Form, SettingBlock, Settings, resolve
from gpudebug.core.yaml import document

LONGEST = 128 << 10
"""What is read of a log, in bytes: programs print their configuration first."""

MOST = 600
_LONGEST_NAME = 100
_LONGEST_VALUE = 200
_LONGEST_LINE = 1000
_LONGEST_ROW = 8000
_MOST_VALUES = 20
_DEEPEST = 12
_ATTEMPTS = 100

# A call whose name says that it holds a configuration: the text of a module has such calls by the hundred.
_HOLDER = r"[\w.]{0,40}(?:namespace|arg|conf|cfg|option|setting|param)\w{0,40}"
_START = regex(
    rf"(?:\b{_HOLDER}\(\s*(?=[A-Za-z_]\w*\s*=))|OrderedDict\((?=\[\()|\{{\s*(?=[\"'][\w./-]+[\"']\s*:)", re.I
)
_KEYS = {
    ")": regex(r"([A-Za-z_]\w*)\s*=(?!=)"),
    "}": regex(r"(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s:,{}\[\]()\"']+))\s*:"),
}
_CALL = regex(r"[A-Za-z_][\w.]*\(")
_STRING = regex(r"[rbuf]?\"((?:[^\"\\]|\\.)*)\"|[rbuf]?'((?:[^'\\]|\\.)*)'")
_ATOM = regex(r"[^,()\[\]{}\"'\n]*")
_ENUM = regex(r"<[\w.]+:\s*['\"]?([^'\">]*)['\"]?>")
_SPACE = regex(r"\s*")

# A line of a configuration, behind what a logger may write in front. One value without blanks, or quoted, and
# what a line of Python or YAML notes behind it.
_LINE = regex(
    r"(?:.*\b(?:INFO|DEBUG)\b[\]:\s|-]*(?:\[[\w.]+:\d+:\w+\] |[\w.]+:[\w.<>]+:\d+ - )?"
    r"|[IWD]\d{4} [\d:.]+ +\d+ [\w./-]+:\d+\] )?(?:[Cc]onfig \w+ )?"
    r"(?P<indent>[\s|>*│├└─]*)(?P<item>-\s+)?['\"]?(?P<name>[A-Za-z_+][\w./+-]*)\s*(?::|=|\.{2,})\s*"
    r"(?P<value>[^\s\"'#][^\s,]*|\"[^\"]*\"|'[^']*'|\[[^\]]*\])?['\"]?\s*(?:\s#.*)?"
)
_SECTION = regex(r"(?P<indent>[\s│]*[├└]──\s+)(?P<name>[A-Za-z_][\w.]*)\s*")
_NOTE = regex(r"\s*(?:#.*)?")
# Enough `name=value` beside each other to be no metrics.
_ROW = regex(r"[A-Za-z_][\w.]*=[^,=]{0,200}(?:, [A-Za-z_][\w.]*=[^=]{0,200}){5}")
_COLOUR = regex(r"\x1b\[[\d;]*m")
_DEFAULTS = regex(r"\bdefaults?\b", re.I)
_MARK = "\0"
# The source that a traceback quotes is no configuration.
_TRACEBACK = "Traceback (most recent call last)"
# Where training begins, metrics look like a configuration: a loss with a number, and another number.
_LOSS = regex(r"loss[\"']?\s{0,8}[:=]?\s{0,8}[-+]?\d", re.I)
_NUMBER = regex(r"(?<![\w.])[-+]?\d[\d.]*(?:e[-+]?\d+)?\b", re.I)


def printed_settings(text: str) -> Settings:
    """Read the program's configuration from the beginning of a log, up to where it trains."""
    text = _before_training(_COLOUR.sub("", text).replace(_MARK, " "))
    found = _FoundSettings()
    structures: list[object] = []
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
        structures.append(value)
        rest.append(text[position : match.start()] + _MARK)
        position = reader.at
    rest.append(text[position:])
    _read_lines("".join(rest).split("\n"), iter(structures), found)
    return found.settings()


def read_saved(name: str, text: str) -> dict[str, str]:
    """Return what a file of configuration says, JSON or YAML by its name; nothing if it is broken."""
    found = _FoundSettings()
    value = parsed(name, text)
    if value is not None:
        found.structure(_plain(value, 0))
    return dict(found.settings().known)


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
    """Settings in the order in which they are printed, in blocks of what is printed in one go."""

    def __init__(self) -> None:
        self._blocks: list[SettingBlock] = []
        self._names: set[str] = set()
        self._open: SettingBlock | None = None

    def structure(self, value: object, form: Form = Form.STRUCTURE) -> None:
        self._open = None
        block = self._begin(form)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        self._add_all(block, "", value)

    def line(self, name: str, value: str, form: Form) -> None:
        """One more line of its block; another form begins another block."""
        block = self._open
        if block is None or block.form is not form:
            block = self._begin(form)
        self._open = block
        self._add(block, name, value)

    def end(self) -> None:
        """What comes next is printed for itself."""
        self._open = None

    def _begin(self, form: Form) -> SettingBlock:
        self._blocks.append(SettingBlock(form))
        return self._blocks[-1]

    def _add_all(self, block: SettingBlock, prefix: str, value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                self._add_all(block, f"{prefix}.{key}" if prefix else str(key), inner)
        elif isinstance(value, list) and _pairs(value) and len(prefix) == 0:
            for key, inner in value:
                self._add_all(block, str(key), inner)
        elif isinstance(value, list):
            texts = [v for v in value if isinstance(v, str)]
            self._add(block, prefix, "[" + ", ".join(texts) + "]")
            if overrides.is_list(prefix):
                self.end()
                for name, inner in overrides.of_words(texts):
                    self.line(name, inner, Form.OVERRIDE)
                self.end()
        else:
            self._add(block, prefix, str(value))

    def _add(self, block: SettingBlock, name: str, value: str) -> None:
        if not name or len(name) > _LONGEST_NAME or len(value) > _LONGEST_VALUE:
            return
        if name not in self._names and len(self._names) >= MOST:
            return
        self._names.add(name)
        if len(block.values.get(name, ())) < _MOST_VALUES:
            block.add(name, value)

    def settings(self) -> Settings:
        """Without secrets, as far as their names or shapes tell."""
        redact = Redactor().redact

        def is_open(name: str, value: str) -> bool:
            return not secret_pair(name, value) and redact(text := f"{name}={value}") == text

        found = resolve(self._blocks)
        return Settings(
            {name: value for name, value in found.known.items() if is_open(name, value)},
            {name: v for name, v in found.restated.items() if all(is_open(name, value) for value in v)},
        )


def _pairs(value: list[object]) -> bool:
    """Tell whether a list is an OrderedDict's: names with their values."""
    return bool(value) and all(isinstance(v, list) and len(v) == 2 and isinstance(v[0], str) for v in value)


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
        """Return a text; Python joins those that follow one another."""
        parts = []
        while string := _STRING.match(self.text, self.at):
            parts.append(string[1] if string[1] is not None else string[2])
            self.at = string.end()
            self._skip()
        return "".join(parts)

    def _group(self, end: str) -> object:
        """Return the values up to `end`: a dictionary if they have keys, else a list."""
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


def _read_lines(lines: list[str], structures: Iterator[object], found: _FoundSettings) -> None:
    """Add the lines that are settings or say that one is overridden; a mark is the next of `structures`.

    Any other line ends what was nested, and the block.
    """
    above: list[tuple[int, str]] = []
    form, skips = Form.LINES, False
    for marked in lines:
        marks, line = marked.count(_MARK), marked.replace(_MARK, "")
        known = len(line) <= _LONGEST_LINE
        match = _LINE.fullmatch(line) if known else None
        refused = known and match is None and overrides.is_refused(line)
        if refused or (skips and line[:1].isspace()):
            # What a program ignores, in this line or indented below it, says nothing.
            found.end()
            above, form = [], Form.LINES
            skips = skips or line.rstrip().endswith(":")
        elif known and overrides.is_header(line):
            found.end()
            above, form = [], Form.OVERRIDE
        elif known and (pairs := overrides.of_line(line)):
            above = []
            for name, value in pairs:
                found.line(name, value, Form.OVERRIDE)
        elif match is not None:
            _nest(match, above, found, form)
        elif known and (section := _SECTION.fullmatch(line)):
            _up(above, len(section["indent"]))
            above.append((len(section["indent"]), section["name"]))
        elif row := _row(line):
            above = []
            found.structure(row)
        elif not _NOTE.fullmatch(line):
            above, form = [], Form.LINES
            found.end()
        skips = skips and (line.rstrip().endswith(":") or line[:1].isspace())
        for _ in range(marks):
            structure = next(structures)
            if not refused:
                found.structure(structure, _form(line))


def _form(line: str) -> Form:
    """Return what a structure is by the words beside it."""
    if overrides.mentions(line):
        return Form.OVERRIDE
    return Form.DEFAULTS if _DEFAULTS.search(line) else Form.STRUCTURE


def _nest(match: re.Match[str], above: list[tuple[int, str]], found: _FoundSettings, form: Form) -> None:
    """A line that is a setting, or the name of those that are further in."""
    depth = len(match["indent"])
    _up(above, depth)
    sections = [section for _, section in above]
    if match["value"] is None:
        above.append((depth, match["name"]))
        return
    value = match["value"].strip("\"'")
    if match["item"] and any(overrides.is_list(section) for section in sections):
        found.line(match["name"].lstrip("+"), value, Form.OVERRIDE)
    elif not match["name"].startswith("+"):
        found.line(".".join([*sections, match["name"]]), value, form)


def _up(above: list[tuple[int, str]], depth: int) -> None:
    """Leave the sections that a line of this depth is not in."""
    while above and above[-1][0] >= depth:
        above.pop()


def _row(line: str) -> object:
    """Return the settings of a line that is nothing but `name=value, name=value`; None for any other."""
    match = _ROW.search(line) if len(line) <= _LONGEST_ROW else None
    if match is None:
        return None
    reader = _ValueReader(f"({line[match.start() :].rstrip()})", 0)
    try:
        value = reader.value()
    except _Unreadable:
        return None
    return value if isinstance(value, dict) else None


def _plain(value: object, depth: int) -> object:
    """Values as texts, lists and dictionaries, as the reader of printed ones makes them."""
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {str(k): _plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple) and depth < _DEEPEST:
        return [_plain(v, depth + 1) for v in value]
    return str(value)
