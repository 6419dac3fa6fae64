"""What became of the hypotheses of a campaign, as a brief shows it: figures only if runs support them."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.agents.page import Say, Tried, code, quoted, whole, words
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.statistics import numbers
from gpudebug.core.words import VERDICTS, Status
from gpudebug.engine.campaign.campaign import Entries


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
    """Return one judged hypothesis: verdict, change of metric and throughput, title, change and reason."""
    verdict = mark(entries, entry)
    title = say(entry.title)
    trial = entries.trials[entry.number]
    name = f"h{entry.number} {verdict}"
    if not trial.verified or trial.verdict is None:
        claim = quoted(say(entry.result.get("improvement", "")), 60)
        claimed = f"{name}, by hand{f', claimed {claim}' if claim else ''} "
        return Tried(
            entry.number, verdict, lambda width: claimed + quoted(title, max(20, width - len(claimed)))
        )
    moved = numbers.improvement(trial.verdict)
    faster = numbers.factor(trial.verdict.get("throughput_ratio"))
    short, ratio = (text.partition(" (")[0] for text in (moved, faster))
    # Of a campaign whose metric is the throughput they are one figure.
    figures = f"{name} {short}" + (f", throughput {ratio}" if ratio != short else "")
    # The estimate stands in front already, without its interval.
    why = say(str(trial.verdict.get("why", ""))).replace(f"{short} (95% CI ", "(", 1)
    change = words(say(entry.intervention or "none"))
    return Tried(entry.number, verdict, lambda width: _line(figures, title, change, why, width))


def _line(figures: str, title: str, change: Sequence[str], why: str, width: int) -> str:
    """Change and reason have what they need first; of the title a third of the room at least."""
    room = width - len(figures) - len(': "", ``: ""')
    made = whole(change, max(30, room // 2))
    least = min(len(title), max(16, room // 3))
    reason = quoted(why, max(16, room - len(made) - least))
    return f"{figures}: {quoted(title, max(16, room - len(made) - len(reason)))}, {code(made)}: {reason}"
