"""What became of the hypotheses of a campaign, as a brief tells it: figures only where runs bear them out."""

from __future__ import annotations

from typing import Any

from gpudebug.core import present
from gpudebug.core.brief import Say, Tried, code, quoted
from gpudebug.core.metrics import GPU_UTIL
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.words import VERDICTS, Status
from gpudebug.engine.campaign import Loaded

_TITLE = 200
_LINE = 150
_FIGURE = 80


def judged(loaded: Loaded) -> list[HypothesisEntry]:
    """The entries with a verdict, the last of the file first."""
    return [h for h in reversed(loaded.document.hypotheses) if h.status in VERDICTS]


def mark(loaded: Loaded, entry: HypothesisEntry) -> str:
    """`REJECTED`, `VALIDATED, accepted`, `VALIDATED by hand, UNVERIFIED`."""
    if not loaded.trials[entry.number].verified:
        return f"{entry.status} UNVERIFIED"
    return f"{entry.status} and accepted" if accepted(loaded, entry) else entry.status.value


def accepted(loaded: Loaded, entry: HypothesisEntry) -> bool:
    """Whether the change is in the base; the fields are read only of an entry that has the word."""
    if entry.status is not Status.VALIDATED:
        return False
    return b"ccepted" in loaded.document.data[entry.start : entry.end] and entry.accepted is not None


def tried(loaded: Loaded, entry: HypothesisEntry, say: Say) -> Tried:
    """One judged hypothesis, told in one line and in a few."""
    said = mark(loaded, entry)
    title = quoted(say(entry.title), _TITLE)
    trial = loaded.trials[entry.number]
    name = f"h{entry.number} {said}"
    if not trial.verified or trial.verdict is None:
        claim = quoted(say(entry.result.get("improvement", "")), 60)
        told = f"{name}, by hand{f', claimed {claim}' if claim else ''} {title}"
        return Tried(entry.number, said, told[:_LINE], told)
    verdict = trial.verdict
    why = quoted(say(str(verdict.get("why", ""))), 200)
    short = quoted(say(entry.title), 70)
    line = f"{name} {present.improvement(verdict).partition(' (')[0]} {short}: "
    change = code(say(entry.intervention or "")[:120])
    return Tried(
        entry.number,
        said,
        line + quoted(why.strip('"'), max(20, _LINE - len(line))),
        f"{name} {title}" + (f", {change}" if change.strip("` ") else ""),
        (_moved(verdict, say), f"why: {why}"),
    )


def _moved(verdict: dict[str, Any], say: Say) -> str:
    """The figures of a verdict on one line."""
    texts = {key: say(text)[:_FIGURE] for key, text in present.result_fields(verdict).items()}
    own = texts.get("metric") or f"{GPU_UTIL} {texts['gpu util before']} to {texts['gpu util after']}"
    ratio = present.factor(verdict.get("throughput_ratio")).partition(" (")[0]
    faster = f" ({ratio})" if ratio != present.UNKNOWN else ""
    return (
        f"{own}: {texts['improvement']}; throughput {texts['throughput']}{faster}; "
        f"training {texts['training'].partition(' ')[0]}, loss {texts['loss']}"
    )
