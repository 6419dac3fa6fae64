"""A short look at each of several hypotheses that wait alike, so that the most promising is tested first."""

from __future__ import annotations

from dataclasses import replace

from gpudebug.core.campaign.decide import Campaign
from gpudebug.core.campaign.screening import LEAST, LOOK_SHARE, pays, tied, with_looks
from gpudebug.core.errors import GpudebugError, InterruptedRun, InterventionError
from gpudebug.core.samples.window import least_pooled
from gpudebug.core.statistics import numbers
from gpudebug.core.verdict.run_plan import MOST, RunPlan
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.changes import TrialChange, change_of, refuse_before_running
from gpudebug.engine.diagnosis.looks import PREFIX, gains, newest
from gpudebug.engine.run import adapters
from gpudebug.engine.run.around import surroundings_of
from gpudebug.engine.run.environment import differences, recorded
from gpudebug.engine.run.job import Bench, PreparedRun
from gpudebug.engine.run.measure import measure
from gpudebug.engine.run.planned import plan_of
from gpudebug.engine.run.prepare import Cycle, job_of, open_bench, remarks, stored_run, with_same_code
from gpudebug.engine.trial.premises import apply_change
from gpudebug.engine.trial.unmodified import by_the_user


def screened(cycle: Cycle, campaign: Campaign) -> Campaign:
    """The campaign, in the order that looks give where several hypotheses are equally worth a test.

    Each is run once for a part of a run's window, unless a look at it is recorded. Only changes of options
    and variables are looked at, only where gpudebug may end a run, and only if that saves device time. A look
    that fails goes last; its trial shows why.
    """
    changes = changes_to_look_at(cycle.loaded, tied(campaign))
    known = newest(cycle.loaded) if changes else {}
    missing = [number for number in changes if number not in known]
    if len(changes) < LEAST or not missing:
        return campaign
    plan = _plan(cycle, campaign, len(missing))
    if plan is None:
        return campaign
    bench = open_bench(cycle, cycle.loaded.config.workload)
    base = job_of(cycle, cycle.loaded.config.workload, "look", "look", cycle.loaded.identities["workload"])
    last = stored_run(cycle.loaded.workspace, cycle.loaded.baselines["workload"].runs[-1])
    if bench.replays or differences(recorded(last.record), surroundings_of(bench, base)):
        return campaign
    names = ", ".join(map(str, changes))
    remarks(cycle.report)(
        f"hypotheses {names} have the same expected gain: {len(missing)} short looks order them, "
        f"{numbers.duration(plan.window_s)} of steady training each"
    )
    for number in missing:
        _look(cycle, bench, number, changes[number], replace(base, plan=plan))
    cycle.loaded = cycle.again().loaded
    return with_looks(campaign, gains(cycle.loaded))


def changes_to_look_at(loaded: Loaded, tied_ones: tuple[int, ...]) -> dict[int, TrialChange]:
    """The changes of these hypotheses that are no patches and may be tested, by their trials' own check."""
    found = dict[int, TrialChange]()
    root, config = loaded.workspace.root, loaded.config
    for number in tied_ones:
        try:
            change = change_of(loaded, number)
            names = change.intervention.names
            synonyms = adapters.locks_of(root, config.workload, config.locked, names)
            refuse_before_running(loaded, number, change.intervention, synonyms)
        except GpudebugError:
            continue  # Its own trial reports what is wrong with it.
        if change.patch is None:
            found[number] = change
    return found


def _plan(cycle: Cycle, campaign: Campaign, looks: int) -> RunPlan | None:
    """How long a look goes on; None if runs end by themselves, or looks would not pay."""
    loaded = cycle.loaded
    runs = loaded.baselines["workload"].evidence
    planned = plan_of(loaded, "workload")
    if planned is None or not runs or any(not e.get("duration_s") for e in runs):
        return None
    window = LOOK_SHARE * planned.window_s
    starts = [float((e.get("window") or {}).get("start_s") or 0.0) for e in runs]
    run_s = sum(float(e["duration_s"]) for e in runs) / len(runs)
    left = None
    if campaign.device_time_budget is not None:
        left = campaign.device_time_budget - campaign.device_time
    if not pays(max(starts) + window, run_s, looks, left):
        return None
    return RunPlan(window, learns=False, most_s=max(starts) + MOST * window)


def _look(cycle: Cycle, bench: Bench, number: int, change: TrialChange, base: PreparedRun) -> None:
    """One run with the change, sealed: no trial, no baseline and no noise figure takes it in."""
    role = f"{PREFIX}{number}"
    try:
        applied, server = apply_change(cycle.loaded, number, change.intervention, base)
    except InterventionError:
        return  # Its own trial reports what is wrong with it.
    variables = {name for name, value in applied.env.items() if value != base.env.get(name)}
    job = replace(
        base,
        role=role,
        label=role,
        argv=applied.argv,
        env=applied.env,
        server=server,
        env_names=tuple(sorted({*base.env_names, *variables})),
        change=change.intervention.text,
        least_window=least_pooled(bench.interval),
    )
    measured = measure(bench, job)
    try:
        if by_the_user(measured):
            raise InterruptedRun(f"run {measured.folder.name} was interrupted", next="gpudebug next")
        with_same_code(cycle.place, measured)
    finally:
        bench.workspace.seal(measured.folder)
