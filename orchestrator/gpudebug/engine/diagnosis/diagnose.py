"""`gpudebug diagnose`: the root causes that a baseline or one run shows, and what would test each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudebug.core.answers.diagnosis import CauseTest, DiagnoseAnswer, DiagnosedCause, KnownCause
from gpudebug.core.campaign.headroom import above_target
from gpudebug.core.catalogue import Catalogue, frameworks
from gpudebug.core.catalogue.settings import text_of
from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.diagnosis.figures import number
from gpudebug.core.diagnosis.model import Diagnosis, DiagnosisFacts, Ranked
from gpudebug.core.diagnosis.rank import diagnose as rank
from gpudebug.core.errors import InterventionError, StoreError, UsageError
from gpudebug.core.evidence.build import EndedRun, RunReadings, build
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.samples.table import looks_like_samples
from gpudebug.core.words import Outcome
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.session import session_of
from gpudebug.engine.diagnosis import layers
from gpudebug.engine.diagnosis.case import DiagnosisCase, case_of, waiting
from gpudebug.engine.diagnosis.differences import from_reference
from gpudebug.engine.diagnosis.order import record_order
from gpudebug.engine.hypotheses.propose import Duplicate
from gpudebug.engine.run import adapters, catalogue
from gpudebug.engine.run.evidence import log_beside, read_log, read_run_samples

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
    """What is diagnosed; `campaign` is None for a single run, which may be `in_campaign` all the same."""

    facts: DiagnosisFacts
    diagnosis: Diagnosis
    causes: Catalogue
    in_campaign: bool
    campaign: _DiagnosedCampaign | None = None


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
        campaign = _DiagnosedCampaign(loaded, case, {h.number: h for h in waiting(loaded)})
        return _answer(_Subject(case.facts, case.diagnosis, case.catalogue, True, campaign))
    found = _of_run(directory, root, run)
    causes = catalogue.load(root)
    return _answer(_Subject(found, rank(causes.causes, found), causes, root is not None))


def _of_run(directory: Path, root: Path | None, run: str) -> DiagnosisFacts:
    """The facts of one run: of this campaign, of another folder, or of samples with their log."""
    path = next((p for p in _places(directory, root, run) if p.exists()), None)
    if (
        path is not None
        and path.is_file()
        and path.name == "samples.csv"
        and (path.parent / "run.json").is_file()
    ):
        path = path.parent
    if path is not None and path.is_dir() and (path / "run.json").is_file():
        return _of_folder(store.RunFolder(path, lambda text: text))
    if path is not None and path.is_file() and looks_like_samples(_head(path)):
        return _of_samples(path)
    what = "is not a run folder or a samples CSV" if path is not None else "is not a run here"
    raise UsageError(f"{run} {what}", next="name a folder of runs/, or the F.csv of gpudebug sample -o F.csv")


def _places(directory: Path, root: Path | None, run: str) -> list[Path]:
    named = (
        [root / "runs" / run] if root is not None and "/" not in run and run not in ("", ".", "..") else []
    )
    return [*named, directory / run]


def _head(path: Path) -> str:
    return store.read_head(path, _HEAD).decode("utf-8", "replace")


def _of_folder(folder: store.RunFolder) -> DiagnosisFacts:
    if not folder.has("evidence.json"):
        raise StoreError(
            "the run was not finished: it has no evidence.json", file=str(folder.path), next="gpudebug next"
        )
    evidence, record = (_record(folder, name) for name in ("evidence.json", "run.json"))
    argv = tuple(str(word) for word in record.get("argv") or ())
    known = frameworks.recognise(argv, adapters.known()) if argv else None
    return facts_of(
        [evidence], [record], argv, framework=known.name if known else None, trace=evidence.get("trace")
    )


def _record(folder: store.RunFolder, name: str) -> dict[str, Any]:
    found = folder.read(name)
    if not isinstance(found, dict):
        raise StoreError("is not a run's record", file=str(folder.path / name), next="name another run")
    return found


def _of_samples(path: Path) -> DiagnosisFacts:
    """Samples beside their log show neither the command nor the inside of the training."""
    samples, log = read_run_samples(path), log_beside(path)
    evidence = build(
        EndedRun(name=path.stem, role="sample", outcome=Outcome.COMPLETED),
        RunReadings(
            samples=samples,
            log=read_log(log or path.with_suffix(".log"), samples, {}, exit_status=None, signal=None),
            probe_reason="a run outside a campaign keeps samples and log only: run `gpudebug sample` in one",
        ),
    )
    return facts_of([evidence.model_dump(mode="json")])


def _answer(subject: _Subject) -> DiagnoseAnswer:
    facts, diagnosis, campaign = subject.facts, subject.diagnosis, subject.campaign
    stand_in = facts.signals.get("device_stand_in")
    shown = [c for c in diagnosis.causes[:_MOST] if c.probability >= _LEAST or c is diagnosis.causes[0]]
    causes = tuple(_cause(ranked, subject) for ranked in shown)
    return DiagnoseAnswer(
        campaign=campaign.loaded.config.campaign if campaign else None,
        runs=facts.runs,
        kind=diagnosis.kind,
        framework=facts.framework,
        gpu_util=number(facts.signals.get("gpu_util")),
        stand_in=stand_in if isinstance(stand_in, bool) else None,
        abstains=diagnosis.abstains,
        gates=tuple(KnownCause(id=g.id, title=g.title, for_=g.speaks_for) for g in diagnosis.gates),
        causes=causes,
        missing=diagnosis.missing,
        facts=dict(facts.signals),
        layers=layers.shown_results(campaign.loaded) if campaign else {},
        difference=from_reference(campaign.loaded, facts) if campaign else None,
        next_command=_next(subject, causes),
    )


def _cause(ranked: Ranked, subject: _Subject) -> DiagnosedCause:
    campaign = subject.campaign
    test = (_waiting(ranked, campaign) or _offered(ranked, campaign)) if campaign else None
    util = number(subject.facts.signals.get("gpu_util"))
    full = above_target(campaign.loaded.campaign if campaign else None, util)
    return DiagnosedCause(
        id=ranked.id,
        title=ranked.title,
        probability=ranked.probability,
        exposed=ranked.exposed,
        ceiling_pp=None if full else ranked.ceiling_pp,
        expected_util=None if full else ranked.expected_util,
        ceiling_ratio=ranked.ceiling_ratio,
        ceiling_steps_per_s=ranked.ceiling_steps_per_s,
        for_=ranked.speaks_for,
        against=ranked.speaks_against,
        hypothesis=test or _general(ranked, subject),
    )


def _waiting(ranked: Ranked, campaign: _DiagnosedCampaign) -> CauseTest | None:
    """The UNTESTED hypothesis that tests the cause best; the first of equals."""
    matches = campaign.case.matches
    fits = {number: matches[number].get(ranked.id, 0.0) for number in campaign.untested}
    best = max(fits, key=lambda number: (fits[number], -number), default=None)
    if best is None or fits[best] < _FITS:
        return None
    scrub, entry = campaign.loaded.workspace.scrub, campaign.untested[best]
    return CauseTest(
        number=best,
        title=scrub(entry.title)[:_TITLE],
        change=scrub(entry.intervention or "") or None,
        cost_s=campaign.case.cost_s,
        command="gpudebug next",
    )


def _offered(ranked: Ranked, campaign: _DiagnosedCampaign) -> CauseTest:
    """What the catalogue would propose for this program, or why all of it is refused."""
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


def _general(ranked: Ranked, subject: _Subject) -> CauseTest:
    """The catalogue's change for the framework, in `propose`'s syntax, or what is to be written."""
    interventions = subject.causes.cause(ranked.id).interventions
    command = _propose(ranked) if subject.in_campaign else None
    names = (subject.facts.framework, "env", "any")
    known = next((interventions[name] for name in names if name in interventions), None)
    if known is None:
        return CauseTest(title=ranked.title, command=command)
    return CauseTest(title=ranked.title, change=text_of(known), instructions=known.code, command=command)


def _propose(ranked: Ranked) -> str:
    return f"gpudebug propose --from-catalogue {ranked.id}"


def _next(subject: _Subject, causes: Sequence[DiagnosedCause]) -> str:
    if not subject.in_campaign:
        return "gpudebug init --command 'YOUR TRAINING COMMAND'"
    likely = [c for c in causes if c.probability >= _LIKELY and not c.hypothesis.refused]
    if not likely or subject.diagnosis.abstains:
        return "gpudebug next"
    return str(likely[0].hypothesis.command)
