"""A flag put into a command or taken out of it: behind the program's own start, and nowhere else.

A launcher's flag is changed where gpudebug.yaml opens it, in place: no word before the program comes or goes
but those of that flag.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.change.permits import Allowed
from gpudebug.core.command import command_line, launchers
from gpudebug.core.command.command_line import Option
from gpudebug.core.command.launchers import Launch, LaunchOption
from gpudebug.core.errors import InterventionError, NoEffect

_TRUTH = frozenset({"true", "false", "yes", "no", "on", "off", "0", "1"})


def set_flag(words: list[str], name: str, value: str | None, allowed: Allowed) -> list[str]:
    """Put the flag into `words` in place; returns notes."""
    start, opened = _reach(words, name, allowed)
    if opened:
        return _set_opened(words, name, value, opened)
    found = command_line.find_own(words, name, start)
    if not found:
        _append(words, name, value, start)
        return []
    if _is_there(found[-1], value):
        shown = name if value is None else f"{name}={value}"
        raise NoEffect(f"the command has {shown} already: the change has no effect", next="set another value")
    first = found[0]
    notes = _notes(name, found, "one is left")
    if value is None and first.style == "separate" and str(first.value).lower() not in _TRUTH:
        stop = first.start + 1
    else:
        stop = first.stop
    for option in reversed(found[1:]):
        del words[option.start : option.stop]
    words[first.start : stop] = _written(first, value)
    return notes


def unset_flag(words: list[str], name: str, allowed: Allowed) -> list[str]:
    """Take the flag out of `words`; returns notes."""
    start, opened = _reach(words, name, allowed)
    if opened:
        for part in reversed(opened):
            del words[part.start : part.stop]
        return []
    found = command_line.find_own(words, name, start)
    if not found:
        raise NoEffect(
            f"the command has no {name}: --unset {name} has no effect",
            next="name a flag of the program in workload.command",
        )
    notes = _notes(name, found, "all are removed")
    notes += [
        f"{option.name} is removed with {option.value}" for option in found if option.style == "separate"
    ]
    for option in reversed(found):
        del words[option.start : option.stop]
    return notes


def refuse_unreachable(words: Sequence[str], name: str, allowed: Allowed) -> None:
    """InterventionError for a flag that no hypothesis may change in this command."""
    _reach(words, name, allowed)


def _reach(words: Sequence[str], name: str, allowed: Allowed) -> tuple[int, list[LaunchOption]]:
    """Return where the program's own words begin, and the opened launcher's options of this name.

    A flag that both have is the program's. InterventionError for one that is only before the program,
    and for a command whose program's beginning is not certain.
    """
    found = launchers.launch(words)
    if found.start is None:
        raise InterventionError(
            f"no flag of this command can be changed: {found.why}",
            next="a person puts `--` before the program, or starts it by a script in workload.command",
        )
    if command_line.find_own(words, name, found.start):
        return found.start, []
    opened = _opened(found, name, allowed)
    if not opened:
        _refuse_before(words[: found.start], found, name)
    return found.start, opened


def _opened(found: Launch, name: str, allowed: Allowed) -> list[LaunchOption]:
    """Return the options of this name of the last launcher that has it, if gpudebug.yaml opens it."""
    for part in reversed(found.parts):
        listed = {launchers.folded(flag) for flag in allowed.flags.get(part.name, ())}
        same = [option for option in part.options if _is(option.name, name)]
        if same and launchers.folded(same[0].name) in listed:
            return same
    return []


def _refuse_before(words: Sequence[str], found: Launch, name: str) -> None:
    if not any(_is(word.partition("=")[0], name) for word in words[1:]):
        return
    owner = next(
        (part.name for part in reversed(found.parts) if any(_is(o.name, name) for o in part.options)), None
    )
    if owner in launchers.LAUNCHERS and launchers.folded(name) not in launchers.NEVER_OPEN:
        advice = f"a person opens it in gpudebug.yaml: allow_flags: {{{owner}: [{name}]}}"
    else:
        advice = "a person changes it in workload.command of gpudebug.yaml"
    raise InterventionError(
        f"{name} is before the program in workload.command: it is not a flag of the program", next=advice
    )


def _is(written: str, name: str) -> bool:
    """Tell whether both name one option; a name without dashes means one with either."""
    one, other = launchers.folded(written), launchers.folded(name)
    return one == other or (not other.startswith("-") and command_line.bare_name(one) == other)


def _set_opened(words: list[str], name: str, value: str | None, found: list[LaunchOption]) -> list[str]:
    first = found[0]
    if value is not None and not _separable(value):
        raise InterventionError(
            f"{value!r} is not a value for {name}, a launcher's flag", next="give it a plain value"
        )
    if first.value == value:
        raise NoEffect(f"the command has {name} already: the change has no effect", next="set another value")
    for option in reversed(found[1:]):
        del words[option.start : option.stop]
    if value is None:
        made = [first.name]
    elif first.stop - first.start == 2:
        made = [first.name, value]
    else:
        made = [f"{first.name}={value}" if first.name.startswith("--") else f"{first.name}{value}"]
    words[first.start : first.stop] = made
    return [f"{first.name} is the launcher's"]


def _is_there(option: Option, value: str | None) -> bool:
    if value is None and option.style == "separate":
        return str(option.value).lower() not in _TRUTH
    return option.value == value


def _written(option: Option, value: str | None) -> list[str]:
    """Write the flag with its new value in its present style."""
    if value is None:
        return [option.name]
    if option.style == "glued" and _separable(value):
        return [f"{option.name}{value}" if launchers.is_number(value) else f"{option.name}={value}"]
    if option.style in ("equals", "override") or not _separable(value):
        return [f"{option.name}={value}"]
    if option.style == "bare" and option.name.startswith("--"):
        return [f"{option.name}={value}"]
    return [option.name, value]


def _separable(value: str) -> bool:
    """Whether a value can stand as a word of its own: it neither looks like an option nor ends a command."""
    return not launchers.looks_like_option(value) and value not in ("--", ":", ";", "+")


def _append(words: list[str], name: str, value: str | None, start: int) -> None:
    style = command_line.prevailing_style(words)
    place = next((i for i in range(start, len(words)) if words[i] == "--"), len(words))
    if not name.startswith(("-", "+")) and style != "override":
        name = f"--{name}"
    if value is None:
        added = [name]
    elif (
        name.startswith("-")
        and (style == "separate" or not name.startswith("--"))
        and not command_line.holds_value(name)
        and _separable(value)
    ):
        added = [name, value]
    else:
        added = [f"{name}={value}"]
    words[place:place] = added


def _notes(name: str, found: Sequence[Option], repeated: str) -> list[str]:
    first = found[0]
    notes = []
    if len(found) > 1:
        notes.append(f"{first.name} stood {len(found)} times; {repeated}")
    if command_line.bare_name(name) != first.bare:
        notes.append(f"the command spells {name} as {first.name}")
    if first.style == "separate" and first.stop - first.start > 2:
        notes.append(f"{first.name} had the values {first.value}")
    return notes
