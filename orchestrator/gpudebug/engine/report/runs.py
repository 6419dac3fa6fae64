"""One run folder -> its record for a report: what it came to, and the series that a picture is drawn of."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gpudebug.core.answers.answer import plain
from gpudebug.core.errors import GpudebugError
from gpudebug.core.inside import probe
from gpudebug.core.inside.probe import counts, spans
from gpudebug.core.inside.probe.spans import ProcessSpan, steady
from gpudebug.core.records import Evidence, RunRecord, Window
from gpudebug.core.samples.live import timelines
from gpudebug.core.samples.table import SampleTable, joined
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import across, name, shown, text
from gpudebug.core.statistics.numbers import thin
from gpudebug.core.statistics.units import REWARD
from gpudebug.core.trainlog.reader import LogReader, LogSummary
from gpudebug.edges import launcher, store
from gpudebug.engine.campaign.files import record_of
from gpudebug.engine.run.devices import devices_in
from gpudebug.engine.run.files import files_of, files_with
from gpudebug.engine.run.readings import read_log, read_run_samples
from gpudebug.engine.run.sections import outline_of

SECTIONS = 12
"""So many of a run's sections are named."""
TIMELINE = 4000
"""Points of all devices of a run, half of them of one."""
LOSSES = 500
_FILES = 60
_LONGEST_RECORD = 8 << 20
_LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True)
class ReportedRun:
    """A run that is whole. `facts` is its evidence.json as it was read."""

    folder: store.RunFolder
    record: RunRecord
    evidence: Evidence
    facts: dict[str, Any]


@dataclass
class ReportedRuns:
    """The runs of a campaign, each read once. `skipped` says why some cannot be shown, `notes`
    what of the others could not be read."""

    workspace: store.Workspace
    here: frozenset[str]
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _read: dict[str, ReportedRun | None] = field(default_factory=dict)

    def get(self, name: str) -> ReportedRun | None:
        """None if the run is not here or cannot be shown."""
        if name not in self._read:
            try:
                self._read[name] = whole(self.workspace.run(name)) if name in self.here else None
            except GpudebugError as e:
                self._read[name] = None
                self.skipped[name] = f"{os.path.basename(e.file)}: {e.message}" if e.file else e.message
            if name not in self.here and self.here:
                self.skipped[name] = "the run folder is not here, others are"
        return self._read[name]

    def read(self, names: Iterable[str]) -> list[ReportedRun]:
        return [run for name in names if (run := self.get(name)) is not None]


def whole(folder: store.RunFolder) -> ReportedRun:
    """GpudebugError if the run is not finished, or its records are not what gpudebug writes."""
    record = record_of(folder, "run.json")
    if not folder.sealed:
        raise GpudebugError("it is unfinished: it was cut off, or is under way")
    facts = record_of(folder, "evidence.json")
    name = "run.json"
    try:
        found = RunRecord.model_validate(record)
        name = "evidence.json"
        return ReportedRun(folder, found, Evidence.model_validate(facts), facts)
    except ValueError:
        raise GpudebugError("is not what gpudebug writes", file=name) from None


def brief(run: ReportedRun) -> dict[str, object]:
    """Return the record of a run without its series, which are empty."""
    record, e = run.record, run.evidence
    return {
        "name": run.folder.name,
        "role": record.role,
        "hypothesis": record.hypothesis,
        "outcome": e.outcome.value,
        "reason": record.set_aside or e.reason,
        "start": record.start,
        "duration_s": e.duration_s,
        "window": e.window.model_dump(include={"start_s", "end_s", "rule"}) if e.window else None,
        "window_reason": e.window_reason,
        "utilisation": e.utilisation,
        "devices": [plain(device) for device in devices_in(e, record.devices)],
        "across": [text(one) for one in shown(across(e.devices))],
        "joules_per_step": e.joules_per_step,
        "spark": list(e.spark),
        "steps_per_s": e.steps_per_s,
        "progress_per_s": e.progress_per_s,
        "step_unit": e.step_unit,
        "loss": e.loss.model_dump(mode="json", include={"name", "trend", "first", "last", "points"}),
        "timeline": [],
        "loss_points": [],
        "loss_by": "step",
        "step_times": None,
        "outline": [],
        "failure": e.failure.model_dump(mode="json") if e.failure else None,
        "folder": str(run.folder.path),
        "files": _files(run.folder),
    }


def surroundings(run: ReportedRun) -> dict[str, object]:
    """Return what ran and in what: command, model, sections, host, devices, interpreter, packages."""
    record, e = run.record, run.evidence
    fields = record.model_dump(
        mode="json",
        include={"command", "host", "cpu_quota", "devices", "interpreter", "packages", "knobs", "commit"},
    )
    sections = e.sections.sections if e.sections else ()
    return {
        "run": run.folder.name,
        **fields,
        "model": counts.model(e),
        "weights": counts.weights(e),
        "rewards": [
            one.model_dump(mode="json", include={"name", "first", "last"})
            for one in e.learning
            if one.metric == REWARD
        ],
        "rate": None if e.progress_per_s is None else numbers.rate(e.progress_per_s, e.step_unit),
        "sections": [
            s.model_dump(mode="json", include={"name", "calls", "mean_s", "share"})
            for s in sections[:SECTIONS]
        ],
    }


def _files(folder: store.RunFolder) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(folder.path) if entry.is_file())[:_FILES]
    except OSError:
        return []


def log_size(run: ReportedRun) -> int:
    """Of its train.log in bytes; 0 if there is none."""
    try:
        return run.folder.log.stat().st_size
    except OSError:
        return 0


def detail(run: ReportedRun, notes: list[str], *, with_log: bool = True) -> dict[str, object]:
    """Return the series of a run: `timeline`, `loss_points` with `loss_by`, `step_times`. What cannot be read
    is empty, and `notes` get why. Without its log the loss is what the evidence keeps of it."""
    samples = _samples(run, notes)
    log = _log(run, samples, notes) if with_log else LogReader().summary()
    known = {d.uuid: d for d in run.record.devices}
    most = max(2, TIMELINE // max(2, len(samples.devices)))
    points, by = _losses(run.evidence, log)
    return {
        "timeline": [
            {
                "index": device["index"],
                "uuid": device["uuid"],
                "name": known[device["uuid"]].name if device["uuid"] in known else "",
                "label": name(known.get(device["uuid"], device)),
                "points": [
                    [round(t, 2), _rounded(util), _rounded(used)] for t, util, used in device["points"]
                ],
            }
            for device in timelines(samples, most, run.record.interval_s)
        ],
        "loss_points": points,
        "loss_by": by,
        "step_times": _step_times(run, log, notes),
        "outline": outline_of(run.folder.path),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _samples(run: ReportedRun, notes: list[str]) -> SampleTable:
    try:
        files = files_with(files_of(run.folder), run.record.devices, run.record.node)
        beside = [read_run_samples(path) for path in files.beside.values()]
        return joined(read_run_samples(files.samples), beside)
    except (GpudebugError, OSError) as e:
        notes.append(_unread(run, "samples.csv", e))
        return SampleTable()


def _log(run: ReportedRun, samples: SampleTable, notes: list[str]) -> LogSummary:
    record = run.record
    try:
        return read_log(
            run.folder.log,
            samples,
            record.patterns,
            exit_status=record.exit_status,
            signal=record.signal,
        )
    except (GpudebugError, OSError) as e:
        notes.append(_unread(run, "train.log", e))
        return LogReader().summary()


def _unread(run: ReportedRun, file: str, e: GpudebugError | OSError) -> str:
    why = e.message if isinstance(e, GpudebugError) else os.strerror(e.errno) if e.errno else str(e)
    return f"{file} of run {run.folder.name} cannot be read: {why}"


def _losses(evidence: Evidence, log: LogSummary) -> tuple[list[list[float | None]], str]:
    """[step, loss] as printed, else by the number of the print; the short curve of the evidence without a
    log. A loss that is not a finite number is None."""
    steps = [p.step for p in log.loss if p.step is not None]
    by_step = len(steps) == len(log.loss) and steps == sorted(steps)
    if log.loss:
        places = steps if by_step else list(range(1, len(log.loss) + 1))
        points = [(float(x), _finite(p.value)) for x, p in zip(places, log.loss, strict=True)]
    else:
        points = [(step, _finite(value)) for step, value in evidence.loss.curve]
    shown = [[_short(x), None if y is None else _short(y)] for x, y in thin(points, LOSSES)]
    return shown, "step" if by_step else "number"


def _short(value: float) -> float:
    """Six digits, whole numbers without a point."""
    found = float(f"{value:.6g}") if abs(value) < _LARGEST_WHOLE and value != int(value) else value
    return int(found) if found == int(found) else found


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def _step_times(run: ReportedRun, log: LogSummary, notes: list[str]) -> dict[str, object] | None:
    """Bars of the steps' times in the window: as the training process reported them, else as its log does."""
    counted, by = _probed(run, notes), "probe"
    if not counted:
        counted, by = spans.counted(_printed(log, run.evidence.window)), "log"
    bars = spans.bars(counted)
    return {"by": by, "bins": [list(bar) for bar in bars]} if bars else None


def _printed(log: LogSummary, window: Window | None) -> list[float]:
    """Return the printed times of steps in the window; of all if the lines have no times."""
    if window is None or all(p.time is None for p in log.durations):
        return [p.value for p in log.durations]
    timed = ((p.time, p.value) for p in log.durations)
    return [value for time, value in timed if time is not None and window.start_s <= time <= window.end_s]


def _probed(run: ReportedRun, notes: list[str]) -> dict[int, float]:
    path = run.folder.path / launcher.PROBE
    if not path.is_file():
        return {}
    try:
        text = store.read_head(path, _LONGEST_RECORD).decode("utf-8", "replace")
    except (GpudebugError, OSError) as e:
        notes.append(_unread(run, launcher.PROBE, e))
        return {}
    report = probe.read_probe(text)
    main = report.main if report else None
    if main is None:
        return {}
    window = run.evidence.window
    bounds = (window.start_s, window.end_s) if window else steady(main)
    return ProcessSpan(main, *bounds).step_times() if bounds else {}
