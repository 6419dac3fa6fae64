"""The options of a command line as they were written: which flag, which value, in which style.

A command line says nothing of which word is an option's value. The reading here is argparse's where
it can be: a word after `--flag` is its value unless it looks like an option itself (a negative number
does not), a dotted `a.b=c` is an override of its own, and a row of numbers belongs to one flag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from gpudebug.core.command.launchers import basename as _basename
from gpudebug.core.command.launchers import is_number, launch, looks_like_option
from gpudebug.core.lazy import regex

Style = Literal["equals", "separate", "bare", "override", "glued"]

# `-j0` is `-j 0`: a short option with its number.
_GLUED = regex(r"(-[A-Za-z])([-+]?\d+(?:\.\d+)?)", re.ASCII)
_OVERRIDE = regex(r"\+{0,2}[A-Za-z_][\w./@-]*=", re.ASCII)
_DOTTED_OVERRIDE = regex(r"(\+{1,2}[\w./@-]+|[A-Za-z_][\w@-]*(\.[\w@-]+)+)=", re.ASCII)

_INTERPRETER = regex(r"(python|pypy)[\d.]*|torchrun|accelerate|deepspeed|composer|colossalai", re.ASCII)
_LAUNCHER_MODULE = regex(
    r"torch\.distributed\.(run|launch)|accelerate\.commands\.launch|deepspeed\.launcher\.\w+"
)
_WRAPPERS = frozenset({"env", "nice", "nohup", "time", "stdbuf", "timeout", "srun", "mpirun", "xvfb-run"})
_MANAGERS = frozenset({"uv", "uvx", "poetry", "pdm", "hatch", "pipenv", "conda"})
_SKIPPED = _WRAPPERS | _MANAGERS | {"run", "exec", "launch", "--"}
_SHELL = regex(r"(ba|da|z|k)?sh")

_CONFIGURATION = (".yaml", ".yml", ".json")
_OF_WORDS: dict[str, tuple[str, ...]] = {
    "yolo": (),
    "tune": (),
    "llamafactory-cli": _CONFIGURATION,
    "llamafactory-train": _CONFIGURATION,
}
"""Programs whose options are words such as `epochs=3`; of some only behind a file with such an ending."""


class Option(NamedTuple):
    """One occurrence: `argv[start:stop]`. `name` is as written (`--lr`, `-b`, `+a.b`); `value` is None
    for a bare flag; a row of numbers is joined by blanks; `-j0` is the `glued` option `-j`."""

    name: str
    value: str | None
    start: int
    stop: int
    style: Style

    @property
    def bare(self) -> str:
        return bare_name(self.name)


def bare_name(name: str) -> str:
    """Return the name without leading dashes and pluses: `--lr`, `+lr` and `lr` are all `lr`."""
    return name.lstrip("-").lstrip("+~")


def is_shell(argv: Sequence[str]) -> bool:
    """Tell whether the command is a shell with its text as one word: `sh -c TEXT`."""
    return (
        len(argv) > 2 and _SHELL.fullmatch(_basename(argv[0])) is not None and argv[1] in ("-c", "-ec", "-lc")
    )


def options(argv: Sequence[str]) -> tuple[Option, ...]:
    """Return every option of `argv` in order, launcher's and program's alike."""
    return tuple(_walk(argv))


def _walk(argv: Sequence[str], position: int = 1) -> Iterator[Option]:
    while position < len(argv):
        word = argv[position]
        if looks_like_option(word):
            option = _dashed(argv, position)
        elif _OVERRIDE.match(word):
            name, _, value = word.partition("=")
            option = Option(name, value, position, position + 1, "override")
        else:
            position += 1
            continue
        yield option
        if option.style == "separate" and _OVERRIDE.match(argv[position + 1]):
            # `--multirun lr=1` is ambiguous, so it is read both ways.
            name, _, value = argv[position + 1].partition("=")
            yield Option(name, value, position + 1, position + 2, "override")
        position = option.stop


def _dashed(argv: Sequence[str], start: int) -> Option:
    glued = _GLUED.fullmatch(argv[start])
    if glued is not None:
        return Option(glued[1], glued[2], start, start + 1, "glued")
    name, equals, value = argv[start].partition("=")
    if equals:
        return Option(name, value, start, start + 1, "equals")
    stop = start + 1
    while stop < len(argv) and _is_value(argv[stop]) and (stop == start + 1 or is_number(argv[stop])):
        stop += 1
        if not is_number(argv[stop - 1]):
            break
    if stop == start + 1:
        return Option(name, None, start, stop, "bare")
    return Option(name, " ".join(argv[start + 1 : stop]), start, stop, "separate")


def without_number(name: str) -> tuple[str, str | None]:
    """Return the name and the number of a short option that holds one: `-j4`; any other name as it is."""
    glued = _GLUED.fullmatch(name)
    return (name, None) if glued is None else (glued[1], glued[2])


def holds_value(name: str) -> bool:
    """Tell whether a word of its own would be a short option with its number: `-j0`."""
    return _GLUED.fullmatch(name) is not None


def _is_value(word: str) -> bool:
    return word != "--" and not looks_like_option(word) and not _DOTTED_OVERRIDE.match(word)


def program_start(argv: Sequence[str]) -> int:
    """Index of the first word that belongs to the training program itself: behind its script or module,
    where an interpreter or a launcher (`torchrun`, `accelerate launch`, `uv run` …) is before it.

    A guess if that is not certain: good enough to read flags, never to change them.
    """
    certain = launch(argv).start
    if certain is not None:
        return certain
    launched = False
    for index, word in enumerate(argv):
        if _INTERPRETER.fullmatch(_basename(word)):
            launched = True
        elif launched and word in ("-m", "--module") and index + 1 < len(argv):
            if not _LAUNCHER_MODULE.fullmatch(argv[index + 1]):
                return index + 2
        elif launched and word.endswith(".py") and not word.startswith("-"):
            return index + 1
        elif launched and word == "-c":
            return min(index + 2, len(argv))
    return _behind_wrapper(argv)


def _behind_wrapper(argv: Sequence[str]) -> int:
    first = _basename(argv[0]) if argv else ""
    if first not in _WRAPPERS | _MANAGERS and not _INTERPRETER.fullmatch(first):
        return min(1, len(argv))
    previous = ""
    for index, word in enumerate(argv[1:], 1):
        skipped = word in _SKIPPED or looks_like_option(word) or is_number(word)
        if not skipped and "=" not in word and not (looks_like_option(previous) and "=" not in previous):
            return index + 1
        previous = word
    return 1


def program_options(argv: Sequence[str]) -> tuple[Option, ...]:
    """Return the training program's own options: those behind its script or module."""
    return tuple(_walk(argv, program_start(argv)))


def find(argv: Sequence[str], name: str) -> tuple[Option, ...]:
    """Return every occurrence of the flag, in the program's part if it is there, else in the launcher's.

    `--lr`, `lr` and `+lr` find each other where the exact spelling is absent; so do `-` and `_`, since
    a command that works shows which spelling its program knows.
    """
    return find_own(argv, name, program_start(argv)) or find_own(argv, name, 1)


def find_own(argv: Sequence[str], name: str, start: int) -> tuple[Option, ...]:
    """Return every occurrence of the flag from the word at `start` on, as `find` knows its spellings."""
    for spelling in (_as_written, bare_name, _folded):
        wanted = spelling(name)
        found = [option for option in _walk(argv, start) if spelling(option.name) == wanted]
        if found:
            return _apart(found)
    return ()


def _as_written(name: str) -> str:
    return name


def _folded(name: str) -> str:
    return bare_name(name).replace("-", "_")


def _apart(found: Sequence[Option]) -> tuple[Option, ...]:
    """Without those that lie inside the one before."""
    kept: list[Option] = []
    for option in found:
        if not kept or option.start >= kept[-1].stop:
            kept.append(option)
    return tuple(kept)


def value_of(argv: Sequence[str], name: str) -> str | None:
    """Return the value that the last occurrence gives, None if the flag is absent or bare."""
    found = find(argv, name)
    return found[-1].value if found else None


def prevailing_style(argv: Sequence[str]) -> Style:
    """Return how the program's options are mostly written; `equals` if it has none.

    `override` for a program that reads words such as `epochs=3` and no other options behind its subcommand.
    """
    if _reads_words(argv):
        return "override"
    styles = [option.style for option in program_options(argv)]
    known: tuple[Style, ...] = ("equals", "separate", "override")
    return max(known, key=styles.count)


def _reads_words(argv: Sequence[str]) -> bool:
    program = _basename(argv[0]) if argv else ""
    suffixes = _OF_WORDS.get(program)
    return suffixes is not None and (not suffixes or any(word.endswith(suffixes) for word in argv[1:4]))


def flat(argv: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """Return the command with its styles removed, for comparison: (name, value) of each option and ('', word)
    of every other word, sorted. `--a=1` and `--a 1` are the same; so are two orders of two flags."""
    entries: list[tuple[str, str | None]] = []
    covered: set[int] = set()
    for option in options(argv):
        if option.start not in covered:
            entries.append((option.name, option.value))
            covered.update(range(option.start, option.stop))
    entries.extend(("", word) for index, word in enumerate(argv) if index not in covered)
    return tuple(sorted(entries, key=lambda entry: (entry[0], entry[1] is not None, entry[1] or "")))


def changed_names(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """Return the flags whose values differ between two command lines, positional words as the name ''."""
    old, new = flat(before), flat(after)
    names = {name for name, _ in set(old) ^ set(new)}
    names |= {name for name, _ in (*old, *new) if _values(old, name) != _values(new, name)}
    return tuple(sorted(names))


def _values(entries: Sequence[tuple[str, str | None]], name: str) -> list[str | None]:
    return [value for key, value in entries if key == name]
