"""What `next` did, and what `propose` added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpudebug.core.answers.gates import GateRow
from gpudebug.core.answers.hypotheses import ProposeAnswer
from gpudebug.core.inside.probe.together import side
from gpudebug.terminal.colours import coloured
from gpudebug.terminal.gates import gates
from gpudebug.terminal.probe import inside

Answer = Mapping[str, Any]


def next_(answer: Answer) -> str:
    action = answer["action"]
    return _NEXT.get(action, _asked)(answer)


def _recorded(answer: Answer) -> str:
    lines = []
    for one in answer.get("baselines", [answer]):
        own = "" if one["metric"] == "gpu_util" else f"{one['metric']} {one['metric_text']}, "
        figures = f"{own}{one['gpu_util_text']}, {one['throughput_text']}, loss {one['loss']}"
        lines.append(f"Baseline {one['role']} recorded: {figures}")
        lines += [f"  note: {line}" for line in one["notes"]]
        lines += [f"  advice: {line}" for line in one["advice"]]
        lines += _inside(one)
    return "\n".join([*lines, f"Next: {answer['next_command']}"])


def _tested(answer: Answer) -> str:
    number = answer["hypothesis"]
    lines = [f"Hypothesis {number}: {answer['title']}"]
    if (decided := answer.get("decided")) not in (None, f"hypothesis {number} is untested"):
        lines.append(f"Chosen: {decided}")
    verdict = f"Verdict: {coloured(answer['verdict'])}: " if answer["verdict"] else "No verdict: "
    lines.append(f"{verdict}{answer['why']}")
    lines += [f"  note: {n}" for n in answer["notes"]]
    lines += [f"  could not be tested: {n}" for n in answer.get("unready", ())]
    lines += ["Gates:", *gates([GateRow(**g) for g in answer["gates"]]), *_inside(answer)]
    lines.append(f"Next: {answer['next_command']}")
    return "\n".join(lines)


def _inside(answer: Answer) -> list[str]:
    known = ({"probe": s["figures"], "probe_reason": s["reason"], "run": s["part"]} for s in answer["probe"])
    return inside([side(one["run"], [one]) for one in known])


def _recovered(answer: Answer) -> str:
    return f"Recovered: {answer['why']}; {answer['done']}.\nNext: {answer['next_command']}"


def _asked(answer: Answer) -> str:
    if answer["action"] == "stop":
        return f"Stop: {answer['why']}."
    return str(answer["brief"]).rstrip()


def _aa(answer: Answer) -> str:
    from gpudebug.terminal.noise import aa

    return aa(answer)


def _profiled(answer: Answer) -> str:
    from gpudebug.terminal.torchprofile import profile

    return profile(dict(answer))


def _running(answer: Answer) -> str:
    from gpudebug.terminal.underway import running

    return running(answer)


def _idle(answer: Answer) -> str:
    from gpudebug.terminal.underway import idle

    return idle(answer)


_NEXT: dict[str, Callable[[Answer], str]] = {
    "running": _running,
    "idle": _idle,
    "recorded_baseline": _recorded,
    "recorded_aa": _aa,
    "recorded_profile": _profiled,
    "tested": _tested,
    "recovered": _recovered,
}


def propose(answer: ProposeAnswer) -> str:
    lines = [f"Hypothesis {h.hypothesis} added, UNTESTED: {h.title}" for h in answer.hypotheses]
    lines += [f"note: {n}" for n in answer.notes]
    return "\n".join([*lines, f"Next: {answer.next_command}"])
