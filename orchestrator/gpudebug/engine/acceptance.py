"""What `accept` recorded: a line in the progress file alone changes nothing that runs.

The record lies in git's common folder, where nothing tracked can. A campaign of 0.1.0 has none: its
Accepted lines count as they are until the first `next`, `baseline` or `accept` of a person records them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.stack import accepted
from gpudebug.core.words import Status
from gpudebug.edges import snapshot, store
from gpudebug.edges.store.private import read_private, write_private
from gpudebug.engine.written import read_progress

if TYPE_CHECKING:
    from gpudebug.engine.loaded import Judged, Loaded

FILE = "accepted.json"
FORMAT = 1
_MOST = 100_000


class Recorded(NamedTuple):
    """One acceptance: its turn, the digest of the change, the run that holds the verdict and its digest."""

    order: int
    change: str
    run: str
    verdict: str
    when: str


@dataclass(frozen=True)
class Acceptances:
    """The record of a campaign. `entries` is None in a campaign of 0.1.0, which kept none.

    `anchor` and `names` are where it is kept; `problem` says why one that is there cannot be used.
    """

    anchor: Path
    names: tuple[str, ...]
    entries: Mapping[int, Recorded] | None
    problem: str | None = None

    @property
    def file(self) -> Path:
        return self.anchor.joinpath(*self.names, FILE)

    def of(self, entry: HypothesisEntry) -> Recorded | None:
        """The acceptance of the verdict that an entry has now; None if there is none."""
        found = (self.entries or {}).get(entry.number)
        if found is None or entry.status is not Status.VALIDATED or entry.runs[-1:] != (found.run,):
            return None
        return found

    def by_hand(self, entry: HypothesisEntry) -> bool:
        """Whether an entry has an Accepted line that no `accept` recorded."""
        return self.entries is not None and entry.accepted is not None and self.of(entry) is None

    def order(self, entry: HypothesisEntry, session: str | None = None) -> int | None:
        """As which one an entry is accepted; None if it is not.

        A person takes it back by deleting its line; for a session a line that is gone changes nothing.
        """
        if self.entries is None:
            return entry.accepted if entry.status is Status.VALIDATED else None
        found = self.of(entry)
        return found.order if found and (session is not None or entry.accepted is not None) else None


def acceptances_of(root: Path, campaign: str, where: snapshot.Checkout | snapshot.Address) -> Acceptances:
    """What was recorded for the campaign at `root`. Nothing is written."""
    from gpudebug.engine.private import campaign_folder

    folder = campaign_folder(root, campaign, where)
    found = Acceptances(where.common, folder.relative_to(where.common).parts, {})
    try:
        data = read_private(found.anchor, found.names, FILE)
        if data is not None:
            return replace(found, entries=_read(json.loads(data)))
    except GpudebugError as e:
        return replace(found, problem=e.message)
    except (ValueError, TypeError, KeyError, RecursionError):
        return replace(found, problem="is not what gpudebug writes")
    return found if folder.exists() else replace(found, entries=None)


def _read(data: Any) -> dict[int, Recorded]:
    if data["format"] != FORMAT:
        raise ValueError("another format")
    found = {}
    for row in data["accepted"]:
        number, order = row["hypothesis"], row["order"]
        texts = [row[key] for key in ("change", "run", "verdict", "when")]
        numbers = all(type(n) is int and 0 < n < _MOST for n in (number, order))
        if not numbers or not all(isinstance(text, str) for text in texts):
            raise ValueError("not a record")
        found[number] = Recorded(order, *texts)
    return found


def recorded(
    document: ProgressFile, acceptances: Acceptances, session: str | None = None
) -> tuple[HypothesisEntry, ...]:
    """The hypotheses that were accepted, in their order, whatever became of their runs and patches."""
    if acceptances.entries is None:
        return accepted(document)
    found = []
    for entry in document.hypotheses:
        order = acceptances.order(entry, session) if entry.number in acceptances.entries else None
        if order is not None:
            found.append((order, entry.number, entry))
    return tuple(entry for *_, entry in sorted(found, key=lambda each: each[:2]))


def in_force(
    entries: Sequence[HypothesisEntry], trials: Mapping[int, Judged], acceptances: Acceptances
) -> tuple[HypothesisEntry, ...]:
    """Those whose changes are part of what runs: their verdicts follow from runs that are here."""
    kept = acceptances.entries
    return tuple(
        h
        for h in entries
        if (judged := trials[h.number]).verified
        and (kept is None or (judged.verdict or {}).get("change_digest") == kept[h.number].change)
    )


def record(loaded: Loaded, number: int, order: int) -> None:
    """Record that hypothesis `number` was accepted, beside what was accepted before."""
    with _held(loaded):
        now = _now(loaded)
        first = loaded.acceptances.entries is None and not now.file.exists()
        kept = _of_lines(loaded, loaded.document) if first else dict(now.entries or {})
        _write(now, {**kept, number: _made(loaded, number, order)})


def settle(loaded: Loaded) -> str | None:
    """Make the record agree with the file in a person's command; what was changed, in a line.

    A campaign of 0.1.0 gets the record of what it has accepted, a new campaign an empty one. An acceptance
    whose line a person deleted goes.
    """
    before = loaded.acceptances
    if loaded.session is not None or before.problem is not None:
        return None
    lines = {h.number for h in loaded.document.hypotheses if h.accepted is not None}
    if before.entries is not None and before.entries.keys() <= lines and before.file.exists():
        return None
    with _held(loaded):
        document, now = read_progress(loaded.progress_path), _now(loaded)
        if before.entries is None:
            kept = _of_lines(loaded, document)
            _write(now, kept)
            return _said("recorded as accepted", [*kept]) if kept else None
        lines = {h.number for h in document.hypotheses if h.accepted is not None}
        known = now.entries or {}
        gone = sorted(known.keys() - lines)
        _write(now, {n: found for n, found in known.items() if n in lines})
    return _said("no longer accepted, as its Accepted line is gone", gone) if gone else None


def _said(what: str, numbers: Sequence[int]) -> str:
    return f"hypothesis {', '.join(map(str, numbers))}: {what}"


def _of_lines(loaded: Loaded, document: ProgressFile) -> dict[int, Recorded]:
    """A record of each line whose verdict follows from runs that are here."""
    now = {h.number: h.runs for h in document.hypotheses if h.accepted is not None}
    found = (h for h in accepted(loaded.document) if loaded.trials[h.number].verified)
    return {h.number: _made(loaded, h.number, h.accepted or 1) for h in found if now.get(h.number) == h.runs}


def _made(loaded: Loaded, number: int, order: int) -> Recorded:
    from gpudebug.engine.measure import now

    run = loaded.document.hypothesis(number).runs[-1]
    verdict = loaded.trials[number].verdict or {}
    sealed = store.file_digest(loaded.workspace.run(run).path / "verdict.json")
    return Recorded(order, str(verdict.get("change_digest")), run, sealed, now())


def _held(loaded: Loaded) -> Any:
    return store.locked(loaded.workspace.progress_lock(loaded.progress_path))


def _now(loaded: Loaded) -> Acceptances:
    return acceptances_of(loaded.workspace.root, loaded.config.campaign, loaded.checkout)


def _write(where: Acceptances, entries: Mapping[int, Recorded]) -> None:
    rows = [{"hypothesis": number, **found._asdict()} for number, found in sorted(entries.items())]
    text = json.dumps({"format": FORMAT, "accepted": rows}, indent=1)
    write_private(where.anchor, where.names, FILE, text.encode() + b"\n")
