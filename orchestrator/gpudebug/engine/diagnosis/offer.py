"""What to propose if no hypothesis is left to test: the catalogue's best fit, or what would
show more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from gpudebug.core.answers.diagnosis import LikelyCause, gained
from gpudebug.core.catalogue import Cause
from gpudebug.core.catalogue.signals import one_line, said_own
from gpudebug.core.diagnosis.model import Diagnosis, Ranked
from gpudebug.core.errors import CatalogueError, InterventionError
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.diagnosis.case import DiagnosisCase, case_of
from gpudebug.engine.diagnosis.from_catalogue import answered, likelihood, proposal, settled
from gpudebug.engine.hypotheses.propose import Duplicate, Proposal
from gpudebug.engine.run.smaller import question

_LIKELY = 0.05
"""A cause that is less probable, or explains less of the time, is not worth a trial by itself."""
_UNREADABLE = "the catalogue cannot be read"
_TOLD = 3
_TELLS = 0.01
LONGEST_LINE = 300
"""Characters of a cause's line: facts that do not fit are left out whole."""
_TRIED = 10
"""Causes that are looked at for a way to test them."""

_AFTER = {Status.VALIDATED: "accept", Status.INCONCLUSIVE: "next --more", Status.INVALID: "reopen"}


@dataclass(frozen=True)
class OfferedHypothesis:
    """A cause with the hypothesis that would test it."""

    ranked: Ranked
    proposal: Proposal


@dataclass(frozen=True)
class Outlook:
    """A campaign's diagnosis and the catalogue's best fit; `adds` says that `next` proposes it by itself.

    `settled` are the causes that a hypothesis tests already, `answered` says of which one has an answer.
    `problem` says why there is none: a catalogue
    that cannot be read does not stop the work."""

    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    offer: OfferedHypothesis | None = None
    adds: bool = False
    settled: Mapping[str, HypothesisEntry] = field(default_factory=dict)
    answered: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None

    def why(self, before: str) -> str:
        """Return the reason of an action, `before`, with what the catalogue says of it."""
        return f"{before}; {self.text}"

    @property
    def text(self) -> str:
        """What the catalogue says of a campaign in which nothing is left to test."""
        if self.problem:
            return self.problem
        held = self._held()
        parts = [held] if held else []
        return "; ".join([*parts, self._offered()] if self.offer or not parts else parts)

    def _offered(self) -> str:
        if self.offer is None:
            return f"the catalogue names nothing likely: {self._nothing()}"
        ranked, change = self.offer.ranked, self.offer.proposal.change
        fit = f"{ranked.id}, {likelihood(ranked)}"
        if self.adds and change is not None:
            return f"auto_propose tests what promises most, {fit}, with {change.text}"
        return f"{fit}, promises most: gpudebug propose --from-catalogue {ranked.id}"

    @property
    def command(self) -> str | None:
        """What adds to the progress file what promises most."""
        if self.offer is None:
            return None
        return f"gpudebug propose --from-catalogue {self.offer.ranked.id}"

    def lines(self) -> list[str]:
        """The diagnosis in a brief: a line a cause, then what would show more."""
        diagnosis = self.diagnosis
        lines = [_line(ranked, self._test_of(ranked)) for ranked in self._first()]
        if diagnosis.abstains:
            lines.insert(0, f"none of these is likely yet: {diagnosis.abstains}")
        if self.offer is None or diagnosis.abstains:
            lines += [f"would show more: {m.what} ({m.why}): {m.next}" for m in diagnosis.missing[:_TOLD]]
        return lines

    def places(self) -> tuple[tuple[str, int | None], ...]:
        """Return file and line where the causes of `lines` were seen."""
        seen = [ranked.line for ranked in self._first() if ranked.line]
        return tuple((line.frame.rpartition(":")[0], line.line) for line in seen)

    def causes(self) -> tuple[LikelyCause, ...]:
        """Return the first causes, as `next` answers them."""
        return tuple(
            LikelyCause(
                id=ranked.id,
                probability=ranked.probability,
                ceiling_pp=ranked.ceiling_pp,
                for_=ranked.speaks_for,
                against=ranked.speaks_against,
                exposed=ranked.exposed,
                ceiling_ratio=ranked.ceiling_ratio,
                line=str(ranked.line) if ranked.line else None,
            )
            for ranked in self._first()
        )

    def _test_of(self, ranked: Ranked) -> str | None:
        entry = self.settled.get(ranked.id)
        return _tests(entry) if entry is not None else self.answered.get(ranked.id)

    def _held(self) -> str | None:
        """Return what tests the first cause already, if it is likely."""
        first = next(iter(self.diagnosis.causes), None)
        if first is None or first.id not in self.settled or not _is_likely(first) or self.diagnosis.abstains:
            return None
        return f"{first.id}, {likelihood(first)}, is {_tests(self.settled[first.id])}"

    def _nothing(self) -> str:
        if self.diagnosis.abstains:
            return self.diagnosis.abstains
        return "what is likely was tested or cannot be" if self.diagnosis.causes else "nothing was measured"

    def _first(self) -> list[Ranked]:
        """Return the causes that are worth a line; what is offered is one of them."""
        first = [ranked for ranked in self.diagnosis.causes[:_TOLD] if ranked.probability >= _TELLS]
        if self.offer is not None and self.offer.ranked not in first:
            first = [*first[: _TOLD - 1], self.offer.ranked]
        return first


def places_of(loaded: Loaded, cause: str | None) -> tuple[tuple[str, int | None], ...]:
    """Return file and line where a cause was seen; without one, where the likely ones were."""
    try:
        found = case_of(loaded).diagnosis
    except CatalogueError:
        return ()
    named = tuple(ranked for ranked in found.causes if ranked.id == cause)
    return Outlook(replace(found, causes=named) if named else found).places()


def outlook(loaded: Loaded) -> Outlook:
    """Return the offer that promises most; with `auto_propose`, the one of those that gpudebug can test by
    itself where there is one."""
    try:
        case = case_of(loaded)
    except CatalogueError as e:
        return Outlook(problem=f"{_UNREADABLE}: {e}")
    done, over = settled(loaded.entries, case), answered(loaded.entries, case)
    if loaded.setup.config.auto_propose:
        found = next(_offers(loaded, case, done, mechanical=True), None)
        if found is not None:
            return Outlook(case.diagnosis, found, adds=True, settled=done, answered=over)
    found = next(_offers(loaded, case, done, mechanical=False), None)
    return Outlook(case.diagnosis, found, settled=done, answered=over)


def _offers(
    loaded: Loaded, case: DiagnosisCase, done: Collection[str], *, mechanical: bool
) -> Iterator[OfferedHypothesis]:
    """Likely causes with a hypothesis that may be proposed, in the order of the diagnosis."""
    likely = [r for r in case.diagnosis.causes if _is_likely(r) and r.id not in done]
    if case.diagnosis.abstains:
        return
    for ranked in likely[:_TRIED]:
        cause = case.catalogue.cause(ranked.id)
        try:
            found = proposal(loaded, case, cause, ranked, mechanical=mechanical)
        except (Duplicate, InterventionError):
            # Tested, locked or not to be done here: the next one.
            continue
        if (
            found.change is None
            or question(loaded.setup, loaded.history.baselines, found.change, found.cause) is None
        ):
            yield OfferedHypothesis(ranked, found)


def _is_likely(ranked: Ranked) -> bool:
    return ranked.probability >= _LIKELY and (ranked.exposed is None or ranked.exposed >= _LIKELY)


def _tests(entry: HypothesisEntry) -> str:
    """`hypothesis 1, VALIDATED: gpudebug accept 1`."""
    after = _AFTER.get(entry.status)
    return f"hypothesis {entry.number}, {entry.status}" + (
        f": gpudebug {after} {entry.number}" if after else ""
    )


def _line(ranked: Ranked, test: str | None) -> str:
    """Probability, share of the time, ceiling and title; the line to read, what was measured, its test."""
    share = f", {ranked.exposed:.0%} of the time" if ranked.exposed is not None else ""
    most = _most(ranked.ceiling_pp, ranked.ceiling_ratio)
    parts = [f"{ranked.probability:.0%} {ranked.id}{share}, {most}: {ranked.title}"]
    line = str(ranked.line) if ranked.line else ""
    parts += [f"line: {line}"] if line and not any(line in fact for fact in ranked.speaks_for) else []
    tested = [test] if test else []
    for label, facts in (("for", ranked.speaks_for), ("against", ranked.speaks_against)):
        fitting: list[str] = []
        for fact in facts:
            named = f"{label}: {', '.join([*fitting, fact])}"
            if len("; ".join([*parts, named, *tested])) <= LONGEST_LINE:
                fitting.append(fact)
        parts += [f"{label}: {', '.join(fitting)}"] if fitting else []
    return "; ".join([*parts, *tested])


def _most(points: float | None, ratio: float | None) -> str:
    """`ceiling +61pp, 2.75x`."""
    if ratio is None:
        return "ceiling unknown"
    return "ceiling " + (f"+{points:.0f}pp, " if points is not None else "") + gained(ratio)


def instructions(workspace: store.Workspace, entry: HypothesisEntry) -> list[str]:
    """Return the catalogue's advice on writing the code of a hypothesis, by the cause that it names."""
    if entry.cause is None:
        return []
    from gpudebug.engine.run import catalogue

    try:
        cause = catalogue.load(workspace.root).get(entry.cause)
    except CatalogueError as e:
        return [f"{_UNREADABLE}: {e}"]
    return list(_instructions(cause)) if cause is not None else []


def _instructions(cause: Cause) -> Iterator[str]:
    for name in dict.fromkeys(("any", *cause.interventions)):
        known = cause.interventions.get(name)
        if known is not None and known.code:
            yield one_line(known.code)
            break
    yield f"Fix: {one_line(cause.fix)}"
    if cause.own_signal:
        yield f"What should move: {'; '.join(map(said_own, cause.own_signal))}"
    if cause.hollow_if:
        yield f"Hollow if: {one_line(cause.hollow_if)}"
