"""The answers of `accept`, `reopen`, `release` and `export` as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Answer = Mapping[str, Any]


def accept(answer: Answer) -> str:
    lines = [f"{_capital(answer['why'])}.", f"Change: {answer['intervention']}"]
    return _closed(lines, answer)


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
