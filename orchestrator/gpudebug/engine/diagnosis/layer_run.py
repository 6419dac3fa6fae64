"""One run of the workload with a layer of it taken away; to diagnose, never a fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpudebug.core.answers.diagnosis import LayerAnswer
from gpudebug.core.catalogue.frameworks import locks_of
from gpudebug.core.catalogue.offers import KnownCommand
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.permits import Allowed
from gpudebug.core.diagnosis.layer_flags import doubled, quiet
from gpudebug.core.diagnosis.layers import (
    PREFIX,
    LayerError,
    asked,
    feeds_training,
    judge,
    layer_named,
    shown,
)
from gpudebug.core.errors import ConfigError
from gpudebug.core.records import Evidence
from gpudebug.core.statistics import numbers
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Baselines, History, Setup
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.layers import BY_PROBE, changed, results
from gpudebug.engine.run import adapters
from gpudebug.engine.run.around import surroundings_of
from gpudebug.engine.run.environment import differences, recorded
from gpudebug.engine.run.job import MeasuredRun, PreparedRun
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import Cycle, claimed_campaign, job_of, open_bench, stored_run
from gpudebug.engine.trial import recover
from gpudebug.engine.trial.unmodified import BaselineFailed, run_once

COMMAND = "gpudebug diagnose --layer"


@dataclass(frozen=True)
class _Test:
    """One layer test of a campaign. `change` is None if the probe alone makes it; `before` is the
    baseline."""

    layer: str
    change: Intervention | None
    before: list[MeasuredRun]
    notes: tuple[str, ...] = ()


def record_layer(directory: Path, layer: str, report: Report, session: str | None = None) -> LayerAnswer:
    """Run the workload once with the layer taken away, where its baseline runs.

    The run has a role of its own: no baseline, trial or noise figure takes it in, and its device time counts.
    Raises UsageError for a layer that is not known, LayerError without a valid baseline or if this command
    cannot be tested so, ConfigError if the probe is needed and off, and what a run raises.
    """
    name = layer_named(layer)
    with claimed_campaign(directory, report, f"{COMMAND} {shown(name)}", session) as claimed:
        cycle = recover.recovered(claimed)
        test = _test(cycle.setup, cycle.loaded.history.baselines, name)
        measured = _run(cycle, test)
        loaded = load(directory, session)
        return _answer(cycle, test, measured, loaded.setup, loaded.history)


def _baseline_runs(workspace: store.Workspace, baselines: Baselines) -> list[MeasuredRun]:
    return [stored_run(workspace, name) for name in baselines["workload"].runs]


def _test(setup: Setup, baselines: Baselines, layer: str) -> _Test:
    """Return what is to be run, once everything is known to be there for it."""
    found, file = baselines["workload"], str(setup.progress_path)
    if found.why is not None or not found.runs:
        raise LayerError(
            f"a layer test needs a valid baseline to compare with: {found.why}",
            file=file,
            next="gpudebug baseline workload",
        )
    before = _baseline_runs(setup.workspace, baselines)
    if any(not m.record.devices for m in before):
        raise LayerError(
            "the baseline was imported: runs that are made here are not its like",
            file=file,
            next="gpudebug baseline workload",
        )
    if layer == "cached_batch":
        _refuse_without_loader(setup, [m.evidence for m in before])
        return _Test(layer, None, before)
    command = _command(setup, before)
    if layer == "quiet":
        known_steps = all(m.evidence.probe and m.evidence.probe.steps_per_s for m in before)
        return _Test(layer, quiet(command, told=known_steps), before)
    change = doubled(command)
    return _Test(layer, change, before, notes_on_locks(command, change, setup.config.locked))


def notes_on_locks(command: KnownCommand, change: Intervention, locks: Sequence[str]) -> tuple[str, ...]:
    """Return a note on what a layer test changes although it is locked, by whatever name."""
    synonyms = locks_of(command.argv, command.found, command.program, locks, change.names)
    locked = change.locked_by(locks, synonyms=synonyms)
    return (f"{', '.join(locked)} is locked: it is changed for this test alone",) if locked else ()


def _refuse_without_loader(setup: Setup, before: Sequence[Evidence]) -> None:
    config = str(setup.workspace.config)
    if not setup.config.probe:
        raise ConfigError(
            "probe is false: it is the probe that hands the cached batch over",
            file=config,
            next="set probe: true, then gpudebug baseline workload",
        )
    if all(e.probe is None for e in before):
        why = next((e.probe_reason for e in before if e.probe_reason), numbers.UNKNOWN)
        raise LayerError(
            f"the probe saw no training in the baseline: {why}",
            file=str(setup.progress_path),
            next="gpudebug diagnose --layer quiet needs no probe",
        )
    if not any(map(feeds_training, before)):
        raise LayerError(
            "the probe saw no DataLoader that feeds the training: no batch to cache",
            file=str(setup.progress_path),
            next="gpudebug diagnose",
        )


def _command(setup: Setup, before: Sequence[MeasuredRun]) -> KnownCommand:
    workload = setup.config.workload
    known = adapters.of(setup.workspace.root, workload)
    packages = dict(before[-1].record.packages)
    version = adapters.version_of(known.framework, packages) if known.framework else None
    return KnownCommand(workload.argv(), workload.env, known.found, version, known.program)


def _run(cycle: Cycle, test: _Test) -> MeasuredRun:
    loaded, workload = cycle.loaded, cycle.setup.config.workload
    bench, role = open_bench(cycle, workload), PREFIX + test.layer
    plain = job_of(
        cycle, workload, role, f"{PREFIX}{shown(test.layer)}", loaded.history.identities["workload"]
    )
    here, around = recorded(test.before[-1].record), surroundings_of(bench, plain)
    if outdated := differences(here, around):
        raise LayerError(
            f"the baseline was recorded elsewhere: {'; '.join(outdated)}", next="gpudebug baseline workload"
        )
    try:
        return run_once(cycle.place, bench, "workload", _changed(plain, test))
    except BaselineFailed as e:
        how = test.change.text if test.change is not None else BY_PROBE
        raise LayerError(
            f"with {how} the workload does not complete: {e.message.partition(': ')[2]}",
            file=e.file,
            next="this layer of it cannot be taken away; gpudebug diagnose",
        ) from None


def _changed(job: PreparedRun, test: _Test) -> PreparedRun:
    if test.change is None:
        return replace(job, layer=asked(test.layer, [m.evidence for m in test.before]))
    applied = test.change.spelled(job.argv, job.synonyms).apply(
        job.argv, dict(job.env), Allowed(frozenset(test.change.names))
    )
    variables = {name for name, value in applied.env.items() if value != job.env.get(name)}
    return replace(
        job,
        argv=applied.argv,
        env=applied.env,
        env_names=tuple(sorted({*job.env_names, *variables})),
        change=replace(job.change, text=test.change.text),
        notes=(*job.notes, *applied.notes),
        # A program that is to print nothing has not stalled.
        limits=replace(job.limits, stall=None if test.layer == "quiet" else job.limits.stall),
    )


def _answer(cycle: Cycle, test: _Test, measured: MeasuredRun, setup: Setup, history: History) -> LayerAnswer:
    folder, layer = measured.folder, shown(test.layer)
    before, change = [m.evidence for m in test.before], changed(measured.record.model_dump())
    whole = results(setup, history).get(test.layer) or judge(test.layer, before, [measured.evidence], change)
    return LayerAnswer(
        campaign=cycle.setup.config.campaign,
        role=measured.record.role,
        layer=layer,
        run=folder.name,
        runs=whole.runs,
        baseline_runs=tuple(m.folder.name for m in test.before),
        changed=setup.workspace.scrub(whole.changed),
        ratio=whole.ratio,
        step_ratio=whole.step_ratio,
        means=whole.means,
        device_time_s=measured.record.duration_s,
        notes=tuple(setup.workspace.scrub(note) for note in (*test.notes, *whole.notes)),
        why=f"asked for by `{COMMAND} {layer}`",
        next_command="gpudebug diagnose",
        files=(str(folder.path),),
    )
