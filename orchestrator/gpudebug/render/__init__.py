"""The answers of the engine as text for people: plain, aligned, within 80 columns where it can be."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from gpudebug.core.statistics import numbers
from gpudebug.render.fitting import screen, width
from gpudebug.render.status import status as status

Answer = Mapping[str, Any]
# On fewer columns beside its label a text begins below it.
_LEAST = 24
_COLOURS = {
    "VALIDATED": "32",
    "REJECTED": "31",
    "INCONCLUSIVE": "33",
    "INVALID": "35",
    "TESTING": "36",
    "pass": "32",
    "fail": "31",
    "unknown": "33",
}


def coloured(word: str, width: int = 0) -> str:
    """A status or gate result in its colour on a terminal; as it is in a pipe or under NO_COLOR."""
    text = word.ljust(width)
    code = _COLOURS.get(word)
    return text if code is None or not in_colour() else f"\033[{code}m{text}\033[0m"


def in_colour() -> bool:
    """Whether standard output shows colours and is to have them."""
    return "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def gates(rows: list[Answer]) -> list[str]:
    """One line a gate, a note below where there is one; skipped gates together in the last line."""
    lines = []
    skipped = [g for g in rows if g["result"] == "skipped"]
    for g in [g for g in rows if g["result"] != "skipped"]:
        value, result = g["value"] or numbers.UNKNOWN, f" {g['result']}"
        first, *rest = _labelled(f"  {g['name']:<19}{result:<9} ", f"{value}  [{g['threshold']}]")
        lines += [first.replace(result, f" {coloured(g['result'])}", 1), *rest]
        if g["note"]:
            lines += _labelled(f"  {'':<19} {'':<8} ", g["note"])
    for note in dict.fromkeys(g["note"] for g in skipped):
        names = ", ".join(g["name"] for g in skipped if g["note"] == note)
        lines += _labelled("  skipped: ", names + (f" ({note})" if note else ""))
    return lines


def _labelled(label: str, text: str) -> list[str]:
    """A text behind its label, or below one that leaves it little room; on a terminal in lines that fit."""
    here = screen()
    if not here.terminal or width(label + text) <= here.columns:
        return [f"{label}{text}"]
    if here.columns - len(label) >= _LEAST:
        return here.labelled(label, text)
    return [*([label.rstrip()] if label.strip() else []), *here.labelled("    ", text)]


def show(answer: Answer) -> str:
    lines = [f"Hypothesis {answer['number']}: {answer['title']}", ""]
    lines.append(f"Status        {coloured(answer['status'])}" + _verified(answer))
    labels = {"description": "Description", "test_method": "Test method", "cause": "Cause"}
    for key, label in labels.items():
        if answer[key]:
            lines += _labelled(f"{label:<13} ", answer[key])
    lines += [line for n in answer.get("doubts", ()) for line in _labelled("Doubt         ", n)]
    if answer["intervention"]:
        # In one line, to be copied.
        lines.append(f"Change        {answer['intervention']}")
    if answer["why"]:
        lines += _labelled("Why           ", answer["why"])
    lines += [line for n in answer["notes"] for line in _labelled("Note          ", n)]
    if answer["figures"]:
        lines += ["", "Result, as in the progress file:"]
        lines += [line for k, v in answer["figures"].items() for line in _labelled(f"  {k:<16} ", v)]
    if answer["gates"]:
        lines += ["", "Gates:", *gates(answer["gates"])]
    for e in answer["evidence"]:
        lines += ["", *_run(e)]
    lines += [""] if answer["skipped"] else []
    for s in answer["skipped"]:
        lines += _labelled(f"Run {s['run']}: ", f"no evidence that can be read: {s['why']}")
    lines += _places(next((s for e in reversed(answer["evidence"]) if (s := e.get("stacks"))), None))
    lines += _inside(answer["probe"], [""]) + _sections(answer) + _profile(answer.get("profile"))
    lines += ["", "Files:", *(f"  {f}" for f in answer["files"])]
    return "\n".join(lines)


def _verified(answer: Answer) -> str:
    if answer["verified"] is False:
        return "  UNVERIFIED: no runs behind it"
    words = ["weaker terms"] if answer.get("weaker_terms") else []
    words += ["replayed"] if answer.get("replayed") else []
    return f"  {', '.join(words)}" if words else ""


def _inside(sides: list[Answer], above: list[str]) -> list[str]:
    """What the training told of itself, with `above` in front; nothing of nothing."""
    from gpudebug.render import probe

    lines = probe.sides(sides)
    return [*above, *lines] if lines else []


def _places(found: Answer | None) -> list[str]:
    """Where the run's threads were; nothing of nothing."""
    if not found:
        return []
    from gpudebug.render import stacks

    return stacks.places(found)


def _sections(answer: Answer) -> list[str]:
    """The sections that the training's code named, of baseline and trial, or why there are none."""
    broken = [s for e in answer["evidence"] if (s := e.get("sections")) and not s["sections"]]
    notes = dict.fromkeys(note for s in broken for note in s["notes"])
    if not (answer["sections"] or notes):
        return []
    from gpudebug.render import sections

    rows = sections.beside(answer["sections"], ("baseline", "trial"))
    return ["", *rows, *(f"  note: {note}" for note in notes)]


def _profile(found: Answer | None) -> list[str]:
    """What PyTorch's profiler recorded of the workload, where it did."""
    if not found:
        return []
    from gpudebug.render.torchprofile import trace

    heading = f"Profile of the workload, run {found['run']}:"
    return ["", heading, *(f"  {line}" for line in trace(dict(found)))]


def _window(window: Answer) -> str:
    return f"window {window['start_s']:.1f} to {window['end_s']:.1f} s, {window['samples']} samples"


def _run(e: Answer) -> list[str]:
    window = e["window"]
    none = e["window_reason"] or f"window {numbers.UNKNOWN}"
    span = f"{_window(window)} (found by {window['rule']})" if window else none
    lines = _labelled(f"Run {e['run']}: ", f"{e['outcome']}, {span}")
    figure, here = f"  gpu_util {numbers.percent(e['utilisation'])}   ", screen()
    lines.append(figure + here.spark(e["spark"], min(40, here.columns - len(figure))))
    loss = e["loss"]
    lines += _labelled(
        "  ",
        f"throughput {_throughput(e)}   loss {loss['trend']} "
        f"({numbers.number(loss['first'])} to {numbers.number(loss['last'])}, {loss['points']} points)",
    )
    if e["failure"]:
        lines.append(f"  failure {e['failure']['kind']}")
        lines += [f"    {line}" for line in e["failure"]["lines"][-3:]]
    return lines


def _throughput(e: Answer) -> str:
    value = e.get("progress_per_s") or e["steps_per_s"]
    return numbers.UNKNOWN if value is None else numbers.rate(value, e.get("step_unit"))


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
        lines += _inside(one["probe"], [])
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
    lines += ["Gates:", *gates(answer["gates"]), *_inside(answer["probe"], [])]
    lines.append(f"Next: {answer['next_command']}")
    return "\n".join(lines)


def _recovered(answer: Answer) -> str:
    return f"Recovered: {answer['why']}; {answer['done']}.\nNext: {answer['next_command']}"


def _asked(answer: Answer) -> str:
    if answer["action"] == "stop":
        return f"Stop: {answer['why']}."
    return str(answer["brief"]).rstrip()


def _aa(answer: Answer) -> str:
    from gpudebug.render.noise import aa

    return aa(answer)


def _profiled(answer: Answer) -> str:
    from gpudebug.render.torchprofile import profile

    return profile(dict(answer))


def _running(answer: Answer) -> str:
    from gpudebug.render.running import running

    return running(answer)


def _idle(answer: Answer) -> str:
    from gpudebug.render.running import idle

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


def propose(answer: Answer) -> str:
    lines = [f"Hypothesis {h['hypothesis']} added, UNTESTED: {h['title']}" for h in answer["hypotheses"]]
    lines += [f"note: {n}" for n in answer["notes"]]
    return "\n".join([*lines, f"Next: {answer['next_command']}"])


def sample(answer: Answer) -> str:
    why = f" ({answer['why']})" if answer["why"] else ""
    lines = [f"{answer['outcome']}{why}, exit status {answer['exit_status']}"]
    window = answer["window"]
    if window:
        lines[0] += f"; {_window(window)}"
    lines += devices(answer["devices"])
    rate = answer["throughput"]["steps_per_s"]
    # The probe's own stands among its figures.
    if rate is not None and rate != (answer["probe"] or {}).get("steps_per_s"):
        lines.append(f"throughput {numbers.number(rate, 'steps/s')}")
    lines += [f"note: {line}" for line in answer["notes"]]
    told = {"part": "probe", "figures": answer["probe"], "reason": answer["probe_reason"]}
    lines += [*_inside([told], []), *_places(answer["stacks"])]
    if answer["sections"]:
        from gpudebug.render import sections

        lines += sections.of_run(answer["sections"])
    return "\n".join([*lines, f"samples {answer['csv']}", f"log     {answer['log']}", *_trace(answer)])


def _trace(answer: Answer) -> list[str]:
    if not answer.get("trace"):
        return []
    from gpudebug.render.torchprofile import trace

    return trace(answer["trace"])


def devices(rows: list[Answer]) -> list[str]:
    lines = []
    for d in rows:
        util = d["gpu_util"]
        label = f"GPU {d['index']}" if d["uuid"] != "CPU" else "CPU stand-in"
        if util is None:
            lines.append(f"{label} ({d['uuid']}): gpu_util unknown: {d['reason']}")
        else:
            spread = f"p5 {util['p5']:.0f}, p50 {util['p50']:.0f}, p95 {util['p95']:.0f}"
            lines.append(f"{label} ({d['uuid']}): gpu_util {util['mean']:.1f}%  ({spread})")
    return lines


def doctor(answer: Answer) -> str:
    lines = []
    width = max(14, *(len(check["name"]) for check in answer["checks"]))
    for check in answer["checks"]:
        mark = {"ok": "ok     ", "warning": "warning", "failed": "FAILED "}[check["result"]]
        lines.append(f"{mark} {check['name']:<{width}} {check['found']}")
        if check["next"]:
            lines.append(f"{'':<{width + 9}}next: {check['next']}")
    return "\n".join(lines)


def init(answer: Answer) -> str:
    lines = [f"wrote {f}" for f in answer["files"]]
    lines += [f"note: {n}" for n in answer["notes"]]
    return "\n".join([*lines, f"Next: {answer['next_command']}"])


def demo(answer: Answer) -> str:
    lines = [status(answer["status"]), "", "Files:", *(f"  {f}" for f in answer["files"])]
    return "\n".join([*lines, f"Look around: {answer['next_command']}"])
