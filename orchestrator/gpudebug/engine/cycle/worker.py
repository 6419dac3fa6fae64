"""The background process of `next --detach`: one ordinary cycle whose answer waits for the next caller."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpudebug.core.answers.next import NextAnswer
from gpudebug.core.errors import GpudebugError, InterruptedRun, refused
from gpudebug.core.progress.sanitise import visible
from gpudebug.edges import store
from gpudebug.edges.daemon import Ear
from gpudebug.edges.host import now
from gpudebug.engine.live.underway import COMMAND
from gpudebug.engine.run.live_line import Live, Report

_LOOK_S = 0.25
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Outcome = dict[str, Any]
"""`{"answer": NEXT'S JSON}`, or `{"error": ITS JSON, "exit_status": N}`."""


def main(text: str, fd: int) -> int:
    """Do what the request says; send the result to the caller, or keep it if none listens.

    The request is JSON: `directory` to work in, the campaign's `private` folder, `session`, `id`, `since`,
    `wish`.
    """
    request = json.loads(text)
    for number in _ENDING:
        # A shell's background, whose children we may be, has Ctrl-C ignored.
        signal.signal(number, signal.default_int_handler)
    ear = Ear(fd)
    files = store.Detached(Path(request["private"]))
    holder = {k: request[k] for k in ("session", "id", "since")}
    try:
        lock = files.take({"pid": os.getpid(), "command": COMMAND, **holder})
    except GpudebugError as e:
        ear.tell({"done": failed(e)})
        return e.exit_code
    with lock, stoppable(files, request["id"]):
        report = Announcer(ear)
        outcome = failed(defect(str(files.log(request["id"]))))
        try:
            wish = store.NextWish(**request.get("wish", {}))
            outcome = _cycle(Path(request["directory"]), report, request["session"], wish)
        except Exception:  # noqa: BLE001 - a defect: it is in the log before the answer sends anybody there
            traceback.print_exc()
        finally:
            if report.told or not ear.tell({"done": outcome}):
                files.put_answer({**outcome, **holder, "ended": now()})
    return 0


def _cycle(directory: Path, report: Report, session: str | None, wish: store.NextWish) -> Outcome:
    from gpudebug.engine.cycle.begin import next_or_attached

    return outcome_of(lambda: next_or_attached(directory, report, session, wish))


def outcome_of(work: Callable[[], NextAnswer]) -> Outcome:
    """Return what `work` answers, or the expected error that it raises."""
    try:
        return {"answer": work().as_json()}
    except GpudebugError as e:
        return failed(e)
    except OSError as e:
        known = refused(e)
        if known is None:
            raise
        return failed(known)
    except KeyboardInterrupt:
        return failed(InterruptedRun("the detached run was interrupted", next="gpudebug next"))


def failed(error: GpudebugError) -> Outcome:
    return {"error": error.as_json(), "exit_status": error.exit_code}


def defect(log: str) -> GpudebugError:
    """Return the answer of last resort: the traceback goes to the log, as standard error does."""
    error = GpudebugError(
        "a defect in gpudebug ended the detached run", file=log, next="report it with this file"
    )
    error.code, error.exit_code = "defect", 3
    return error


class Announcer:
    """Tell the caller, once, that a run is under way; with what a watcher should know of it."""

    def __init__(self, ear: Ear) -> None:
        self.ear = ear
        self.told = False
        self.remarks: list[str] = []

    def __call__(self, live: Live) -> None:
        if live.remark is not None:
            self.remarks.append(live.remark)
            print(visible(live.remark), file=sys.stderr, flush=True)
        elif not self.told:
            self.told = True
            self.ear.tell({"run": live.label, "remarks": self.remarks})


@contextlib.contextmanager
def stoppable(files: store.Detached, id: str) -> Iterator[None]:
    """Takes a request to stop for Ctrl-C, until the end of the block."""
    over = threading.Event()
    main_thread = threading.main_thread().ident
    assert main_thread is not None

    def look() -> None:
        while not over.wait(_LOOK_S):
            if files.asked_to_stop(id):
                # To that thread: in a system call, it would not wake for a signal that another one takes.
                signal.pthread_kill(main_thread, signal.SIGINT)
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        files.forget_request(id)
