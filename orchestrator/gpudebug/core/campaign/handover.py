"""What a session or a campaign ends with: one paragraph that an agent can hand on unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpudebug.core.words import Status, counted

_NAMED = 3


class JudgedChange(NamedTuple):
    """A hypothesis with a verdict that has its runs. `gain` is what was measured, with its interval, `why`
    the verdict's reason. `patch` is the file of its patch, `command` the workload with its flags and
    variables; None if it has none."""

    number: int
    title: str
    cause: str | None
    status: Status
    why: str
    change: str
    gain: str
    runs: int
    patch: str | None = None
    command: str | None = None


_AS_IT_WAS = "Your checkout and gpudebug.yaml are as they were."


def of_session(tested: JudgedChange) -> str:
    """Return what the one hypothesis of a session came to."""
    return f"{_told(tested)} {_adopt(tested) or _AS_IT_WAS}"


def of_nothing(
    reason: str, count: int, tested: Sequence[JudgedChange], validated: Sequence[JudgedChange]
) -> str:
    """Return what a session ends with that proposes nothing, and why; `count` hypotheses are tested, `tested`
    those that have their runs, the newest last. `validated` are those not accepted yet, the best first."""
    parts = [f"This session proposes nothing more: {reason.rstrip('.')}."]
    shown = "; ".join(f"hypothesis {one.number} ({one.title}) is {one.status}" for one in tested[-_NAMED:])
    parts.append(
        f"{count} {_plural(count)} {'is' if count == 1 else 'are'} tested{f': {shown}' if shown else ''}"
        f"{f', and {count - _NAMED} before' if shown and count > _NAMED else ''}."
    )
    if not validated:
        parts.append(f"The agent reports no other likely cause. {_AS_IT_WAS}")
        return " ".join(parts)
    parts += ["The agent reports no other likely cause.", _told(validated[0]), _adopt(validated[0])]
    return " ".join(parts)


def of_campaign(
    ending: str,
    tested: int,
    validated: Sequence[JudgedChange],
    accepted: Sequence[JudgedChange],
    together: str | None,
    command: str | None,
) -> str:
    """What a campaign that has stopped came to; `ending` is why. `validated` are those not accepted yet, the
    best first; `together` is what the accepted ones are worth, `command` the one to run with them."""
    parts = [f"The campaign has ended ({ending.rstrip('.')}), with {tested} {_plural(tested)} tested."]
    if accepted:
        parts.append(f"Accepted: {'; '.join(map(_short, accepted))}.")
        parts.append(
            f"Together, as measured: {together}." if together else "Together they are not measured yet."
        )
        parts += [f"The command from now on: `{command}`."] if command else []
        parts.append("`gpudebug export` writes what was accepted, patches and command.")
    if validated:
        parts += [_told(validated[0]), _adopt(validated[0])]
        rest = validated[1 : _NAMED + 1]
        parts += [f"VALIDATED too: {'; '.join(map(_short, rest))}."] if rest else []
    elif not accepted:
        parts.append(f"No change was VALIDATED. {_AS_IT_WAS}")
    return " ".join(filter(None, parts))


def _plural(count: int) -> str:
    return "hypothesis" if count == 1 else "hypotheses"


def _told(one: JudgedChange) -> str:
    cause = f", cause {one.cause}" if one.cause else ""
    lead = f"Hypothesis {one.number} ({one.title}{cause}) is {one.status}"
    if one.status is Status.VALIDATED:
        return f"{lead}: with `{one.change}` {one.gain}, by {counted(one.runs, 'run')}."
    return f"{lead}: {one.why}. It was tested with `{one.change}`."


def _short(one: JudgedChange) -> str:
    return f"hypothesis {one.number} ({one.title}), `{one.change}`, alone {one.gain}"


def _adopt(one: JudgedChange) -> str:
    """Return how a person gets a VALIDATED change; nothing of another one."""
    if one.status is not Status.VALIDATED:
        return ""
    parts = [f"The patch is {one.patch}."] if one.patch else []
    parts += [f"The command with it: `{one.command}`."] if one.command else []
    parts.append(
        f"{_AS_IT_WAS} To adopt it, run `gpudebug accept {one.number}`; `gpudebug next` then measures old "
        "and new in turn, and `gpudebug export` writes what was accepted."
    )
    return " ".join(parts)
