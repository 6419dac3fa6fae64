"""A run's samples and log -> its evidence: one function for the run that just ended and for a later check.

All that it needs beside the two files is in run.json, so that evidence can be derived again from a folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gpudebug.core.catalogue import frameworks
from gpudebug.core.command import batch
from gpudebug.core.command.program import of_notes
from gpudebug.core.command.synonyms import Synonyms
from gpudebug.core.errors import StoreError
from gpudebug.core.evidence.build import build
from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.inside import probe, stacks
from gpudebug.core.inside.attached.record import FROM_OUTSIDE, read_attached
from gpudebug.core.inside.imported_files import read_loaded
from gpudebug.core.inside.probe import counts, figures
from gpudebug.core.records import DeviceInfo, Evidence, Failure, LoadedFiles, PlannedEnd, RunRecord
from gpudebug.core.redaction.redact import Redactor
from gpudebug.core.samples.table import SampleTable
from gpudebug.core.trainlog.failure import at_own_limit
from gpudebug.core.trainlog.overrides import Settings, combined
from gpudebug.core.trainlog.phase_lines import separated
from gpudebug.core.trainlog.printed_settings import LONGEST, printed_settings
from gpudebug.core.trainlog.reader import LogSummary
from gpudebug.core.words import Outcome, counted
from gpudebug.edges import launcher, store
from gpudebug.engine.run import adapters, server
from gpudebug.engine.run.extras import read_collected
from gpudebug.engine.run.files import Files, files_of, files_with
from gpudebug.engine.run.learning import WrittenLearning, read_written
from gpudebug.engine.run.readings import read_log, read_run_samples, until
from gpudebug.engine.run.sections import sections_of
from gpudebug.engine.run.traces import trace_of

# Twice what the processes of a run may write of themselves.
LONGEST_RECORD = 8 << 20


class Ended(Protocol):
    """How a run ended, by the launcher and by run.json alike. Seconds."""

    @property
    def outcome(self) -> Outcome | None: ...
    @property
    def exit_status(self) -> int | None: ...
    @property
    def signal(self) -> int | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def duration_s(self) -> float | None: ...
    @property
    def own_limit_mb(self) -> float | None: ...


class KnownRun(Protocol):
    """What a run was asked to be, by its job and by run.json alike: what its files do not say themselves.

    `warmup_s` is a fixed span, None lets the data decide; `least_window_s` is how short its window may be,
    None for one that counts by itself; `synonyms` are options with several names; `probed` says whether its
    processes were made to report, `cpu_quota` how many cores they were given.
    """

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def argv(self) -> Sequence[str]: ...
    @property
    def patterns(self) -> Mapping[str, str]: ...
    @property
    def warmup_s(self) -> float | None: ...
    @property
    def devices(self) -> Sequence[DeviceInfo]: ...
    @property
    def probed(self) -> bool | None: ...
    @property
    def cpu_quota(self) -> float | None: ...
    @property
    def synonyms(self) -> Synonyms | None: ...
    @property
    def least_window_s(self) -> float | None: ...
    @property
    def phase(self) -> str | None: ...


@dataclass(frozen=True, kw_only=True)
class StartedRun:
    """A run that begins, as `KnownRun` has it."""

    name: str
    role: str
    argv: Sequence[str]
    patterns: Mapping[str, str]
    warmup_s: float | None
    devices: Sequence[DeviceInfo]
    probed: bool | None = None
    cpu_quota: float | None = None
    synonyms: Synonyms | None = None
    least_window_s: float | None = None
    phase: str | None = None


def evidence_again(folder: store.RunFolder, record: RunRecord) -> Evidence:
    """Return the evidence of a run that has ended, from its folder and its run.json.

    The values of the run's sensitive variables are not known any more: a quoted log line that held one is
    redacted in evidence.json and not here. Raises GpudebugError if a file cannot be read as what it is.
    """
    if record.outcome is None:
        raise StoreError("has no outcome", file=str(folder.path / "run.json"), next="gpudebug next")
    return read_evidence(
        files_with(files_of(folder), record.devices, record.node),
        record,
        record,
        planned=record.planned,
        unsampled=record.node.unsampled if record.node is not None else {},
    )


def read_evidence(
    files: Files,
    asked: KnownRun,
    ended: Ended,
    *,
    redactor: Redactor | None = None,
    notes: Mapping[str, Any] | None = None,
    planned: PlannedEnd | None = None,
    followed: LogSummary | None = None,
    unsampled: Mapping[str, str] | None = None,
) -> Evidence:
    """Read `files` of a run that has an outcome, or has shown enough for one.

    `redactor` knows the secrets of the run's surroundings, `notes` are the sampler's, read from its file if
    None. `planned` is where gpudebug ended the run: nothing that came later is read. `followed` is what the
    log says if it was read as it grew; `unsampled` is why the devices of another node are unknown, by node.
    """
    outcome, argv, synonyms = ended.outcome, asked.argv, asked.synonyms or ()
    assert outcome is not None
    written = read_written(files.collected) if files.collected else WrittenLearning()
    text = (_head(files.reports / launcher.PROBE) or "") if files.reports else ""
    found, attached = probe.read_probe(text), read_attached(text)
    samples = until(read_run_samples(files.samples), planned)
    beside = [until(read_run_samples(path), planned) for path in files.beside.values()]
    log = followed or read_log(
        files.log,
        samples,
        asked.patterns,
        planned=planned,
        exit_status=ended.exit_status,
        signal=ended.signal,
        redactor=redactor,
    )
    known = _notes(files.notes) if notes is None else notes
    evidence = build(
        EndedRun(
            name=asked.name,
            role=asked.role,
            outcome=outcome,
            exit_status=ended.exit_status,
            signal=ended.signal,
            failure=_failure(files, ended, outcome, log, redactor or Redactor()),
            reason=ended.reason,
            duration_s=ended.duration_s,
            planned_s=planned.at_s if planned is not None else None,
            least_window_s=asked.least_window_s,
            devices=asked.devices,
            missing=_missing(files.notes, known),
            batch_flags=batch.flags(argv, synonyms),
            step_flags=counts.step_flags(argv),
            environment_plans=batch.environment_plans(batch.settings(argv, synonyms)),
            cpu_quota=asked.cpu_quota,
            unsampled=unsampled or {},
            over=followed is None,
            phase=asked.phase,
            declared=separated(asked.patterns)[1],
        ),
        RunReadings(
            samples=samples,
            log=log,
            # A log that still grows may be a line behind the samples of a recording that is played back.
            log_bytes=files.log.stat().st_size if followed is None and files.log.is_file() else None,
            settings=_configuration(files, redactor or Redactor()),
            loaded=_loaded(files.folder) if files.folder else None,
            told=found,
            probe_reason=FROM_OUTSIDE if attached else figures.reason(asked.probed, found),
            watched=stacks.read_stacks(text),
            written=written.series,
            written_notes=written.notes,
            attached=attached,
            beside=beside,
            seen=of_notes(known.get("processes")),
        ),
        warmup=asked.warmup_s,
        advice=lambda summary: loss_advice(argv, summary),
        scrub=(redactor or Redactor()).redact,
    )
    if files.reports is None:
        return evidence
    return evidence.model_copy(
        update={"trace": trace_of(files.reports), "sections": sections_of(files.reports)}
    )


def _failure(
    files: Files, ended: Ended, outcome: Outcome, log: LogSummary, redactor: Redactor
) -> Failure | None:
    """Return why the program failed, or the server that it needs.

    Our ending of a run is not its failure; its log would show only the interrupt.
    """
    served = (ended.reason or "").startswith(server.ENDED)
    if not served or outcome not in (Outcome.CRASHED, Outcome.TIMED_OUT):
        return at_own_limit(log.failure, ended.own_limit_mb) if outcome is Outcome.CRASHED else None
    found = read_log(
        files.server_log,
        SampleTable(),
        {},
        exit_status=ended.exit_status,
        signal=ended.signal,
        redactor=redactor,
    )
    return server.failure_of(files.server_log, str(ended.reason), found.failure, redactor)


def _configuration(files: Files, redactor: Redactor) -> Settings:
    """Return what the program printed and saved of its configuration, without secrets."""
    heads = [_beginning(path) for path in (files.log, files.server_log)]
    saved = read_collected(files.collected) if files.collected else ()
    found = combined(*map(printed_settings, heads), *(Settings(entries) for entries in saved))

    def is_open(*values: str) -> bool:
        return all(redactor.redact(value) == value for value in values)

    return Settings(
        {name: value for name, value in found.known.items() if value and is_open(value)},
        {name: values for name, values in found.restated.items() if is_open(*values)},
    )


def _beginning(log: Path) -> str:
    try:
        return store.read_head(log, LONGEST, follow=True).decode("utf-8", "replace")
    except StoreError:
        return ""


def _loaded(folder: Path) -> LoadedFiles | None:
    """Return what the run's processes imported; None if none reported it."""
    text = _head(folder / launcher.RECORD)
    return None if text is None else read_loaded(text)


def _head(path: Path) -> str | None:
    """Return the text of a record, capped; None if it is not a regular file."""
    try:
        return store.read_head(path, LONGEST_RECORD).decode("utf-8", "replace")
    except StoreError:
        return None


def _notes(path: Path) -> Mapping[str, Any]:
    """Return what the sampler wrote beside its samples; nothing without the file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(store.read_file(path))
    except (TypeError, ValueError):
        raise _not_ours(path) from None
    if not isinstance(found, dict):
        raise _not_ours(path)
    return found


def _missing(path: Path, notes: Mapping[str, Any]) -> dict[str, str]:
    """Columns that the device lacked, with the reason that the sampler recorded."""
    missing = notes.get("missing", {})
    if not isinstance(missing, dict):
        raise _not_ours(path)
    return {str(k): str(v) for k, v in missing.items()}


def _not_ours(path: Path) -> StoreError:
    return StoreError("is not what the sampler writes", file=str(path), next="move this run folder away")


def loss_advice(argv: Sequence[str], log: LogSummary) -> str | None:
    """Return the flag that prints the loss often enough to judge it, for baseline and trials alike."""
    if log.of_learner:
        return (
            f"{log.loss_name} need not fall where a program learns: print a reward or a return, or set "
            "criteria.learning in gpudebug.yaml"
        )
    advice = frameworks.log_advice(argv, adapters.known(), log.total_steps or log.steps)
    shown = f"only {counted(log.points, 'loss value')} in the log"
    return f"{shown}; {advice.text if advice else 'print the training loss at least 10 times a run'}"
