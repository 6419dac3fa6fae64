"""What the accepted changes are worth together: the workload with all of them against that without any.

Both sides are run in turn when the baseline is recorded after an `accept`. Of a lone change whose trial's
runs are the baseline, its verdict says it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gpudebug.core.answers.hypotheses import CombinedGain
from gpudebug.core.campaign import accepted_changes
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.records import Estimate, Verdict
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.level import HELD
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.course import Shown, compared, contradict, otherwise, sides_of
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.setting import TrialSetting
from gpudebug.edges import store
from gpudebug.engine.campaign.baselines import identity
from gpudebug.engine.campaign.campaign import Baselines, Entries, Identities, Loaded, MeasuredCode, Setup
from gpudebug.engine.campaign.files import read_config
from gpudebug.engine.run.environment import differences, recorded
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import stored_run
from gpudebug.engine.trial.as_baseline import trial_runs
from gpudebug.engine.trial.conduct import with_conduct
from gpudebug.engine.trial.judge import asked, evidence_of, order_of, terms_of, trial_case
from gpudebug.engine.trial.original import beside_baseline, in_command, named

NOT_YET = "what was accepted is not measured together yet: gpudebug next does that"


def together(loaded: Loaded, first: dict[str, Any]) -> CombinedGain:
    """Return what is known of it; `first` is the verdict of the first accepted hypothesis."""
    gain = partial(CombinedGain, metric=loaded.setup.metric.name, runs_before=(), runs_after=())
    then = tuple(r["name"] for r in first["runs"] if r["part"] == "baseline")
    now = loaded.history.baselines["workload"].runs
    if set(then) & set(now):
        return gain(why="the baseline of today is the one before the first acceptance")
    if not _after_the_trials(loaded.entries.recorded, loaded.history.baselines):
        return gain(why=NOT_YET)
    try:
        if _is_its_trial(loaded, first):
            return _by_its_trial(loaded, first)
        before = beside_baseline(loaded.setup, loaded.history)
        after = [stored_run(loaded.setup.workspace, name) for name in now]
    except GpudebugError as e:
        return gain(why=f"{e.file}: {e.message}", runs_after=now)
    wanted = loaded.history.identities["workload"]
    if not before and any(m.record.identity.get(k) != wanted[k] for m in after for k in ("command", "tree")):
        return gain(why=NOT_YET, runs_after=now)
    if not before:
        return gain(why=_not_in_turn(loaded.setup.workspace, loaded.code), runs_after=now)
    if not _with_all_now(loaded.setup.workspace, loaded.history.identities, loaded.code, before, after):
        return gain(why=NOT_YET)
    gain = partial(
        CombinedGain,
        metric=loaded.setup.metric.name,
        runs_before=named(before),
        runs_after=named(after),
        paired=True,
    )
    other = list(dict.fromkeys(_other(loaded.code, before, after)))
    if other:
        return gain(why=f"the two sides were measured in different surroundings: {'; '.join(other)}")
    found = contrast_of(loaded.setup, loaded.code, before, after)
    if found.delta is None:
        return gain(why=f"a run lacks {loaded.setup.metric.name}")
    against = _contradiction(loaded.setup.metric, loaded.entries, found)
    return gain(
        **_figures(found, found.delta),
        agrees=None if _lone(loaded.setup.metric, loaded.entries, found) is None else against is None,
        notes=() if against is None else (against,),
    )


def _figures(found: TrialCase, delta: Estimate) -> dict[str, Any]:
    sides = sides_of(found)
    return {
        "delta": delta,
        "throughput_ratio": found.ratio,
        "before": sides.utilisation[0],
        "after": sides.utilisation[1],
        "metric_before": sides.metric[0],
        "metric_after": sides.metric[1],
        "text": _text(found, sides, delta),
        "throughput": _throughput(found, sides),
    }


def _is_its_trial(loaded: Loaded, first: dict[str, Any]) -> bool:
    """Tell whether the baseline of today is the trial of the only accepted change."""
    records, now = loaded.history.records, loaded.history.baselines["workload"].runs
    taken = tuple(records.get(name, {}).get("measured_as") for name in now)
    return len(loaded.entries.recorded) == 1 and taken == trial_runs(first)


def _by_its_trial(loaded: Loaded, first: dict[str, Any]) -> CombinedGain:
    """Return what the only accepted change is worth: what its verdict says."""
    verdict = Verdict.model_validate(first)
    sides = {
        part: [stored_run(loaded.setup.workspace, r.name) for r in verdict.runs if r.part == part]
        for part in ("baseline", "trial")
    }
    before, after = sides.values()
    terms = terms_of(verdict.terms or asked(loaded.setup.config), before)
    found = trial_case(verdict.hypothesis, terms, before, after)
    gain = partial(
        CombinedGain,
        metric=found.metric.name,
        runs_before=named(before),
        runs_after=named(after),
    )
    if found.delta is None:
        return gain(why=f"a run lacks {found.metric.name}")
    return gain(**_figures(found, found.delta))


def _not_in_turn(workspace: store.Workspace, code: MeasuredCode) -> str:
    """Return why nothing was run beside the baseline, and what would be."""
    there = in_command(workspace, code)
    if not there:
        return "both sides were not run in turn: gpudebug baseline workload runs them"
    numbers_there = ", ".join(map(str, there))
    return f"hypothesis {numbers_there} is part of gpudebug.yaml now, so it cannot be switched off to compare"


def _after_the_trials(recorded: Sequence[HypothesisEntry], baselines: Baselines) -> bool:
    """Tell whether the baseline was recorded after every trial of what is accepted."""
    runs = baselines["workload"].runs
    tested = [store.run_number(name) for h in recorded for name in h.runs]
    return bool(runs) and store.run_number(runs[0]) > max(tested, default=0)


def _with_all_now(
    workspace: store.Workspace,
    identities: Identities,
    code: MeasuredCode,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
) -> bool:
    """Tell whether runs made in turn are without any and with exactly the changes that are accepted now.

    By what the runs record: the checkout's own code may have changed since, and gpudebug.yaml may have got
    the accepted flags.
    """
    wanted, plain = identities["workload"]["command"], base_identity(workspace, code, 0)["command"]
    without = {m.record.identity.get("command") for m in before}
    trees = {m.record.identity.get("tree") for m in before}
    if without != {plain} and not in_command(workspace, code):
        return False
    made = {MeasuredCode(tree, code.patches).digest for tree in trees if tree}
    return all(
        m.record.identity.get("command") == wanted and made == {m.record.identity.get("tree")} for m in after
    )


def contrast_of(
    setup: Setup, code: MeasuredCode, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]
) -> TrialCase:
    """Runs without and with the accepted changes, judged as a trial of all of them would be."""
    changes = tuple(change for step in code.stack for change in step.intervention.changes)
    unit = terms_of(asked(setup.config), before).work
    setting = TrialSetting(changes=len(changes), compound=True, work=unit)
    setting = with_conduct(setting, Intervention(changes, compound=True), (), before, after)
    return apart(setup, before, after, setting)


def apart(
    setup: Setup,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    setting: TrialSetting | None = None,
) -> TrialCase:
    """Two groups of runs, in the order in which they were made, by what the campaign is judged by."""
    setting = replace(setting or TrialSetting(), order=order_of(before, after, most=HELD))
    devices = setup.config.criteria.devices
    return compared(setup.metric, evidence_of(before), evidence_of(after), setting, devices)


def _lone(metric: Metric, entries: Entries, found: TrialCase) -> tuple[int, Estimate] | None:
    """Return the only accepted hypothesis with what its trial measured; None if that is another figure."""
    if len(entries.recorded) != 1:
        return None
    number = entries.recorded[0].number
    verdict = entries.trials[number].verdict or {}
    delta = verdict.get("delta")
    if delta is None or verdict.get("metric", metric.name) != found.metric.name:
        return None
    return number, Estimate.model_validate(delta)


def _contradiction(metric: Metric, entries: Entries, found: TrialCase) -> str | None:
    """That the one accepted change gained something else in its trial; None if both agree."""
    lone = _lone(metric, entries, found)
    if lone is None or found.delta is None or not contradict(found.metric, lone[1], found.delta):
        return None
    alone, here = (shown(found.metric, each) for each in (lone[1], found.delta))
    both = f"hypothesis {lone[0]} gained {alone} in its trial and {here} now, in turn"
    return f"{both}: these contradict each other"


def base_identity(workspace: store.Workspace, code: MeasuredCode, count: int) -> dict[str, str]:
    """Return what the workload is with the first `count` accepted changes alone, as run.json records it."""
    plain, steps = read_config(workspace), code.stack[:count]
    workload = accepted_changes.effective(plain.workload, steps, plain.allowed)
    patched = sum(step.intervention.patch is not None for step in steps)
    measured = MeasuredCode(code.tree, code.patches[:patched])
    return identity(workspace, plain, workload, measured.digest)


def differed(then: Sequence[MeasuredRun], now: Sequence[MeasuredRun]) -> str:
    """Return what was otherwise in the surroundings and around two groups of runs, in words."""
    around = [d for m in then for each in now for d in differences(recorded(m.record), recorded(each.record))]
    found = list(dict.fromkeys([*around, *otherwise(evidence_of(then), evidence_of(now))]))
    if not found:
        return "nothing that runs record was otherwise: load, device, clock and packages were alike"
    return f"what was otherwise: {'; '.join(found)}"


def shown(metric: Metric, estimate: Estimate) -> str:
    """Return a gain with its interval, in the campaign's metric."""
    return (numbers.points if metric.points else numbers.factor)(estimate.model_dump())


def _text(found: TrialCase, sides: Shown, delta: Estimate) -> str:
    """`GPU util 20.0% to 60.0%: +40.0pp (95% CI …)`, in the campaign's metric."""
    if found.metric.points:
        change = "GPU util {} to {}".format(*map(numbers.percent, sides.utilisation))
    else:
        before, after = sides.metric
        values = {"metric": found.metric.name, "metric_before": before, "metric_after": after}
        change = numbers.metric_change({**values, "throughput_unit": found.rates.unit})
    return f"{change}: {shown(found.metric, delta)}"


def _throughput(found: TrialCase, sides: Shown) -> str | None:
    """`10 to 30 steps/s: 3.00x (95% CI …)`; None if no ratio is known."""
    if found.ratio is None:
        return None
    change = numbers.throughput_change(*sides.throughput, found.rates.unit)
    return f"{change}: {numbers.factor(found.ratio.model_dump())}"


def _other(code: MeasuredCode, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> list[str]:
    """Return what differs in the surroundings, but for what the accepted changes themselves set."""
    set_ = frozenset(name for step in code.stack for name in step.intervention.names)
    now = [replace(recorded(m.record), meant=set_) for m in after]
    return [d for m in before for each in now for d in differences(recorded(m.record), each)]
