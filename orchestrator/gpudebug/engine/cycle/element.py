"""The worker in one element of a job array: a baseline of its own, one hypothesis, and what came of it.

`python -m gpudebug.engine.cycle.element FOLDER`, which the batch script starts on the first node.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from gpudebug.core.campaign.decide import over
from gpudebug.core.cluster.jobs import InsideJob
from gpudebug.core.errors import ClusterError, GpudebugError, InterruptedRun, StoreError, refused
from gpudebug.core.progress.sanitise import visible
from gpudebug.edges import clusters, launcher, store
from gpudebug.edges.host import now
from gpudebug.engine.campaign.allocations import living_jobs
from gpudebug.engine.campaign.files import find
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.session import NAMES, VARIABLE
from gpudebug.engine.campaign.verdicts import refuse_brought_elements
from gpudebug.engine.cycle.begin import next_or_attached
from gpudebug.engine.cycle.notice import Notice
from gpudebug.engine.cycle.taken_in import take_in
from gpudebug.engine.run.live_line import Live
from gpudebug.engine.run.prepare import claim_of

SUBMITTED_S = 30.0
"""So long `submit` may take to write down its array behind what the cluster begins at once."""
AWAY_S = 60.0
"""A run that the cluster failed is made again after so long: its controller may be away for minutes, and a
grace time may not be over."""
_LOOK_S = 1.0
_ON_THE_WAY = ("recovered", "recorded_baseline")


def main(root: str) -> int:
    """Test this element's hypothesis in the campaign in this folder. Status 1 if the cluster cuts it off."""
    workspace = find(Path(root))
    job = clusters.inside()
    if job is None or job.element is None:
        raise ClusterError("this is no element of a job array", next="gpudebug submit asks for one")
    for name in NAMES:
        # Whoever submitted the array is not the session of its elements.
        os.environ.pop(name, None)
    elements = store.Elements(workspace)
    note = _taken_up(elements, job)
    if note is None:
        print(f"job {job.id}: it is not this campaign's any more", file=sys.stderr)
        return 0
    if (why := _over(workspace.root, note)) is not None:
        with elements.changing():
            elements.put(replace(note, ended=why))
        print(why, file=sys.stderr)
        return 0
    command = f"the worker of job {job.id}"
    holder = {"pid": os.getpid(), "command": command, "since": now(), "allocation": job.allocation}
    with elements.take(note, holder, living_jobs(workspace)):
        os.environ[VARIABLE] = note.session
        notice, ended = Notice(job), list[str]()
        with (
            notice.heeded(partial(_leaves, elements, note)),
            launcher.naming_interrupts(lambda: notice.origin),
        ):
            ended.append(_outcome(elements.path(note), note, notice))
        if not ended:
            return 1
        note = replace(note, ended=ended[0])
        with elements.changing():
            elements.put(note)
    _take_in(workspace, note, command)
    return 0


def _over(root: Path, note: store.ElementNote) -> str | None:
    """Return why nothing is to be measured for its campaign any more; None while there is."""
    loaded = load(root)
    refuse_brought_elements(loaded.setup.workspace, loaded.setup.checkout)
    if note.campaign != loaded.setup.config.campaign:
        return (
            f"gpudebug.yaml names campaign {loaded.setup.config.campaign} now, and this is of {note.campaign}"
        )
    action = over(loaded.campaign)
    return f"the campaign is over: {action.why}" if action is not None else None


def _taken_up(elements: store.Elements, job: InsideJob) -> store.ElementNote | None:
    """Return what this element tests, once the whole array was submitted; None if it is not wanted any more.

    Where a lock ends at the node, a note that has no array yet is one that is being submitted.
    """
    deadline = time.monotonic() + SUBMITTED_S
    while True:
        with elements.changing():
            mine = [n for n in elements.notes() if n.hypothesis == job.element and n.ended is None]
            for note in mine:
                if note.array == job.array:
                    taken = replace(note, left=None)
                    elements.put(taken)
                    return taken
        if all(note.array is not None for note in mine) or time.monotonic() > deadline:
            return None
        time.sleep(_LOOK_S)


def _leaves(elements: store.Elements, note: store.ElementNote, why: str) -> None:
    """Write down that the cluster cuts this worker off, for the command that finds what it could not seal."""
    print(why, file=sys.stderr)
    with elements.changing():
        if elements.note(note.name) == note:
            elements.put(replace(note, left=why))


def _outcome(folder: Path, note: store.ElementNote, notice: Notice) -> str:
    """Why the element is over: its verdict, or the error that it met. KeyboardInterrupt if it was cut off."""
    while True:
        try:
            with notice.busy():
                answer = next_or_attached(folder, _remark, note.session)
        except (InterruptedRun, KeyboardInterrupt) as e:
            # In a launch the end of the job is told to the run alone.
            failed = e.message if isinstance(e, InterruptedRun) and e.void else None
            why = "the cluster suspended the job" if notice.paused else failed
            if why is None or notice.why is not None:
                raise KeyboardInterrupt from None
            print(visible(f"{why}: what ran is void, and is run again"), file=sys.stderr, flush=True)
            if failed is not None:
                time.sleep(AWAY_S)
        except (GpudebugError, OSError) as e:
            known = _expected(e)
            return f"{known.message}{f'; {known.next}' if known.next else ''}"
        else:
            if answer.action not in _ON_THE_WAY:
                return answer.why
            print(visible(f"{answer.action}: {answer.why}"), file=sys.stderr, flush=True)


def _take_in(workspace: store.Workspace, note: store.ElementNote, command: str) -> None:
    """Give the runs to the campaign; if a command works in it now, the next command takes them.

    What `status` shows is recorded on the login node: here baselines of other allocations are not valid.
    """
    try:
        with claim_of(workspace, command, note.session):
            if store.Elements(workspace).note(note.name) is None:
                return
            loaded = load(workspace.root)
            if note.campaign != loaded.setup.config.campaign:
                raise StoreError(f"gpudebug.yaml names campaign {loaded.setup.config.campaign} now")
            print(
                visible(take_in(loaded.setup, loaded.entries.acceptances, note, str(note.ended))),
                file=sys.stderr,
            )
    except GpudebugError as e:
        print(visible(f"left to the campaign's next command: {e.message}"), file=sys.stderr)
        # The last word of its log is why its hypothesis has no verdict.
        print(visible(str(note.ended)), file=sys.stderr)


def _remark(live: Live) -> None:
    if live.remark is not None:
        print(visible(live.remark), file=sys.stderr, flush=True)


def _expected(error: GpudebugError | OSError) -> GpudebugError:
    """Return the expected error that this is; what is a defect is raised."""
    known = error if isinstance(error, GpudebugError) else refused(error)
    if known is None:
        raise error
    return known


def status(root: str) -> int | str:
    """Return what `main` returns, or a line: the last one of the log is what its caller is told."""
    try:
        return main(root)
    except (GpudebugError, OSError) as e:
        return f"gpudebug: {_expected(e)}"


if __name__ == "__main__":
    sys.exit(status(sys.argv[1]))
