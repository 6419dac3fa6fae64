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
        lines += [f"  {session(told)}" for told in answer.sessions]
        lines += ["  Each one's brief, transcript and record: runs/sessions/NAME/"]
    if answer.hypotheses:
        lines += ["", "Hypotheses"]
        lines += [f"  {_hypothesis(h)}" for h in answer.hypotheses]
    changed = answer.checkout_changed
    if changed:
        named = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        lines += [
            "",
            f"Checkout: {named} changed meanwhile, not by gpudebug; it was not measured and is",
        ]
        lines += ["  as it was left. See `git diff`."]
    return "\n".join([*lines, "", f"Next: {answer.next_command}"])


def session(told: LoopSession) -> str:
    """One line: its name, what it was asked, how long it took, what came of it."""
    seconds = numbers.UNKNOWN if told.duration_s is None else numbers.duration(told.duration_s)
    return f"{told.session}  {told.action:<9}  {seconds:>6}  {_came(told)}"


def _came(told: LoopSession) -> str:
    number = told.hypothesis
    if told.verdict:
        return f"hypothesis {number} {coloured(told.verdict)}"
    about = f"hypothesis {number} has no verdict" if number else "no verdict"
    proposed = f"proposed hypothesis {', '.join(map(str, told.proposed))}" if told.proposed else about
    return f"{proposed}{_ended(told)}"


def _ended(told: LoopSession) -> str:
    if told.outcome == "TIMED_OUT":
        return ", stopped at its time limit"
    if told.outcome == "CRASHED":
        by = f"signal {told.signal}" if told.exit_status is None else f"exit status {told.exit_status}"
        return f", {by}"
    return ""


def _hypothesis(h: HypothesisRow) -> str:
    delta = "" if h.delta_pp is None else f"  {h.delta_pp:+.1f}pp"
    unverified = "  UNVERIFIED" if h.verified is False else ""
    accepted = "  accepted" if h.accepted else ""
    status = coloured(h.status, 12)
    return f"{h.number:>2}  {status}  {short(h.title, _TITLE)}{delta}{unverified}{accepted}"
