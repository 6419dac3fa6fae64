"""A command line split into words as a POSIX shell splits it, each word with its place in the text.

Beside `shlex.split` it joins backslash-newlines, keeps the offsets that an edit in place needs, and
in strict mode refuses what a shell would not pass on unchanged: operators, expansions, comments.
Text inside any quotes is taken literally; a newline outside quotes is white space.
Source: POSIX.1-2017, Shell Command Language, sections 2.2 (quoting) and 2.3 (token recognition).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_BLANK = " \t\n"
_OPERATORS = "|&;<>"
_EXPANDED = frozenset("_{('\"?$!#@*-")


class ShellWord(NamedTuple):
    """One word: its value with quotes removed, and `text[start:end]` as it was written."""

    value: str
    start: int
    end: int


class ShellSyntaxError(ValueError):
    """Text that cannot be split; `position` is the offset of the offending character."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def split(text: str, *, strict: bool = True) -> tuple[ShellWord, ...]:
    """Return the words of `text`. Raises ShellSyntaxError for an open quote or a backslash at the end and, if
    `strict`, for what only a shell could carry out."""
    words: list[ShellWord] = []
    position = 0
    while True:
        position = _skip_blank(text, position)
        if position >= len(text):
            return tuple(words)
        word = _word(text, position, strict)
        words.append(word)
        position = word.end


def leading_assignments(text: str) -> tuple[dict[str, str], str]:
    """`A=1 B=2 cmd …` as ({'A': '1', 'B': '2'}, 'cmd …'); the command's text is kept as it is."""
    variables: dict[str, str] = {}
    start = 0
    for word in split(text):
        name, equals, value = word.value.partition("=")
        if not (equals and name.isascii() and name.isidentifier()):
            return variables, text[word.start :]
        variables[name] = value
        start = word.end
    return variables, text[start:]


def _skip_blank(text: str, position: int) -> int:
    while position < len(text):
        if text[position] in _BLANK or text.startswith("\r\n", position):
            position += 1
        elif text[position] == "\\" and (length := _continuation(text, position)):
            position += length
        else:
            break
    return position


def _continuation(text: str, position: int) -> int:
    """Length of a backslash-newline at `position`, 0 if there is none."""
    if text.startswith("\\\n", position):
        return 2
    return 3 if text.startswith("\\\r\n", position) else 0


def _word(text: str, start: int, strict: bool) -> ShellWord:
    pieces: list[str] = []
    position = start
    while position < len(text):
        char = text[position]
        if char in _BLANK or text.startswith("\r\n", position):
            break
        if char == "'":
            piece, position = _single(text, position)
        elif char == '"':
            piece, position = _double(text, position)
        elif char == "\\":
            piece, position = _escape(text, position)
        else:
            if strict:
                _refuse_shell_only(text, position, at_start=position == start)
            piece, position = char, position + 1
        pieces.append(piece)
    return ShellWord("".join(pieces), start, position)


def _single(text: str, start: int) -> tuple[str, int]:
    end = text.find("'", start + 1)
    if end < 0:
        raise ShellSyntaxError("the quote ' is never closed", start)
    return text[start + 1 : end], end + 1


def _double(text: str, start: int) -> tuple[str, int]:
    pieces: list[str] = []
    position = start + 1
    while position < len(text):
        char = text[position]
        if char == '"':
            return "".join(pieces), position + 1
        if char == "\\":
            length = _continuation(text, position)
            if length:
                position += length
                continue
            if text[position + 1 : position + 2] in ("$", "`", '"', "\\"):
                position += 1
                char = text[position]
        pieces.append(char)
        position += 1
    raise ShellSyntaxError('the quote " is never closed', start)


def _escape(text: str, position: int) -> tuple[str, int]:
    length = _continuation(text, position)
    if length:
        return "", position + length
    if position + 1 >= len(text):
        raise ShellSyntaxError("a backslash ends the command", position)
    after = position + 2
    if text[position + 1] in " \t" and (text[after : after + 1] == "\n" or text.startswith("\r\n", after)):
        raise ShellSyntaxError("white space between a backslash and the end of its line", position)
    return text[position + 1], after


def _refuse_shell_only(text: str, position: int, *, at_start: bool) -> None:
    char = text[position]
    after = text[position + 1 : position + 2]
    expands = char == "$" and ((after.isascii() and after.isalnum()) or after in _EXPANDED)
    if expands or char in _OPERATORS or char == "`":
        raise ShellSyntaxError(f"{char} has a meaning of its own to a shell", position)
    if at_start and char == "#":
        raise ShellSyntaxError("# starts a comment in a shell", position)
    if at_start and char == "~" and (after or " ") in "/ \t\n":
        raise ShellSyntaxError("only a shell expands ~ to the home folder", position)


def isolated_argv(executable: str, folders: Iterable[str], statement: str) -> tuple[str, ...]:
    """The command line that runs `statement` in `executable` with `folders` behind the standard library.

    `-I` ignores PYTHONPATH and the working folder and `-S` skips site-packages with its .pth files
    and any sitecustomize, so neither a `json.py` beside the training script nor the probe that is
    injected into the training can run here. `folders` are those of gpudebug and of its requirements.
    """
    path = list(dict.fromkeys(folders))
    return (executable, "-I", "-S", "-c", f"import sys; sys.path += {path!r}; {statement}")


def module_argv(executable: str, module: str) -> tuple[str, ...]:
    """The command line that runs a module as `-m` does, but looks for no module in the working folder.

    Python has `-P` for that from 3.11 on. A `json.py` of the checkout would run as gpudebug's own.
    """
    run = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return (executable, "-c", f"import sys; sys.path[:] = filter(None, sys.path); import runpy; {run}")
