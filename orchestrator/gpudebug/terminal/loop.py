"""The end of an unattended loop as text for people."""

from __future__ import annotations

from gpudebug.core.answers.loop import LoopAnswer, LoopSession
from gpudebug.core.answers.status import HypothesisRow
from gpudebug.core.statistics import numbers
from gpudebug.terminal.colours import coloured
from gpudebug.terminal.fit import short

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
