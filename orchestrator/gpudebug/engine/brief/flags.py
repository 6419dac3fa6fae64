"""A training command as a page shows it: the flags that an agent may change, then those that it may not."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.agents import page as pages
from gpudebug.core.agents.page import Say, code, whole
from gpudebug.core.command import command_line
from gpudebug.core.command.synonyms import folded

_ELSEWHERE = " in gpudebug.yaml"
_FREE, _LOCKED = "May be changed", "Locked, never to be changed"


def section(command: str, locked: Sequence[str], say: Say, limit: int) -> str:
    """Return the section of at most `limit` characters: no flag is cut, those that do not fit are counted.

    The text loses its secrets before it is taken apart: words that are joined can be one.
    """
    words = pages.words(say(command))
    found = [] if command_line.is_shell(words) else _flags(words)
    texts = [(folded(flag.name), " ".join(words[flag.start : flag.stop])) for flag in found]
    start = found[0].start if found else len(words)
    names = {folded(name): say(name) for name in locked}
    fixed = dict(text for text in texts if text[0] in names)
    parts = {
        "Program": words[:start],
        _FREE: [text for name, text in texts if name not in names],
        _LOCKED: [fixed.get(name, text) for name, text in names.items()],
    }
    return _fitted({title: shown for title, shown in parts.items() if shown}, limit)


def _flags(words: Sequence[str]) -> list[command_line.Option]:
    """Return the options that lie beside each other, with the words between two as part of the first."""
    kept: list[command_line.Option] = []
    # A quote in front hides neither a flag nor its place.
    for option in command_line.options([word.lstrip("'") for word in words]):
        if kept and option.start < kept[-1].stop:
            continue
        if kept:
            kept[-1] = kept[-1]._replace(stop=option.start)
        kept.append(option)
    return [*kept[:-1], *(last._replace(stop=len(words)) for last in kept[-1:])]


def _fitted(parts: dict[str, list[str]], limit: int) -> str:
    """Give each line what it needs, and the long ones the rest in equal shares."""
    room = limit - len("## Command\n\n") - sum(len(f"- {title}: ````\n") for title in parts)
    wanted = [(len(" ".join(shown)), room // max(1, len(parts)), 0) for shown in parts.values()]
    sizes = pages.shares(wanted, max(0, room))
    lines = [
        f"- {title}: {code(whole(shown, size, _ELSEWHERE))}"
        for (title, shown), size in zip(parts.items(), sizes, strict=True)
    ]
    text = pages.section("Command", lines)
    return text if len(text) <= limit else ""
