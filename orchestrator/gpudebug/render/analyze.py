"""The answer of `gpudebug analyze` as text for people, by kind of file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpudebug.core import present

Answer = Mapping[str, Any]


def analyze(answer: Answer) -> str:
    """What one file says; of several, one below the other."""
    if "files" in answer:
        return "\n\n".join(analyze(one) for one in answer["files"])
    return _KINDS[answer["kind"]](answer)


def _samples(answer: Answer) -> str:
    from gpudebug.render import devices

    window = answer["window"]
    span = f"{window['start_s']:.1f} to {window['end_s']:.1f} s" if window else answer["reason"]
    return "\n".join([f"{answer['file']}: samples, window {span}", *devices(answer["devices"])])


def _log(answer: Answer) -> str:
    loss = answer["loss"]
    lines = [
        f"{answer['file']}: training log" + (f" of {answer['framework']}" if answer["framework"] else ""),
        f"loss      {loss['trend']}: {present.number(loss['first'])} to {present.number(loss['last'])} "
        f"over {loss['points']} points ({loss['name'] or 'no name'})",
        f"steps     {answer['steps'] if answer['steps'] is not None else present.UNKNOWN}, "
        f"{present.number(answer['steps_per_s'], 'steps/s')}",
        f"data      {present.number(answer['data_s'], 's a step')}, "
        f"update {present.number(answer['update_s'], 's a step')}",
    ]
    if answer["failure"]:
        lines.append(f"failure   {answer['failure']['class']}")
        lines += [f"  {line}" for line in answer["failure"]["lines"][-5:]]
    return "\n".join(lines)


def _trace(answer: Answer) -> str:
    from gpudebug.render.trace import trace

    return trace(answer)


_KINDS: dict[str, Callable[[Answer], str]] = {"samples": _samples, "training_log": _log, "trace": _trace}
