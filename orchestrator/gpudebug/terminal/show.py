"""One hypothesis as text for people: its entry, its verdict's gates, runs and what happened inside them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.agents.setups import named
from gpudebug.core.answers.show import ShowAnswer
from gpudebug.core.answers.status import GateRow
from gpudebug.core.evidence.devices import notes
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.level import MOST, drawing
from gpudebug.core.words import counted
from gpudebug.terminal import sections
from gpudebug.terminal.devices import summary, table, window_text
from gpudebug.terminal.fit import coloured, labelled, screen
from gpudebug.terminal.probe import inside, places, trace


def gates(rows: Sequence[GateRow]) -> list[str]:
    """Render a line a gate with its note below; skipped gates share the last line.

    A session gets those in full that did not pass, and the names of the others.
    """
    if named(os.environ):
        return _in_short(rows)
    lines = []
    skipped = [g for g in rows if g.result == "skipped"]
    for g in [g for g in rows if g.result != "skipped"]:
        value, result = g.value or numbers.UNKNOWN, f" {g.result}"
        first, *rest = labelled(f"  {g.name:<19}{result:<9} ", f"{value}  [{g.threshold}]")
        lines += [first.replace(result, f" {coloured(g.result)}", 1), *rest]
        if g.note:
            lines += labelled(f"  {'':<19} {'':<8} ", g.note)
    for note in dict.fromkeys(g.note for g in skipped):
        names = ", ".join(g.name for g in skipped if g.note == note)
        lines += labelled("  skipped: ", names + (f" ({note})" if note else ""))
    return lines


def _in_short(rows: Sequence[GateRow]) -> list[str]:
    lines = []
    for g in (g for g in rows if g.result not in ("pass", "skipped")):
        note = f"; {g.note}" if g.note else ""
        lines += labelled(f"  {g.name} {g.result}: ", f"{g.value or numbers.UNKNOWN}  [{g.threshold}]{note}")
    for result, word in (("pass", "passed"), ("skipped", "skipped")):
        names = ", ".join(g.name for g in rows if g.result == result)
        lines += labelled(f"  {word}: ", names) if names else []
    return lines


Facts = Mapping[str, Any]
_WIDEST = 80
"""Columns of the picture of a verdict."""


def show(answer: ShowAnswer) -> str:
    lines = [f"Hypothesis {answer.number}: {answer.title}", ""]
    lines.append(f"Status        {coloured(answer.status)}" + _verified(answer))
    texts = {"Description": answer.description, "Test method": answer.test_method, "Cause": answer.cause}
    for label, text in texts.items():
        if text:
            lines += labelled(f"{label:<13} ", text)
    lines += [line for n in answer.doubts for line in labelled("Doubt         ", n)]
    if answer.intervention:
        # In one line, to copy.
        lines.append(f"Change        {answer.intervention}")
    if answer.why:
        lines += labelled("Why           ", answer.why)
    lines += [line for n in answer.notes for line in labelled("Note          ", n)]
    if answer.figures:
        lines += ["", "Result, as in the progress file:"]
        lines += [line for k, v in answer.figures.items() for line in labelled(f"  {k:<16} ", v)]
    if answer.gates:
        lines += ["", "Gates:", *gates(answer.gates)]
    devices = {one.run: one for one in answer.devices}
    for e in answer.evidence:
        lines += ["", *_run(e)]
        if (one := devices.get(e["run"])) is not None:
            lines += [f"  {line}" for line in (*summary(one.across), *table(one.devices))]
    lines += [""] if answer.skipped else []
    for s in answer.skipped:
        lines += labelled(f"Run {s.run}: ", f"unreadable evidence: {s.why}")
    lines += places(next((s for e in reversed(answer.evidence) if (s := e.get("stacks"))), None))
    lines += inside(answer.probe, [""]) + _sections(answer) + _profile(answer.profile)
    lines += ["", "Files:", *(f"  {f}" for f in answer.files)]
    return "\n".join(lines + _picture(answer))


def _picture(answer: ShowAnswer) -> list[str]:
    """Draw the verdict last: it is what a terminal shows when all has been printed."""
    if answer.course is None:
        return []
    count, metric = len(answer.course.points), answer.course.metric
    *rows, legend = drawing(answer.course, min(screen().columns, _WIDEST))
    last = f"the last {MOST} of " if count > MOST else ""
    heading = f"The verdict, {metric} of {last}{counted(count, 'run')} in their order:"
    return ["", *labelled("", heading), *rows, *labelled("", legend)]


def _verified(answer: ShowAnswer) -> str:
    if answer.verified is False:
        return "  UNVERIFIED: no runs behind it"
    words = ["weaker terms"] if answer.weaker_terms else []
    words += ["replayed"] if answer.replayed else []
    return f"  {', '.join(words)}" if words else ""


def _sections(answer: ShowAnswer) -> list[str]:
    """Render the sections of baseline and trial that the code named, or why there are none."""
    broken = [s for e in answer.evidence if (s := e.get("sections")) and not s["sections"]]
    notes = dict.fromkeys(note for s in broken for note in s["notes"])
    if not (answer.sections or notes):
        return []
    rows = sections.beside(answer.sections, ("baseline", "trial"))
    return ["", *rows, *(f"  note: {note}" for note in notes)]


def _profile(record: Facts | None) -> list[str]:
    """Render what PyTorch's profiler recorded of the workload, if it ran."""
    if not record:
        return []
    heading = f"Profile of the workload, run {record['run']}:"
    return ["", heading, *(f"  {line}" for line in trace(dict(record)))]


def _run(e: Facts) -> list[str]:
    window = e["window"]
    none = e["window_reason"] or f"window {numbers.UNKNOWN}"
    span = (
        f"{window_text(window['start_s'], window['end_s'], window['samples'])} (found by {window['rule']})"
        if window
        else none
    )
    lines = labelled(f"Run {e['run']}: ", f"{e['outcome']}, {span}")
    figure, here = f"  gpu_util {numbers.percent(e['utilisation'])}   ", screen()
    lines.append(figure + here.spark(e["spark"], min(40, here.columns - len(figure))))
    loss = e["loss"]
    lines += labelled(
        "  ",
        f"throughput {_throughput(e)}   loss {loss['trend']} "
        f"({numbers.number(loss['first'])} to {numbers.number(loss['last'])}, {loss['points']} points)",
    )
    lines += [line for note in notes(e) for line in labelled("  note: ", note)]
    if e["failure"]:
        lines.append(f"  failure {e['failure']['kind']}")
        lines += [f"    {line}" for line in e["failure"]["lines"][-3:]]
    return lines


def _throughput(e: Facts) -> str:
    value = e.get("progress_per_s") or e["steps_per_s"]
    return numbers.UNKNOWN if value is None else numbers.rate(value, e.get("step_unit"))
