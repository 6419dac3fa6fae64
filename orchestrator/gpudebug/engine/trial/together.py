"""What the accepted changes are worth together: the workload with all of them against that without any.

Both sides are run in turn when the baseline is recorded after an `accept`. Campaigns of older versions have
the baseline of today and the one before the first acceptance, of different times: that is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gpudebug.core.answers.hypotheses import CombinedGain
from gpudebug.core.campaign import accepted_changes
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Estimate
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.level import HELD
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.apart import compared, contradict, otherwise, unchanged
from gpudebug.core.verdict.course import Shown, sides_of
from gpudebug.core.verdict.gates import TrialCase, TrialSetting
from gpudebug.core.verdict.turns import BASELINE_RUNS
from gpudebug.core.words import counted
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Loaded, MeasuredCode
from gpudebug.engine.campaign.files import read_config
from gpudebug.engine.campaign.load import identity
from gpudebug.engine.run.environment import differences, recorded
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import stored_run
from gpudebug.engine.trial.conduct import with_conduct
from gpudebug.engine.trial.judge import evidence_of, order_of, work_of
from gpudebug.engine.trial.original import beside_baseline, in_command, named

NOT_YET = "what was accepted is not measured together yet: gpudebug next does that"
_NAMED = 4


def together(loaded: Loaded, first: dict[str, Any]) -> CombinedGain:
    """What is known of it; `first` is the verdict of the first accepted hypothesis."""
    gain = partial(CombinedGain, metric=loaded.metric.name, runs_before=(), runs_after=())
    then = tuple(r["name"] for r in first["runs"] if r["part"] == "baseline")
    now = loaded.baselines["workload"].runs
    if set(then) & set(now):
        return gain(why="the baseline of today is the one before the first acceptance")
    if not _after_the_trials(loaded):
        return gain(why=NOT_YET)
    try:
        before, paired = beside_baseline(loaded), True
        if not before:
            before, paired = [stored_run(loaded.workspace, name) for name in then], False
        after = [stored_run(loaded.workspace, name) for name in now]
    except GpudebugError as e:
        return gain(why=f"{e.file}: {e.message}", runs_before=then, runs_after=now)
    if not (
        _with_all_now(loaded, before, after) if paired else _nothing_accepted_since(loaded, before, after)
    ):
        return gain(why=NOT_YET)
    gain = partial(
        CombinedGain,
        metric=loaded.metric.name,
        runs_before=named(before),
        runs_after=named(after),
        paired=paired,
    )
    other = list(dict.fromkeys(_other(loaded, before, after)))
    if other:
        return gain(why=f"the two sides were measured in different surroundings: {'; '.join(other)}")
    found = contrast_of(loaded, before, after) if paired else apart(loaded, before, after)
    if found.delta is None:
        return gain(why=f"a run lacks {loaded.metric.name}")
    against = _contradiction(loaded, found) if paired else None
    notes = _paired_notes(loaded, against, before, after) if paired else _notes(loaded, before, after)
    sides = sides_of(found)
    return gain(
        delta=found.delta,
        throughput_ratio=found.ratio,
        before=sides.utilisation[0],
        after=sides.utilisation[1],
        metric_before=sides.metric[0],
        metric_after=sides.metric[1],
        text=_text(found, sides, found.delta),
        throughput=_throughput(found, sides),
        agrees=None if _lone(loaded, found) is None or not paired else against is None,
        notes=tuple(notes),
    )


def _after_the_trials(loaded: Loaded) -> bool:
    """Whether the baseline was recorded after every trial of what is accepted."""
    runs = loaded.baselines["workload"].runs
    tested = [store.run_number(name) for h in loaded.recorded for name in h.runs]
    return bool(runs) and store.run_number(runs[0]) > max(tested, default=0)


def _with_all_now(loaded: Loaded, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> bool:
    """Whether runs made in turn are without any and with exactly the changes that are accepted now.

    By what the runs record: the checkout's own code may have changed since, and gpudebug.yaml may have got
    the accepted flags.
    """
    wanted, plain = loaded.identities["workload"]["command"], base_identity(loaded, 0)["command"]
    without = {m.record.identity.get("command") for m in before}
    trees = {m.record.identity.get("tree") for m in before}
    if without != {plain} and not in_command(loaded):
        return False
    made = {MeasuredCode(tree, loaded.code.patches).digest for tree in trees if tree}
    return all(
        m.record.identity.get("command") == wanted and made == {m.record.identity.get("tree")} for m in after
    )


def _nothing_accepted_since(
    loaded: Loaded, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]
) -> bool:
    """Whether nothing was accepted, or taken back, since a baseline that was not run in turn was recorded.

    A command or code of the user's that has changed in between is said beside the figure.
    """
    wanted, plain = loaded.identities["workload"], base_identity(loaded, 0)
    then, now = before[0].record.identity, after[0].record
    other = [key for key in ("command", "tree") if now.identity.get(key) != wanted[key]]
    if any(then.get(key) == plain[key] for key in other):
        return False
    # Both times are host.now()'s, in UTC, and compare as text.
    return not other or all(one.when <= now.start for one in (loaded.acceptances.entries or {}).values())


def contrast_of(loaded: Loaded, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> TrialCase:
    """Runs without and with the accepted changes, judged as a trial of all of them would be."""
    changes = tuple(change for step in loaded.stack for change in step.intervention.changes)
    setting = TrialSetting(changes=len(changes), compound=True, work=work_of(before, loaded.config.work))
    setting = with_conduct(setting, Intervention(changes, compound=True), (), before, after)
    return apart(loaded, before, after, setting)


def apart(
    loaded: Loaded,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    setting: TrialSetting | None = None,
) -> TrialCase:
    """Two groups of runs, in the order in which they were made, by what the campaign is judged by."""
    setting = replace(setting or TrialSetting(), order=order_of(before, after, most=HELD))
    devices = loaded.config.criteria.devices
    return compared(loaded.metric, evidence_of(before), evidence_of(after), setting, devices)


def unsettled(loaded: Loaded, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> str | None:
    """Why more runs of both sides are needed; None if these say enough, or can say nothing."""
    return _contradiction(loaded, contrast_of(loaded, before, after))


def _lone(loaded: Loaded, found: TrialCase) -> tuple[int, Estimate] | None:
    """The only accepted hypothesis with what its trial measured; None if that is another figure."""
    if len(loaded.recorded) != 1:
        return None
    number = loaded.recorded[0].number
    verdict = loaded.trials[number].verdict or {}
    delta = verdict.get("delta")
    if delta is None or verdict.get("metric", loaded.metric.name) != found.metric.name:
        return None
    return number, Estimate.model_validate(delta)


def _contradiction(loaded: Loaded, found: TrialCase) -> str | None:
    """That the one accepted change gained something else in its trial; None if both agree."""
    lone = _lone(loaded, found)
    if lone is None or found.delta is None or not contradict(found.metric, lone[1], found.delta):
        return None
    alone, here = (shown(found.metric, each) for each in (lone[1], found.delta))
    return f"hypothesis {lone[0]} gained {alone} in its trial and {here} now: these contradict each other"


def _paired_notes(
    loaded: Loaded,
    against: str | None,
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
) -> Iterator[str]:
    if against is not None:
        more = f" after {counted(len(after), 'run')} a side" if len(after) > BASELINE_RUNS else ""
        yield f"{against}{more}; both sides were run in turn each time, and the newer figure is shown"
    yield from disagreements(loaded, before, after)


def disagreements(
    loaded: Loaded, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]
) -> Iterator[str]:
    """Where the same code ran at another speed in a trial than it does now, and what was otherwise.

    `after` are runs with all that was accepted, as in the trial of the last one; `before` runs without any,
    as in the baseline of the first one's trial.
    """
    accepted = loaded.accepted
    if not accepted:
        return
    for part, number, now, steps in (
        ("trial", accepted[-1].number, after, len(accepted) - 1),
        ("baseline", accepted[0].number, before, 0),
    ):
        verdict = loaded.trials[number].verdict or {}
        names = [r["name"] for r in verdict.get("runs", ()) if r["part"] == part]
        where = f"the trial of hypothesis {number}" + (" as its baseline" if part == "baseline" else "")
        text = repeated(loaded, names, now, base_identity(loaded, steps), where)
        if text is not None:
            yield text


def base_identity(loaded: Loaded, count: int) -> dict[str, str]:
    """What the workload is with the first `count` accepted changes alone, as run.json records it."""
    plain, steps = read_config(loaded.workspace), loaded.stack[:count]
    workload = accepted_changes.effective(plain.workload, steps, plain.allowed)
    patched = sum(step.intervention.patch is not None for step in steps)
    code = MeasuredCode(loaded.code.tree, loaded.code.patches[:patched])
    return identity(loaded.workspace, plain, workload, code.digest)


def repeated(
    loaded: Loaded, names: Sequence[str], now: Sequence[MeasuredRun], base: dict[str, str], where: str
) -> str | None:
    """That runs of one code differ more than by chance; None if they do not, or were of another code."""
    records = [loaded.records.get(name, {}) for name in names]
    if not now or not names or any(r.get("identity") != base for r in records):
        return None
    try:
        then = [stored_run(loaded.workspace, name) for name in names]
    except GpudebugError:
        return None
    found = apart(loaded, then, now)
    if found.delta is None or unchanged(found.metric, found.delta):
        return None
    figures = [numbers.figure(found.metric, value) for value in sides_of(found).metric]
    return (
        f"the same code showed {figures[0]} in {where} ({_names(names)}) and shows {figures[1]} now "
        f"({_names(named(now))}), {shown(found.metric, found.delta)}; {differed(then, now)}"
    )


def differed(then: Sequence[MeasuredRun], now: Sequence[MeasuredRun]) -> str:
    """What was otherwise in the surroundings and around two groups of runs, in words."""
    around = [d for m in then for each in now for d in differences(recorded(m.record), recorded(each.record))]
    found = list(dict.fromkeys([*around, *otherwise(evidence_of(then), evidence_of(now))]))
    if not found:
        return "nothing that runs record was otherwise: others' share, device, clock and packages were alike"
    return f"what was otherwise: {'; '.join(found)}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def shown(metric: Metric, estimate: Estimate) -> str:
    """A gain with its interval, in the campaign's metric."""
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


def _other(loaded: Loaded, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> list[str]:
    """What differs in the surroundings, but for what the accepted changes themselves set."""
    set_ = frozenset(name for step in loaded.stack for name in step.intervention.names)
    now = [replace(recorded(m.record), meant=set_) for m in after]
    return [d for m in before for each in now for d in differences(recorded(m.record), each)]


def _notes(loaded: Loaded, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> list[str]:
    """Of sides that were not run in turn: that, and what has changed beside what was accepted."""
    there = in_command(loaded)
    how = "gpudebug baseline workload runs them in turn"
    if there:
        how = (
            f"nothing runs without the change of hypothesis {', '.join(map(str, there))} any more: "
            "gpudebug.yaml has it"
        )
    elif loaded.code.patches:
        how += ", unless the checkout has an accepted patch itself"
    found = otherwise(evidence_of(before), evidence_of(after))
    load = f" ({'; '.join(found)})" if found else ""
    notes = [f"both sides were measured at different times, not in turn{load}: {how}"]
    then = before[0].record.identity
    if then.get("tree") != loaded.code.tree:
        notes.append("the checkout's own code has changed in between: the combined figure includes that")
    plain = read_config(loaded.workspace)
    if then.get("command") != identity(loaded.workspace, plain, plain.workload, "")["command"]:
        notes.append("the command in gpudebug.yaml has changed in between: the combined figure includes that")
    return notes
