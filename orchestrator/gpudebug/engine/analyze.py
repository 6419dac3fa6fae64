"""`gpudebug analyze`: what a file says, recognised by its content."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpudebug.core import evidence as evidences
from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.core.samples import Samples, looks_like_samples, read_samples
from gpudebug.core.trainlog import LogReader
from gpudebug.core.words import Outcome
from gpudebug.edges import store
from gpudebug.engine.measure import read_log
from gpudebug.engine.sample import summary

_HEAD = 4096


def analyze(files: Sequence[Path]) -> dict[str, Any]:
    """One answer for one file, `{"files": [...]}` for several."""
    if not files:
        raise UsageError("no file to analyze", next="gpudebug analyze runs/0001-baseline-workload/train.log")
    answers = [_one(path) for path in files]
    return answers[0] if len(answers) == 1 else {"files": answers}


def _one(path: Path) -> dict[str, Any]:
    head = store.read_head(path, _HEAD)
    if not head:
        raise GpudebugError("is empty", file=str(path), next="give a training log or a samples CSV")
    text = head.decode("utf-8", "replace")
    if looks_like_samples(text):
        return _samples(path)
    if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")) and _is_one_json(text):
        raise GpudebugError(
            "looks like a JSON report or trace, which this version does not read",
            file=str(path),
            next="give a training log or a samples CSV",
        )
    return _log(path)


def _is_one_json(head: str) -> bool:
    """A document over several lines, not JSON lines as training programs print them."""
    first = head.strip().split("\n", 1)[0].strip()
    return not (first.startswith("{") and first.endswith("}"))


def _samples(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as f:
        samples = read_samples(f, str(path))
    evidence = evidences.build(
        run=path.stem, role="sample", outcome=Outcome.COMPLETED, samples=samples, log=LogReader().summary()
    )
    return {
        "kind": "samples",
        "file": str(path),
        **summary(evidence),
        "rows": len(samples.rows),
        "unreadable_rows": samples.unreadable,
    }


def _finite(value: float | None) -> float | None:
    """JSON has no NaN and no infinity; the trend says that the loss went there."""
    return value if value is not None and math.isfinite(value) else None


def _log(path: Path) -> dict[str, Any]:
    log = read_log(path, Samples(), {}, exit_status=None, signal=None)
    return {
        "kind": "training_log",
        "file": str(path),
        "framework": log.framework,
        "loss": {
            "name": log.loss_name,
            "trend": log.trend.value,
            "points": log.points,
            "first": _finite(log.first),
            "last": _finite(log.last),
        },
        "steps": log.steps,
        "steps_per_s": _finite(log.steps_per_s),
        "data_s": _finite(log.data_s),
        "update_s": _finite(log.update_s),
        "failure": {"class": log.failure.kind, "lines": list(log.failure.lines)} if log.failure else None,
    }
