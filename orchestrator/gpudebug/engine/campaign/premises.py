"""What a hypothesis was measured on, beside what the campaign measures now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.errors import UsageError
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.change_files import tested_change
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


def entry_of(loaded: Loaded, number: int) -> HypothesisEntry:
    """Return the hypothesis with this number; UsageError if there is none."""
    found = next((h for h in loaded.document.hypotheses if h.number == number), None)
    if found is None:
        have = [str(h.number) for h in loaded.document.hypotheses]
        more = f" and {len(have) - _NAMED} more" if len(have) > _NAMED else ""
        raise UsageError(
            f"there is no hypothesis {number}: there are {', '.join(have[:_NAMED]) or 'none'}{more}",
            file=str(loaded.progress_path),
            next="gpudebug status",
        )
    return found


def changed(loaded: Loaded, entry: HypothesisEntry) -> tuple[str, ...]:
    """What has changed since a hypothesis's trial was measured, as words; nothing if no run records it."""
    return _words(moved(loaded, entry))


def moved(loaded: Loaded, entry: HypothesisEntry) -> tuple[str, ...]:
    """Return the same as keys of `RunRecord.identity`."""
    records = (loaded.records.get(name, {}) for name in entry.runs)
    trials = [r for r in records if r.get("hypothesis") == entry.number]
    if not trials:
        return ()
    return _otherwise(loaded, trials[-1])


def _otherwise(loaded: Loaded, record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the campaign measures now and a run did not, as keys of `RunRecord.identity`."""
    then = record.get("identity", {})
    return tuple(key for key, value in loaded.identities["workload"].items() if then.get(key) != value)


def _words(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(_SAID.get(key, key) for key in keys)


def why_of(loaded: Loaded, entry: HypothesisEntry) -> str:
    """Return why a hypothesis got its verdict, in one clause; that it is UNVERIFIED if no run shows it."""
    judged = loaded.trials[entry.number]
    if judged.verified and judged.verdict:
        return str(judged.verdict["why"])
    return f"UNVERIFIED {entry.result.get('improvement', '')}".strip()


def reason(loaded: Loaded, entry: HypothesisEntry) -> str | None:
    """Return why a hypothesis with a verdict may be tested again; None if it may not."""
    if entry.status in (Status.UNTESTED, Status.TESTING) or loaded.order(entry) is not None:
        return None
    kept = _decided(loaded, entry) if loaded.session is not None else None
    if kept is not None and not loaded.trials[entry.number].verified:
        since = _words(_otherwise(loaded, loaded.records[kept]))
        return f"{' and '.join(since)} changed since it was measured" if since else None
    if entry.status in _UNDECIDED:
        return f"it is {entry.status}: {why_of(loaded, entry)}"
    if not loaded.trials[entry.number].verified:
        return f"it is {entry.status} in the progress file alone: UNVERIFIED"
    against = _mendable(loaded, entry)
    if against:
        return "; ".join(against)
    since = changed(loaded, entry)
    return f"{' and '.join(since)} changed since it was measured" if since else None


def _mendable(loaded: Loaded, entry: HypothesisEntry) -> list[str]:
    """Return what speaks against a verdict and another test would mend: not that a test is listed nowhere."""
    found = loaded.trials[entry.number].doubts
    return [line for line in found.against if line not in found.untold]


def _decided(loaded: Loaded, entry: HypothesisEntry) -> str | None:
    """The run with the newest verdict on an entry's change if it decides, whatever the entry says of it."""
    for name in reversed(loaded.judged):
        verdict = stored_verdict(loaded.workspace.run(name)) or {}
        if verdict.get("hypothesis") == entry.number:
            same = verdict["change_digest"] == tested_change(loaded.workspace, entry.intervention)
            return name if same and verdict["status"] not in _UNDECIDED else None
    return None


def standing_against(loaded: Loaded, number: int) -> str | None:
    """Return why the verdict of hypothesis `number` may not be handed over; None if it may.

    Weaker terms may if a person confirmed this very verdict by them; what was played back or came with the
    repository never.
    """
    found = loaded.trials[number].doubts
    if not found.against:
        return None
    evidence = (not found.replayed or loaded.settings.replay) and not found.brought
    pinned = loaded.settings.pinned
    confirmed = pinned.confirmed.get(str(number)) if pinned else None
    if evidence and confirmed is not None and confirmed == digest_of(loaded, number):
        return None
    return "; ".join(found.against)


def digest_of(loaded: Loaded, number: int) -> str | None:
    """Return the digest of the verdict.json of hypothesis `number`; None without one."""
    runs = loaded.document.hypothesis(number).runs
    path = loaded.workspace.run(runs[-1]).path / "verdict.json" if runs else None
    return store.file_digest(path) if path is not None and path.is_file() else None
