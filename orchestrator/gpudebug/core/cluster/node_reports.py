"""What the nodes of a cluster said of a campaign's folder, its locks, their software and cores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
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


def messages_in(lines: Iterable[bytes]) -> list[dict[str, object]]:
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


def _read(line: bytes) -> Iterator[dict[str, object]]:
    try:
        # A label of the scheduler's may come first.
        message = json.loads(line[line.index(b"{") :])
    except (ValueError, RecursionError):
        return
    if isinstance(message.get("node"), str):
        yield message


@dataclass(frozen=True, slots=True)
class ClusterFact:
    """One finding: `result` is ok, warning, unknown or failed; `next` mends it."""

    name: str
    result: str
    text: str
    next: str | None = None


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What one node said. `lock` is held (by this one), kept (another's is respected), local, or why not."""

    node: str
    host: str
    boot: str
    sees: bool
    lock: str
    python: str
    libc: str
    driver: str
    cores: int


def reports(text: str) -> tuple[NodeReport, ...]:
    """The reports among the lines of an output, a line of JSON each, by node; other lines are left out."""
    found = []
    for line in text.splitlines():
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict) and content.keys() >= {f.name for f in fields(NodeReport)}:
            found.append(NodeReport(**{f.name: content[f.name] for f in fields(NodeReport)}))
    return tuple(sorted(found, key=lambda report: report.node))


def facts(said: Sequence[NodeReport], asked: int) -> Iterator[ClusterFact]:
    """Yield what follows from the reports of `asked` nodes."""
    names = ", ".join(report.node for report in said)
    if not said:
        yield ClusterFact("nodes", "unknown", "no node answered", "gpudebug doctor --cluster later")
        return
    if len(said) < asked:
        yield ClusterFact("nodes", "warning", f"{len(said)} of {asked} nodes answered: {names}")
    yield _folder(said)
    if len(said) > 1:
        yield _locks(said)
        yield _software(said)
        if len({(report.host, report.boot) for report in said}) == 1:
            yield ClusterFact("hosts", "warning", f"{names} are one host: nothing between hosts was tried")
    yield _cores(said)


def _folder(said: Sequence[NodeReport]) -> ClusterFact:
    blind = [report.node for report in said if not report.sees]
    if not blind:
        return ClusterFact(
            "folder", "ok", f"{', '.join(report.node for report in said)} see the campaign's folder"
        )
    text = f"{', '.join(blind)} {'do' if len(blind) > 1 else 'does'} not see the campaign's folder"
    return ClusterFact("folder", "failed", text, "move the campaign to a folder that all nodes share")


def _locks(said: Sequence[NodeReport]) -> ClusterFact:
    tried = [report for report in said if report.lock != "held"]
    odd = [report for report in tried if report.lock != "kept"]
    if tried and not odd:
        return ClusterFact("locks", "ok", "a lock of one node is respected on the other")
    if any(report.lock == "local" for report in odd):
        return ClusterFact(
            "locks",
            "warning",
            "locks of this file system end at the node",
            "run gpudebug from one login node at a time; it refuses fresh locks of other hosts",
        )
    text = "; ".join(f"{report.node}: {report.lock}" for report in odd) or "not tried"
    return ClusterFact("locks", "unknown", text, "ask how the file system is mounted (NFS: local_lock=none)")


def _software(said: Sequence[NodeReport]) -> ClusterFact:
    odd = [
        f"{name}: {'; '.join(f'{r.node} {getattr(r, name) or chr(45)}' for r in said)}"
        for name in ("python", "libc", "driver")
        if len({getattr(report, name) for report in said}) > 1
    ]
    if not odd:
        return ClusterFact("software", "ok", f"the same on all: {said[0].python}, {said[0].libc}")
    return ClusterFact(
        "software", "warning", ", ".join(odd), "choose nodes that are alike: runner.slurm.constraint"
    )


def _cores(said: Sequence[NodeReport]) -> ClusterFact:
    least = min(report.cores for report in said)
    if least > 1:
        return ClusterFact("cores", "ok", f"a task gets {least} cores")
    return ClusterFact(
        "cores",
        "warning",
        "a task gets 1 core, which all workers of a loader share",
        "set runner.slurm.cpus_per_task",
    )
