"""What kept one look at a command from seeing its training, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpudebug.core.inside.stacks.shares import importing
from gpudebug.core.lazy import regex
from gpudebug.core.records import Evidence, RunRecord
from gpudebug.core.samples.conditions import lost_share
from gpudebug.core.statistics import numbers
from gpudebug.core.trainlog.endings import remedy
from gpudebug.core.words import Outcome, counted

FEW_STEPS = 10
"""Iterations of which no share is worth believing (knowledge of the field: profiles of fewer are empty)."""
SLOW_S = 10.0
"""Slower ones that took so long, by their rate, show where the time goes all the same."""
_READ = {"steps", "steps_per_s", "step_unit", "first_count", "last_count", "first_step_s", "latency", "probe"}


def too_few(runs: Sequence[Mapping[str, Any]]) -> str | None:
    """Return how many steps these runs show together, and when the first one came; None if they are enough,
    or if nothing counts them."""
    counts = [(_made(e), e.get("steps_per_s")) for e in runs]
    made = sum(count for count, _ in counts)
    took = sum(count / rate for count, rate in counts if rate)
    if not made or made >= FEW_STEPS or took >= SLOW_S or any(e.get("latency") for e in runs):
        return None
    first = min((s for e in runs if (s := e.get("first_step_s")) is not None), default=None)
    came = f", the first at {first:.1f} s" if first is not None else ""
    where = f" in {len(runs)} runs" if len(runs) > 1 else ""
    were = "was" if made == 1 else "were"
    return f"too short: {counted(made, 'step')} {were} seen{where}{came}, and a cause needs {FEW_STEPS}"


def too_few_in(evidence: Evidence) -> str | None:
    """Return the same of one run."""
    return too_few([evidence.model_dump(mode="json", include=_READ)])


def _made(e: Mapping[str, Any]) -> int:
    """Return the more of what log and probe counted in a run, 0 if neither did."""
    probed = (e.get("probe") or {}).get("steps") or 0
    return max(probed, _printed(e)) if e.get("step_unit") in (None, "step") else probed


def _printed(e: Mapping[str, Any]) -> int:
    """By the log; of a run that goes on from a checkpoint what it printed itself."""
    steps, first, last = e.get("steps") or 0, e.get("first_count"), e.get("last_count")
    span = last - first if first is not None and last is not None else 0
    return span + 1 if first is not None and 0 < span < first else steps


_TERMINAL = regex(
    r"EOFError: EOF when reading a line|not a (tty|terminal)\b|Inappropriate ioctl for device|curses\.error"
    r"|(wants|needs|requires?|must be (run|started) (in|from)|without) an? (interactive )?(terminal|tty)\b"
    r"|[Cc]annot open /dev/tty|setupterm|termios\.error",
    re.IGNORECASE,
)
"""What Python, curses, docker, ssh and prompts of libraries print if standard input is no terminal."""
_CROWDED = 15.0
"""Percent of the cores that others use: from here on shares of the time are rough (as `ofstacks` has it)."""
_LOST = 0.1
"""Of the CPU time that a training wanted: less is within what runs differ by themselves."""
_MOSTLY = 0.5
_STARTING_S = 300
_LONGEST = 200


class LookProblem(NamedTuple):
    """`text` is one line with what to do; `for_s` is how long another look should be, None: as long."""

    text: str
    for_s: int | None = None


def problem_of(record: RunRecord, evidence: Evidence, log_end: str = "") -> LookProblem | None:
    """None if the look saw a training in a steady window, and the command did not fail.

    `log_end` are the last lines of the log.
    """
    if evidence.window is None or evidence.outcome is Outcome.CRASHED:
        return _unseen(record, evidence, log_end)
    return _few(evidence) or (None if _steps(evidence) else _no_step(evidence))


def is_blind(evidence: Evidence) -> bool:
    """Tell whether no cause can rest on it: it has no steady window, failed before a step, still starts, or
    made too few steps, or none that anything counts. From outside no step is counted."""
    if evidence.window is None or (evidence.outcome is Outcome.CRASHED and not _went_on(evidence)):
        return True
    if _few(evidence):
        return True
    return evidence.attached is None and not _steps(evidence)


def _steps(evidence: Evidence) -> bool:
    return _went_on(evidence) or (evidence.probe is not None and not _starts(evidence))


def _starts(evidence: Evidence) -> bool:
    """Tell whether imports are most of what its thread did. An inference, too, makes no optimizer's step."""
    watched = evidence.stacks.training if evidence.stacks else None
    return watched is not None and importing(watched) >= _MOSTLY


def _went_on(evidence: Evidence) -> bool:
    """Whether steps or requests are counted: a probe that saw none was there from PyTorch's import on."""
    stepped = evidence.probe is not None and evidence.probe.steps > 0
    return bool(stepped or evidence.steps_per_s or evidence.progress_per_s or evidence.latency)


def _unseen(record: RunRecord, evidence: Evidence, log_end: str) -> LookProblem:
    took = numbers.duration(evidence.duration_s or 0.0)
    failed = evidence.failure.lines[-1] if evidence.failure and evidence.failure.lines else ""
    asked = _asks(failed) or (_asks(log_end) if evidence.outcome is not Outcome.COMPLETED else "")
    if asked:
        return LookProblem(
            f"the command wants a terminal, and gpudebug gives it none ({asked}): give its answers as "
            "options, or from a file: sh -c 'CMD < answers'"
        )
    if evidence.outcome is Outcome.COMPLETED and record.leaked:
        behind = (
            "1 process behind, which was"
            if record.leaked == 1
            else f"{record.leaked} processes behind, which were"
        )
        return LookProblem(
            f"the command ended after {took} and left {behind} ended: start the "
            "training in the foreground (no `&`, nohup or daemon; `wait` at the end of a script)"
        )
    if evidence.outcome is not Outcome.CRASHED and (few := _few(evidence)):
        return few
    if evidence.outcome is Outcome.COMPLETED:
        return LookProblem(
            f"the command ended by itself after {took}: a look needs 5 s of steady training behind the "
            "start-up; give it more steps"
        )
    if failed and evidence.failure:
        helps = remedy(evidence.failure.kind, evidence.failure.lines)
        advice = f"; {helps}" if helps else ""
        return LookProblem(f"the command failed after {took}: {failed.strip()[:_LONGEST]}{advice}")
    if evidence.outcome is Outcome.ENDED_BY_PLAN:
        return _no_step(evidence)
    how = f", {evidence.reason}" if evidence.reason else ""
    status = f" with status {record.exit_status}" if record.exit_status else ""
    return LookProblem(f"the command ended after {took}{status} ({evidence.outcome}{how}): see train.log")


def _asks(text: str) -> str:
    """Return the line by which a program says that it has no terminal."""
    lines = [line.strip() for line in text.splitlines() if _TERMINAL.search(line)]
    return lines[-1][:_LONGEST] if lines else ""


def _few(evidence: Evidence) -> LookProblem | None:
    found = too_few_in(evidence)
    if found is None:
        return None
    if evidence.outcome is Outcome.COMPLETED:
        return LookProblem(f"{found}; the command ended by itself: give it more steps")
    return LookProblem(f"{found}: look for longer", for_s=_longer(evidence))


def _longer(evidence: Evidence) -> int:
    return max(_STARTING_S, round(2 * (evidence.duration_s or 0.0)))


def _no_step(evidence: Evidence) -> LookProblem:
    took = numbers.duration(evidence.duration_s or 0.0)
    longer = _longer(evidence)
    stepped = evidence.first_step_s is not None or (evidence.probe and evidence.probe.steps)
    if evidence.window_reason and stepped:
        return LookProblem(
            f"training steps were seen, but {evidence.window_reason}: look for longer, or at a quieter host",
            for_s=longer,
        )
    program = evidence.program
    if program is not None and (hidden := [why for why in (program.held, program.apart) if why]):
        return LookProblem(f"no training step was seen in {took}: {'; '.join(hidden)}")
    if _starts(evidence):
        return LookProblem(f"no training step was seen in {took}: it still imports its modules", for_s=longer)
    return LookProblem(
        f"no training step was seen in {took}: if it still starts, look for longer; a training without "
        "PyTorch shows its steps by lines such as `step 10 loss 2.5`",
        for_s=longer if evidence.outcome is Outcome.ENDED_BY_PLAN else None,
    )


def disturbances(evidence: Evidence) -> tuple[str, ...]:
    """Return what others did on the host meanwhile that makes the figures rough."""
    found, others = [], evidence.conditions
    if others.foreign_procs:
        found.append("another process computed on the device: its utilisation is not this training's alone")
    lost = lost_share(others.cpu_stolen, others.cpu_cores)
    if lost is not None and lost >= _LOST:
        found.append(
            f"other programs kept {lost:.0%} of the CPU time that it wanted from the training: the shares "
            "and rates are rough"
        )
    elif lost is None and others.foreign_cpu is not None and others.foreign_cpu >= _CROWDED:
        found.append(
            f"other programs used {others.foreign_cpu:.0f}% of the cores: the shares and rates are rough"
        )
    return tuple(found)
