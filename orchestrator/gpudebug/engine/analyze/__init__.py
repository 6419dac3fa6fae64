"""`gpudebug analyze`: what a file says, recognised by its content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.edges import store
from gpudebug.engine.analyze.kinds import HEAD, Found, Kind, kind_of
from gpudebug.engine.analyze.logs import log
from gpudebug.engine.analyze.samples import samples
from gpudebug.engine.analyze.trace import trace


def analyze(files: Sequence[Path]) -> dict[str, Any]:
    """One answer for one file, `{"files": [...]}` for several."""
    if not files:
        raise UsageError("no file to analyze", next="gpudebug analyze runs/0001-baseline-workload/train.log")
    answers = [_one(path).answer for path in files]
    return answers[0] if len(answers) == 1 else {"files": answers}


def _one(path: Path) -> Found:
    head = store.read_head(path, HEAD)
    if not head:
        raise GpudebugError("is empty", file=str(path), next="give a training log or a samples CSV")
    kind, packed = kind_of(head)
    if kind in (Kind.TRACE, Kind.SECTIONS):
        return Found(trace(path))
    if packed:
        raise GpudebugError("is compressed", file=str(path), next=f"gunzip it: gunzip -k {path.name}")
    return samples(path) if kind is Kind.SAMPLES else log(path)
