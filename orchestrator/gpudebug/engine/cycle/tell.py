"""What is told at the end of a session and of a campaign, from their files."""

from __future__ import annotations

from collections.abc import Iterable

from gpudebug.core.campaign import accepted_changes
from gpudebug.core.campaign.accepted_changes import AcceptedChange, spoken
from gpudebug.core.campaign.decide import Campaign
from gpudebug.core.campaign.handover import JudgedChange, of_campaign, of_nothing, of_session
from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress import HypothesisEntry, harmless, nothing
from gpudebug.core.statistics import numbers
from gpudebug.core.words import VERDICTS, Status
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Entries, Loaded, Setup, Trials
from gpudebug.engine.trial.together import together

_TITLE, _WHY = 200, 600


def session_told(setup: Setup, entries: Entries, number: int | None) -> str | None:
    """Return the paragraph of a session whose hypothesis has its verdict; None if no runs bear it out."""
    entry = next((h for h in entries.document.hypotheses if h.number == number), None)
    one = _tested(setup, entries, entry) if entry is not None else None
    return of_session(one) if one is not None else None


def nothing_told(setup: Setup, entries: Entries, campaign: Campaign) -> str:
    """Return the paragraph of a session that said it has nothing to propose, with the reason that it gave."""
    reasons = [said.why for said in nothing.read(entries.document) if said.session == setup.session]
    judged = [h for h in entries.document.hypotheses if h.status in VERDICTS]
    return of_nothing(
        harmless(setup.workspace.scrub(reasons[-1]), limit=nothing.LONGEST) if reasons else "it says so",
        campaign.tested,
        _all_tested(
            setup, entries, sorted(judged, key=lambda h: [store.run_number(name) for name in h.runs])
        ),
        _all_tested(setup, entries, _not_accepted(entries)),
    )


def campaign_told(loaded: Loaded, ending: str) -> str:
    """Return the paragraph of a campaign that has stopped."""
    accepted = _all_tested(loaded.setup, loaded.entries, loaded.entries.recorded)
    first = (
        loaded.entries.trials[loaded.entries.recorded[0].number].verdict if loaded.entries.recorded else None
    )
    worth = together(loaded, first).text if first else None
    command = spoken(loaded.setup.config.workload, loaded.code.stack) if accepted else None
    return of_campaign(
        loaded.setup.workspace.scrub(ending),
        loaded.campaign.tested,
        _all_tested(loaded.setup, loaded.entries, _not_accepted(loaded.entries)),
        accepted,
        worth,
        loaded.setup.workspace.scrub(command) if command else None,
    )


def _not_accepted(entries: Entries) -> list[HypothesisEntry]:
    """Return the VALIDATED ones that count and are not accepted yet, the best first."""
    good = [
        h
        for h in entries.document.hypotheses
        if h.status is Status.VALIDATED and entries.order(h) is None and entries.trials[h.number].counts
    ]
    return sorted(good, key=lambda h: _worth(entries.trials, h), reverse=True)


def _all_tested(setup: Setup, entries: Entries, hypotheses: Iterable[HypothesisEntry]) -> list[JudgedChange]:
    return [one for h in hypotheses if (one := _tested(setup, entries, h)) is not None]


def _worth(trials: Trials, entry: HypothesisEntry) -> float:
    delta = (trials[entry.number].verdict or {}).get("delta")
    return float(delta["value"]) if delta else float("-inf")


def _tested(setup: Setup, entries: Entries, entry: HypothesisEntry) -> JudgedChange | None:
    """Return a hypothesis as its runs tell it; None if they bear no verdict out."""
    judged, scrub = entries.trials[entry.number], setup.workspace.scrub
    if not judged.verified or judged.verdict is None:
        return None
    verdict, change = judged.verdict, entries.change_of(entry)
    fields = numbers.result_fields(verdict)
    metric = (
        fields.get("metric")
        or f"utilisation goes from {fields['gpu util before']} to {fields['gpu util after']}"
    )
    command = None
    if change is not None and any(c.kind in ("set", "unset", "env") for c in change.changes):
        step = AcceptedChange(entry.number, change, entries.document.file, entry.line)
        try:
            with_it = accepted_changes.effective(setup.config.workload, [step], setup.config.allowed)
            command = scrub(spoken(with_it, [step]))
        except GpudebugError:
            command = None
    return JudgedChange(
        number=entry.number,
        title=harmless(setup.workspace.scrub_prose(entry.title), limit=_TITLE),
        cause=entry.cause,
        status=entry.status,
        why=harmless(scrub(str(verdict["why"])), limit=_WHY),
        change=harmless(scrub(entry.intervention or "none"), limit=_TITLE),
        gain=f"{metric}, {fields['improvement']}",
        runs=len(entry.runs),
        patch=change.patch if change is not None else None,
        command=command,
    )
