"""All causes on the facts -> the diagnosis: gates, causes by probability, and what would show more."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gpudebug.core.catalogue.model import Cause
from gpudebug.core.diagnosis import abstention, missing_evidence
from gpudebug.core.diagnosis.ceilings import ceiling
from gpudebug.core.diagnosis.figures import number
from gpudebug.core.diagnosis.model import Diagnosis, DiagnosisFacts, Ranked, Tested
from gpudebug.core.diagnosis.odds import Scored, WeighedSign, score
from gpudebug.core.diagnosis.sentences import sentence_of

NONE_ODDS = 2.0
"""Odds that none of the catalogue's causes is what helps."""
_FACTS = 3


def diagnose(causes: Iterable[Cause], facts: DiagnosisFacts, tested: Sequence[Tested] = ()) -> Diagnosis:
    """Every cause that is not ruled out, the most probable first, ties by id. `tested` are judged trials."""
    scored = [one for cause in causes if not (one := score(cause, facts, tested)).ruled_out]
    ordered = sorted(scored, key=lambda s: (-s.odds, s.cause.id))
    total = NONE_ODDS + math.fsum(s.odds for s in ordered)
    ranked = [(s, _ranked(s, facts, s.odds / total)) for s in ordered]
    return Diagnosis(
        causes=tuple(r for _, r in ranked),
        gates=tuple(r for s, r in ranked if s.cause.gate and s.definite),
        missing=missing_evidence.missing(facts, ordered),
        abstains=abstention.why(facts, [(s, r.probability) for s, r in ranked]),
        kind=facts.kind,
    )


def shown(causes: Iterable[Cause], facts: DiagnosisFacts) -> dict[str, str]:
    """By id the code that each cause with a sign shows in: names of functions and source of lines."""
    found: dict[str, str] = {}
    for cause in causes:
        signs = [t for t in score(cause, facts).signs if t.true and t.factor > 1 and t.found is not None]
        places = {t.found.place for t in signs if t.found is not None and t.found.place is not None}
        if places:
            found[cause.id] = "\n".join(
                sorted(f"{p.frame.rpartition(':')[2]} {p.source or ''}" for p in places)
            )
    return found


def _ranked(scored: Scored, facts: DiagnosisFacts, probability: float) -> Ranked:
    cause, signals = scored.cause, facts.signals
    util = number(signals.get("gpu_util"))
    shows = cause.waits or signals.get("device_stand_in") is False
    top = ceiling(scored.exposed, util, facts.steps_per_s, shows=shows)
    return Ranked(
        id=cause.id,
        title=cause.title,
        probability=probability,
        exposed=scored.exposed,
        ceiling_pp=top.pp,
        expected_util=top.util,
        ceiling_ratio=top.ratio,
        ceiling_steps_per_s=top.steps_per_s,
        speaks_for=_said([t for t in scored.signs if t.true and t.factor > 1], facts, _FACTS),
        speaks_against=_said([t for t in scored.signs if t.factor < 1], facts, 1)
        or _said([t for t in scored.signs if t.shared], facts, 1),
    )


def _said(signs: Sequence[WeighedSign], facts: DiagnosisFacts, most: int) -> tuple[str, ...]:
    """The strongest, each fact and each place of the code once."""
    ordered = sorted(signs, key=lambda t: -abs(math.log(t.factor)))
    facts_by_place: dict[object, str] = {}
    for fact in ordered:
        sentence = sentence_of(fact, facts)
        place = fact.found.place if fact.found is not None else None
        key = sentence if place is None else (place.frame, place.line)
        if sentence:
            facts_by_place.setdefault(key, sentence)
    return tuple(dict.fromkeys(facts_by_place.values()))[:most]
