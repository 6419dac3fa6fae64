"""The answers of `accept`, `reopen`, `release` and `export` as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Answer = Mapping[str, Any]


def accept(answer: Answer) -> str:
    lines = [f"{_capital(answer['why'])}.", f"Change: {answer['intervention']}"]
    return _closed(lines, answer)


def settings(answer: Answer) -> str:
    """What is pinned, a line a setting, and what is changed."""
    lines = list(answer["differences"])
    if answer["action"] == "pinned":
        head = f"Pinned the settings of gpudebug.yaml for campaign {answer['campaign']}."
        changed = [f"changed: {line}" for line in lines] or (
            ["Nothing has changed."] if answer["was_pinned"] else [f"  {line}" for line in answer["lines"]]
        )
        return _closed([head, *changed], {**answer, "notes": _replays(answer)})
    problem = [answer["problem"]] if answer["problem"] else []
    if not answer["pinned"]:
        head = f"Nothing is pinned yet for campaign {answer['campaign']}; gpudebug.yaml has:"
    else:
        head = f"Pinned for campaign {answer['campaign']} on {answer['when']}:"
    body = [*problem, head, *(f"  {line}" for line in answer["lines"])]
    if answer["pinned"]:
        body.append("gpudebug.yaml has the same." if not lines else "Changed in gpudebug.yaml since:")
        body += [f"  {line}" for line in lines]
    return _closed(body, {**answer, "notes": _replays(answer)})


def _replays(answer: Answer) -> list[str]:
    return ["every run is replayed: recordings are the device"] if answer["replayed"] else []


def reopen(answer: Answer) -> str:
    if answer["already"]:
        return _closed([f"{_capital(answer['why'])}."], answer)
    lines = [f"Hypothesis {answer['hypothesis']} is UNTESTED again: {answer['why']}"]
    if answer["earlier_runs"]:
        lines.append(f"Kept: {', '.join('runs/' + name for name in answer['earlier_runs'])}")
    return _closed(lines, answer)


def release(answer: Answer) -> str:
    return _closed([f"{_capital(answer['why'])}."], answer)


def export(answer: Answer) -> str:
    """A line a hypothesis, the combined figure last: it is not their sum."""
    lines = [f"wrote {file}" for file in answer["files"]]
    lines += [_alone(h) for h in answer["hypotheses"]]
    combined = answer["combined"]
    if combined["text"] is None:
        lines.append(f"Together: unknown: {combined['why']}")
    else:
        rate = f", throughput {combined['throughput']}" if combined["throughput"] else ""
        lines.append(f"Together, as measured: {combined['text']}{rate}")
    return _closed(lines, answer)


def _alone(h: Answer) -> str:
    where = h["patch"] or ("its patch is in the checkout already" if h["in_checkout"] else "no patch")
    return (
        f"hypothesis {h['number']}: {h['title']}\n    alone {h['improvement']}, {h['intervention']} ({where})"
    )


def _closed(lines: list[str], answer: Answer) -> str:
    notes = [f"note: {note}" for note in answer.get("notes", ())]
    command = [f"Next: {answer['next_command']}"] if answer["next_command"] else []
    return "\n".join([*lines, *notes, *command])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
