"""All runs of one baseline, and its entry in the progress file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpudebug.core import progress
from gpudebug.core.answers.next import RecordedBaseline
from gpudebug.core.errors import DeviceError, GitError, GpudebugError, InterruptedRun
from gpudebug.core.records import Evidence
from gpudebug.core.statistics import intervals, numbers
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.cold_cache import is_cold
from gpudebug.core.verdict.gates import mean, rates_of
from gpudebug.core.verdict.judge import is_infrastructure, training_text, worst_trend
from gpudebug.core.words import Outcome
from gpudebug.edges import templates
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import workload_of
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.campaign.worktrees import remember
from gpudebug.engine.run.measure import Bench, MeasuredRun, PreparedRun, measure, surroundings_of
from gpudebug.engine.run.prepare import Cycle, job_of, open_bench, window_advice, window_of, with_same_code
from gpudebug.engine.trial.reuse import newest, reusable
from gpudebug.engine.trial.sides import of_runs


class BaselineFailed(GpudebugError):
    """A run of the unmodified workload did not complete, so there is nothing to compare against."""

    code = "baseline"


def record(cycle: Cycle, role: str, why: str) -> RecordedBaseline:
    """Record a baseline: runs up to `protocol.baseline_runs`, sealed ones of a cut-off recording included.

    A first run that met a cold page cache is left out and made up for: later runs find the cache warm.
    """
    loaded = cycle.loaded
    workload = workload_of(loaded.config, role)
    assert workload is not None
    try:
        bench = open_bench(cycle, workload)
        remembered = remember(loaded)
    except GitError:
        # A base that was lost or replaced is what the workload would run at.
        remembered = remember(loaded)
        bench = open_bench(cycle, workload)
    made = _sealed_already(cycle, role, bench)
    wanted = loaded.config.protocol.baseline_runs
    while len(runs := _warm(made)) < wanted:
        made.append(run_once(cycle, bench, role))
    notes = (*remembered, *bench.notes, *([_left_out(made)] if runs is not made else ()), *_disturbed(runs))
    fields = entry_fields(role, runs, loaded.metric)
    text = templates.render("baseline.md.j2", **fields)
    splice(loaded, lambda document: progress.set_baseline(document, role, text))
    return answer(loaded, role, why, runs, notes)


def _warm(runs: list[MeasuredRun]) -> list[MeasuredRun]:
    """The runs without a first one that met a cold page cache."""
    return runs[1:] if is_cold([m.evidence for m in runs]) else runs


def _disturbed(runs: list[MeasuredRun]) -> list[str]:
    """What makes every trial against these runs INVALID."""
    shared = [m.folder.name for m in runs if m.evidence.conditions.foreign_procs]
    if not shared:
        return []
    return [
        f"another process computed on the device in {', '.join(shared)}: every trial against this baseline "
        "will be INVALID; `gpudebug baseline` records it again, once the device is free"
    ]


def _left_out(runs: list[MeasuredRun]) -> str:
    first, later = (m.evidence.conditions.read_mb_s or 0.0 for m in runs[:2])
    return (
        f"run {runs[0].folder.name} is left out: it met a cold page cache and read {first:.0f} MB/s from "
        f"disk, the next one {later:.0f} MB/s"
    )


def run_once(cycle: Cycle, bench: Bench, role: str, job: PreparedRun | None = None) -> MeasuredRun:
    """One sealed run of an unmodified workload; raises what `launch` raises."""
    measured = launch(cycle, bench, role, job=job)
    try:
        return with_same_code(cycle.place, measured)
    finally:
        bench.workspace.seal(measured.folder)


def launch(
    cycle: Cycle,
    bench: Bench,
    role: str,
    hypothesis: int | None = None,
    job: PreparedRun | None = None,
    claim: str | None = None,
) -> MeasuredRun:
    """One completed run of an unmodified workload, not sealed yet; tried again if the machinery failed it.

    `hypothesis` names the trial that wanted it fresh, beside its own runs, `claim` the one it is under;
    `job` is the workload as another role than its baseline. Raises BaselineFailed if the command does not
    complete, DeviceError if the machinery failed it twice.
    """
    job = job or replace(_job(cycle, role), hypothesis=hypothesis, claim=claim)
    for last in (False, True):
        measured = measure(bench, job)
        if measured.evidence.outcome is Outcome.COMPLETED:
            return measured
        bench.workspace.seal(measured.folder)
        if by_the_user(measured):
            raise InterruptedRun(f"run {measured.folder.name} was interrupted", next="gpudebug next")
        if last or not is_infrastructure(measured.evidence):
            break
    raise _failed(role, measured)


def _job(cycle: Cycle, role: str) -> PreparedRun:
    workload = workload_of(cycle.loaded.config, role)
    assert workload is not None
    return job_of(cycle, workload, f"baseline-{role}", f"baseline-{role}", cycle.loaded.identities[role])


def _failed(role: str, m: MeasuredRun) -> GpudebugError:
    ending = training_text([m.evidence]).removeprefix("FAILED - ")
    if is_infrastructure(m.evidence):
        reason = f": {m.record.reason}" if m.record.reason else ""
        return DeviceError(
            f"the machinery failed the {role} twice: {ending}{reason}",
            file=str(m.folder.path),
            next="gpudebug doctor",
        )
    return BaselineFailed(
        f"the {role} itself does not complete: {ending}",
        file=str(m.folder.log),
        next="correct the command in gpudebug.yaml, then gpudebug next",
    )


def by_the_user(m: MeasuredRun) -> bool:
    """Whether Ctrl-C ended the run, and not the loss of the warden, which is a matter of the machinery."""
    return m.record.outcome is Outcome.INTERRUPTED and (m.record.reason or "").startswith("interrupted")


def _sealed_already(cycle: Cycle, role: str, bench: Bench) -> list[MeasuredRun]:
    """Completed runs of this very baseline that no entry lists: a recording that was cut off."""
    loaded = cycle.loaded
    entry = loaded.document.baseline(role)
    return reusable(
        loaded,
        f"baseline-{role}",
        newer_than=newest(entry.runs if entry else ()),
        surroundings=surroundings_of(bench, _job(cycle, role)),
        identity=loaded.identities[role],
    )


def entry_fields(role: str, runs: list[MeasuredRun], metric: Metric) -> dict[str, Any]:
    """The values that the entry's template shows, as text; another metric than utilisation has its own."""
    evidence = [m.evidence for m in runs]
    own = {} if metric.points else {"metric": f"{metric.name} {metric_text(metric, evidence)}"}
    return {
        **own,
        "role": role,
        "command": runs[0].record.command,
        "gpu_util": utilisation_text(evidence),
        "throughput": throughput_text(evidence),
        "training": training_text(evidence),
        "loss": str(worst_trend(evidence)),
        "runs": [m.folder.name for m in runs],
    }


def throughput_text(runs: list[Evidence]) -> str:
    """The mean over runs of what their logs count a second."""
    rates = rates_of(runs)
    value = mean(rates.before)
    return numbers.UNKNOWN if value is None else numbers.rate(value, rates.unit)


def utilisation_text(runs: list[Evidence]) -> str:
    """The mean over runs with its interval and their count, or why it is unknown."""
    values = [e.utilisation for e in runs if e.utilisation is not None]
    if not values:
        reason = next((r for e in runs for r in (e.window_reason, *(d.reason for d in e.devices)) if r), None)
        return f"{numbers.UNKNOWN} ({reason})" if reason else numbers.UNKNOWN
    errors = [e.standard_error for e in runs if e.standard_error is not None]
    interval = intervals.mean_interval(values, within=sum(errors) / len(errors) if errors else 0.0)
    count = f"{len(values)} run{'s' if len(values) != 1 else ''}"
    return f"{interval.value:.1f}% (95% CI {interval.low:.1f} to {interval.high:.1f}, {count})"


def metric_text(metric: Metric, runs: list[Evidence]) -> str:
    """The campaign's metric as its mean over runs with its interval and their count, or why it is unknown."""
    if metric.points:
        return utilisation_text(runs)
    values = [v for e in runs if (v := metric.value(e)) is not None]
    if not values:
        return f"{numbers.UNKNOWN} ({_absent(metric, runs)})"
    count = f"{len(values)} run{'s' if len(values) != 1 else ''}"
    mean = metric.mean(values)
    interval = numbers.bounds(metric, mean, metric.bounds(values))
    return f"{numbers.figure(metric, mean)} (95% CI {interval}, {count})"


def _absent(metric: Metric, runs: list[Evidence]) -> str:
    return next((e.window_reason for e in runs if e.window_reason), metric.absent(*runs))


def advice(loaded: Loaded, role: str, runs: Sequence[MeasuredRun]) -> list[str]:
    """What would make this baseline's evidence sufficient, one line each."""
    workload = workload_of(loaded.config, role)
    assert workload is not None
    lines = []
    metric = loaded.metric
    without = next((m.evidence for m in runs if not metric.points and metric.value(m.evidence) is None), None)
    if without is not None and without.window is not None:
        lines.append(f"run {without.run} did not yield {metric.name}: {metric.absent(without)}")
    loss = next((m.evidence.loss.advice for m in runs if m.evidence.loss.advice), None)
    if loss and loaded.config.criteria.loss != "any":
        lines.append(loss)
    needed = loaded.config.protocol.min_window
    total = sum(window_of(m) for m in runs)
    if total < needed:
        advice = window_advice(workload.argv(), runs, needed)
        count = f"{len(runs)} run{'s' if len(runs) != 1 else ''}"
        lines.append(f"the windows of {count} sum up to {total:.1f} s, min_window is {needed:g} s; {advice}")
    return lines


def answer(
    loaded: Loaded, role: str, why: str, runs: Sequence[MeasuredRun], notes: Sequence[str] = ()
) -> RecordedBaseline:
    """Return `next`'s answer for a baseline that was recorded."""
    evidence = [m.evidence for m in runs]
    return RecordedBaseline(
        campaign=loaded.config.campaign,
        role=role,
        gpu_util=mean([e.utilisation for e in evidence if e.utilisation is not None]),
        gpu_util_text=utilisation_text(evidence),
        metric=loaded.metric.name,
        metric_text=metric_text(loaded.metric, evidence),
        steps_per_s=mean([e.steps_per_s for e in evidence if e.steps_per_s]),
        throughput_text=throughput_text(evidence),
        loss=str(worst_trend(evidence)),
        probe=(of_runs(role, evidence),),
        advice=tuple(advice(loaded, role, runs)),
        notes=tuple(notes),
        why=why,
        files=(*(str(m.folder.path) for m in runs), str(loaded.progress_path)),
    )
