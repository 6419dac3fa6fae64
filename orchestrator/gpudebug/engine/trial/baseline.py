"""All runs of one baseline, and its entry in the progress file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpudebug.core import progress
from gpudebug.core.answers.next import RecordedBaseline
from gpudebug.core.campaign.decide import Campaign
from gpudebug.core.campaign.headroom import no_room
from gpudebug.core.config import Config
from gpudebug.core.errors import GitError
from gpudebug.core.evidence import program
from gpudebug.core.evidence.devices import mean_hides
from gpudebug.core.records import Evidence
from gpudebug.core.statistics import phases
from gpudebug.core.statistics.across import across, counted_as_busy
from gpudebug.core.statistics.level import LONG_S
from gpudebug.core.statistics.units import judged_by, rate_for
from gpudebug.core.verdict import machine, turns
from gpudebug.core.verdict.gates.delta import missing_in
from gpudebug.core.verdict.gates.figures import judged_mean, judged_text, mean, utilisations
from gpudebug.core.verdict.gates.outcome import NO_LOSS, infers, worst_trend
from gpudebug.core.verdict.run_plan import losses_awaited
from gpudebug.core.verdict.turns import runs_of
from gpudebug.core.verdict.unlike import unlike
from gpudebug.core.verdict.work import choose, shown
from gpudebug.core.words import Trend
from gpudebug.edges import templates
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.files import workload_of
from gpudebug.engine.campaign.progress_edit import splice
from gpudebug.engine.campaign.worktrees import remember
from gpudebug.engine.run.around import surroundings_of
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun, RunChange, replanned
from gpudebug.engine.run.planned import plan_after
from gpudebug.engine.run.prepare import (
    Cycle,
    fresh_folder_advice,
    job_of,
    open_bench,
    remarks,
    window_advice,
    window_of,
)
from gpudebug.engine.trial.baseline_entry import (
    entry_fields,
    learning_of,
    metric_text,
    throughput_text,
    trend_of,
    utilisation_text,
    work_of,
    work_text,
)
from gpudebug.engine.trial.baseline_notes import disturbed, ended, left_out
from gpudebug.engine.trial.original import MOST_UNLIKE, ROLE, Originals, originals, recording_of, warm
from gpudebug.engine.trial.reuse import newest, reusable, set_aside_in
from gpudebug.engine.trial.sides import of_runs
from gpudebug.engine.trial.unmodified import BaselineFailed, run_once


def record(cycle: Cycle, role: str, why: str) -> RecordedBaseline:
    """Record a baseline: two runs, one of the reference, sealed ones of a cut-off recording included.

    A first run that met a cold page cache, or filled a cache of the program's, is left out and made up for:
    later runs find it warm. Where changes are accepted, the workload without them is run in turn: what they
    are worth together is measured now.
    """
    loaded = cycle.loaded
    workload = workload_of(loaded.setup.config, role)
    assert workload is not None
    try:
        bench = open_bench(cycle, workload)
        remembered = remember(loaded.setup, loaded.code)
    except GitError:
        # A base that was lost or replaced is what the workload would run at.
        remembered = remember(loaded.setup, loaded.code)
        bench = open_bench(cycle, workload)
    paired = recording_of(loaded, role)
    made = _sealed_already(cycle, role, bench, paired)
    recording = _SidesInTurn(cycle, bench, role, made, paired, originals(cycle, bench, paired))
    recording.complete(runs_of(role))
    runs = recording.runs
    without = recording.left_out()
    shown = (*disturbed(runs), *ended(loaded.setup.config, runs), *recording.worth())
    named = [f"run {name} is left out: {why}" for name, why in without]
    notes = (*remembered, *bench.notes, *recording.announced[-1:], *named, *shown)
    learning = learning_of(loaded.setup.config, runs)
    fields = entry_fields(role, runs, loaded.setup.metric, loaded.setup.config.work, learning)
    if without:
        fields["left_out"] = "; ".join(f"run {name}: {reason}" for name, reason in without)
    entry = templates.render("baseline.md.j2", **fields)
    splice(loaded.setup, lambda document: progress.set_baseline(document, role, entry))
    return answer(loaded.setup, loaded.campaign, role, why, runs, notes)


@dataclass
class _SidesInTurn:
    """The runs of one recording; `beside` are those without the accepted changes, None where nothing is.

    `others` did other work than the first one, `announced` is what was said before runs were made.
    """

    cycle: Cycle
    bench: Bench
    role: str
    made: list[MeasuredRun]
    paired: str | None
    beside: Originals | None
    others: list[tuple[MeasuredRun, str]] = field(default_factory=list)
    announced: list[str] = field(default_factory=list)

    @property
    def runs(self) -> list[MeasuredRun]:
        return warm(self.made)

    def complete(self, wanted: int) -> None:
        """Run until each side has as many that count."""
        while len(self.runs) < wanted or (self.beside is not None and self.beside.lacks(wanted)):
            if len(self.announced) < 2:
                self._announce()
            if self.beside is not None and self.beside.turn(len(self.made)):
                self.beside.run()
            else:
                self._run()

    def left_out(self) -> list[tuple[str, str]]:
        """Return the runs of this recording that count for nothing, with why."""
        loaded, entry = self.cycle.loaded, self.cycle.loaded.entries.document.baseline(self.role)
        cold = [left_out(self.made)] if self.runs is not self.made else []
        roles = (f"baseline-{self.role}", *((ROLE,) if self.beside is not None else ()))
        earlier = set_aside_in(
            loaded.setup.config, loaded.history.records, roles, newest(entry.runs if entry else ())
        )
        others = [(m.folder.name, why) for m, why in self.others]
        others += self.beside.others if self.beside is not None else ()
        found = sorted({**earlier, **dict(others), **dict(cold)}.items())
        return [(name, loaded.setup.workspace.scrub(why)) for name, why in found]

    def worth(self) -> list[str]:
        """Return what is to be said of the changes' worth: that it is not known."""
        beside, lines = self.beside, list[str]()
        if beside is not None and beside.ended is not None:
            lines.append(f"what the accepted changes are worth together is not known: {beside.ended}")
        return lines

    def _announce(self) -> None:
        if len(self.made) == 1:
            # Before more runs are spent on what no verdict can rest on.
            for line in of_first(self.cycle, self.role, self.made):
                self._say(line)
        before = self.cycle.loaded.history.baselines[self.role].records
        recorded = [s for r in before if isinstance(s := r.get("duration_s"), float)]
        known = [m.record.duration_s for m in self.made if m.record.duration_s] or recorded
        text = turns.of_baseline(runs_of(self.role), known, made=len(self.made))
        if self.beside is not None:
            text += ", and as many without the accepted changes, in turn"
        self.announced.append(text)
        self._say(text)

    def _say(self, text: str) -> None:
        remarks(self.cycle.report)(f"baseline {self.role}: {text}")

    def _run(self) -> None:
        cycle, made = self.cycle, self.made
        job = replace(_job(cycle, self.role, made), paired=self.paired)
        measured = run_once(cycle.place, self.bench, self.role, job, made)
        reason = unlike(measured.evidence, [m.evidence for m in made])
        if reason is not None:
            self.others.append((measured, reason))
            _refuse_others(cycle, self.role, self.others)
            return
        made.append(measured)


def of_first(cycle: Cycle, role: str, made: Sequence[MeasuredRun]) -> list[str]:
    """Return what keeps a verdict from resting on runs like the first one, and what others will wait for."""
    config = cycle.setup.config
    lines = [*_of_room(cycle.setup, cycle.loaded.campaign, role, made), *_without_learning(config, made)]
    awaited = losses_awaited(made[0].evidence) if config.criteria.loss != "any" else None
    plan = plan_after(config, made)
    return [*lines, awaited] if awaited and plan is not None and plan.learns else lines


def _refuse_others(cycle: Cycle, role: str, others: Sequence[tuple[MeasuredRun, str]]) -> None:
    """BaselineFailed once a second run did other work than the first: a third would, too."""
    if len(others) < MOST_UNLIKE:
        return
    workload = workload_of(cycle.setup.config, role)
    assert workload is not None
    measured, why = others[-1]
    raise BaselineFailed(
        f"runs of the {role} are not alike: run {measured.folder.name} is left out: {why}",
        file=str(measured.folder.log),
        next=fresh_folder_advice(workload.argv()),
    )


def job_beside(cycle: Cycle, hypothesis: int, claim: str | None) -> PreparedRun:
    """Return the unmodified workload beside the trial of a hypothesis."""
    return replace(_job(cycle, "workload"), change=RunChange(hypothesis, claim=claim))


def _job(cycle: Cycle, role: str, made: Sequence[MeasuredRun] = ()) -> PreparedRun:
    """The unmodified workload; `made` are runs of the same recording, the first of which sets its length."""
    workload = workload_of(cycle.setup.config, role)
    assert workload is not None
    part = f"baseline-{role}"
    job = job_of(cycle, workload, part, part, cycle.loaded.history.identities[role])
    return replanned(job, plan_after(cycle.setup.config, made)) if made else job


def _sealed_already(cycle: Cycle, role: str, bench: Bench, paired: str | None) -> list[MeasuredRun]:
    """Completed runs of this very recording that no entry lists: it was cut off."""
    loaded = cycle.loaded
    entry = loaded.entries.document.baseline(role)
    found = reusable(
        loaded.setup,
        loaded.history.records,
        f"baseline-{role}",
        newer_than=newest(entry.runs if entry else ()),
        surroundings=surroundings_of(bench, _job(cycle, role)),
        identity=loaded.history.identities[role],
    )
    return [m for m in found if m.record.paired == paired]


def _without_work(runs: Sequence[Evidence], configured: str) -> list[str]:
    """Return what is wrong with counters of work, and that a unit which is set is not counted."""
    notes = [note for e in runs for note in e.work_notes]
    chosen = choose(runs, configured)
    if chosen is not None and not chosen.source:
        counted = ", ".join(dict.fromkeys(one.unit for e in runs for one in e.work)) or "nothing"
        notes.append(f"work: {configured} is set, and not all runs count it; they count {counted}")
    return list(dict.fromkeys(notes))


UNJUDGED = (
    "learning cannot be judged: print a loss or a reward, write TensorBoard, W&B, CSV or JSONL below "
    "{run_dir}, name it in criteria.learning, or set criteria: {loss: any}"
)


def _learning_text(config: Config, runs: Sequence[Evidence]) -> str | None:
    """Return what learning is judged by; None if it is not judged, or cannot be."""
    criteria = config.criteria
    return judged_by([shown(e) for e in runs], criteria.learning, criteria.loss)


def advice(setup: Setup, campaign: Campaign, role: str, runs: Sequence[MeasuredRun]) -> list[str]:
    """Return what would make this baseline's evidence sufficient, one line each."""
    workload = workload_of(setup.config, role)
    assert workload is not None
    lines = _without_work([m.evidence for m in runs], setup.config.work)
    lines += _of_room(setup, campaign, role, runs)
    metric = setup.metric
    hides = mean_hides([m.evidence for m in runs], setup.config.criteria.devices)
    lines += [hides] if hides is not None and metric.points else []
    without = next((m.evidence for m in runs if not metric.points and metric.value(m.evidence) is None), None)
    if without is not None and (without.window is not None or metric.latency):
        lines.append(f"run {without.run} did not yield {metric.name}: {metric.absent(without)}")
    lines += _without_learning(setup.config, runs)
    lines += missing_in([m.evidence for m in runs], setup.config.criteria.also)
    lines += judged_text(setup.config.criteria.devices, [m.evidence for m in runs])
    shortest = min(runs, key=window_of)
    if window_of(shortest) < LONG_S and not metric.latency:
        longer = window_advice(workload.argv(), runs, LONG_S)
        lines.append(
            f"run {shortest.folder.name} has {window_of(shortest):.1f} s of steady window: one of less than "
            f"{LONG_S:g} s says less, and a trial may take twice as many; {longer}"
        )
    return lines


_BROKEN = {
    Trend.NAN: "a trial whose loss is NAN is REJECTED; mend the training first",
    Trend.DIVERGING: "a trial has to be no higher at equal steps; if learning does not lower this figure, "
    "criteria.learning in gpudebug.yaml names another",
}


def _without_learning(config: Config, runs: Sequence[MeasuredRun]) -> list[str]:
    """Return why learning cannot be judged by these runs, and what would change that; nothing if it can."""
    evidence = [m.evidence for m in runs]
    missing = next((e.loss.advice for e in evidence if e.loss.advice), None)
    if config.criteria.loss == "any" or learning_of(config, runs):
        return []
    broken = worst_trend(evidence)
    if broken in (Trend.NAN, Trend.DIVERGING):
        return [f"the loss is {broken} without any change: {_BROKEN[broken]}"]
    if missing is None:
        return []
    return [NO_LOSS] if infers(evidence) else [missing, UNJUDGED]


def _of_room(setup: Setup, campaign: Campaign, role: str, runs: Sequence[MeasuredRun]) -> list[str]:
    return without_room(setup, campaign, [m.evidence for m in runs]) if role == "workload" else []


def without_room(setup: Setup, campaign: Campaign, runs: Sequence[Evidence]) -> list[str]:
    """Return why the metric cannot show a success above a baseline of these runs: nothing if it can."""
    success = float(setup.config.criteria.success)
    crowded = machine.no_room(runs, mean(utilisations(runs)), success) if setup.metric.points else None
    if crowded is not None:
        unit = choose(runs, setup.config.work)
        rate_of = rate_for(unit.unit if unit else None)
        crowded += f"; free the cores, or set metric: {rate_of} in gpudebug.yaml"
    found = crowded or no_room_for(setup.config, campaign, runs)
    return [found] if found is not None else []


def no_room_for(config: Config, campaign: Campaign, runs: Sequence[Evidence]) -> str | None:
    """Why the metric cannot show a success above a baseline of these runs on any host; None if it can."""
    figure = judged_mean(config.criteria.devices, runs)
    unit = choose(runs, config.work)
    name = unit.unit if unit is not None and unit.source else None
    success = float(config.criteria.success)
    return no_room(campaign, success, figure, name, counted_as_busy(runs))


def answer(
    setup: Setup,
    campaign: Campaign,
    role: str,
    why: str,
    runs: Sequence[MeasuredRun],
    notes: Sequence[str] = (),
) -> RecordedBaseline:
    """Return `next`'s answer for a baseline that was recorded."""
    evidence = [m.evidence for m in runs]
    return RecordedBaseline(
        campaign=setup.config.campaign,
        role=role,
        gpu_util=mean([e.utilisation for e in evidence if e.utilisation is not None]),
        gpu_util_text=utilisation_text(evidence),
        metric=setup.metric.name,
        metric_text=metric_text(setup.metric, evidence),
        steps_per_s=mean([e.steps_per_s for e in evidence if e.steps_per_s]),
        throughput_text=throughput_text(evidence),
        work=work_of(evidence, setup.config.work),
        work_text=work_text(evidence, setup.config.work),
        loss=trend_of(evidence, learning_of(setup.config, runs)),
        learning=_learning_text(setup.config, evidence),
        probe=(of_runs(role, evidence),),
        advice=tuple(advice(setup, campaign, role, runs)),
        across=across(*(e.devices for e in evidence)),
        phases=phases.figures([e.phases for e in evidence], evidence[0].step_unit if evidence else None),
        notes=(*(program.notes(evidence[-1].program) if evidence else ()), *notes),
        why=why,
        files=(*(str(m.folder.path) for m in runs), str(setup.progress_path)),
    )
