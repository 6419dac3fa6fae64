"""Where a campaign stands, as the lines of a brief: baselines, noise, what is accepted and what waits."""

from __future__ import annotations

from typing import Any

from gpudebug.core.agents.page import Say, code, quoted
from gpudebug.core.progress import HypothesisEntry, harmless
from gpudebug.core.statistics import numbers
from gpudebug.core.words import VERDICTS
from gpudebug.engine.brief import history
from gpudebug.engine.campaign.campaign import Baseline, Loaded
from gpudebug.engine.trial import noise

_FIELD = 120
_NAMED = 5


def lines(loaded: Loaded, entry: HypothesisEntry | None, say: Say) -> list[str]:
    """One line each, the most important first; `entry` is the hypothesis that the brief is about."""
    command = harmless(say(loaded.config.workload.text), limit=400)
    told = [f"Command: {code(command)}"]
    told += [_baseline(loaded, b, say) for b in loaded.baselines.values()]
    return [*told, *_noise(loaded), *_accepted(loaded, say), *_open(loaded, entry, say)]


def _baseline(loaded: Loaded, found: Baseline, say: Say) -> str:
    """A baseline's figures as written, marked where no run bears them out."""
    entry = loaded.document.baseline(found.role)
    if entry is None:
        return f"Baseline {found.role}: {found.why or numbers.UNKNOWN}"
    fields = {key: harmless(say(text), limit=_FIELD) for key, text in entry.fields.items()}
    told = [f"gpu_util {fields.get('gpu util') or numbers.UNKNOWN}"]
    told += [fields["metric"]] if "metric" in fields else []
    told += [f"{key} {fields[key]}" for key in ("throughput", "loss") if key in fields]
    if not found.evidence or found.unverified:
        return f"Baseline {found.role}, UNVERIFIED: {quoted(', '.join(told), 3 * _FIELD)}"
    stale = f"; OUT OF DATE: {harmless(say(found.why), limit=_FIELD)}" if found.why else ""
    return f"Baseline {found.role}: {', '.join(told)}{_step(found.evidence[-1])}{stale}"


def _step(evidence: dict[str, Any]) -> str:
    """Where a step's time goes, as the program itself prints it."""
    times = {"data loading": evidence.get("data_s"), "update": evidence.get("update_s")}
    told = [f"{name} {numbers.number(t, 's')}" for name, t in times.items() if t is not None]
    return f"; of a step: {', '.join(told)}" if told else ""


def _noise(loaded: Loaded) -> list[str]:
    """The spread between runs, and the smallest differences that a trial can tell and can pass with."""
    floor = noise.floor(loaded)
    told = [_spread(f) for f in (floor["figures"] if floor else ()) if f["told"] is not None]
    return [f"Noise from run to run: {'; '.join(told)}"] if told else []


def _spread(figure: dict[str, Any]) -> str:
    points = figure["unit"] == "pp"
    sd = f"{figure['sd']:.1f}pp" if points else f"{100 * figure['sd']:.1f}%"
    amount = "{:.1f}pp".format if points else "{:.2f}x".format
    passed = f", needs {amount(figure['passed'])} to pass" if figure["passed"] is not None else ""
    return f"{figure['figure']} {sd}, detectable effect {amount(figure['told'])}{passed}"


def _accepted(loaded: Loaded, say: Say) -> list[str]:
    found = [h for h in loaded.document.hypotheses if history.accepted(loaded, h)]
    told = [f"h{h.number} {code(harmless(say(h.intervention or ''), limit=80))}" for h in found[-_NAMED:]]
    return _with_rest("Accepted, in the base already", told, len(found))


def _open(loaded: Loaded, entry: HypothesisEntry | None, say: Say) -> list[str]:
    """What waits or is under way, so that nobody proposes it again."""
    found = [h for h in loaded.document.hypotheses if h.status not in VERDICTS and h is not entry]
    told = [f"h{h.number} {h.status} {quoted(say(h.title), 60)}" for h in found[-_NAMED:]]
    return _with_rest("Proposed already, not yours", told, len(found))


def _with_rest(what: str, told: list[str], count: int) -> list[str]:
    rest = [f"{count - len(told)} more"] if count > len(told) else []
    return [f"{what}: {', '.join([*told, *rest])}"] if told else []
