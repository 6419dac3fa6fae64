"""All causes on the facts -> the diagnosis: gates, causes by what they cost, and what would show more."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpudebug.core.answers.diagnosis import MOST_EXPOSED, Missing
from gpudebug.core.catalogue.model import Cause
from gpudebug.core.catalogue.signals import SIGNALS
from gpudebug.core.diagnosis import code_lines
from gpudebug.core.diagnosis.bounds import most_exposed
from gpudebug.core.diagnosis.host_code import PLACED
from gpudebug.core.diagnosis.model import Diagnosis, DiagnosisFacts, Ranked, Tested
from gpudebug.core.diagnosis.odds import (
    SMALL,
    Scored,
    WeighedSign,
    holds,
    largest,
    number,
    of_signal,
    score,
    sentence_of,
)

LIKELY = 0.15
"""Below it the first cause is no better than a guess among those that come behind it."""
_SUPPORT = 0.5
_TELLING = (
    *("data_wait_share", "log_data_share", "stacks_s", "trace_busy_share", "layer_cached_batch_ratio"),
    *("awaited_device", "ready_over_cores"),
)


def why(facts: DiagnosisFacts, ranked: Sequence[tuple[Scored, float]]) -> str | None:
    """One line; None if the first of `ranked`, each with its probability, is worth testing."""
    if not facts.runs and not facts.signals:
        return "no run of the workload has evidence yet: record its baseline"
    if "steps" in facts.absent:
        return facts.absent["steps"]
    telling = [name for name in _TELLING if name in facts.signals]
    if not telling and not facts.sections:
        reasons = "; ".join(dict.fromkeys(facts.absent.values()))
        return f"the evidence is thin: {reasons or 'nothing shows where the time goes'}"
    likely = [(s, p) for s, p in ranked if is_likely(s)]
    if not likely:
        return "nothing in the catalogue explains idling here: no cause with a sign takes 5% of the time"
    first, chance = max(likely, key=lambda one: one[1])
    if chance < LIKELY:
        most = max(ranked, key=lambda one: one[1])[0]
        which = "the most probable" if first is most else "the most probable that is worth a test"
        return f"no cause stands out: {which}, {first.cause.id}, has {chance:.0%}"
    return None


def surrounds(scored: Scored) -> bool:
    """Tell whether it is what others do on the host, and not the workload's own."""
    return scored.cause.gate and scored.cause.group == "hardware"


def is_likely(scored: Scored) -> bool:
    """Tell whether a cause of the workload's own has a sign and takes time."""
    small = scored.exposed is not None and scored.exposed < SMALL
    return scored.support >= _SUPPORT and not small and not surrounds(scored)


_LOOKED_AT = 8
_LAYERS = {"cached_batch": "cached-batch", "quiet": "quiet", "double_batch": "double-batch"}


def missing(facts: DiagnosisFacts, scored: Sequence[Scored]) -> tuple[Missing, ...]:
    """Return the most useful first; `scored` are the causes, the most probable first."""
    found = [_device(facts), _probe(facts), _stacks(facts), _log(facts)]
    found += [_layer(facts, scored), _trace(facts, scored), _reference(facts)]
    return tuple(one for one in found if one is not None)


def _device(facts: DiagnosisFacts) -> Missing | None:
    if "device" not in facts.absent:
        return None
    return Missing(
        "utilisation of the device",
        facts.absent["device"],
        "run gpudebug doctor to see what works here; a run has to train for some seconds",
    )


def _probe(facts: DiagnosisFacts) -> Missing | None:
    why = facts.absent.get("probe")
    if why is None:
        return None
    switched = "set probe: true in gpudebug.yaml" if "probe: false" in why else "mend that"
    return Missing("the probe's figures from inside the training", why, f"{switched}, then gpudebug baseline")


def _stacks(facts: DiagnosisFacts) -> Missing | None:
    if "stacks" not in facts.absent or "probe" in facts.absent:
        return None
    return Missing("stacks of the training thread", facts.absent["stacks"], "gpudebug baseline workload")


def _log(facts: DiagnosisFacts) -> Missing | None:
    if facts.absent.get("log") is None:
        return None
    return Missing(
        "steps and loss in the log",
        facts.absent["log"],
        "print `step N loss X` at least 10 times a run; gpudebug doctor names the flag of known frameworks",
    )


def _layer(facts: DiagnosisFacts, scored: Sequence[Scored]) -> Missing | None:
    """Return the layer test that bounds the most probable cause which has one that can be made here."""
    for one in scored[:_LOOKED_AT]:
        layer = one.cause.layer
        if layer is None or f"layer_{layer}_ratio" in facts.signals or not _can_be_made(layer, facts):
            continue
        name, made = _LAYERS[layer], facts.absent.get(f"layer_{layer}")
        why, record = "no such test was made on this baseline", f"gpudebug diagnose --layer {name}"
        if made:
            why, record = f"the last one was inconclusive: {made}", f"mend that, then {record}"
        return Missing(f"layer test {name}", f"it would bound {one.cause.id}: {why}", record)
    return None


def _can_be_made(layer: str, facts: DiagnosisFacts) -> bool:
    """A batch can be cached only if a loader is known to feed the training."""
    return layer != "cached_batch" or facts.signals.get("loader_used") is True


def _trace(facts: DiagnosisFacts, scored: Sequence[Scored]) -> Missing | None:
    """Return a profiled run, if a trace would show a probable cause, on a real device."""
    if "trace_busy_share" in facts.signals or facts.signals.get("device_stand_in") is not False:
        return None
    signs = (t.sign.signal for one in scored[:_LOOKED_AT] for t in one.signs if t.true is None)
    if not any(signal is not None and SIGNALS[signal].source == "trace" for signal in signs):
        return None
    return Missing(
        "a trace of some steps",
        "this baseline has no profiled run",
        "gpudebug baseline workload --torch-profile default",
    )


def _reference(facts: DiagnosisFacts) -> Missing | None:
    if facts.reference is not None:
        return None
    return Missing(
        "a workload with good utilisation here",
        "gpudebug.yaml names no reference, or it has no valid baseline",
        "add `reference:` to gpudebug.yaml, then gpudebug next",
    )


NONE_ODDS = 2.0
"""Odds that none of the catalogue's causes is what helps."""
LARGE = 0.2
"""From this share of the time on a cause can be what holds a run back (a judgement: its fix brings 1.25x)."""
LEAST = 0.01
"""Less of the time than this is not told from none."""
UNKNOWN_SHARE = 0.1
"""Of the time, of a cause whose share is unknown."""
_FACTS = 3
_NO_CORE = "workers_lack_cores"
_OF_NO_CORE = ("worker_running_share", "cores_busy_share")
_STRONGLY = 0.2
"""What multiplies odds by no more than this says that the fix is of no use."""


def diagnose(
    causes: Iterable[Cause], facts: DiagnosisFacts, tested: Sequence[Tested] = (), *, full: bool = False
) -> Diagnosis:
    """Return every cause that is not ruled out, by its probability times what its fix can bring, ties by id.

    `tested` are judged trials. What others do on the host slows every part of a step alike: it takes nothing
    from the probability of the workload's own causes, and stands behind them if one of these is likely. Of a
    device that is `full`, at its target or above, throughput alone is offered. Runs with too few steps
    show none.
    """
    every = [score(cause, facts, tested) for cause in causes]
    scored = [one for one in every if not one.ruled_out]
    scored = [one for one in scored if not _named_better(one, scored, facts)]
    total = NONE_ODDS + math.fsum(s.odds for s in scored)
    own = NONE_ODDS + math.fsum(s.odds for s in scored if not surrounds(s))
    ranked = [
        (s, _ranked(s, facts, s.odds / (total if surrounds(s) else own) * bound(s.exposed), full))
        for s in scored
    ]
    ranked.sort(key=lambda one: (-cost(one[1]), -one[1].probability, one[1].id))
    ranked = _own_first(ranked)
    ordered = [s for s, _ in ranked]
    abstains = why(facts, [(s, r.probability) for s, r in ranked])
    return Diagnosis(
        causes=() if "steps" in facts.absent else tuple(r for _, r in ranked),
        gates=tuple(r for s, r in ranked if s.cause.gate and s.definite),
        missing=missing(facts, ordered),
        abstains=abstains,
        kind=facts.kind,
        no_help=()
        if "steps" in facts.absent
        else tuple(_no_help(every, facts, [r.id for _, r in ranked if r.probability >= LIKELY])),
    )


def _no_help(scored: Iterable[Scored], facts: DiagnosisFacts, likely: Collection[str]) -> Iterator[str]:
    """Yield why a fix that asks for more of something brings nothing, though what it is for takes time."""
    for one in scored:
        cause = one.cause
        if cause.asks_for is None or cause.id in likely or (largest(cause.exposed, facts) or 0.0) < LARGE:
            continue
        lacks = {c.signal for c in cause.requires if holds(c, facts) is False}
        if lacks == {_NO_CORE}:
            found = [of_signal(name, facts.signals[name]) for name in _OF_NO_CORE if name in facts.signals]
            yield f"{cause.asks_for} will not help: {', '.join(found)}"
        against = min((t for t in one.signs if t.true), key=lambda t: t.factor, default=None)
        if not one.ruled_out and against is not None and against.factor <= _STRONGLY:
            yield f"{cause.asks_for} will not help: {sentence_of(against, facts)}"


def _named_better(one: Scored, scored: Sequence[Scored], facts: DiagnosisFacts) -> bool:
    """Tell whether a cause is known by its place alone, and a likelier one says what is wrong there: by code
    that shows it, not as the hottest line of the phase that it is about."""
    if not one.cause.exposed or any(term.signal != PLACED for term in one.cause.exposed):
        return False
    place = code_lines.shown_at(one.cause, facts)
    better = (other for other in scored if other is not one and is_likely(other) and other.odds >= one.odds)
    lines = (code_lines.shown_at(other.cause, facts) for other in better)
    return place is not None and any(
        line is not None and line.frame == place.frame and line.line in (None, place.line) for line in lines
    )


def _own_first(ranked: list[tuple[Scored, Ranked]]) -> list[tuple[Scored, Ranked]]:
    """Return what others do on the host moved to right behind the last likely cause of the workload's own."""
    likely = [place for place, (s, r) in enumerate(ranked) if is_likely(s) and r.probability >= LIKELY]
    before, behind = ranked[: max(likely, default=-1) + 1], ranked[max(likely, default=-1) + 1 :]
    own = [one for one in before if not surrounds(one[0])]
    return [*own, *(one for one in before if surrounds(one[0])), *behind]


def bound(exposed: float | None) -> float:
    """Return the most that the probability of a cause with this share of the time can be: what takes little
    is not what holds a run back, however sure it is that it is there."""
    return 1.0 if exposed is None else min(1.0, max(exposed, LEAST) / LARGE)


def cost(cause: Ranked) -> float:
    """Return the share of the time that its fix is expected to bring."""
    return cause.probability * (UNKNOWN_SHARE if cause.exposed is None else cause.exposed)


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


def _ranked(scored: Scored, facts: DiagnosisFacts, probability: float, full: bool) -> Ranked:
    cause, signals = scored.cause, facts.signals
    shows = not full and (signals.get("device_stand_in") is False or _idles(scored, facts))
    pro = _said([t for t in scored.signs if t.true and t.factor > 1], facts)
    said = tuple(dict.fromkeys(pro.values()))[:_FACTS]
    if cause.asks_for is not None and "cores_busy_share" in signals:
        left = of_signal("cores_busy_share", signals["cores_busy_share"])
        said = said if left in said else (*said[: _FACTS - 1], left)
    contra = _but([t for t in scored.signs if t.factor < 1], facts, pro)
    contra = contra or _but([t for t in scored.signs if t.shared], facts, pro)
    top = ceiling(most_exposed(cause, facts), _telling(facts), facts.steps_per_s, shows=shows)
    line = code_lines.line_of(cause, scored.signs, facts)
    placed = line is not None and any(term.signal == PLACED for term in cause.exposed)
    return Ranked(
        id=cause.id,
        title=f"{cause.title}: {line.named}" if placed and line is not None else cause.title,
        probability=probability,
        exposed=scored.exposed,
        ceiling_pp=top.pp,
        expected_util=top.util,
        ceiling_ratio=top.ratio,
        ceiling_steps_per_s=top.steps_per_s,
        speaks_for=said,
        speaks_against=tuple(dict.fromkeys(contra.values()))[:1],
        line=line,
    )


@dataclass(frozen=True)
class Ceiling:
    """Points of utilisation, utilisation after it (percent), throughput as a ratio and in steps a second."""

    pp: float | None = None
    util: float | None = None
    ratio: float | None = None
    steps_per_s: float | None = None


def ceiling(exposed: float | None, util: float | None, rate: float | None, *, shows: bool) -> Ceiling:
    """Without a share `exposed` of the time the same work takes 1 - `exposed` of it: utilisation becomes
    G / (1 - c), throughput 1 / (1 - c) of what it was (knowledge of DS-Analyzer's kind, arXiv 2007.06775).

    `util` is percent, `rate` steps a second. `shows` says that utilisation can show the cause at all.
    """
    if exposed is None:
        return Ceiling()
    left = 1.0 - min(MOST_EXPOSED, max(0.0, exposed))
    after = min(100.0, util / left) if shows and util is not None else None
    # Two roundings may make it less than it was.
    gained = max(0.0, after - util) if after is not None and util is not None else None
    return Ceiling(gained, after, 1.0 / left, rate / left if rate is not None else None)


def _idles(scored: Scored, facts: DiagnosisFacts) -> bool:
    """Whether the CPU that stands in for a GPU is idle for most of what the cause takes, not busy with it."""
    waiting = number(facts.signals.get("waiting_share"))
    if not scored.cause.waits or waiting is None or scored.exposed is None:
        return scored.cause.waits
    return waiting >= scored.exposed / 2


def _telling(facts: DiagnosisFacts) -> float | None:
    """Return the utilisation that has room, in percent: devices that wait for another one in a collective
    look busy, so that their mean has none."""
    return number(facts.signals.get("telling_util", facts.signals.get("gpu_util")))


def _said(signs: Sequence[WeighedSign], facts: DiagnosisFacts) -> dict[object, str]:
    """Return the strongest first, each fact and each place of the code once."""
    ordered = sorted(signs, key=lambda t: -abs(math.log(t.factor)))
    facts_by_place: dict[object, str] = {}
    for fact in ordered:
        sentence = sentence_of(fact, facts)
        place = fact.found.place if fact.found is not None else None
        key = sentence if place is None else (place.frame, place.line)
        if sentence:
            facts_by_place.setdefault(key, sentence)
    return facts_by_place


def _but(signs: Sequence[WeighedSign], facts: DiagnosisFacts, pro: Mapping[object, str]) -> dict[object, str]:
    """Return what `signs` say, without facts, and functions, that already speak for the cause."""
    functions = {key[0] for key in pro if isinstance(key, tuple)}
    said = _said(signs, facts)
    return {
        k: v
        for k, v in said.items()
        if k not in pro and (k[0] if isinstance(k, tuple) else k) not in functions
    }


def shares(diagnosis: Diagnosis, matches: Mapping[int, Mapping[str, float]]) -> dict[int, float]:
    """Return the share of the time (0 to 1) that each hypothesis is expected to bring, by its number: what
    orders the causes orders those that test them.

    `matches` are the causes that each one tests, with how well (0 to 1).
    """
    costs = {cause.id: cost(cause) for cause in diagnosis.causes}
    return {
        number: sum(costs[name] * weight for name, weight in sorted(tested.items()) if name in costs)
        for number, tested in matches.items()
    }
