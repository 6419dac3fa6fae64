"""`gpudebug analyze` of samples, ours or of another monitor: the window, and what each device did in it."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core.answers.analyze import RunOfFile, SamplesAnswer
from gpudebug.core.answers.sample import SampledRate
from gpudebug.core.evidence.build import build
from gpudebug.core.evidence.devices import notes
from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.records import DeviceInfo, Evidence
from gpudebug.core.samples.live import timelines
from gpudebug.core.samples.table import SampleTable
from gpudebug.core.statistics.across import across
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.words import Outcome
from gpudebug.edges import charts
from gpudebug.engine.run.devices import devices_in, failure_in, window_in
from gpudebug.engine.run.readings import log_beside, read_log
from gpudebug.engine.run.recordings import RecordedFile, RunSamples, one_run, recording
from gpudebug.engine.run.seen import SeenRun, seen_of
from gpudebug.engine.tools.analyze.kinds import AnalyzedFile

_POINTS = 4000


def samples(path: Path, number: int | None = None) -> list[AnalyzedFile]:
    """Return each run of a recording, or run `number` alone."""
    return of_recording(path, recording(path), number)


def of_recording(path: Path, found: RecordedFile, number: int | None = None) -> list[AnalyzedFile]:
    if number is not None:
        return [_run(path, found, one_run(found, number, str(path)), number)]
    return [_run(path, found, run, at) for at, run in enumerate(found.runs, start=1)]


def _run(path: Path, found: RecordedFile, run: RunSamples, number: int) -> AnalyzedFile:
    seen = seen_of(path) if found.source is None else None
    evidence = seen.evidence if seen is not None else _of_files(path, run)
    shown = evidence.model_dump(mode="json", include={"probe", "sections", "stacks", "awaited"})
    answer = SamplesAnswer(
        file=str(path),
        window=window_in(evidence),
        reason=evidence.window_reason and _no_window(found, run, evidence.window_reason),
        devices=devices_in(evidence, _devices(seen)),
        rows=len(run.samples.rows),
        unreadable_rows=run.samples.unreadable,
        throughput=SampledRate(steps_per_s=evidence.steps_per_s),
        probe=shown["probe"],
        probe_reason=evidence.probe_reason,
        sections=shown["sections"],
        stacks=shown["stacks"],
        failure=failure_in(evidence.failure),
        source=found.source,
        recorded=run.whole,
        run=_part(run, number, len(found.runs)),
        across=across(evidence.devices),
        joules_per_step=evidence.joules_per_step,
        awaited=shown["awaited"],
        awaited_reason=evidence.awaited_reason,
        notes=(*found.notes, *notes(evidence)),
    )
    return AnalyzedFile(answer, charts.samples, {"timeline": timelines(run.samples, _POINTS)}, found.whole)


def _devices(seen: SeenRun | None) -> tuple[DeviceInfo, ...]:
    """Return the devices that a run recorded; none of samples alone."""
    return tuple(map(DeviceInfo.model_validate, seen.record.get("devices") or ())) if seen is not None else ()


def _no_window(found: RecordedFile, run: RunSamples, reason: str) -> str:
    """Say why a recording has no window; `reason` is what the samples alone say."""
    if run.whole is None:
        return reason
    if "gpu_util" in run.whole.missing:
        return "no utilisation in the file"
    if max((one.readings for one in run.whole.devices), default=0) < 2:
        return "one reading"
    return reason if found.timed else "its rows have no time"


def _part(run: RunSamples, number: int, count: int) -> RunOfFile | None:
    if run.recorded is None:
        return None
    start, end = round(run.recorded.start_s, 3), round(run.recorded.end_s, 3)
    return RunOfFile(number=number, of=count, start_s=start, end_s=end, begins=run.recorded.begins)


def _of_files(path: Path, run: RunSamples) -> Evidence:
    """Return what the samples show, and the log beside them if they are of its run alone."""
    log = log_beside(path) if run.recorded is None else None
    nothing = SampleTable()
    timed = run.samples if run.text is None else nothing
    summary = read_log(log, timed, {}, exit_status=None, signal=None) if log else LogReader().summary()
    return build(
        EndedRun(name=path.stem, role="sample", outcome=Outcome.COMPLETED),
        RunReadings(samples=run.samples, log=summary),
    )
