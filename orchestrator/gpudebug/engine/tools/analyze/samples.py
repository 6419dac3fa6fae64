"""`gpudebug analyze` of a samples CSV: the window, and what each device did in it."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core.answers.analyze import SamplesAnswer
from gpudebug.core.answers.sample import SampledRate
from gpudebug.core.errors import GpudebugError
from gpudebug.core.evidence.build import EndedRun, RunReadings, build
from gpudebug.core.evidence.together import notes
from gpudebug.core.records import Evidence
from gpudebug.core.samples.table import SampleTable, read_samples
from gpudebug.core.samples.timeline import timelines
from gpudebug.core.statistics.across import across
from gpudebug.core.trainlog import LogReader
from gpudebug.core.words import Outcome
from gpudebug.edges import charts
from gpudebug.engine.run.devices import devices_in
from gpudebug.engine.run.evidence import log_beside, read_log
from gpudebug.engine.run.sample import failure_in, window_in
from gpudebug.engine.run.seen import seen_of
from gpudebug.engine.tools.analyze.kinds import AnalyzedFile

_POINTS = 4000


def samples(path: Path) -> AnalyzedFile:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as f:
        found = read_samples(f, str(path))
    if found.refused:
        raise GpudebugError(found.refused, file=str(path), next="is this the right file?")
    seen = seen_of(path)
    evidence = seen.evidence if seen is not None else _of_files(path, found)
    shown = evidence.model_dump(mode="json", include={"probe", "sections", "stacks", "awaited"})
    answer = SamplesAnswer(
        file=str(path),
        window=window_in(evidence),
        reason=evidence.window_reason,
        devices=devices_in(evidence),
        rows=len(found.rows),
        unreadable_rows=found.unreadable,
        throughput=SampledRate(steps_per_s=evidence.steps_per_s),
        probe=shown["probe"],
        probe_reason=evidence.probe_reason,
        sections=shown["sections"],
        stacks=shown["stacks"],
        failure=failure_in(evidence.failure),
        across=across(evidence.devices),
        joules_per_step=evidence.joules_per_step,
        awaited=shown["awaited"],
        awaited_reason=evidence.awaited_reason,
        notes=notes(evidence),
    )
    return AnalyzedFile(answer, charts.samples, {"timeline": timelines(found, _POINTS)})


def _of_files(path: Path, found: SampleTable) -> Evidence:
    """What the samples and the log beside them show."""
    log = log_beside(path)
    summary = read_log(log, found, {}, exit_status=None, signal=None) if log else LogReader().summary()
    return build(
        EndedRun(name=path.stem, role="sample", outcome=Outcome.COMPLETED),
        RunReadings(samples=found, log=summary),
    )
