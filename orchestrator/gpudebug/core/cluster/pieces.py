"""Messages of a step's tasks as lines that a scheduler hands on whole.

Slurm sends what a task prints in parts of at most 1024 bytes, and writes those of several tasks as they come:
the parts of a longer line lie among those of others. So a longer message is in lines of its own,
`{"node": "n1", "piece": [2, 5], "text": "..."}` the third of five, which come in order from each node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

LONGEST_LINE = 1000
"""Bytes; less than Slurm's 1024, with room for a label."""
# A character may take two bytes more in a piece than it has in its message, which is ASCII.
_TEXT = 400


def lines_of(node: str, message: Mapping[str, Any]) -> list[str]:
    """Return the lines, without their ends, that say `message` for a node of at most 64 characters."""
    whole = json.dumps({"node": node, **message})
    if len(whole) <= LONGEST_LINE:
        return [whole]
    texts = [whole[at : at + _TEXT] for at in range(0, len(whole), _TEXT)]
    return [
        json.dumps({"node": node, "piece": [i, len(texts)], "text": text}) for i, text in enumerate(texts)
    ]


def messages_in(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """All that was said and names its node; what else was printed, and what lacks a piece, is nothing."""
    begun: dict[str, list[str]] = {}
    return [whole for line in lines for said in _read(line) for whole in _whole(said, begun)]


def _whole(message: dict[str, Any], begun: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
    if "piece" not in message:
        yield message
        return
    node, piece, text = message["node"], message["piece"], message.get("text")
    if not (isinstance(piece, list) and len(piece) == 2 and isinstance(text, str)):
        return
    texts = begun.pop(node, []) if piece[0] != 0 else []
    if piece[0] != len(texts):
        return
    texts.append(text)
    if piece[1] == len(texts):
        yield from (m for m in _read("".join(texts).encode()) if m["node"] == node and "piece" not in m)
    else:
        begun[node] = texts


def _read(line: bytes) -> Iterator[dict[str, Any]]:
    try:
        # A label of the scheduler's may come first.
        message = json.loads(line[line.index(b"{") :])
    except (ValueError, RecursionError):
        return
    if isinstance(message.get("node"), str):
        yield message
