"""`gpudebug stop`: end the allocation of a campaign, and its job array, for who asked for them."""

from __future__ import annotations

import time
from pathlib import Path

from gpudebug.core.answers.next import StopAnswer
from gpudebug.core.errors import BusyError
from gpudebug.engine.campaign.files import find, read_config
from gpudebug.engine.campaign.runner import cluster_of
from gpudebug.engine.cycle.allocation import POLL_S, SEALS_S, Allocation
from gpudebug.engine.cycle.array import end_array
from gpudebug.engine.run.live_line import Report


def stop(directory: Path, report: Report, session: str | None = None) -> StopAnswer:
    """`gpudebug stop`: end the allocation of the campaign, as `end`."""
    job = end(directory, session, report)
    workspace = find(directory)
    config = read_config(workspace)
    cluster = cluster_of(workspace, config)
    arrays = end_array(workspace, cluster, report) if session is None else ()
    ended = [*([f"job {job}"] if job is not None else []), *(f"array {array}" for array in arrays)]
    why = "no allocation is under way"
    if ended:
        why = f"{' and '.join(ended)} {'was' if len(ended) == 1 else 'were'} ended"
    return StopAnswer(campaign=config.campaign, job=job, why=why)


def end(directory: Path, session: str | None, report: Report) -> str | None:
    """End the allocation of the campaign: what runs in it is sealed first. Its job; None if there is none.

    For a person, or the session that it was asked for by: BusyError otherwise.
    """
    workspace = find(directory)
    cluster = cluster_of(workspace, read_config(workspace))
    found = Allocation(workspace, cluster, report) if cluster is not None else None
    note = found.look() if found is not None else None
    if found is None or note is None or note.ended is not None:
        return None
    if session is not None and note.session != session:
        whose = f"session {note.session}" if note.session else "a person"
        raise BusyError(
            f"the allocation, job {note.job}, is of {whose}, and this is session {session}",
            next="gpudebug next works in it",
        )
    found.files.ask_to_end()
    said = found.detached.said()
    if said.held and "id" in said.holder:
        found.detached.ask_to_stop(str(said.holder["id"]))
    deadline = time.monotonic() + SEALS_S
    while found.files.served().held and time.monotonic() < deadline:
        time.sleep(POLL_S)
    found.cancel(note, "gpudebug stop")
    return note.job
