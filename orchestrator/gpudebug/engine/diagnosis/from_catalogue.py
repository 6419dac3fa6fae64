"""Hypotheses that the catalogue proposes: what tests a root cause in this program, in its own words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpudebug.core.answers.hypotheses import ProposeAnswer
from gpudebug.core.catalogue import Cause
from gpudebug.core.catalogue.offers import KnownCommand, Offers, interventions_for
from gpudebug.core.catalogue.signals import described, tried
from gpudebug.core.change import intervention as interventions
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.diagnosis.code_lines import calls_of, cores_for
from gpudebug.core.diagnosis.model import Ranked
from gpudebug.core.errors import GpudebugError, InterventionError
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.words import Status
from gpudebug.edges.devices.cpu import available_cores
from gpudebug.engine.campaign.campaign import Baselines, Entries, Loaded, Setup
from gpudebug.engine.campaign.files import training_environment
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.case import DiagnosisCase, case_of
from gpudebug.engine.hypotheses.propose import Duplicate, Proposal, add, refuse
from gpudebug.engine.run import adapters

_CLEARLY = 0.5
"""How well a hypothesis has to test a cause that no other is wanted for."""
_LEAST = 0.005
_CODE = Intervention((interventions.SingleChange("code"),))


def propose_from_catalogue(
    directory: Path,
    id: str,
    *,
    title: str = "",
    description: str = "",
    method: str = "",
    change: Intervention | None = None,
    session: str | None = None,
) -> ProposeAnswer:
    """`propose --from-catalogue ID`: append the hypothesis that tests this cause; what is given goes first.

    Raises UsageError, naming the nearest one, for a cause that is not in the catalogue; Duplicate if
    all that would test it was tested before, InterventionError if it is locked.
    """
    loaded = load(directory, session)
    case = case_of(loaded)
    cause = case.catalogue.cause(id)
    ranked = next((r for r in case.diagnosis.causes if r.id == id), None)
    own = change is not None
    if change is None:
        made = proposal(loaded, case, cause, ranked)
    else:
        written = next(
            (
                o.instructions
                for o in _offers(loaded.setup, loaded.history.baselines, case, cause).offers
                if o.instructions
            ),
            None,
        )
        made = _worded(cause, ranked, change, written if change.needs_code else None)
    made = made._replace(
        title=title or made.title,
        description=description or made.description,
        method=method or made.method,
    )

    return add(loaded, made) if own else add_once(loaded, made)


def add_once(loaded: Loaded, proposal: Proposal) -> ProposeAnswer:
    """As `propose.add` for what `proposal` made, refused if the same code was proposed meanwhile."""

    def recheck(document: ProgressFile) -> None:
        if proposal.change is not None and proposal.cause is not None:
            _refuse_written(document, proposal.cause, proposal.change)

    return add(loaded, proposal, recheck)


def proposal(
    loaded: Loaded, case: DiagnosisCase, cause: Cause, ranked: Ranked | None, *, mechanical: bool = False
) -> Proposal:
    """Return the first way to test the cause that may be proposed, a flag before a variable before code.

    Raises the refusal of the first way where each is refused: Duplicate, InterventionError. With
    `mechanical` only what gpudebug can change by itself counts.
    """
    found = _offers(loaded.setup, loaded.history.baselines, case, cause)
    refused: GpudebugError | None = None
    for offer in found.offers:
        if offer.change is None and (mechanical or (refused and cause.id in settled(loaded.entries, case))):
            continue
        change = interventions.parse(offer.change) if offer.change else _CODE
        try:
            refuse(loaded, change)
            _refuse_written(loaded.entries.document, cause.id, change)
        except (Duplicate, InterventionError) as e:
            refused = refused or e
            continue
        return _worded(cause, ranked, change, offer.instructions)
    raise refused or InterventionError(
        "; ".join([f"nothing that the catalogue knows tests {cause.id} in this program", *found.refused]),
        next=f"gpudebug catalogue {cause.id}, then propose with --set, --env or --code",
    )


def _offers(setup: Setup, baselines: Baselines, case: DiagnosisCase, cause: Cause) -> Offers:
    """Return what would test the cause in the command as it is, with what was accepted."""
    workload, records = setup.config.workload, baselines["workload"].records
    known = adapters.of(setup.workspace.root, workload)
    packages = dict(records[0].get("packages") or {}) if records else {}
    evidence = baselines["workload"].evidence
    version = adapters.version_of(known.framework, packages) if known.framework else None
    # Before the first baseline the cores are this machine's, unless runs go elsewhere.
    unseen = not evidence and setup.config.runner is None
    return interventions_for(
        cause,
        KnownCommand(
            workload.argv(),
            training_environment(workload),
            known.found,
            version,
            known.program,
            calls_of(cause, case.facts),
        ),
        cores=available_cores() if unseen else cores_for(cause, case.facts),
        locked=setup.config.locked,
        allowed=setup.config.allowed,
        printed=_last(evidence, "printed") or {},
        total_steps=_last(evidence, "total_steps"),
    )


def _last(evidence: Sequence[Mapping[str, Any]], key: str) -> Any:
    return next((e[key] for e in reversed(evidence) if e.get(key)), None)


def _refuse_written(document: ProgressFile, cause: str, change: Intervention) -> None:
    """Code for a cause is asked for once: what one wrote for it another would write again."""
    if not change.needs_code:
        return
    twin = next((h for h in document.hypotheses if h.cause == cause and _is_code(h)), None)
    if twin is not None:
        raise Duplicate(
            f"code for {cause} is hypothesis {twin.number} already ({twin.status})",
            file=document.file,
            line=twin.line,
            next=f"gpudebug show {twin.number}, then say with --code and --title what is new",
        )


def _is_code(entry: HypothesisEntry) -> bool:
    try:
        change = interventions.parse(entry.intervention) if entry.intervention else None
    except InterventionError:
        return False
    return change is None or change.needs_code or change.patch is not None


def _worded(cause: Cause, ranked: Ranked | None, change: Intervention, instructions: str | None) -> Proposal:
    """Return the hypothesis: the catalogue's words, marked as general, apart from what was measured here."""
    about = " ".join([described(cause), *_standing(ranked)])
    return Proposal(cause.title, about, tried(cause, instructions), change, cause.id)


def _standing(ranked: Ranked | None) -> Iterator[str]:
    """Yield a diagnosis's finding on the cause, if there is one."""
    if ranked is None:
        return
    yield f"Measured here: {likelihood(ranked)}."
    if ranked.speaks_for:
        yield f"For it: {'; '.join(ranked.speaks_for)}."
    if ranked.speaks_against:
        yield f"Against it: {'; '.join(ranked.speaks_against)}."


def likelihood(ranked: Ranked) -> str:
    """`62% likely`."""
    return f"{ranked.probability:.0%} likely" if ranked.probability >= _LEAST else "less than 1% likely"


def settled(entries: Entries, case: DiagnosisCase) -> dict[str, HypothesisEntry]:
    """Causes that need no new hypothesis, with the one that tests them: its answer is not known yet, or is
    VALIDATED and not accepted."""
    open_ = (h for h in entries.document.hypotheses if h.status is not Status.REJECTED)
    return _by_cause((h for h in open_ if entries.order(h) is None), case)


def answered(entries: Entries, case: DiagnosisCase) -> dict[str, str]:
    """Causes whose test has its answer, in words: `hypothesis 2, VALIDATED and accepted`."""
    accepted = {h.number for h in entries.document.hypotheses if entries.order(h) is not None}
    over = (h for h in entries.document.hypotheses if h.status is Status.REJECTED or h.number in accepted)
    return {
        id: f"hypothesis {h.number}, {h.status}" + (" and accepted" if h.number in accepted else "")
        for id, h in _by_cause(over, case).items()
    }


def _by_cause(hypotheses: Iterable[HypothesisEntry], case: DiagnosisCase) -> dict[str, HypothesisEntry]:
    """Return the causes that these clearly test, each with the last one that does."""
    return {
        id: h
        for h in hypotheses
        for id, weight in case.matches.get(h.number, {}).items()
        if weight >= _CLEARLY
    }
