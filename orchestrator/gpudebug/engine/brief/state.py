"""A campaign's state, as the lines of a brief: baselines, noise, what is accepted and what waits."""

from __future__ import annotations

from typing import Any

from gpudebug.core.agents.page import Say, code, quoted
from gpudebug.core.answers.status import DetectableFigure
from gpudebug.core.campaign.decide import Campaign
from gpudebug.core.progress import HypothesisEntry, ProgressFile, harmless
from gpudebug.core.statistics import numbers
from gpudebug.core.words import VERDICTS
from gpudebug.engine.brief import history
from gpudebug.engine.campaign.campaign import CampaignBaseline, Entries, History, Loaded, Setup
from gpudebug.engine.trial import noise

_FIELD = 120
_NAMED = 5


def lines(loaded: Loaded, entry: HypothesisEntry | None, say: Say) -> list[str]:
    """One line each, the most important first; `entry` is the hypothesis that the brief is about."""
    return [
        *(_baseline(loaded.entries.document, b, say) for b in loaded.history.baselines.values()),
        *_noise(loaded.setup, loaded.history, loaded.campaign),
        *_accepted(loaded.entries, say),
        *_open(loaded.entries.document, entry, say),
    ]


def _baseline(document: ProgressFile, found: CampaignBaseline, say: Say) -> str:
    """Return a baseline's figures as written, marked if no run supports them."""
    entry = document.baseline(found.role)
    if entry is None:
        return f"Baseline {found.role}: {found.why or numbers.UNKNOWN}"
    fields = {key: harmless(say(text), limit=_FIELD) for key, text in entry.fields.items()}
    figures = [f"gpu_util {fields.get('gpu util') or numbers.UNKNOWN}"]
    if "metric" in fields:
        figures.append(fields["metric"])
        figures += [f"work counts {fields['work'].partition(', ')[0]}"] if "work" in fields else []
    figures += [f"{key} {fields[key]}" for key in ("throughput", "loss") if key in fields]
    if not found.evidence or found.unverified:
        return f"Baseline {found.role}, UNVERIFIED: {quoted(', '.join(figures), 3 * _FIELD)}"
    stale = f"; OUT OF DATE: {harmless(say(found.why), limit=_FIELD)}" if found.why else ""
    return f"Baseline {found.role}: {', '.join(figures)}{_step(found.evidence[-1])}{stale}"


def _step(evidence: dict[str, Any]) -> str:
    """Return where a step's time goes, as the program itself prints it."""
    times = {"data loading": evidence.get("data_s"), "update": evidence.get("update_s")}
    parts = [f"{name} {numbers.number(t, 's')}" for name, t in times.items() if t is not None]
    return f"; of a step: {', '.join(parts)}" if parts else ""


def _noise(setup: Setup, history: History, campaign: Campaign) -> list[str]:
    """The spread between runs, and the smallest differences that a trial can detect and can pass with."""
    floor = noise.floor(setup, history, campaign)
    spreads = [_spread(f) for f in (floor.figures if floor else ()) if f.told is not None]
    return [f"Noise from run to run: {'; '.join(spreads)}"] if spreads else []


def _spread(figure: DetectableFigure) -> str:
    points = figure.unit == "pp"
    sd = f"{figure.sd:.1f}pp" if points else f"{100 * (figure.sd or 0):.1f}%"
    amount = "{:.1f}pp".format if points else "{:.2f}x".format
    passed = f", needs {amount(figure.passed)} to pass" if figure.passed is not None else ""
    return f"{figure.figure} {sd}, detectable {amount(figure.told)}{passed}"


def _accepted(entries: Entries, say: Say) -> list[str]:
    found = [h for h in entries.document.hypotheses if history.accepted(entries, h)]
    lines = [f"h{h.number} {code(harmless(say(h.intervention or ''), limit=80))}" for h in found[-_NAMED:]]
    return _with_rest("Accepted, in the base already", lines, len(found))


def _open(document: ProgressFile, entry: HypothesisEntry | None, say: Say) -> list[str]:
    """Return what waits or is under way, so that it is not proposed again."""
    found = [h for h in document.hypotheses if h.status not in VERDICTS and h is not entry]
    lines = [f"h{h.number} {h.status} {quoted(say(h.title), 60)}" for h in found[-_NAMED:]]
    return _with_rest("Proposed already, not yours", lines, len(found))


def _with_rest(what: str, parts: list[str], count: int) -> list[str]:
    rest = [f"{count - len(parts)} more"] if count > len(parts) else []
    return [f"{what}: {', '.join([*parts, *rest])}"] if parts else []
