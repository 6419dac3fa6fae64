"""`gpudebug diagnose`: the root causes that a baseline or one run shows, and what would test each."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpudebug.core.answers.diagnosis import CauseTest, DiagnoseAnswer, DiagnosedCause
from gpudebug.core.answers.log import FailureLines
from gpudebug.core.catalogue import Catalogue
from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.diagnosis.look_problem import is_blind, problem_of
from gpudebug.core.diagnosis.model import Diagnosis, DiagnosisFacts, Ranked
from gpudebug.core.diagnosis.odds import number
from gpudebug.core.diagnosis.rank import diagnose as rank
from gpudebug.core.errors import InterventionError, StoreError, UsageError
from gpudebug.core.evidence.build import build
from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.records import Evidence, Failure, RunRecord
from gpudebug.core.samples.table import looks_like_samples
from gpudebug.core.words import Outcome, ended_as_planned
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import stored_record
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.session import session_of
from gpudebug.engine.diagnosis import layers
from gpudebug.engine.diagnosis.case import DiagnosisCase, case_of, waiting
from gpudebug.engine.diagnosis.differences import from_reference
from gpudebug.engine.diagnosis.order import record_order
from gpudebug.engine.diagnosis.room import is_full
from gpudebug.engine.diagnosis.single import (
    SingleRun,
    diagnosed,
    known_causes,
    of_folder,
    single_run,
)
from gpudebug.engine.diagnosis.why import ROLE
from gpudebug.engine.hypotheses.propose import Duplicate
from gpudebug.engine.run import catalogue
from gpudebug.engine.run.devices import failure_in
from gpudebug.engine.run.readings import log_beside, read_log, read_run_samples
from gpudebug.engine.run.seen import seen_of

_MOST = 10
_LEAST = 0.01
_LIKELY = 0.05
"""A cause that is less probable does not justify a trial."""
_HEAD = 4096
_TITLE = 200
_FITS = 0.2
"""A hypothesis that tests a cause less well is about something else."""


@dataclass(frozen=True)
class _DiagnosedCampaign:
    """A campaign that is diagnosed. `untested` are the hypotheses that wait, by number."""

    loaded: Loaded
    case: DiagnosisCase
    untested: Mapping[int, HypothesisEntry]


@dataclass(frozen=True)
class _Subject:
    """What is diagnosed: a campaign's baseline, or a `single` run, which may be `in_campaign` too.

    `look` names the run if a campaign can begin with it.
    """

    facts: DiagnosisFacts
    diagnosis: Diagnosis
    causes: Catalogue
    in_campaign: bool
    campaign: _DiagnosedCampaign | None = None
    single: SingleRun | None = None
    look: str | None = None


def diagnose(directory: Path, run: str | None = None) -> DiagnoseAnswer:
    """Diagnose the campaign's workload, or a RUN: a run's name, its folder or its samples.

    Of the campaign the order of what waits is recorded for `status`. UsageError if RUN is none of these,
    StoreError if the run was not finished.
    """
    root = store.find_root(directory)
    if run is None:
        loaded = load(directory, session_of())
        case = case_of(loaded)
        record_order(loaded, "gpudebug diagnose")
        campaign = _DiagnosedCampaign(loaded, case, {h.number: h for h in waiting(loaded.entries.document)})
        return _answer(_Subject(case.facts, case.diagnosis, case.catalogue, True, campaign))
    found = _of_run(directory, root, run)
    causes = catalogue.load(root)
    full = is_full(number(found.facts.signals.get("gpu_util")), [found.evidence])
    diagnosis = _of_what_ran(rank(causes.causes, found.facts, full=full), found)
    look = _look(directory, run) if root is None else None
    return _answer(_Subject(found.facts, diagnosis, causes, root is not None, single=found, look=look))


def _of_what_ran(diagnosis: Diagnosis, single: SingleRun) -> Diagnosis:
    """The diagnosis; of a run that failed before its training was seen no cause, as `why` names none."""
    if single.record is None:
        return diagnosis
    try:
        record, evidence = RunRecord.model_validate(single.record), Evidence.model_validate(single.evidence)
    except ValueError:
        return diagnosis
    problem = problem_of(record, evidence)
    if problem is None or evidence.outcome is not Outcome.CRASHED or not is_blind(evidence):
        return diagnosis
    return replace(diagnosis, causes=(), abstains=problem.text)


def _look(directory: Path, run: str) -> str | None:
    """RUN as `init --from` takes it, if `gpudebug why` made it of a command that ended as planned."""
    place = place_of(directory, None, run)
    record = stored_record(store.RunFolder(place, lambda text: text), "run.json") if place else {}
    if place is None or record.get("role") != ROLE or record.get("attached") is not None:
        return None
    if record.get("outcome") and not ended_as_planned(record["outcome"]):
        return None
    return os.path.relpath(place, directory)


def _of_run(directory: Path, root: Path | None, run: str) -> SingleRun:
    """One run: of this campaign, of another folder, or of samples with their log."""
    path = place_of(directory, root, run)
    if path is not None and path.is_dir() and (path / "run.json").is_file():
        return _of_folder(store.RunFolder(path, lambda text: text), root)
    if path is not None and path.is_file() and looks_like_samples(_head(path)):
        return _of_samples(path, root)
    what = "is not a run folder or a samples CSV" if path is not None else "is not a run here"
    raise UsageError(f"{run} {what}", next="name a folder of runs/, or the F.csv of gpudebug sample -o F.csv")


def place_of(directory: Path, root: Path | None, run: str) -> Path | None:
    """Return where RUN is: a run's name in the campaign at `root`, or a path; of the samples in a run folder
    that folder. None if there is nothing."""
    path = next((p for p in _places(directory, root, run) if p.exists()), None)
    inside = path is not None and path.name == "samples.csv" and (path.parent / "run.json").is_file()
    return path.parent if path is not None and inside else path


def _places(directory: Path, root: Path | None, run: str) -> list[Path]:
    named = (
        [root / "runs" / run] if root is not None and "/" not in run and run not in ("", ".", "..") else []
    )
    return [*named, directory / run]


def _head(path: Path) -> str:
    return store.read_head(path, _HEAD, follow=True).decode("utf-8", "replace")


def _of_folder(folder: store.RunFolder, root: Path | None) -> SingleRun:
    if not folder.has("evidence.json"):
        raise StoreError(
            "the run was not finished: it has no evidence.json", file=str(folder.path), next="gpudebug next"
        )
    return of_folder(folder, root)


def _of_samples(path: Path, root: Path | None) -> SingleRun:
    """Return what was seen of the run of these samples; else what they and the log beside them show."""
    seen = seen_of(path)
    if seen is not None:
        return single_run(seen.evidence.model_dump(mode="json"), seen.record, root)
    samples, log = read_run_samples(path), log_beside(path)
    evidence = build(
        EndedRun(name=path.stem, role="sample", outcome=Outcome.COMPLETED),
        RunReadings(
            samples=samples,
            log=read_log(log or path.with_suffix(".log"), samples, {}, exit_status=None, signal=None),
            probe_reason=(
                "only samples and log are left of this run: what else was seen is kept on the host that made "
                "it, of the last runs, and not of a file that was altered"
            ),
        ),
    )
    found = evidence.model_dump(mode="json")
    return SingleRun(facts_of([found]), found, root=root)


def _answer(subject: _Subject) -> DiagnoseAnswer:
    facts, diagnosis, campaign = subject.facts, subject.diagnosis, subject.campaign
    stand_in = facts.signals.get("device_stand_in")
    # By cost many unlikely ones may stand before a likely one.
    shown = [c for c in diagnosis.causes if c.probability >= _LEAST or c is diagnosis.causes[0]]
    causes = tuple(_cause(ranked, subject) for ranked in shown[:_MOST])
    return DiagnoseAnswer(
        campaign=campaign.loaded.setup.config.campaign if campaign else None,
        runs=facts.runs,
        kind=diagnosis.kind,
        framework=facts.framework,
        gpu_util=number(facts.signals.get("gpu_util")),
        stand_in=stand_in if isinstance(stand_in, bool) else None,
        abstains=diagnosis.abstains,
        gates=known_causes(diagnosis),
        causes=causes,
        missing=diagnosis.missing,
        facts=dict(facts.signals),
        layers=layers.shown_results(campaign.loaded.setup, campaign.loaded.history) if campaign else {},
        difference=from_reference(campaign.loaded.setup, facts) if campaign else None,
        next_command=_next(subject, causes),
        failure=_failure(subject.single),
        ranks=facts.ranks,
        no_help=diagnosis.no_help,
    )


def _failure(single: SingleRun | None) -> FailureLines | None:
    found = single.evidence.get("failure") if single else None
    return failure_in(Failure.model_validate(found)) if found else None


def _cause(ranked: Ranked, subject: _Subject) -> DiagnosedCause:
    campaign = subject.campaign
    if campaign is not None:
        return diagnosed(ranked, _waiting(ranked, campaign) or _offered(ranked, campaign))
    assert subject.single is not None
    test = subject.single.test_of(ranked, subject.causes.cause(ranked.id))
    return diagnosed(ranked, test)


def _waiting(ranked: Ranked, campaign: _DiagnosedCampaign) -> CauseTest | None:
    """Return the UNTESTED hypothesis that tests the cause best; the first of equals."""
    matches = campaign.case.matches
    fits = {number: matches[number].get(ranked.id, 0.0) for number in campaign.untested}
    best = max(fits, key=lambda number: (fits[number], -number), default=None)
    if best is None or fits[best] < _FITS:
        return None
    scrub, entry = campaign.loaded.setup.workspace.scrub, campaign.untested[best]
    return CauseTest(
        number=best,
        title=campaign.loaded.setup.workspace.scrub_prose(entry.title)[:_TITLE],
        change=scrub(entry.intervention or "") or None,
        cost_s=campaign.case.cost_s,
        command="gpudebug next",
    )


def _offered(ranked: Ranked, campaign: _DiagnosedCampaign) -> CauseTest:
    """Return what the catalogue would propose for this program, or why all of it is refused."""
    from gpudebug.engine.diagnosis.from_catalogue import proposal

    case = campaign.case
    try:
        found = proposal(campaign.loaded, case, case.catalogue.cause(ranked.id), ranked)
    except (Duplicate, InterventionError) as e:
        return CauseTest(title=ranked.title, refused=e.message, command=e.next)
    change = found.change.text if found.change is not None and not found.change.needs_code else None
    return CauseTest(
        title=found.title,
        change=change,
        instructions=None if change else found.method,
        cost_s=case.cost_s,
        command=_propose(ranked),
    )


def _propose(ranked: Ranked) -> str:
    return f"gpudebug propose --from-catalogue {ranked.id}"


def _next(subject: _Subject, causes: Sequence[DiagnosedCause]) -> str:
    if subject.look is not None:
        return f"gpudebug init --from {shlex.quote(subject.look)}"
    if not subject.in_campaign:
        return "gpudebug init --command 'YOUR TRAINING COMMAND'"
    likely = [c for c in causes if c.probability >= _LIKELY and not c.hypothesis.refused]
    likely = [] if subject.diagnosis.abstains else likely
    return str(likely[0].hypothesis.command) if likely else "gpudebug next"
