"""What `accept` recorded: a line in the progress file alone changes nothing that runs.

The record lies in git's common folder, where nothing tracked can. A campaign of 0.1.0 has none: its
Accepted lines count as they are until the first `next`, `baseline` or `accept` of a person records them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from gpudebug.core.campaign.accepted_changes import accepted
from gpudebug.core.errors import GpudebugError, StoreError
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.words import Status
from gpudebug.edges import git
from gpudebug.edges.store.private import PrivateFolder
from gpudebug.engine.campaign.private import campaign_folder

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

    `kept` is where it lies; `problem` says why one that is there cannot be used.
    """

    kept: PrivateFolder
    entries: Mapping[int, Recorded] | None
    problem: str | None = None

    @property
    def file(self) -> Path:
        return self.kept.path / FILE

    def of(self, entry: HypothesisEntry) -> Recorded | None:
        """Return the acceptance of the verdict that an entry has now; None if there is none."""
        found = (self.entries or {}).get(entry.number)
        if found is None or entry.status is not Status.VALIDATED or entry.runs[-1:] != (found.run,):
            return None
        return found

    def by_hand(self, entry: HypothesisEntry) -> bool:
        """Tell whether an entry has an Accepted line that no `accept` recorded."""
        return self.entries is not None and entry.accepted is not None and self.of(entry) is None

    def order(self, entry: HypothesisEntry, session: str | None = None) -> int | None:
        """As which one an entry is accepted; None if it is not.

        A person takes it back by deleting its line; for a session a line that is gone changes nothing.
        """
        if self.entries is None:
            return entry.accepted if entry.status is Status.VALIDATED else None
        found = self.of(entry)
        return found.order if found and (session is not None or entry.accepted is not None) else None


def acceptances_of(root: Path, campaign: str, where: git.Checkout | git.Address) -> Acceptances:
    """Return what was recorded for the campaign at `root`. Nothing is written."""
    found = Acceptances(campaign_folder(root, campaign, where), {})
    try:
        data = found.kept.read(FILE)
        if data is not None:
            return replace(found, entries=_read(json.loads(data)))
    except GpudebugError as e:
        return replace(found, problem=e.message)
    except (ValueError, TypeError, KeyError, RecursionError):
        return replace(found, problem="is not what gpudebug writes")
    return found if found.kept.path.exists() else replace(found, entries=None)


def keep_submitted(found: Acceptances, element: str) -> None:
    """Keep what is accepted now for an element of a job array, beside the record. StoreError if that cannot
    be used."""
    if found.problem is not None:
        raise StoreError(found.problem, file=str(found.file), next="move it away, and accept again")
    found.kept.write(_of_element(element), written(found.entries or {}))


def as_submitted(found: Acceptances, element: str) -> Acceptances:
    """Return what was accepted when the array of an element was submitted. StoreError if it is not what
    gpudebug kept."""
    data = found.kept.read(_of_element(element))
    try:
        return replace(found, entries=_read(json.loads(data or b"")), problem=None)
    except (ValueError, TypeError, KeyError, RecursionError):
        file = found.file.with_name(_of_element(element))
        raise StoreError("is not what gpudebug writes", file=str(file), next="gpudebug submit") from None


def forget_submitted(found: Acceptances, element: str) -> None:
    """The element is over."""
    found.kept.remove(_of_element(element))


def _of_element(element: str) -> str:
    return f"accepted-{element}.json"


def written(entries: Mapping[int, Recorded]) -> bytes:
    """Return the record as a file."""
    rows = [{"hypothesis": number, **found._asdict()} for number, found in sorted(entries.items())]
    return json.dumps({"format": FORMAT, "accepted": rows}, indent=1).encode() + b"\n"


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
    """Return the hypotheses that were accepted, in their order, whatever became of their runs and patches."""
    if acceptances.entries is None:
        return accepted(document)
    found = []
    for entry in document.hypotheses:
        order = acceptances.order(entry, session) if entry.number in acceptances.entries else None
        if order is not None:
            found.append((order, entry.number, entry))
    return tuple(entry for *_, entry in sorted(found, key=lambda each: each[:2]))
