"""What a hypothesis was measured on, beside what the campaign measures now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpudebug.core.errors import UsageError
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Entries, History, Identities, Setup, Trials
from gpudebug.engine.campaign.files import stored_verdict

_SAID = {
    "command": "the workload's command",
    "tree": "the code",
    "interpreter": "the interpreter",
    "reading": "how its log and samples are read",
    "device": "the device",
}
_NAMED = 20
_UNDECIDED = frozenset({Status.INCONCLUSIVE, Status.INVALID})


def entry_of(progress_path: Path, document: ProgressFile, number: int) -> HypothesisEntry:
    """Return the hypothesis with this number; UsageError if there is none."""
    found = next((h for h in document.hypotheses if h.number == number), None)
    if found is None:
        have = [str(h.number) for h in document.hypotheses]
        more = f" and {len(have) - _NAMED} more" if len(have) > _NAMED else ""
        raise UsageError(
            f"there is no hypothesis {number}: there are {', '.join(have[:_NAMED]) or 'none'}{more}",
            file=str(progress_path),
            next="gpudebug status",
        )
    return found


def changed(history: History, entry: HypothesisEntry) -> tuple[str, ...]:
    """What has changed since a hypothesis's trial was measured, as words; nothing if no run records it."""
    return _words(moved(history, entry))


def moved(history: History, entry: HypothesisEntry) -> tuple[str, ...]:
    """Return the same as keys of `RunRecord.identity`."""
    records = (history.records.get(name, {}) for name in entry.runs)
    trials = [r for r in records if r.get("hypothesis") == entry.number]
    if not trials:
        return ()
    return _otherwise(history.identities, trials[-1])


def _otherwise(identities: Identities, record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the campaign measures now and a run did not, as keys of `RunRecord.identity`."""
    then = record.get("identity", {})
    return tuple(key for key, value in identities["workload"].items() if then.get(key) != value)


def _words(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(_SAID.get(key, key) for key in keys)


def why_of(trials: Trials, entry: HypothesisEntry) -> str:
    """Return why a hypothesis got its verdict, in one clause; that it is UNVERIFIED if no run shows it."""
    judged = trials[entry.number]
    if judged.verified and judged.verdict:
        return str(judged.verdict["why"])
    return f"UNVERIFIED {entry.result.get('improvement', '')}".strip()


def reason(setup: Setup, entries: Entries, history: History, entry: HypothesisEntry) -> str | None:
    """Return why a hypothesis with a verdict may be tested again; None if it may not."""
    if entry.status in (Status.UNTESTED, Status.TESTING) or entries.order(entry) is not None:
        return None
    trial, kept = entries.trials[entry.number], None
    if setup.session is not None:
        kept = _decided(setup.workspace, history.judged, entry, trial.change)
    if kept is not None and not trial.verified:
        since = _words(_otherwise(history.identities, history.records[kept]))
        return f"{' and '.join(since)} changed since it was measured" if since else None
    if entry.status in _UNDECIDED:
        return f"it is {entry.status}: {why_of(entries.trials, entry)}"
    if not trial.verified:
        return f"it is {entry.status} in the progress file alone: UNVERIFIED"
    against = _mendable(entries.trials, entry)
    if against:
        return "; ".join(against)
    since = changed(history, entry)
    return f"{' and '.join(since)} changed since it was measured" if since else None


def _mendable(trials: Trials, entry: HypothesisEntry) -> list[str]:
    """Return what speaks against a verdict and another test would mend: not that a test is listed nowhere."""
    found = trials[entry.number].doubts
    return [line for line in found.against if line not in found.untold]


def _decided(
    workspace: store.Workspace, judged: Sequence[str], entry: HypothesisEntry, change: str | None
) -> str | None:
    """The run with the newest verdict on an entry's change if it decides, whatever the entry says of it."""
    for name in reversed(judged):
        verdict = stored_verdict(workspace.run(name)) or {}
        if verdict.get("hypothesis") == entry.number:
            same = verdict["change_digest"] == change
            return name if same and verdict["status"] not in _UNDECIDED else None
    return None


def standing_against(setup: Setup, entries: Entries, number: int) -> str | None:
    """Return why the verdict of hypothesis `number` may not be handed over; None if it may.

    Weaker terms may if a person confirmed this very verdict by them; what was played back or came with the
    repository never.
    """
    found = entries.trials[number].doubts
    if not found.against:
        return None
    evidence = (not found.replayed or setup.compared.replay) and not found.brought
    pinned = setup.compared.pinned
    confirmed = pinned.confirmed.get(str(number)) if pinned else None
    if (
        evidence
        and confirmed is not None
        and confirmed == digest_of(setup.workspace, entries.document, number)
    ):
        return None
    return "; ".join(found.against)


def digest_of(workspace: store.Workspace, document: ProgressFile, number: int) -> str | None:
    """Return the digest of the verdict.json of hypothesis `number`; None without one."""
    runs = document.hypothesis(number).runs
    path = workspace.run(runs[-1]).path / "verdict.json" if runs else None
    return store.file_digest(path) if path is not None and path.is_file() else None
