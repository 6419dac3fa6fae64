"""Where the training program's own words begin, behind interpreters, launchers and wrappers.

Reading may guess; changing may not: `launch` answers only what the known options of each wrapper leave no
doubt of, and rather too late than too early, so that no word of a launcher is ever taken for the program's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpudebug.core.command import wrappers
from gpudebug.core.command.wrappers import LAUNCHERS, NEVER_OPEN, Wrapper
from gpudebug.core.lazy import regex

__all__ = ["LAUNCHERS", "NEVER_OPEN", "Launch", "LaunchOption", "LauncherPart", "launch", "programs"]

_OPTION = regex(r"--?[A-Za-z_][^\s=]*(=.*)?", re.DOTALL)
_NUMBER = regex(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|-(inf|nan)", re.ASCII)
_ASSIGNMENT = regex(r"[A-Za-z_]\w*=", re.ASCII)
_PYTHON = regex(r"(python|pypy)[\d.]*t?", re.ASCII)
_SHELL = regex(r"(ba|da|z|k|fi|c|tc|a|mk)?sh")
_SCRIPTS = regex(r".*\.(py|pyz|sh)")


class LaunchOption(NamedTuple):
    """An option of a launcher: `argv[start:stop]`; `value` is None if it has none."""

    name: str
    value: str | None
    start: int
    stop: int


class LauncherPart(NamedTuple):
    """One launcher or wrapper of a command, with its options."""

    name: str
    options: tuple[LaunchOption, ...] = ()


class Launch(NamedTuple):
    """`start` is the index of the program's first own word; None, with the reason, if that is not certain."""

    start: int | None
    parts: tuple[LauncherPart, ...] = ()
    why: str = ""


def launch(argv: Sequence[str]) -> Launch:
    """Return where the program's own words begin, and the launchers before it with their options."""
    parts: list[LauncherPart] = []
    at = 0
    while at < len(argv):
        name = basename(argv[at])
        if _SHELL.fullmatch(name):
            return _of_shell(argv, at, parts)
        if name in wrappers.SHELL_LIKE:
            return Launch(None, tuple(parts), f"{name} hands its words to a shell")
        if name in wrappers.MIXED or name in wrappers.OTHERS:
            return Launch(None, tuple(parts), f"the flags of {name} cannot be told apart from the program's")
        if _PYTHON.fullmatch(name):
            found = _of_python(argv, at)
            if isinstance(found, Launch):
                return found._replace(parts=(*parts, LauncherPart("python")))
            parts.append(LauncherPart("python"))
            at, name = found
        wrapper = wrappers.WRAPPERS.get(name)
        if wrapper is None:
            behind = next((i for i in range(at + 1, len(argv)) if _starts_python(argv[i])), None)
            if behind is None:
                return Launch(at + 1, tuple(parts))
            at = behind
            continue
        walked = _Walk(argv, at, wrapper).walked()
        parts.append(LauncherPart(name, walked.options))
        if walked.program is None:
            why = "" if walked.start else f"it is unclear where the program begins after {name}"
            return Launch(walked.start, tuple(parts), why)
        at = walked.program
    return Launch(None, tuple(parts), "the command names no program")


def programs(argv: Sequence[str]) -> Iterator[int]:
    """Where the programs of a command begin: each wrapper before its program, as far as that is certain."""
    at: int | None = 0
    while at is not None and at < len(argv):
        while at < len(argv) and _ASSIGNMENT.match(argv[at]):
            at += 1
        if at < len(argv):
            yield at
        wrapper = wrappers.WRAPPERS.get(basename(argv[at])) if at < len(argv) else None
        at = _Walk(argv, at, wrapper).walked().program if wrapper is not None else None


def _starts_python(word: str) -> bool:
    """Tell whether a word behind an unknown program makes that a wrapper, too."""
    name = basename(word)
    return bool(_PYTHON.fullmatch(name)) or name in ("torchrun", "accelerate", "deepspeed")


def basename(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def looks_like_option(word: str) -> bool:
    """Tell whether argparse would take the word for an option; a negative number is a value."""
    return _OPTION.fullmatch(word) is not None and not is_number(word)


def is_number(word: str) -> bool:
    return _NUMBER.fullmatch(word) is not None


def folded(name: str) -> str:
    """Return an option's name with `-` for `_`: `--nproc_per_node` and `--nproc-per-node` are one."""
    return name.replace("_", "-")


def _of_shell(argv: Sequence[str], at: int, parts: list[LauncherPart]) -> Launch:
    """Behind a shell's script; a shell's text has no words of its own."""
    why = "the flags of a shell command cannot be changed"
    index = at + 1
    while index < len(argv):
        word = argv[index]
        if word in ("-o", "+o", "-O", "+O"):
            index += 2
            continue
        if word == "--" or word.startswith("--"):
            return Launch(None, tuple(parts), why)
        if not word.startswith(("-", "+")):
            return Launch(index + 1, (*parts, LauncherPart("shell")))
        if set("cs") & set(word[1:]):
            return Launch(None, tuple(parts), why)
        index += 1
    return Launch(None, tuple(parts), why)


def _of_python(argv: Sequence[str], at: int) -> Launch | tuple[int, str]:
    """The start behind a script, module or code; or where a launcher's module is, and that launcher."""
    index = at + 1
    while index < len(argv):
        word = argv[index]
        if word == "-" or not word.startswith("-"):
            return Launch(index + 1)
        if word == "--" and index + 1 < len(argv):
            return Launch(index + 2)
        if word.startswith("--"):
            # `--check-hash-based-pycs MODE` is the only long one that takes a word.
            index += 2 if word == "--check-hash-based-pycs" else 1
            continue
        step = 1
        for place, letter in enumerate(word[1:], 2):
            attached = word[place:]
            if letter in "cm":
                name = attached or (argv[index + 1] if index + 1 < len(argv) else "")
                behind = index + (1 if attached else 2)
                if letter == "c" or not name:
                    return Launch(behind if name else None, why="python has no program")
                if name in wrappers.MODULES:
                    return behind - 1, wrappers.MODULES[name]
                if wrappers.UNCLEAR_MODULES.fullmatch(name):
                    return Launch(None, why=f"the flags of {name} cannot be told apart from the program's")
                return Launch(behind)
            if letter in "WX":
                step = 1 if attached else 2
                break
        index += step
    return Launch(None, why="python has no program")


class _Walked(NamedTuple):
    """One wrapper's options; `program` is where the command behind it begins, `start` is set if that is a
    script with its own words. Neither is set if it is not certain."""

    options: tuple[LaunchOption, ...]
    program: int | None = None
    start: int | None = None


class _Walk:
    """Reads one wrapper's words, from behind its name."""

    def __init__(self, argv: Sequence[str], at: int, wrapper: Wrapper) -> None:
        self.argv = argv
        self.at = at + 1
        self.wrapper = wrapper
        self.options: list[LaunchOption] = []
        self.waiting = bool(wrapper.subcommands)
        self.entry = wrapper.entry
        self.words = wrapper.words
        self.command = False

    def walked(self) -> _Walked:
        while self.at < len(self.argv):
            word = self.argv[self.at]
            if word == "--":
                self.at += 1 + self.words
                return self.unclear() if self.waiting else self.ended()
            if word.startswith("-") and word != "-" and not is_number(word):
                if not self.option(word):
                    return self.unclear()
            elif self.waiting:
                if word not in self.wrapper.subcommands:
                    return self.unclear()
                self.waiting = False
                self.entry = self.entry and word != "exec"
                self.at += 1
            elif self.wrapper.assignments and _ASSIGNMENT.match(word):
                self.at += 1
            elif self.words:
                self.words -= 1
                self.at += 1
                if not self.words and self.entry and not self.more():
                    return _Walked(tuple(self.options), start=self.at)
            elif is_number(word):
                self.at += 1
            else:
                return self.ended()
        return self.unclear()

    def more(self) -> bool:
        """Tell whether a further command begins here."""
        return self.at < len(self.argv) and not self.argv[self.at].startswith("-")

    def ended(self) -> _Walked:
        if self.at >= len(self.argv):
            return self.unclear()
        if self.wrapper.scripts and not self.command:
            return _Walked(tuple(self.options), start=self.at + 1)
        return _Walked(tuple(self.options), program=self.at)

    def unclear(self) -> _Walked:
        return _Walked(tuple(self.options))

    def option(self, word: str) -> bool:
        """Step over an option and its value; False if it is unknown whether it has one."""
        name, equals, value = word.partition("=")
        key = folded(name)
        if key in self.wrapper.hidden:
            return False
        self.command = self.command or key in ("--no-python", "--command-mode")
        if equals:
            return self.step(name, value, 1)
        takes = self.takes(key)
        if takes == 1:
            return self.step(name, None, 1)
        if takes == 3:
            return self.step(name, None, 3)
        if takes == 2 and self.at + 1 < len(self.argv):
            return self.step(name, self.argv[self.at + 1], 2)
        if takes == 0 and key[:2] in self.wrapper.values and not key.startswith("--"):
            return self.step(word[:2], word[2:], 1)
        return takes == 0 and self.guessed(word)

    def takes(self, key: str) -> int:
        """Return how many words an option is, with its values; 0 for one that is not known."""
        if key in self.wrapper.bare:
            return 1
        if key in self.wrapper.values:
            return 2
        if key in wrappers.PAIRS:
            return 3
        letters = [f"-{letter}" for letter in key[1:]]
        if key.startswith("--") or not all(letter in self.wrapper.bare for letter in letters[:-1]):
            return 0
        last = letters[-1]
        return 1 if last in self.wrapper.bare else 2 if last in self.wrapper.values else 0

    def guessed(self, word: str) -> bool:
        """An option that is not known: what follows decides, the later beginning wherever two fit."""
        behind = self.argv[self.at + 1 :]
        if not behind or _is_option(behind[0]):
            return self.step(word, None, 1)
        if is_number(behind[0]):
            return self.step(word, behind[0], 2)
        others = [w for w in behind[1:] if not _is_option(w) and not is_number(w)]
        if self.wrapper.scripts and not self.waiting:
            more = any(_SCRIPTS.fullmatch(w) for w in others)
            if _SCRIPTS.fullmatch(behind[0]):
                return not more and self.step(word, None, 1)
            return self.step(word, behind[0], 2) if more else not others and self.step(word, None, 1)
        if len(others) < self.words + self.waiting + (not self.entry):
            return self.step(word, None, 1)
        return not _is_option(behind[1]) and not is_number(behind[1]) and self.step(word, behind[0], 2)

    def step(self, name: str, value: str | None, words: int) -> bool:
        self.options.append(LaunchOption(name, value, self.at, self.at + words))
        self.at += words
        return True


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and not is_number(word)
