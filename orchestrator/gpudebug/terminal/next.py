"""The answers of `next` and `propose` as text for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch

from gpudebug.core.answers.hypotheses import ProposeAnswer
from gpudebug.core.answers.next import (
    NextAnswer,
    NothingRunning,
    RecordedAA,
    RecordedBaseline,
    RecordedProfile,
    RecordedVerdict,
    Recovered,
    Running,
)
from gpudebug.core.statistics import phases
from gpudebug.core.statistics.across import shown, text
from gpudebug.core.statistics.units import PRINTED_LOSS
from gpudebug.terminal.fit import coloured
from gpudebug.terminal.live import progress
from gpudebug.terminal.noise import aa
from gpudebug.terminal.probe import inside, profile
from gpudebug.terminal.show import gates


@singledispatch
def next_(answer: NextAnswer) -> str:
    """Render an action; one that asks the caller for something is its brief."""
    if answer.brief is not None:
        return answer.brief.rstrip()
    return f"Stop: {answer.why}." + (f"\n\nTell the user:\n{answer.tell}" if answer.tell else "")


def without_repeats(answer: NextAnswer, new: Callable[[Sequence[str]], tuple[str, ...]]) -> NextAnswer:
    """Keep the notes of a recorded answer that `new` gives back: those that were not printed on the way."""
    if isinstance(answer, RecordedVerdict):
        return replace(answer, notes=new(answer.notes))
    if isinstance(answer, RecordedBaseline):
        parts = answer.baselines and tuple(replace(one, notes=new(one.notes)) for one in answer.baselines)
        return replace(answer, notes=new(answer.notes), baselines=parts)
    return answer


@next_.register
def _(answer: RecordedBaseline) -> str:
    lines = []
    for one in answer.baselines or (answer,):
        own = "" if one.metric == "gpu_util" else f"{one.metric} {one.metric_text}, gpu_util "
        by_log = one.learning in (None, PRINTED_LOSS)
        loss, trend = (f", loss {one.loss}", "") if by_log else ("", f": {one.loss}")
        lines.append(f"Baseline {one.role} recorded: {own}{one.gpu_util_text}, {one.throughput_text}{loss}")
        lines += [f"  work: {one.work_text}"] if one.work_text else []
        lines += [f"  learning: judged by {one.learning}{trend}"] if one.learning else []
        lines += [f"  phase {phases.text(phase)}" for phase in one.phases]
        lines += [f"  devices: {text(figure)}" for figure in shown(one.across)]
        lines += [f"  note: {line}" for line in one.notes]
        lines += [f"  advice: {line}" for line in one.advice]
        lines += inside(one.probe)
    return "\n".join([*lines, f"Next: {answer.next_command}"])


@next_.register
def _(answer: RecordedVerdict) -> str:
    lines = [f"Hypothesis {answer.hypothesis}: {answer.title}"]
    if answer.decided != f"hypothesis {answer.hypothesis} is untested":
        lines.append(f"Chosen: {answer.decided}")
    verdict = f"Verdict: {coloured(answer.verdict)}: " if answer.verdict else "No verdict: "
    lines.append(f"{verdict}{answer.why}")
    lines += [f"  note: {n}" for n in answer.notes]
    lines += [f"  could not be tested: {n}" for n in answer.unready]
    lines += ["Gates:", *gates(answer.gates), *inside(answer.probe)]
    return "\n".join([*lines, f"Next: {answer.next_command}"])


@next_.register
def _(answer: Recovered) -> str:
    return f"Recovered: {answer.why}; {answer.done}.\nNext: {answer.next_command}"


@next_.register
def _(answer: RecordedAA) -> str:
    return aa(answer)


@next_.register
def _(answer: RecordedProfile) -> str:
    return profile(answer)


@next_.register
def _(answer: Running) -> str:
    return f"Running: {answer.why}.\n  {progress(answer)}\nNext: {answer.next_command}"


@next_.register
def _(answer: NothingRunning) -> str:
    return f"{answer.why[0].upper()}{answer.why[1:]}.\nNext: {answer.next_command}"


def propose(answer: ProposeAnswer) -> str:
    lines = [f"Hypothesis {h.hypothesis} added, UNTESTED: {h.title}" for h in answer.hypotheses]
    lines += [f"note: {n}" for n in answer.notes]
    return "\n".join([*lines, f"Next: {answer.next_command}"])
