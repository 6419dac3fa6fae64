"""`gpudebug analyze`: what a file says, recognised by its content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpudebug.core import evidence as evidences
from gpudebug.core.errors import GpudebugError, UsageError
from gpudebug.core.samples import Samples, looks_like_samples, read_samples
from gpudebug.core.trainlog import LogReader
from gpudebug.core.words import Outcome
from gpudebug.edges import store
from gpudebug.engine.reading import read_log, read_run_samples
from gpudebug.engine.sample import summary

_HEAD = 4096
# One JSON document over several lines, or a list of objects; JSON lines and `[0]` prefixes are logs.
_TRACE = re.compile(r"\ufeff?\s*(\[\s*\{\s*\"|\{\s*\n|\{\s*\"(traceEvents|schemaVersion|sections)\")")


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
    if _TRACE.match(text):
        raise GpudebugError(
            "looks like a JSON report or trace, which this version does not read",
            file=str(path),
            next="give a training log or a samples CSV",
        )
    return _log(path)


def _samples(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as f:
        samples = read_samples(f, str(path))
    log = _log_beside(path)
    evidence = evidences.build(
        run=path.stem,
        role="sample",
        outcome=Outcome.COMPLETED,
        samples=samples,
        log=read_log(log, samples, {}, exit_status=None, signal=None) if log else LogReader().summary(),
    )
    return {
        "kind": "samples",
        "file": str(path),
        **summary(evidence),
        "rows": len(samples.rows),
        "unreadable_rows": samples.unreadable,
    }


def _log_beside(samples: Path) -> Path | None:
    """The log of the same run, as a run folder and `sample -o` lay it: with it the steps show the window."""
    log = samples.with_name("train.log") if samples.name == "samples.csv" else samples.with_suffix(".log")
    return log if log.is_file() else None


def _samples_beside(log: Path) -> Samples:
    """The samples of the same run, which give every line of the log its time; none where there are none."""
    path = log.with_name("samples.csv") if log.name == "train.log" else log.with_suffix(".csv")
    if not path.is_file() or not looks_like_samples(store.read_head(path, _HEAD).decode("utf-8", "replace")):
        return Samples()
    return read_run_samples(path)


def _log(path: Path) -> dict[str, Any]:
    log = read_log(path, _samples_beside(path), {}, exit_status=None, signal=None)
    return {
        "kind": "training_log",
        "file": str(path),
        "framework": log.framework,
        "loss": {
            "name": log.loss_name,
            "trend": log.trend.value,
            "points": log.points,
            "first": evidences.finite(log.first),
            "last": evidences.finite(log.last),
        },
        "steps": log.steps,
        "steps_per_s": evidences.finite(log.steps_per_s),
        "data_s": evidences.finite(log.data_s),
        "update_s": evidences.finite(log.update_s),
        "failure": {"class": log.failure.kind, "lines": list(log.failure.lines)} if log.failure else None,
    }
