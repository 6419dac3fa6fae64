"""Facts, causes and stacks for tests of the diagnosis."""

from __future__ import annotations

from typing import Any

from gpudebug.core.catalogue.model import Cause
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.records import Stacks, StacksEvidence


def cause(id: str = "dl-waits", **fields: Any) -> Cause:
    return Cause.model_validate(
        {"id": id, "title": f"Title of {id}", "explanation": "", "fix": "Mend it.", **fields}
    )


def facts(*, stacks: Stacks | None = None, workers: Stacks | None = None, **fields: Any) -> DiagnosisFacts:
    """`signals` by keyword: every name that is no field of DiagnosisFacts."""
    own = {name: fields.pop(name) for name in list(fields) if name in DiagnosisFacts.__dataclass_fields__}
    told = StacksEvidence(training=stacks, workers=workers) if stacks or workers else None
    return DiagnosisFacts(signals=fields, stacks=told, **{"runs": ("0001-baseline-workload",), **own})


def stacks(*seen: tuple[str, str, int, float, float], code: dict[str, str] | None = None) -> Stacks:
    """Each of `seen`: phase, frames joined by blanks, line, seconds, CPU seconds."""
    names = list(dict.fromkeys(frame for _, frames, *_ in seen for frame in frames.split()))
    rows = tuple((p, tuple(map(names.index, frames.split())), line, s, c) for p, frames, line, s, c in seen)
    return Stacks(
        seconds=sum(row[3] for row in rows),
        cpu_s=sum(row[4] for row in rows),
        samples=len(rows),
        frames=tuple(names),
        stacks=rows,
        code=code or {},
    )
