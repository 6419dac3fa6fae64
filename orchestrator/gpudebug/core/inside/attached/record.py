"""What the follower of a running job wrote -> a run's record.

Apart from what the follower itself loads, which runs without pydantic. The job cannot write its lines, but
they are read as any other: nothing is believed unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from gpudebug.core.inside.probe.processes import read_line
from gpudebug.core.records import AttachedEvidence
from gpudebug.core.records.inside import SeenProcess

FROM_OUTSIDE = "the training ran already: gpudebug saw it from outside, so its steps are not counted"
MOST_PROCESSES = 64
_KINDS = ("process", "observer")


def read_attached(text: str) -> AttachedEvidence | None:
    """Parse the record of a run; None if the run was no look at a job."""
    found: dict[int, SeenProcess] = {}
    observer: Mapping[str, Any] | None = None
    for raw in text.split("\n"):
        line = read_line(raw) if any(f'"{kind}"' in raw for kind in _KINDS) else None
        if line is None or line["kind"] not in _KINDS:
            continue
        if line["kind"] == "observer":
            observer = line
        elif (process := _process(line)) and (process.pid in found or len(found) < MOST_PROCESSES):
            found[process.pid] = process
    if observer is None and not found:
        return None
    spent, seconds = (_number((observer or {}).get(name)) for name in ("cpu_s", "seconds"))
    members = (observer or {}).get("members")
    return AttachedEvidence(
        processes=tuple(found.values()),
        members=members if isinstance(members, int) else None,
        observer_cores=spent / seconds if spent is not None and seconds else None,
        ended=bool((observer or {}).get("ended")),
    )


def _process(line: Mapping[str, Any]) -> SeenProcess | None:
    try:
        return SeenProcess.model_validate(line, strict=False)
    except ValidationError:
        return None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if value >= 0 else None
