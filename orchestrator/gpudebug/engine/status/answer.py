"""Where a campaign stands, as its evidence says: the answers of `status` and `show`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudebug.core.answers.answer import PhaseFigures
from gpudebug.core.answers.show import ShowAnswer, UnreadRun
from gpudebug.core.answers.status import (
    BaselineRow,
    BudgetLeft,
    CampaignFiles,
    ExpectedFigure,
    HypothesisClaim,
    HypothesisRow,
    NextAction,
    OrderSource,
    PinnedSettings,
    Resolution,
    RunProgress,
    RunSpark,
    StatusAnswer,
    UnlistedVerdict,
    UsedDevice,
    WorkFigure,
)
from gpudebug.core.campaign import decide
from gpudebug.core.campaign.headroom import no_room
from gpudebug.core.campaign.order import NO_DIAGNOSIS, HypothesisOrder, ordered
from gpudebug.core.config import Config
from gpudebug.core.progress import ProgressFile, claims
from gpudebug.core.progress.entries import LEFT_OUT
from gpudebug.core.statistics import numbers, units
from gpudebug.core.statistics.across import across, counted_as_busy
from gpudebug.core.statistics.metrics import GPU_UTIL, Metric
from gpudebug.core.statistics.units import pick, recorded
from gpudebug.core.words import VERDICTS, Status, Trend, device_kind
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import (
    Baselines,
    CampaignBaseline,
    Entries,
    History,
    Loaded,
    Records,
    Setup,
)
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.verdicts import played_back
from gpudebug.engine.diagnosis.order import recorded_order
from gpudebug.engine.status import devices, listing
from gpudebug.engine.status.recorded import age


def status_of(loaded: Loaded) -> StatusAnswer:
    """Return what `status` answers of a campaign that is loaded; the evidence is read."""
    return answer_of(loaded, running=loaded.setup.workspace.claimed())


def answer_of(loaded: Loaded, *, running: bool) -> StatusAnswer:
    """Return the same, with the word of the caller for whether a command runs something."""
    setup, entries, history, c = loaded.setup, loaded.entries, loaded.history, loaded.campaign
    order = recorded_order(setup)
    action = _under_way(history.records, c, order) if running else _next(c, order)
    device_time = setup.config.budget.device_time
    made = listing.made(setup.config, history.records)
    hypotheses = [
        _hypothesis(setup.workspace, entries, history.records, h, made.get(h.number, ()))
        for h in entries.document.hypotheses
    ]
    shown = listing.shown(hypotheses, action.hypothesis)
    sparks = listing.sparks(setup.workspace, history.records, [h for h in hypotheses if h.number in shown])
    return StatusAnswer(
        campaign=setup.config.campaign,
        goal=setup.workspace.scrub(setup.config.goal),
        device=_device(setup.config, history.records),
        running=running,
        progress=_progress(setup.workspace) if running else None,
        metric=setup.config.metric,
        target=decide.goal(c),
        target_text=_target(setup.metric, c),
        baselines={
            role: _baseline(loaded, history.baselines.get(role)) for role in ("workload", "reference")
        },
        hypotheses=[replace(h, sparks=sparks[h.number]) if h.number in sparks else h for h in hypotheses],
        shown=shown,
        unlisted=[
            UnlistedVerdict(run=u.run, hypothesis=u.hypothesis, status=u.status) for u in history.unlisted
        ],
        sweeps=listing.sweeps(setup.config, entries, hypotheses),
        resolution=_resolution(setup, history, c),
        expected=_expected(setup.config, history),
        next=NextAction(
            action=action.kind.value, hypothesis=action.hypothesis, role=action.role, why=action.why
        ),
        order=_order(order, action),
        recorded=None,
        budget=BudgetLeft(
            hypotheses=c.hypothesis_budget,
            hypotheses_used=c.tested,
            hypotheses_left=max(0, c.hypothesis_budget - c.tested),
            device_time_s=device_time,
            device_time_used_s=round(c.device_time, 1),
            device_time_left_s=round(max(0.0, device_time - c.device_time), 1),
        ),
        settings=_settings(setup),
        files=CampaignFiles(progress=str(setup.progress_path), runs=str(setup.workspace.runs)),
        together=listing.worth(loaded),
    )


def _settings(setup: Setup) -> PinnedSettings:
    found = setup.compared
    differing: list[str] = []
    if found.differences:
        from gpudebug.engine.campaign.settings import lines

        differing = lines(setup)
    return PinnedSettings(
        pinned=found.pinned is not None,
        differences=differing,
        problem=found.problem,
        replayed=found.replay,
    )


def _next(campaign: decide.Campaign, order: HypothesisOrder | None) -> decide.Action:
    """Return what `next` would do by the order that is recorded."""
    action = decide.decide(ordered(campaign, order))
    if action.kind is not decide.ActionKind.PROPOSE:
        return action
    offer = order.offer if order is not None and order.offer else NO_DIAGNOSIS
    return replace(action, why=f"{action.why}; {offer}")


_BY_ORDER = (decide.ActionKind.TEST, decide.ActionKind.IMPLEMENT, decide.ActionKind.PROPOSE)


def _order(order: HypothesisOrder | None, action: decide.Action) -> OrderSource | None:
    """Return where the order is from; None if it decides nothing."""
    if order is None or action.kind not in _BY_ORDER:
        return None
    return OrderSource(when=order.when, by=order.by, baseline=order.baseline, age_s=age(order.when))


def _progress(workspace: store.Workspace) -> RunProgress | None:
    """Return how far the run that is under way is."""
    from gpudebug.engine.live.underway import progress_of

    return progress_of(workspace)


def _target(metric: Metric, campaign: decide.Campaign) -> str:
    """Return the figure that solves the campaign, or how to set one."""
    goal = decide.goal(campaign)
    if goal is None:
        return f"none: `target` in gpudebug.yaml would say which {metric.name} solves the campaign"
    return numbers.figure(metric, goal)


def _under_way(records: Records, campaign: decide.Campaign, order: HypothesisOrder | None) -> decide.Action:
    """Return what the command that holds the claim is doing, as its newest run tells."""
    live = next((r for r in reversed(campaign.loose_runs) if not r.sealed), None)
    if live is None:
        return _next(campaign, order)
    role = str(records[live.name].get("role"))
    why = f"run {live.name} is under way"
    if role.startswith("baseline-") and live.hypothesis is None:
        return decide.Action(decide.ActionKind.RECORD_BASELINE, why, role=role.removeprefix("baseline-"))
    if live.hypothesis is not None:
        return decide.Action(decide.ActionKind.TEST, why, hypothesis=live.hypothesis)
    kept = tuple(r for r in campaign.loose_runs if r.name != live.name)
    after = decide.decide(ordered(replace(campaign, loose_runs=kept), order))
    return replace(after, why=f"{why}; after it: {after.why}")


def _device(config: Config, records: Records) -> UsedDevice:
    """Return the device as the last run saw it; the setting alone before the first."""
    latest = reversed(records.values())
    seen: list[dict[str, Any]] = next((r["devices"] for r in latest if r.get("devices")), [])
    played = any(device_kind(d.get("kind")).is_recording for d in seen)
    return UsedDevice(setting=config.device, devices=seen, replayed=played)


def _baseline(loaded: Loaded, baseline: CampaignBaseline | None) -> BaselineRow | None:
    if baseline is None:
        return None
    rates = [e["steps_per_s"] for e in baseline.evidence if e.get("steps_per_s")]
    entry = next((b for b in loaded.entries.document.baselines if b.role == baseline.role), None)
    written = entry.fields if entry else {}
    spent = listing.spent([loaded.history.records.get(name) for name in baseline.runs])
    return BaselineRow(
        valid=baseline.why is None,
        why=baseline.why,
        verified=not baseline.unverified and bool(baseline.evidence),
        replayed=played_back(baseline.runs, loaded.history.records),
        gpu_util=baseline.utilisation,
        gpu_util_text=written.get("gpu util"),
        steps_per_s=sum(rates) / len(rates) if rates else None,
        metric_text=written.get("metric"),
        throughput_text=written.get("throughput"),
        work=_work(loaded.setup.config, baseline),
        work_text=written.get("work"),
        loss=written.get("loss", "").partition(units.JUDGED)[0] or None,
        learning=_learning(loaded.setup.config, baseline),
        advice=_advice(loaded.setup, loaded.entries.document, loaded.campaign, baseline),
        runs=baseline.runs,
        cost_s=spent.cost_s,
        ended=spent.ended,
        age_s=spent.age_s,
        sparks=[
            RunSpark(run=name, spark=listing.spark_of(found))
            for name, found in zip(baseline.runs, baseline.evidence, strict=False)
        ],
        across=across(*(e.get("devices") or () for e in baseline.evidence)),
        device_notes=devices.notes(loaded.setup.metric, baseline),
        phases=_phases(baseline),
    )


def _phases(baseline: CampaignBaseline) -> tuple[PhaseFigures, ...]:
    """Return the phases of its runs; evidence without any is not looked at closer."""
    if not any(facts.get("phases") for facts in baseline.evidence):
        return ()
    from gpudebug.core.statistics import phases

    unit = next((facts["step_unit"] for facts in baseline.evidence if facts.get("step_unit")), None)
    return phases.figures([phases.phases_in(facts) for facts in baseline.evidence], unit)


def _work(config: Config, baseline: CampaignBaseline) -> WorkFigure | None:
    """Return what its runs process a second, in the unit of work that is chosen from them or set."""
    found = pick([recorded(e) for e in baseline.evidence], config.work)
    return WorkFigure(unit=found.unit, per_s=found.per_s, source=found.source) if found else None


def _learning(config: Config, baseline: CampaignBaseline) -> str | None:
    """Return what learning is judged by, as its runs show; None if it is not judged, or cannot be."""
    criteria = config.criteria
    runs = [units.recorded_learning(e) for e in baseline.evidence]
    return units.judged_by(runs, criteria.learning, criteria.loss)


def _advice(
    setup: Setup, document: ProgressFile, campaign: decide.Campaign, baseline: CampaignBaseline
) -> list[str]:
    """Return what would make a success visible, and the baseline's loss judgeable, as its runs found it; and
    which of its runs are left out, as its entry says."""
    figure = baseline.figure(setup.metric) if setup.metric.points and baseline.role == "workload" else None
    work = _work(setup.config, baseline)
    unit = work.unit if work is not None else None
    busy = counted_as_busy(baseline.evidence)
    room = no_room(campaign, float(setup.config.criteria.success), figure, unit, busy)
    found = [room] if room is not None else []
    found += devices.advice(setup, baseline)
    learns = any(one.get("metric") == "reward" for e in baseline.evidence for one in e.get("learning") or ())
    if setup.config.criteria.loss != "any" and not learns:
        found += [e["loss"]["advice"] for e in baseline.evidence if (e.get("loss") or {}).get("advice")]
    entry = next((b for b in document.baselines if b.role == baseline.role), None)
    left = entry.fields.get(LEFT_OUT) if entry is not None else None
    found += [f"{LEFT_OUT}: {left}"] if left else []
    return list(dict.fromkeys(found))


def _hypothesis(
    workspace: store.Workspace,
    entries: Entries,
    records: Records,
    entry: Any,
    made: Sequence[Mapping[str, Any]],
) -> HypothesisRow:
    """One hypothesis; `made` are the records of the runs that were made for it."""
    trial = entries.trials[entry.number]
    verdict = trial.verdict if trial.verified else None
    of_utilisation = (verdict or {}).get("metric", GPU_UTIL) == GPU_UTIL
    found = (verdict or {}).get("delta")
    delta, improvement = (found, None) if of_utilisation else (None, found)
    ratio = (verdict or {}).get("throughput_ratio")
    loss = (verdict or {}).get("loss")
    gone = [None for name in entry.runs if name not in records]
    spent = listing.spent([*made, *gone])
    held = claims.on(entry)
    judged = entry.status in VERDICTS
    waits = entry.status is Status.UNTESTED and entry.number in entries.problems
    return HypothesisRow(
        number=entry.number,
        title=workspace.scrub_prose(entry.title),
        status=entry.status.value,
        verified=trial.verified if judged else None,
        weaker_terms=trial.doubts.weaker,
        replayed=trial.doubts.replayed,
        doubts=trial.doubts.against,
        intervention=entry.intervention,
        cause=entry.cause,
        claim=HypothesisClaim(session=held.session, since=held.since) if held else None,
        accepted=entries.order(entry),
        accepted_by_hand=entries.acceptances.by_hand(entry),
        why=verdict["why"] if verdict else None,
        delta_pp=delta["value"] if delta else None,
        delta_ci=[delta["low"], delta["high"]] if delta else None,
        metric=(verdict or {}).get("metric"),
        improvement=improvement["value"] if improvement else None,
        improvement_ci=[improvement["low"], improvement["high"]] if improvement else None,
        throughput_ratio=ratio["value"] if ratio else None,
        throughput_source=numbers.throughput_source(verdict),
        loss=loss if loss != Trend.UNKNOWN else None,
        cost_s=spent.cost_s,
        ended=spent.ended,
        age_s=spent.age_s,
        claimed=numbers.known(entry.result.get("improvement")) if judged else None,
        runs=entry.runs,
        sparks=None,
        problem=str(entries.problems[entry.number]) if waits else None,
    )


def _resolution(setup: Setup, history: History, campaign: decide.Campaign) -> Resolution | None:
    """Return the noise floor and what a trial can tell from it; None without a valid baseline."""
    if not _measured(history.baselines):
        return None
    # Arithmetic that a campaign without a baseline need not pay for.
    from gpudebug.engine.trial import noise

    return noise.floor(setup, history, campaign)


def _measured(baselines: Baselines) -> bool:
    baseline = baselines["workload"]
    return baseline.why is None and bool(baseline.evidence)


def _expected(config: Config, history: History) -> list[ExpectedFigure]:
    """Return what gpudebug.yaml expects of the workload here, beside what its baseline measured."""
    if not config.expected:
        return []
    from gpudebug.core.config import criteria

    baseline = history.baselines["workload"]
    recorded_names = [d["name"] for record in baseline.records for d in record.get("devices", [])]
    names = recorded_names or [d["name"] for d in _device(config, history.records).devices]
    rows = criteria.rows(
        config.expected, names, baseline.evidence, config.workload.text, list(config.phases or ())
    )
    return [ExpectedFigure(**row) for row in rows]


def show(directory: Path, number: int) -> ShowAnswer:
    """`show H`: one hypothesis with its evidence, gates and files."""
    from gpudebug.core.statistics.level import course
    from gpudebug.engine.campaign.premises import entry_of
    from gpudebug.engine.run.devices import run_devices
    from gpudebug.engine.run.traces import newest_profile
    from gpudebug.engine.trial.sides import of_trial, readable

    loaded = load(directory)
    entry = entry_of(loaded.setup.progress_path, loaded.entries.document, number)
    trial = loaded.entries.trials[number]
    scrub, prose = loaded.setup.workspace.scrub, loaded.setup.workspace.scrub_prose
    folders = [loaded.setup.workspace.run(name) for name in entry.runs]
    evidence, lacking = readable(loaded.setup.workspace, entry.runs)
    probe, sections = of_trial(
        loaded.setup.workspace, loaded.history.baselines, number, entry.runs, trial.verdict
    )
    row = _hypothesis(
        loaded.setup.workspace,
        loaded.entries,
        loaded.history.records,
        entry,
        listing.made(loaded.setup.config, loaded.history.records).get(number, ()),
    )
    verdict = trial.verdict if trial.verified else None
    return ShowAnswer(
        **vars(row),
        description=prose(entry.description),
        test_method=prose(entry.test_method),
        line=entry.line,
        notes=trial.verdict["notes"] if trial.verdict else (),
        figures={name: scrub(text) for name, text in entry.result.items()},
        gates=numbers.gates(trial.verdict["gates"]) if trial.verdict else (),
        evidence=evidence,
        skipped=[UnreadRun(run=name, why=why) for name, why in lacking.items()],
        probe=probe,
        sections=sections,
        profile=newest_profile(loaded.setup, loaded.history.records),
        files=[*(str(f.path) for f in folders if f.path.exists()), str(loaded.setup.progress_path)],
        devices=run_devices(evidence),
        course=course(verdict),
    )
