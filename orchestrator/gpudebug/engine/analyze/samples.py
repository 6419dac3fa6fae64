"""`gpudebug analyze` of a samples CSV: the window, and what each device did in it."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core import evidence as evidences
from gpudebug.core.errors import GpudebugError
from gpudebug.core.samples import Samples, looks_like_samples, read_samples
from gpudebug.core.timeline import timelines
from gpudebug.core.trainlog import LogReader
from gpudebug.core.words import Outcome
from gpudebug.edges import charts, store
from gpudebug.engine.analyze.kinds import Found
from gpudebug.engine.reading import read_log, read_run_samples
from gpudebug.engine.sample import summary

HEAD = 4096
_POINTS = 4000


def samples(path: Path) -> Found:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as f:
        found = read_samples(f, str(path))
    if found.refused:
        raise GpudebugError(found.refused, file=str(path), next="is this the right file?")
    log = log_beside(path)
    evidence = evidences.build(
        run=path.stem,
        role="sample",
        outcome=Outcome.COMPLETED,
        samples=found,
        log=read_log(log, found, {}, exit_status=None, signal=None) if log else LogReader().summary(),
    )
    answer = {
        "kind": "samples",
        "file": str(path),
        **summary(evidence),
        "rows": len(found.rows),
        "unreadable_rows": found.unreadable,
    }
    return Found(answer, charts.samples, {"timeline": timelines(found, _POINTS)})


def log_beside(path: Path) -> Path | None:
    """The log of the same run, as a run folder and `sample -o` lay it: with it the steps show the window."""
    log = path.with_name("train.log") if path.name == "samples.csv" else path.with_suffix(".log")
    return log if log.is_file() else None


def samples_beside(log: Path) -> Samples:
    """The samples of the same run, which give every line of the log its time; none where there are none."""
    path = log.with_name("samples.csv") if log.name == "train.log" else log.with_suffix(".csv")
    if not path.is_file() or not looks_like_samples(store.read_head(path, HEAD).decode("utf-8", "replace")):
        return Samples()
    return read_run_samples(path)
