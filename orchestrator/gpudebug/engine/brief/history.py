"""What became of the hypotheses of a campaign, as a brief shows it: figures only if runs support them."""

from __future__ import annotations

from typing import Any

from gpudebug.core.agents.page import Say, Tried, code, quoted
from gpudebug.core.progress import HypothesisEntry, ProgressFile, harmless
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import GPU_UTIL
from gpudebug.core.words import VERDICTS, Status
from gpudebug.engine.campaign.campaign import Entries

_TITLE = 200
_LINE = 150
_FIGURE = 80


def judged(document: ProgressFile) -> list[HypothesisEntry]:
    """Return the entries with a verdict, the last of the file first."""
    return [h for h in reversed(document.hypotheses) if h.status in VERDICTS]


def mark(entries: Entries, entry: HypothesisEntry) -> str:
    """`REJECTED`, `VALIDATED, accepted`, `VALIDATED by hand, UNVERIFIED`."""
    if not entries.trials[entry.number].verified:
        return f"{entry.status} UNVERIFIED"
    return f"{entry.status} and accepted" if accepted(entries, entry) else entry.status.value


def accepted(entries: Entries, entry: HypothesisEntry) -> bool:
    """Tell whether the change is in the base; the fields are read only of an entry that has the word."""
    if entry.status is not Status.VALIDATED:
        return False
    kept = entries.acceptances.entries
    known = (
        b"ccepted" in entries.document.data[entry.start : entry.end] if kept is None else entry.number in kept
    )
    return known and entries.order(entry) is not None


def tried(entries: Entries, entry: HypothesisEntry, say: Say) -> Tried:
    """One judged hypothesis, in one line and in a few."""
    verdict = mark(entries, entry)
    title = quoted(say(entry.title), _TITLE)
    trial = entries.trials[entry.number]
    name = f"h{entry.number} {verdict}"
    if not trial.verified or trial.verdict is None:
        claim = quoted(say(entry.result.get("improvement", "")), 60)
        line = f"{name}, by hand{f', claimed {claim}' if claim else ''} {title}"
        return Tried(entry.number, verdict, line[:_LINE], line)
    why = str(trial.verdict.get("why", ""))
    change = code(harmless(say(entry.intervention or "none"), limit=100))
    return Tried(
        entry.number,
        verdict,
        _brief(name, trial.verdict, quoted(say(entry.title), 70), change, say(why)),
        f"{name} {title}, {change}",
        (_moved(trial.verdict, say), f"why: {quoted(say(why), 200)}"),
    )


def _brief(name: str, verdict: dict[str, object], title: str, change: str, why: str) -> str:
    """One line: the delta, and the change if the delta is the reason."""
    line = f"{name} {numbers.improvement(verdict).partition(' (')[0]} {title}, "
    reason = change if why.startswith("delta") else quoted(why, max(20, _LINE - len(line)))
    return line + reason


def _moved(verdict: dict[str, Any], say: Say) -> str:
    """Return the figures of a verdict on one line."""
    texts = {key: say(text)[:_FIGURE] for key, text in numbers.result_fields(verdict).items()}
    before = texts["gpu util before"].partition(" (")[0]
    own = texts.get("metric") or f"{GPU_UTIL} {before} to {texts['gpu util after']}"
    ratio = numbers.factor(verdict.get("throughput_ratio")).partition(" (")[0]
    faster = f" ({ratio})" if ratio != numbers.UNKNOWN else ""
    return (
        f"{own}: {texts['improvement']}; throughput {texts['throughput']}{faster}; "
        f"training {texts['training'].partition(' ')[0]}, loss {texts['loss']}"
    )
