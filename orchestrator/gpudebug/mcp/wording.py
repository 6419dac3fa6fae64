"""Texts of the commands as a client of tools reads them: calls of tools for shell commands.

Engines write for a shell. Here `gpudebug show 3` becomes `show(hypothesis=3)`, an exit status becomes the
`action` of an answer, and what only a person runs is marked as theirs. Fences hold the output of others and
stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple

from gpudebug.mcp.arguments import Arguments
from gpudebug.mcp.tools import OF_COMMANDS, OF_DECISIONS, TOOLS

_COMMAND = re.compile(
    r"(?:\bgpudebug(?: -C (?:'[^']*'|\"[^\"]*\"|[^\s`]+))? |(?<=`)(?=[a-z]+ --?[a-z]))"
    r"(?P<verb>[a-z]+)\b(?![-=])"
)
"""A command, or in a code span its verb with options."""
_WORD = re.compile(r" (?P<word>'[^']*'|\"[^\"]*\"|[^\s`,;)]+)")
_FENCE = re.compile(r"\s*`{3,}")
_OF_STATUS = (
    (re.compile(r"at exit status(?:es)? [47](?: or [47])?"), "when an answer's `action` is `stop`"),
    (re.compile(r"at exit status 5"), "when an answer's `action` is `propose` or `implement`"),
    (re.compile(r"at exit status 6"), "when an error's `code` is `busy`"),
)
_THEIRS = " (the user runs it)"
_NAMED = re.compile(r"\b(?:person|user)\b[^.;\n]*$")
_VERBATIM = frozenset(
    {
        *("title", "description", "test_method", "intervention", "change", "changed", "code"),
        *("file", "files", "folder", "worktree", "run", "runs", "lines", "directory", "patches", "text"),
    }
)
"""Keys of what others wrote, and of paths."""
KNOWN: dict[str, type[Arguments]] = {
    tool.name: tool.arguments for tool in (*TOOLS, *OF_DECISIONS, *OF_COMMANDS)
}
"""The arguments of each tool by its name, which is the command's; an option has the name of its argument."""
_PLACED = frozenset({"hypothesis", "run", "about", "a", "b", "role"})
"""Arguments that are no options of the command, in the order of its words."""
_PLACE = re.compile(r"\d[\w.-]*|[ABH]|ID|baseline|reference|workload|[a-z0-9]+(?:-[a-z0-9]+)+")
_NUMBERS = frozenset({"hypothesis", "pid", "gpu"})
_IDLE = "--for"
"""An option that takes a value and says nothing to a tool: how long it waits is its own."""
_OTHERS = frozenset(
    {
        *("analyze", "check", "clean", "demo", "doctor", "init"),
        *("loop", "mcp", "report", "settings", "stop", "submit"),
    }
)
_VALUED = frozenset({"--layer", "--because", "-o", "--agent", "--command", "--from"})
_VALUE = re.compile(r"--?[a-z]|--$|['\"]|[^a-z]*\d|[A-Z]|.*[=/]")


class _Command(NamedTuple):
    """One command of a text: where it ends, as a call; None if only a person runs it so."""

    end: int
    call: str | None


def tool_words(document: Any, tools: Collection[str], key: str = "") -> Any:
    """Return an answer's JSON with every text of ours in the words of these tools."""
    if isinstance(document, dict):
        return {k: tool_words(v, tools, k) for k, v in document.items()}
    if isinstance(document, list):
        return [tool_words(v, tools, key) for v in document]
    if isinstance(document, str) and key not in _VERBATIM:
        return tool_text(document, tools)
    return document


def tool_text(text: str, tools: Collection[str]) -> str:
    """Return a text with calls of these tools in the place of gpudebug's commands and exit statuses."""
    if "exit status" not in text and not _COMMAND.search(text):
        return text
    made, fenced = [], False
    for line in text.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        made.append(line if fenced else _line(line, tools))
    return _statuses("\n".join(made))


def _statuses(text: str) -> str:
    for pattern, words in _OF_STATUS:
        text = pattern.sub(words, text)
    return text


def _line(line: str, tools: Collection[str]) -> str:
    made, at = "", 0
    while (found := _COMMAND.search(line, at)) is not None:
        verb = found["verb"]
        if verb not in KNOWN and verb not in _OTHERS:
            made, at = made + line[at : found.end()], found.end()
            continue
        command = _read(line, found.end(), verb, tools)
        before = made + line[at : found.start()]
        inside = before.count("`") % 2 == 1
        alone = not before.strip() and not line[command.end :].strip()
        if command.call is None:
            end = line.find("`", command.end) if inside else command.end
            end = len(line) if end < 0 else end
            shown = line[found.start() : end]
            at = end + inside
            shown = f"{shown}`" if inside else f"`{shown}`"
            made = before + shown + ("" if _NAMED.search(before) else _THEIRS)
            continue
        made = before + (command.call if inside or alone else f"`{command.call}`")
        at = command.end
    return made + line[at:]


def _read(line: str, at: int, verb: str, tools: Collection[str]) -> _Command:
    """Read the words that belong to a command, from where its verb ends."""
    fields = KNOWN[verb].model_fields if verb in KNOWN else None
    places = [name for name in fields or () if name in _PLACED]
    given: dict[str, Any] = {}
    clause = False
    while not clause and (found := _WORD.match(line, at)) is not None:
        word, end = _stripped(found)
        name = word.removeprefix("--").replace("-", "_")
        if fields is None or (word.startswith("-") and word != _IDLE and name not in fields):
            return _Command(_end_of_others(line, at), None)
        if word.startswith("-"):
            default = None if word == _IDLE else fields[name].default
            value = None if isinstance(default, bool) else _WORD.match(line, end)
            found = value or found
            text, end = _stripped(value) if value else ("", end)
            if default is False:
                given[name] = True
            elif isinstance(default, list):
                given.setdefault(name, []).append(_unquoted(text))
            elif default is not True and word != _IDLE:
                given[name] = _typed(name, _unquoted(text))
        elif places and _PLACE.fullmatch(word):
            name = places.pop(0)
            given[name] = _typed(name, word)
        else:
            break
        at, clause = end, end < found.end()
    if verb not in tools:
        return _Command(at, None)
    arguments = ", ".join(f"{name}={_shown(value)}" for name, value in given.items())
    return _Command(at, f"{verb}({arguments})" if arguments else verb)


def _typed(name: str, text: str) -> str | int:
    return int(text) if name in _NUMBERS and text.isdigit() else text


def _shown(value: Any) -> str:
    placeholder = isinstance(value, str) and value in ("A", "B", "H", "ID")
    return str(value) if placeholder else json.dumps(value, ensure_ascii=False)


def _end_of_others(line: str, at: int) -> int:
    """Return where a person's command ends: options, their values, and what is no plain word."""
    valued = False
    while (found := _WORD.match(line, at)) is not None:
        word, end = _stripped(found)
        if not valued and not _VALUE.match(word):
            break
        valued = word in _VALUED
        at = end
        if end < found.end():
            break
    return at


def _stripped(found: re.Match[str]) -> tuple[str, int]:
    """Return a word without the punctuation that ends a clause, and where it ends."""
    word = found["word"]
    bare = word if word[0] in "'\"" else word.rstrip(".:") or word
    return bare, found.start("word") + len(bare)


def _unquoted(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0] else word
