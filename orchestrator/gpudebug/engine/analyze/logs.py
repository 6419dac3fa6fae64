"""`gpudebug analyze` of a training log: loss, steps, times and why it failed."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core.evidence import finite
from gpudebug.engine.analyze.kinds import Found
from gpudebug.engine.analyze.samples import samples_beside
from gpudebug.engine.reading import read_log


def log(path: Path) -> Found:
    found = read_log(path, samples_beside(path), {}, exit_status=None, signal=None)
    answer = {
        "kind": "training_log",
        "file": str(path),
        "framework": found.framework,
        "loss": {
            "name": found.loss_name,
            "trend": found.trend.value,
            "points": found.points,
            "first": finite(found.first),
            "last": finite(found.last),
        },
        "steps": found.steps,
        "steps_per_s": finite(found.steps_per_s),
        "data_s": finite(found.data_s),
        "update_s": finite(found.update_s),
        "failure": {"class": found.failure.kind, "lines": list(found.failure.lines)}
        if found.failure
        else None,
    }
    return Found(answer)
