"""What to look at where one of two commands is slower: its largest section, and what usually makes it so."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from gpudebug.core.answers.sections import Check
from gpudebug.core.answers.show import SectionRow
from gpudebug.core.command import command_line
from gpudebug.core.compare import checklist
from gpudebug.core.compare.compared_run import ComparedRun
from gpudebug.core.compare.faster import SpeedAnswer, SpeedComparison
from gpudebug.core.compare.sections import LEAST_HORIZON
from gpudebug.core.lazy import regex
from gpudebug.core.statistics import numbers

MUCH = 1.5
"""A side is asked about step by step from half as slow again on: below, its largest section is named."""
_COMPILED = "Is torch.compile on in both?"
_REUSED = regex(r"(?:horizon|chunk_size|n_action_steps)$", re.I)
_DELAY = regex(r"inference_delay|latency_steps", re.I)
_INFERS = regex(r"inference|predict|select_action|get_action|policy", re.I)
_RATE = regex(r"\b(?:fps|hz)[\"']?\s*[=: ]\s*(\d{1,4})\b", re.I)
_SWITCH = regex(r"(?:^|[._-])rtc(?:[._-]enabled?)?$", re.I)


def look(
    found: SpeedComparison, a: Sequence[ComparedRun], b: Sequence[ComparedRun], rows: Sequence[SectionRow]
) -> tuple[Check, ...]:
    """Return what was seen of the side that is slower; nothing if that is not decided."""
    if found.answer is SpeedAnswer.CANNOT_TELL:
        return ()
    slower = _slower(found)
    runs, others = (a, b) if slower == "A" else (b, a)
    reuses = _has_rtc((*a, *b))
    section = _largest(slower, rows, guided=_has_rtc(runs) and not _has_rtc(others))
    if not asks(found, a):
        return tuple(section)
    asked = (_compiled(found.checklist), _reused(slower, runs, others), _delay(slower, runs))
    # What is alike, or not known, is asked of a policy that reuses actions alone.
    return (*(one for one in asked if reuses or _tells(one, found.checklist)), *section)


def asks(found: SpeedComparison, a: Sequence[ComparedRun]) -> bool:
    """Tell whether the slower side takes half as long again, and is B, or the one with RTC: else nobody
    wants it faster."""
    ratio = found.ratio.value
    wanted = _slower(found) == "B" or _has_rtc(a)
    return found.answer is not SpeedAnswer.CANNOT_TELL and max(ratio, 1 / ratio) > MUCH and wanted


def _slower(found: SpeedComparison) -> str:
    return "A" if found.answer is SpeedAnswer.FASTER else "B"


def _tells(one: Check, known: checklist.Checklist) -> bool:
    return one.answer is not None and (one.question != _COMPILED or "compile" not in known.same)


def _compiled(known: checklist.Checklist) -> Check:
    question = _COMPILED
    other = next((d for d in known.differences if d.name == "compile"), None)
    if other is not None:
        return Check(question, f"no: {other.a} in A, {other.b} in B; switch it on in both", True)
    same = known.same.get("compile")
    if same is None:
        return Check(question)
    return Check(question, "yes" if same == "on" else f"{same} in both: switch it on in both", same != "on")


def _reused(slower: str, runs: Sequence[ComparedRun], others: Sequence[ComparedRun]) -> Check:
    """Return how many actions an inference is used for."""
    question = f"Is the execution horizon large enough, {LEAST_HORIZON} actions an inference or more?"
    mine, theirs = _options(runs, _REUSED), _options(others, _REUSED)
    given = [
        f"{name} {value} in {slower}"
        + (f", {theirs[name]} in the other" if theirs.get(name, value) != value else "")
        for name, value in mine.items()
    ]
    short = [name for name, value in mine.items() if value.isdigit() and int(value) < LEAST_HORIZON]
    if not given:
        return Check(question)
    raised = f"; try {short[0]}={3 * LEAST_HORIZON}" if short else ""
    return Check(question, f"{', '.join(given)}{raised}", bool(short))


def _delay(slower: str, runs: Sequence[ComparedRun]) -> Check:
    """Return how many steps of control an inference takes, where their rate is on the command line."""
    question = "Is the inference delay what an inference takes?"
    taken = [r.latency.mean for r in runs if r.latency is not None]
    given = [f"{name} {value}" for name, value in _options(runs, _DELAY).items()]
    if not taken or len(taken) < len(runs):
        unknown = f"{', '.join(given)}: the program prints no latency to compare it with"
        return Check(question, unknown if given else None)
    if not given and not _has_rtc(runs):
        return Check(question)
    mean = math.fsum(taken) / len(taken)
    rate = next((int(m[1]) for word in runs[0].record.argv if (m := _RATE.search(word))), None)
    steps = f", {math.ceil(round(mean * rate, 6))} steps at {rate} a second" if rate else ""
    text = f"an inference takes {numbers.seconds(mean)} in {slower}{steps}; "
    return Check(question, text + (", ".join(given) or "no flag gives a delay"), not given)


def _largest(slower: str, rows: Sequence[SectionRow], *, guided: bool) -> Iterator[Check]:
    sides = [(row, row.a if slower == "A" else row.b, row.b if slower == "A" else row.a) for row in rows]
    mine = [(row, own, other) for row, own, other in sides if own is not None]
    if not mine:
        return
    row, own, other = max(mine, key=lambda one: one[1].share)
    text = f"{row.name!r}: {own.share:.0%} of its time, {numbers.seconds(own.mean_s)} a call"
    text += f" instead of {numbers.seconds(other.mean_s)}" if other else ", and the other has no such section"
    if guided and _INFERS.search(row.name):
        text += "; with RTC on it holds the guidance and the copies of prev_actions: time each of them"
    yield Check(f"Which section is the largest of {slower}?", text)


def _options(runs: Sequence[ComparedRun], pattern: re.Pattern[str]) -> dict[str, str]:
    """Return the options of a side's command whose names end so, with their values."""
    found = command_line.options(runs[0].record.argv)
    return {option.name: option.value for option in found if option.value and pattern.search(option.bare)}


def _has_rtc(runs: Sequence[ComparedRun]) -> bool:
    found = (option for run in runs for option in command_line.options(run.record.argv))
    return any(_SWITCH.search(option.bare) and checklist.is_true(option.value) for option in found)
