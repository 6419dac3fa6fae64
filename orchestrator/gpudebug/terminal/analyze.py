"""The answer of `gpudebug analyze` as text for people, by kind of file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpudebug.core.statistics import numbers

Answer = Mapping[str, Any]


def analyze(answer: Answer, *, all_rows: bool = False) -> str:
    """What one file says; of several, one below the other, and what section reports say together."""
    parts = [_files(answer, all_rows) if "files" in answer else _one(answer, all_rows)]
    parts += ["\n".join(f"wrote {name}" for name in answer["written"])] if answer.get("written") else []
    return "\n\n".join(parts)


def in_full(answer: Answer) -> str:
    """The same for a file: no table is cut, and nothing in it steers a terminal."""
    text = analyze(answer, all_rows=True)
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


def _files(answer: Answer, all_rows: bool) -> str:
    from gpudebug.terminal.sections import head

    merged = answer.get("merged")
    if merged is None:
        return "\n\n".join(_one(one, all_rows) for one in answer["files"])
    reports = [one for one in answer["files"] if one["kind"] == "sections"]
    others = [_one(one, all_rows) for one in answer["files"] if one["kind"] != "sections"]
    return "\n\n".join([*others, "\n".join(map(head, reports)), _one(merged, all_rows)])


def _one(answer: Answer, all_rows: bool) -> str:
    if answer["kind"] == "sections":
        from gpudebug.terminal.sections import sections

        return sections(answer, whole=all_rows)
    return _KINDS[answer["kind"]](answer)


def _samples(answer: Answer) -> str:
    from gpudebug.terminal.sample import devices

    window = answer["window"]
    span = f"{window['start_s']:.1f} to {window['end_s']:.1f} s" if window else answer["reason"]
    return "\n".join([f"{answer['file']}: samples, window {span}", *devices(answer["devices"])])


def _log(answer: Answer) -> str:
    loss = answer["loss"]
    lines = [
        f"{answer['file']}: training log" + (f" of {answer['framework']}" if answer["framework"] else ""),
        f"loss      {loss['trend']}: {numbers.number(loss['first'])} to {numbers.number(loss['last'])} "
        f"over {loss['points']} points ({loss['name'] or 'no name'})",
        f"steps     {answer['steps'] if answer['steps'] is not None else numbers.UNKNOWN}, "
        f"{numbers.number(answer['steps_per_s'], 'steps/s')}",
        f"data      {numbers.number(answer['data_s'], 's a step')}, "
        f"update {numbers.number(answer['update_s'], 's a step')}",
    ]
    if answer["failure"]:
        lines.append(f"failure   {answer['failure']['class']}")
        lines += [f"  {line}" for line in answer["failure"]["lines"][-5:]]
    return "\n".join(lines)


def _trace(answer: Answer) -> str:
    from gpudebug.terminal.trace import trace

    return trace(answer)


_KINDS: dict[str, Callable[[Answer], str]] = {"samples": _samples, "training_log": _log, "trace": _trace}
