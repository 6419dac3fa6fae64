"""The answers of `accept`, `reopen`, `release`, `export`, `submit`, `stop` and `check` as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.answers.check import CheckAnswer
from gpudebug.core.answers.hypotheses import (
    AcceptAnswer,
    ExportAnswer,
    ExportedHypothesis,
    ReleaseAnswer,
    ReopenAnswer,
)
from gpudebug.core.answers.next import StopAnswer, SubmitAnswer
from gpudebug.core.answers.settings import SettingsAnswer
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.words import counted


def accept(answer: AcceptAnswer) -> str:
    lines = [f"{_capital(answer.why)}.", f"Change: {answer.intervention}"]
    code = ", in the code with its patch" if "--patch" in (answer.intervention or "") else ""
    lines.append(f"From now on run{code}: {answer.command}")
    return _closed(lines, answer.next_command, answer.notes)


def settings(answer: SettingsAnswer) -> str:
    """List the pinned settings, a line each, and what changed since."""
    notes = ["every run is replayed: recordings are the device"] if answer.replayed else []
    if answer.action == "pinned":
        head = f"Pinned the settings of gpudebug.yaml for campaign {answer.campaign}."
        changed = [f"changed: {line}" for line in answer.differences] or (
            ["Nothing has changed."] if answer.was_pinned else [f"  {line}" for line in answer.lines]
        )
        return _closed([head, *changed], answer.next_command, notes)
    problem = [answer.problem] if answer.problem else []
    if not answer.pinned:
        head = f"Nothing is pinned yet for campaign {answer.campaign}; gpudebug.yaml has:"
    else:
        head = f"Pinned for campaign {answer.campaign} on {answer.when}:"
    body = [*problem, head, *(f"  {line}" for line in answer.lines)]
    if answer.pinned:
        body.append(
            "gpudebug.yaml has the same." if not answer.differences else "Changed in gpudebug.yaml since:"
        )
        body += [f"  {line}" for line in answer.differences]
    return _closed(body, answer.next_command, notes)


def reopen(answer: ReopenAnswer) -> str:
    if answer.already:
        return _closed([f"{_capital(answer.why)}."], answer.next_command)
    lines = [f"Hypothesis {answer.hypothesis} is UNTESTED again: {answer.why}"]
    if answer.earlier_runs:
        lines.append(f"Kept: {', '.join('runs/' + name for name in answer.earlier_runs)}")
    return _closed(lines, answer.next_command)


def release(answer: ReleaseAnswer) -> str:
    return _closed([f"{_capital(answer.why)}."], answer.next_command)


def submit(answer: SubmitAnswer) -> str:
    """Print the script alone, for a file or a pipe; else what became of the job."""
    if answer.script is not None:
        return answer.script.rstrip("\n")
    return _closed([f"{_capital(answer.why)}."], answer.next_command)


def stop(answer: StopAnswer) -> str:
    return _closed([f"{_capital(answer.why)}."], answer.next_command)


def export(answer: ExportAnswer) -> str:
    """List the hypotheses, and last the combined figure, which is not their sum."""
    lines = [f"wrote {file}" for file in answer.files]
    lines += [_alone(h) for h in answer.hypotheses]
    combined = answer.combined
    if combined.text is None:
        lines.append(f"Together: unknown: {combined.why}")
    else:
        twice = Metric(combined.metric).throughput
        rate = f", throughput {combined.throughput}" if combined.throughput and not twice else ""
        lines.append(f"Together, as measured: {combined.text}{rate}")
    return _closed(lines, answer.next_command, answer.notes)


def checked(answer: CheckAnswer) -> str:
    """Say first whether the gain was kept, then by which runs."""
    sides = f"{counted(len(answer.runs_after), 'run')} with, {len(answer.runs_before)} without"
    how = (
        f"{sides}, in turn" if answer.paired else f"{counted(len(answer.runs_after), 'run')}, one side alone"
    )
    head = f"{answer.result.replace('_', ' ').upper()}: {answer.why}."
    return _closed([head, f"Compared with {answer.of}; {how}."], None, answer.notes)


def _alone(h: ExportedHypothesis) -> str:
    where = h.patch or ("its patch is in the checkout already" if h.in_checkout else "no patch")
    return f"hypothesis {h.number}: {h.title}\n    alone {h.improvement}, {h.intervention} ({where})"


def _closed(lines: Sequence[str], next_command: str | None, notes: Sequence[str] = ()) -> str:
    command = [f"Next: {next_command}"] if next_command else []
    return "\n".join([*lines, *(f"note: {note}" for note in notes), *command])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
