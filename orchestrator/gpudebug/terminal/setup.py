"""The answers of `init`, `doctor`, `demo`, `clean`, `report` and `loop` as text for people."""

from __future__ import annotations

from gpudebug.core.answers.hypotheses import LoopAnswer, LoopSession
from gpudebug.core.answers.setup import (
    CleanAnswer,
    DemoAnswer,
    DoctorAnswer,
    GpuDoctorAnswer,
    InitAnswer,
    ReportAnswer,
)
from gpudebug.core.answers.status import HypothesisRow
from gpudebug.core.statistics import numbers
from gpudebug.terminal.fit import coloured, short

_LISTED = 20
_MARKS = {"ok": "ok     ", "warning": "warning", "unknown": "unknown", "failed": "FAILED "}
_ALL = "--unused-runs, --looks, --temporaries, --worktrees, --runs (evidence too), or --all (nothing stays)"


def doctor(answer: DoctorAnswer) -> str:
    lines = []
    width = max(14, *(len(check.name) for check in answer.checks))
    for check in answer.checks:
        mark = _MARKS[check.result]
        lines.append(f"{mark} {check.name:<{width}} {check.found}")
        if check.next:
            lines.append(f"{'':<{width + 9}}next: {check.next}")
    if isinstance(answer, GpuDoctorAnswer):
        lines += ["", f"wrote {answer.bundle}: attach it to a report", *_counted(answer)]
    return "\n".join(lines)


def _counted(answer: GpuDoctorAnswer) -> list[str]:
    results = [check.result for check in answer.checks]
    return [
        f"{results.count('ok')} passed, {results.count('failed')} failed, {results.count('unknown')} unknown"
    ]


def init(answer: InitAnswer) -> str:
    lines = [f"wrote {f}" for f in answer.files]
    lines += [f"note: {n}" for n in answer.notes]
    return "\n".join([*lines, f"Next: {answer.next_command}"])


def demo(answer: DemoAnswer) -> str:
    from gpudebug.terminal.status import status

    lines = [status(answer.status), "", "Files:", *(f"  {f}" for f in answer.files)]
    return "\n".join([*lines, f"Look around: {answer.next_command}"])


def clean(answer: CleanAnswer) -> str:
    """List what gpudebug left, or what was removed and what was kept."""
    if answer.action == "cleaned":
        lines = [f"removed {path}" for path in answer.removed]
        lines += [f"kept {one.path}: {one.why}" for one in answer.kept]
        return "\n".join(lines) or "nothing removed"
    left = answer.left
    lines = [f"{_size(one.bytes)}  {one.kind}  {one.path}" for one in left[:_LISTED]]
    if len(left) > _LISTED:
        lines.append(f"and {len(left) - _LISTED} more; --json lists all")
    lines.append(f"{_size(answer.bytes)}  in all" if left else "gpudebug left nothing here")
    if left:
        lines.append(f"Remove with {_ALL if answer.campaign else '--looks, or --all'}.")
    return "\n".join(lines)


def _size(count: int) -> str:
    return f"{count / (1 << 20):9.1f} MB"


_NAMED = 10


def report(answer: ReportAnswer) -> str:
    """Return the Markdown if that was asked for; else list what was written and left out."""
    if answer.markdown is not None:
        return answer.markdown.rstrip("\n")
    lines = []
    if answer.page is not None and answer.bytes is not None:
        size = f"{answer.bytes / 1e6:.1f} MB"
        lines.append(f"wrote {answer.page} ({size}, {_count(answer.runs, 'run')}): open it in a browser")
    skipped = answer.skipped
    lines += [f"skipped run {s.run}: {s.why}" for s in skipped[:_NAMED]]
    if len(skipped) > _NAMED:
        lines.append(f"skipped {_count(len(skipped) - _NAMED, 'more run')}, which the page names")
    lines += [f"note: {note}" for note in answer.notes]
    if answer.next_command:
        lines.append(f"Next: {answer.next_command}")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_TITLE = 60


def loop(answer: LoopAnswer) -> str:
    lines = [f"Loop of campaign {answer.campaign} ended: {answer.why}."]
    if answer.sessions:
        lines += ["", "Sessions"]
        lines += [f"  {session(record)}" for record in answer.sessions]
        lines += ["  Each one's brief, transcript and record: runs/sessions/NAME/"]
    if answer.hypotheses:
        lines += ["", "Hypotheses"]
        lines += [f"  {_hypothesis(h)}" for h in answer.hypotheses]
    changed = answer.checkout_changed
    if changed:
        named = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        lines += [
            "",
            f"Checkout: {named} changed during the loop, not by gpudebug.",
            "  This change was not measured and is still there: see `git diff`.",
        ]
    return "\n".join([*lines, "", f"Next: {answer.next_command}"])


def session(record: LoopSession) -> str:
    """Format its name, task, duration and result in one line."""
    seconds = numbers.UNKNOWN if record.duration_s is None else numbers.duration(record.duration_s)
    return f"{record.session}  {record.action:<9}  {seconds:>6}  {_result(record)}"


def _result(record: LoopSession) -> str:
    number = record.hypothesis
    if record.verdict:
        return f"hypothesis {number} {coloured(record.verdict)}"
    about = f"hypothesis {number} has no verdict" if number else "no verdict"
    proposed = f"proposed hypothesis {', '.join(map(str, record.proposed))}" if record.proposed else about
    return f"{proposed}{_ended(record)}"


def _ended(record: LoopSession) -> str:
    if record.outcome == "TIMED_OUT":
        return ", stopped at its time limit"
    if record.outcome == "CRASHED":
        by = f"signal {record.signal}" if record.exit_status is None else f"exit status {record.exit_status}"
        return f", {by}"
    return ""


def _hypothesis(h: HypothesisRow) -> str:
    delta = "" if h.delta_pp is None else f"  {h.delta_pp:+.1f}pp"
    unverified = "  UNVERIFIED" if h.verified is False else ""
    accepted = "  accepted" if h.accepted else ""
    status = coloured(h.status, 12)
    return f"{h.number:>2}  {status}  {short(h.title, _TITLE)}{delta}{unverified}{accepted}"
