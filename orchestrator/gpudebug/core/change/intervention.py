"""A hypothesis's change: written as `propose` takes it, applied to a command line and environment.

Syntax: `--set FLAG=V`, `--unset FLAG`, `--env K=V`, `--patch hypotheses/patches/F`,
`--code`; several of them are a compound change, which `--compound` says is meant.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from gpudebug.core.change import permits
from gpudebug.core.change.permits import NOTHING_MORE, Allowed
from gpudebug.core.command import command_line
from gpudebug.core.command.synonyms import Synonyms, as_written, long_name, names_of
from gpudebug.core.errors import InterventionError, NoEffect
from gpudebug.core.lazy import regex
from gpudebug.core.text import shell_words

Kind = Literal["set", "unset", "env", "patch", "code"]
PATCHES = "hypotheses/patches"
COMPOUND = "--compound"
SERVER = "server:"
"""In front of a flag or variable: it is of the workload's server."""
# With these a change would choose the program that workload.command names, or run one before it.
_COMMANDS = frozenset({"PATH", "BASH_ENV", "ENV", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONEXECUTABLE"})
SYNTAX = f"--set FLAG=VALUE, --unset FLAG, --env NAME=VALUE, --patch {PATCHES}/FILE or --code"

_FLAG = regex(r"(--?|\+{1,2})?[A-Za-z0-9_][\w.:/@\[\]-]*", re.ASCII)
_VARIABLE = regex(r"[A-Za-z_][A-Za-z0-9_]*")
# Controls, line separators, and what turns text around or is not seen: a reader would see another change.
_CONTROL = regex(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)


class SingleChange(NamedTuple):
    """One part of a change. `name` is the flag, variable or patch, empty for code; `value` is None for a
    bare flag and for every kind that has none."""

    kind: Kind
    name: str = ""
    value: str | None = None

    @property
    def of_server(self) -> bool:
        """Whether it is of the workload's server, and not of its command."""
        return self.kind in ("set", "unset", "env") and self.name.startswith(SERVER)

    @property
    def bare(self) -> str:
        """Its name without the prefix of the server."""
        return self.name.removeprefix(SERVER) if self.of_server else self.name

    @property
    def words(self) -> tuple[str, ...]:
        if self.kind == "code":
            return ("--code",)
        return (f"--{self.kind}", self.name if self.value is None else f"{self.name}={self.value}")


class Applied(NamedTuple):
    """The command and environment of a run, and what its reader should know of how they were made."""

    argv: tuple[str, ...]
    env: dict[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Intervention:
    """One or more changes that are tested together; `compound` says that several at once are meant."""

    changes: tuple[SingleChange, ...]
    compound: bool = False

    @property
    def text(self) -> str:
        """The canonical rendering on one line; `parse` reads it back as an equal intervention."""
        marks = ["--compound"] if self.compound else []
        words = [word for change in self.changes for word in change.words]
        return " ".join([*marks, *(shlex.quote(word) for word in words)])

    @property
    def needs_code(self) -> bool:
        """Whether the change is still to be written."""
        return any(change.kind == "code" for change in self.changes)

    @property
    def mechanical(self) -> bool:
        """Whether gpudebug can make the change by itself: flags, variables and patches."""
        return not self.needs_code

    @property
    def names(self) -> tuple[str, ...]:
        """The flags and variables that are touched, as written."""
        return tuple(change.name for change in self.changes if change.kind in ("set", "unset", "env"))

    @property
    def patch(self) -> str | None:
        return next((change.name for change in self.changes if change.kind == "patch"), None)

    @property
    def without_prefix(self) -> Intervention:
        """The same with the names of what is of the server as its own program has them."""
        return Intervention(tuple(c._replace(name=c.bare) for c in self.changes), self.compound)

    def touches(self, name: str) -> bool:
        """Tell whether it changes the flag or variable of this name, however that is spelled."""
        return _knob(name) in {_knob(touched) for touched in self.names}

    def with_patch(self, path: str) -> Intervention:
        """Return the same change with the patch at `path` in the place of its code or of another patch."""
        patch = SingleChange("patch", _patch(path))
        at = next((i for i, c in enumerate(self.changes) if c.kind in ("code", "patch")), len(self.changes))
        kept = [c for c in self.changes if c.kind not in ("code", "patch")]
        return Intervention((*kept[:at], patch, *kept[at:]), self.compound)

    @property
    def size(self) -> int:
        """How many things change at once; more than one is a compound change."""
        return len(self.changes)

    def apply(
        self, argv: Sequence[str], env: Mapping[str, str], allowed: Allowed | None = NOTHING_MORE
    ) -> Applied:
        """Return the command line and environment with every flag and variable of the change in place.

        A patch, code and what is of the server change neither. Raises InterventionError if a part would have
        no effect, the command's flags cannot be reached, or `allowed` does not let a hypothesis change it;
        None compares changes of any variable.
        """
        # Which words of a launcher are whose is asked where a change is applied, not where one is read.
        from gpudebug.core.change import flag_edits

        words, variables, notes = list(argv), dict(env), list[str]()
        changes = [change for change in self.changes if not change.of_server]
        if any(change.kind in ("set", "unset") for change in changes) and command_line.is_shell(words):
            raise InterventionError(
                f"the flags of a shell command cannot be changed ({self.text})",
                next="write workload.command without shell: true, or change a variable with --env",
            )
        for change in changes:
            if change.kind == "set":
                notes += flag_edits.set_flag(words, change.name, change.value, allowed or NOTHING_MORE)
            elif change.kind == "unset":
                notes += flag_edits.unset_flag(words, change.name, allowed or NOTHING_MORE)
            elif change.kind == "env":
                _set_variable(variables, change)
                if allowed is not None:
                    permits.refuse_variable(change.name, change.value or "", allowed)
        return Applied(tuple(words), variables, tuple(notes))

    def refuse_forbidden(self, argv: Sequence[str], allowed: Allowed) -> None:
        """InterventionError for what no hypothesis may change in this command, whether it has an effect."""
        from gpudebug.core.change import flag_edits

        for change in self.changes:
            if change.kind == "env":
                permits.refuse_variable(change.bare, change.value or "", allowed)
            elif change.kind in ("set", "unset") and not change.of_server:
                flag_edits.refuse_unreachable(argv, change.name, allowed)

    def spelled(self, argv: Sequence[str], synonyms: Synonyms) -> Intervention:
        """Return the same change with its flags named as the command names them: `-j` for `--workers`."""
        changes = tuple(
            change._replace(name=as_written(argv, change.name, synonyms))
            if change.kind in ("set", "unset") and not change.of_server
            else change
            for change in self.changes
        )
        return self if changes == self.changes else Intervention(changes, self.compound)

    def canonical(self, synonyms: Synonyms = ()) -> Intervention:
        """Return the same change with one spelling of each flag and each value: `--lr=1e-3` is `lr=0.001`."""
        made = (
            c._replace(name=_canonical_name(c, synonyms), value=_canonical_value(c.value))
            for c in self.changes
        )
        return Intervention(tuple(sorted(made, key=repr)))

    def same_effect(
        self,
        other: Intervention,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        effects: Mapping[str, object] | None = None,
    ) -> bool:
        """Tell whether both make the same command and environment out of this one, however they are spelled.

        `effects` says by their paths what patches change; one that is not there is like itself alone. Code
        is never the same as other code: it is unknown before it is written.
        """
        if self.needs_code or other.needs_code:
            return False
        if _patches(self, effects or {}) != _patches(other, effects or {}):
            return False
        if _plain(self) == _plain(other):
            return True
        surroundings = tuple(argv), tuple(sorted((env or {}).items()))
        mine = _made(self, *surroundings)
        return mine is not None and mine == _made(other, *surroundings)

    def locked_by(
        self, locked: Sequence[str], known: Collection[str] | None = None, synonyms: Synonyms = ()
    ) -> list[str]:
        """Return the locked knobs that this change touches; dashes in front, and `-` for `_`, make no
        difference. `synonyms` are the options with several names.

        argparse takes `--batch` for `--batch_size`. So does this where the program's flags are `known`: a
        name that is none of them, and short for one of them or of the locked ones alone.
        """
        touched = {_knob(name) for name in self.names}
        if known is not None:
            flags = {_knob(name) for name in (*locked, *known)}
            short = [_knob(c.name) for c in self.changes if c.kind != "env" and c.name.startswith("--")]
            meant = [[f for f in flags if f.startswith(name)] for name in short if name not in flags]
            touched |= {long[0] for long in meant if len(long) == 1}
        # `-oadam` is `-o adam` if the program has an `-o`.
        glued = {c.name[:2] for c in self.changes if re.match(r"-[A-Za-z].", c.name)}
        shorts = {name for group in (*synonyms, locked) for name in group if len(name) == 2}
        touched |= {_knob(name) for name in glued & shorts}
        touched |= {_knob(other) for name in touched for other in names_of(name, synonyms)}
        return [knob for knob in locked if _knob(knob) in touched]


# A new change is compared with every one of a file, and several new ones with the same file.
@lru_cache(maxsize=1 << 14)
def _made(change: Intervention, argv: tuple[str, ...], env: tuple[tuple[str, str], ...]) -> object | None:
    """Return what a change makes of a command and its variables; None if it cannot be applied to them."""
    try:
        made = change.apply(argv, dict(env), None)
    except InterventionError:
        return None
    return made.env, command_line.flat(made.argv), sorted(repr(c) for c in change.changes if c.of_server)


def parse(text: str, *, file: str | None = None, line: int | None = None) -> Intervention:
    """Parse an intervention. Raises InterventionError, at `file` and `line`, if `text` is not one."""
    try:
        words = [word.value for word in shell_words.split(text, strict=False)]
        return _build(_changes([w for w in words if w != COMPOUND]), compound=COMPOUND in words)
    except shell_words.ShellSyntaxError as error:
        raise InterventionError(
            f"{error} in {text!r}", file=file, line=line, next="close the quote"
        ) from None
    except InterventionError as error:
        raise InterventionError(error.message, file=file, line=line, next=error.next) from None


def from_options(
    set: Sequence[str] = (),
    unset: Sequence[str] = (),
    env: Sequence[str] = (),
    patch: str | None = None,
    code: bool = False,
    compound: bool = False,
) -> Intervention:
    """Return the intervention of `propose`'s options, each value as the shell handed it over."""
    words = [
        part
        for kind, values in (("set", set), ("unset", unset), ("env", env))
        for v in values
        for part in (f"--{kind}", v)
    ]
    words += ["--patch", patch] if patch is not None else []
    words += ["--code"] if code else []
    return _build(_changes(words), compound=compound)


def _changes(words: Sequence[str]) -> list[SingleChange]:
    changes, position = [], 0
    while position < len(words):
        keyword, equals, value = words[position].partition("=")
        kind = keyword.removeprefix("--")
        if keyword == "--code" and not equals:
            changes.append(SingleChange("code"))
            position += 1
            continue
        if not keyword.startswith("--") or kind not in ("set", "unset", "env", "patch"):
            raise InterventionError(f"{words[position]!r} is no change", next=f"write {SYNTAX}")
        if not equals:
            position += 1
            if position >= len(words):
                raise InterventionError(f"{keyword} has no value", next=f"write {SYNTAX}")
            value = words[position]
        changes.append(_change(kind, value))
        position += 1
    return changes


def _change(kind: str, text: str) -> SingleChange:
    if _CONTROL.search(text):
        raise InterventionError(
            f"--{kind} {text!r} has a control character or an invisible one",
            next="a change is written on one line",
        )
    if kind == "patch":
        return SingleChange("patch", _patch(text))
    name, equals, value = text.partition("=")
    if kind == "env":
        bare = name.removeprefix(SERVER)
        if not equals or not _VARIABLE.fullmatch(bare):
            raise InterventionError(f"--env {text!r} sets no variable", next="write --env NAME=VALUE")
        if bare in _COMMANDS or bare.startswith("GPUDEBUG_"):
            raise InterventionError(
                f"--env {name} would decide which program runs, or what gpudebug takes it for",
                next="a person changes it in workload.env or workload.command of gpudebug.yaml",
            )
        return SingleChange("env", name, value)
    if not _FLAG.fullmatch(name.removeprefix(SERVER)):
        raise InterventionError(f"--{kind} {text!r} names no flag", next=f"write {SYNTAX}")
    if kind == "unset":
        if equals:
            raise InterventionError(f"--unset {text!r} has a value", next=f"write --unset {name}")
        return SingleChange("unset", name)
    if not equals and not name.removeprefix(SERVER).startswith("-"):
        raise InterventionError(
            f"--set {text!r} has no value", next=f"write --set {name}=VALUE or --set --{name}"
        )
    if not equals:
        # `-j4` is `-j` with its number, as a command has it.
        name, number = command_line.without_number(name)
        return SingleChange("set", name, number)
    return SingleChange("set", name, value)


def _patch(text: str) -> str:
    path = PurePosixPath(text)
    if not path.is_relative_to(PATCHES) or len(path.parts) < 3 or ".." in path.parts:
        raise InterventionError(
            f"--patch {text!r} is outside {PATCHES}/", next=f"put the patch in {PATCHES}/"
        )
    return str(path)


def _build(changes: Sequence[SingleChange], *, compound: bool = False) -> Intervention:
    if not changes:
        raise InterventionError("the change is empty", next=f"write {SYNTAX}")
    seen: list[tuple[str, str]] = []
    for change in changes:
        kind = "flag" if change.kind in ("set", "unset") else change.kind
        target = ("patch", "") if kind == "patch" else (kind, command_line.bare_name(change.name))
        if target in seen:
            raise InterventionError(
                f"{change.name or '--code'} is changed twice",
                next="keep one change of each flag, variable or file",
            )
        seen.append(target)
    return Intervention(tuple(changes), compound)


def _patches(intervention: Intervention, effects: Mapping[str, object]) -> list[object]:
    return [effects.get(c.name, c.name) for c in intervention.changes if c.kind == "patch"]


def _plain(intervention: Intervention) -> list[SingleChange]:
    """Return the changes of flags and variables in an order of their own."""
    return sorted((c for c in intervention.changes if c.kind != "patch"), key=repr)


def _knob(name: str) -> str:
    return command_line.bare_name(name.removeprefix(SERVER)).replace("-", "_")


def _canonical_name(change: SingleChange, synonyms: Synonyms) -> str:
    flag = change.kind in ("set", "unset") and not change.of_server
    return f"--{_knob(long_name(change.name, synonyms))}" if flag else change.name


def _canonical_value(value: str | None) -> str | None:
    if value is None or value.lower() in ("true", "false"):
        return "true" if value is None else value.lower()
    try:
        return repr(float(value)) if value.isascii() and "_" not in value else value
    except ValueError:
        return value


def _set_variable(variables: dict[str, str], change: SingleChange) -> None:
    value = change.value or ""
    if variables.get(change.name) == value:
        raise NoEffect(
            f"{change.name} is {value!r} already: the change has no effect", next="set another value"
        )
    variables[change.name] = value
