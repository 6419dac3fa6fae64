"""A/A: the workload against its own baseline, as a trial that changes nothing. What differs is noise."""

from __future__ import annotations

from pathlib import Path

from gpudebug.core.answers.next import RecordedAA
from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Estimate, Verdict
from gpudebug.core.statistics import numbers
from gpudebug.core.verdict.turns import NextRun, planned
from gpudebug.core.words import AS_PLANNED
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.run.around import surroundings_of
from gpudebug.engine.run.environment import Surroundings, differences, recorded
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.prepare import Cycle, claimed_campaign, job_of, open_bench, stored_run
from gpudebug.engine.trial import baseline, noise, recover
from gpudebug.engine.trial.judge import asked, judge_runs
from gpudebug.engine.trial.reuse import newest, reusable
from gpudebug.engine.trial.unmodified import run_once

COMMAND = "gpudebug baseline --aa"
RUNS = 3
"""Of the shortest trial that could be VALIDATED: two of the change, and one of the baseline behind them."""


class Imported(GpudebugError):
    """The baseline's runs were not made here, so no run made here is their like."""

    code = "baseline"


def record_aa(
    directory: Path, report: Report, runs: int | None = None, session: str | None = None
) -> RecordedAA:
    """Run the workload against its baseline and say what the noise is; a missing baseline comes first.

    `runs` defaults to those of the shortest trial. Fewer than that, left by an A/A that was cut off, are
    completed to it; otherwise as many are added. The verdict is what the campaign's rule makes of them in a
    trial's order. Raises Imported if the baseline was imported, and what recording a baseline raises.
    """
    with claimed_campaign(directory, report, COMMAND, session) as claimed:
        cycle, notes = _with_baseline(recover.recovered(claimed))
        bench, job = _bench(cycle)
        wanted = runs or RUNS
        made = _already(cycle, bench, job)
        missing = wanted - len(made) if len(made) < wanted else wanted
        made += [run_once(cycle.place, bench, "workload", job) for _ in range(missing)]
        before = _baseline_runs(cycle)
        steps = list(zip(planned(len(made)), made, strict=False))
        after = [m for step, m in steps if step is NextRun.TRIAL]
        beside = [m for step, m in steps if step is NextRun.BASELINE]
        verdict = judge_runs(0, asked(cycle.setup.config), [*before, *beside], after)
        return _answer(cycle.again().loaded, verdict, before, made, (*notes, *bench.notes))


def _with_baseline(cycle: Cycle) -> tuple[Cycle, tuple[str, ...]]:
    """The campaign with a baseline that a trial would be held against, and why it had to be recorded."""
    why = cycle.loaded.history.baselines["workload"].why
    if why is None:
        before = _baseline_runs(cycle)
        if any(not m.record.devices for m in before):
            raise Imported(
                "the baseline was imported: runs that are made here are not its like",
                file=str(cycle.setup.progress_path),
                next=f"gpudebug baseline workload, then {COMMAND}",
            )
        why = _outdated(before, surroundings_of(*_bench(cycle)))
    if why is None:
        return cycle, ()
    baseline.record(cycle, "workload", f"baseline workload: {why}")
    return cycle.again(), (f"the baseline was recorded first: {why}",)


def _outdated(before: list[MeasuredRun], around: Surroundings) -> str | None:
    found = dict.fromkeys(d for m in before for d in differences(recorded(m.record), around))
    return f"recorded elsewhere: {'; '.join(found)}" if found else None


def _bench(cycle: Cycle) -> tuple[Bench, PreparedRun]:
    loaded = cycle.loaded
    workload = loaded.setup.config.workload
    return open_bench(cycle, workload), job_of(
        cycle, workload, noise.AA, noise.AA, loaded.history.identities["workload"]
    )


def _baseline_runs(cycle: Cycle) -> list[MeasuredRun]:
    loaded = cycle.loaded
    return [stored_run(loaded.setup.workspace, name) for name in loaded.history.baselines["workload"].runs]


def _already(cycle: Cycle, bench: Bench, job: PreparedRun) -> list[MeasuredRun]:
    """Completed A/A runs against the present baseline."""
    loaded = cycle.loaded
    kept = reusable(
        loaded.setup,
        loaded.history.records,
        noise.AA,
        newer_than=newest(loaded.history.baselines["workload"].runs),
        surroundings=surroundings_of(bench, job),
        identity=loaded.history.identities["workload"],
    )
    return [m for m in kept if m.evidence.outcome in AS_PLANNED]


def _answer(
    loaded: Loaded,
    verdict: Verdict,
    before: list[MeasuredRun],
    made: list[MeasuredRun],
    notes: tuple[str, ...],
) -> RecordedAA:
    data = verdict.model_dump(mode="json")
    points = loaded.setup.metric.points
    return RecordedAA(
        campaign=loaded.setup.config.campaign,
        role=noise.AA,
        verdict=data["status"],
        why=data["why"],
        gates=numbers.gates(data["gates"]),
        metric=verdict.metric,
        difference=numbers.known(numbers.improvement(data)),
        delta_pp=verdict.delta.value if verdict.delta and points else None,
        delta_ci=_bounds(verdict.delta) if points else None,
        throughput_ratio=verdict.throughput_ratio.value if verdict.throughput_ratio else None,
        throughput_ci=_bounds(verdict.throughput_ratio),
        resolution=noise.floor(loaded.setup, loaded.history, loaded.campaign),
        baseline_runs=tuple(m.folder.name for m in before),
        runs=tuple(m.folder.name for m in made),
        advice=tuple(baseline.advice(loaded.setup, loaded.campaign, "workload", made)),
        notes=notes,
        files=tuple(str(m.folder.path) for m in made),
    )


def _bounds(estimate: Estimate | None) -> tuple[float | None, float | None] | None:
    return (estimate.low, estimate.high) if estimate else None
