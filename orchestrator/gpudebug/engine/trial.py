"""All runs of one trial: change applied, launched, judged until more runs would not help, recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpudebug.core import present, progress
from gpudebug.core.digests import short_digest
from gpudebug.core.errors import GpudebugError, InterruptedRun, InterventionError
from gpudebug.core.intervention import Applied, Intervention
from gpudebug.core.models import Evidence, RunRecord, UsedRun, Verdict
from gpudebug.core.verdict import (
    Setting,
    is_infrastructure,
    judge,
    needs_fresh_baseline,
    needs_more_runs,
    short_window,
)
from gpudebug.core.words import Outcome, Status
from gpudebug.edges import store, templates
from gpudebug.engine import baseline
from gpudebug.engine.bench import (
    Cycle,
    criteria_of,
    job_of,
    open_bench,
    same_devices,
    splice,
    stored_run,
    window_advice,
)
from gpudebug.engine.campaign import Loaded
from gpudebug.engine.measure import Bench, Job, Measured, measure

# Longer than any note of ours; a program's error line may be of any length.
_NOTES = 1000


@dataclass
class _Trial:
    cycle: Cycle
    number: int
    intervention: Intervention
    bench: Bench
    job: Job
    notes: tuple[str, ...]
    before: list[Measured]
    after: list[Measured] = field(default_factory=list)
    spoilt: list[Measured] = field(default_factory=list)


def run_trial(cycle: Cycle, number: int, why: str) -> dict[str, Any]:
    """Test one hypothesis and record its verdict. What can be checked is checked before the first run."""
    trial = _prepare(cycle, number)
    splice(cycle.loaded, lambda d: progress.set_status(d, number, Status.TESTING))
    try:
        verdict = _run_until_decided(trial)
    except GpudebugError:
        splice(cycle.loaded, lambda d: progress.set_status(d, number, Status.UNTESTED))
        raise
    record_result(cycle, number, verdict.model_dump(mode="json"), [m.folder.name for m in _shown(trial)])
    return _answer(trial, verdict, why)


def _shown(trial: _Trial) -> list[Measured]:
    return trial.after or trial.spoilt


def _prepare(cycle: Cycle, number: int) -> _Trial:
    loaded = cycle.loaded
    if number in loaded.problems:
        raise loaded.problems[number]
    intervention = loaded.interventions[number]
    refuse_before_running(loaded, number, intervention)
    workload = loaded.config.workload
    bench = open_bench(cycle, workload)
    job = job_of(cycle, workload, f"h{number}", f"h{number}", loaded.identities["workload"])
    applied = _applied(loaded, number, intervention, job)
    variables = {k for k, v in applied.env.items() if v != job.env.get(k)}
    changed = replace(
        job,
        argv=applied.argv,
        env=applied.env,
        env_names=tuple(sorted({*job.env_names, *variables})),
        hypothesis=number,
        change=intervention.text,
        change_digest=short_digest(intervention.text.encode("utf-8", "surrogateescape")),
    )
    before = [stored_run(loaded.workspace, name) for name in loaded.baselines["workload"].runs]
    trial = _Trial(cycle, number, intervention, bench, changed, applied.notes, before)
    trial.after.extend(_pending(trial))
    return trial


def _applied(loaded: Loaded, number: int, intervention: Intervention, job: Job) -> Applied:
    """The change applied to the command; a change that cannot be is refused with its place in the file."""
    try:
        return intervention.apply(job.argv, dict(job.env))
    except InterventionError as e:
        line = loaded.document.hypothesis(number).line
        raise InterventionError(
            f"hypothesis {number}: {e.message}", file=str(loaded.progress_path), line=line, next=e.next
        ) from None


def refuse_before_running(loaded: Loaded, number: int | None, intervention: Intervention) -> None:
    """Refuse, before device time is spent, what the gates would refuse after it."""
    said = f"hypothesis {number}" if number is not None else "this hypothesis"
    where = str(loaded.progress_path)
    line = None
    if number is not None:
        line = loaded.document.hypothesis(number).line
    locked = intervention.locked_by(loaded.config.locked)
    if locked:
        raise InterventionError(
            f"{said} changes {', '.join(locked)}, which gpudebug.yaml locks",
            file=where,
            line=line,
            next="change something else, or take it out of `locked`",
        )
    if intervention.size > 1 and not intervention.compound:
        raise InterventionError(
            f"{said} changes {intervention.size} things at once, so its result would name no cause",
            file=where,
            line=line,
            next="propose one change each, or add --compound to say that it is meant",
        )


def _pending(trial: _Trial) -> list[Measured]:
    """Sealed runs of this very trial whose judgement was cut off: they count, and are not run again."""
    loaded = trial.cycle.loaded
    listed = {name for h in loaded.document.hypotheses for name in h.runs}
    kept = []
    for name, record in loaded.records.items():
        folder = loaded.workspace.run(name)
        if (
            record.get("role") == f"h{trial.number}"
            and record.get("campaign") == loaded.config.campaign
            and record.get("change_digest") == trial.job.change_digest
            and record.get("identity") == dict(trial.job.identity)
            and name not in listed
            and folder.sealed
            and not folder.has("verdict.json")
        ):
            measured = stored_run(loaded.workspace, name)
            if not is_infrastructure(measured.evidence):
                kept.append(measured)
    return kept


def _run_until_decided(trial: _Trial) -> Verdict:
    criteria = criteria_of(trial.cycle.loaded.config)
    while True:
        measured = measure(trial.bench, trial.job)
        if _by_the_user(measured):
            trial.bench.workspace.seal(measured.folder)
            raise InterruptedRun(f"run {measured.folder.name} was interrupted", next="gpudebug next")
        spoilt = is_infrastructure(measured.evidence)
        if spoilt and not trial.spoilt:
            trial.spoilt.append(measured)
            trial.bench.workspace.seal(measured.folder)
            continue
        trial.after.append(measured)
        verdict = judge_trial(trial)
        more = needs_more_runs(verdict, criteria, _evidence(trial.before), _evidence(trial.after))
        if not more:
            measured.folder.write("verdict.json", verdict)
        trial.bench.workspace.seal(measured.folder)
        if not more:
            return verdict
        if needs_fresh_baseline(verdict, criteria, _evidence(trial.after)):
            trial.before.append(baseline.run_once(trial.cycle, trial.bench, "workload", trial.number))


def _by_the_user(m: Measured) -> bool:
    """Whether Ctrl-C ended the run, and not the loss of the warden, which is a matter of the machinery."""
    return m.record.outcome is Outcome.INTERRUPTED and (m.record.reason or "").startswith("interrupted")


def _evidence(runs: list[Measured]) -> list[Evidence]:
    return [m.evidence for m in runs]


def judge_trial(trial: _Trial) -> Verdict:
    config = trial.cycle.loaded.config
    criteria = criteria_of(config)
    before, after = _evidence(trial.before), _evidence(trial.after)
    verdict = judge(
        trial.number,
        criteria,
        before,
        after,
        Setting(
            changes=trial.intervention.size,
            compound=trial.intervention.compound,
            differences=tuple(differences(trial.before[0].record, trial.after[-1].record)),
            window_advice=_advice(trial) if short_window(criteria, before, after) else None,
        ),
    )
    return verdict.model_copy(
        update={
            "notes": (*verdict.notes, *trial.notes),
            "criteria": config.criteria.model_dump(mode="json"),
            "protocol": config.protocol.model_dump(mode="json"),
            "runs": tuple(
                UsedRun(
                    name=m.folder.name,
                    part=part,
                    evidence_sha256=store.file_digest(m.folder.path / "evidence.json"),
                )
                for part, runs in (("baseline", trial.before), ("trial", trial.after))
                for m in runs
            ),
        }
    )


def _advice(trial: _Trial) -> str | None:
    protocol = trial.cycle.loaded.config.protocol
    needed = protocol.min_window / min(protocol.baseline_runs, protocol.max_runs)
    return window_advice(trial.job.argv, trial.after[-1], needed)


def differences(before: RunRecord, after: RunRecord) -> list[str]:
    """What of the surroundings differs between a baseline's run and a trial's, named.

    What an imported baseline does not know is not compared.
    """
    if not before.devices:
        return []
    found = [
        f"{name} {getattr(before, name)} and {getattr(after, name)}"
        for name in ("interpreter", "host", "cpu_quota")
        if getattr(before, name) != getattr(after, name)
    ]
    packages = sorted(
        name
        for name in before.packages.keys() | after.packages.keys()
        if before.packages.get(name) != after.packages.get(name)
    )
    if packages:
        found.append(f"packages {', '.join(packages[:5])}{' and more' if len(packages) > 5 else ''}")
    if not same_devices(before.devices, after.devices):
        found.append(f"device {_uuids(before)} and {_uuids(after)}")
    elif [d.driver for d in before.devices] != [d.driver for d in after.devices]:
        found.append("driver")
    return found


def _uuids(record: RunRecord) -> str:
    return ", ".join(d.uuid for d in record.devices) or "none"


def record_result(cycle: Cycle, number: int, verdict: Mapping[str, Any], runs: list[str]) -> None:
    """Splice a verdict into the progress file. A run that stands there already changes nothing."""
    scrub = cycle.loaded.workspace.scrub
    fields = {
        key.replace(" ", "_"): progress.harmless(scrub(text), limit=_NOTES)
        for key, text in present.result_fields(verdict).items()
    }
    notes = progress.harmless(scrub(present.result_notes(verdict)), limit=_NOTES)
    block = templates.render("result.md.j2", **fields, notes=notes, runs=runs)
    status = Status(verdict["status"])
    splice(cycle.loaded, lambda d: progress.set_result(d, number, status, block))


def _answer(trial: _Trial, verdict: Verdict, why: str) -> dict[str, Any]:
    data = verdict.model_dump(mode="json")
    title = next(h.title for h in trial.cycle.loaded.document.hypotheses if h.number == trial.number)
    return {
        "action": "tested",
        "campaign": trial.cycle.loaded.config.campaign,
        "hypothesis": trial.number,
        "title": title,
        "verdict": data["status"],
        "why": data["why"],
        "decided": why,
        "gates": data["gates"],
        "figures": present.result_fields(data),
        "notes": data["notes"],
        "brief": None,
        "next_command": "gpudebug next",
        "files": [str(m.folder.path) for m in trial.after] + [str(trial.cycle.loaded.progress_path)],
    }
