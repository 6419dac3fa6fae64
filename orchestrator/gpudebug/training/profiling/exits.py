"""What the environment asks for when the library is loaded, and what is written when the process ends."""

from __future__ import annotations

import atexit
import errno
import os
import sys

from gpudebug.training.profiling.state import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    Report = Callable[[], dict[str, Any]]

REPORT = "sections.json"
"""The report's name in a run's folder."""


class ProfilerEnvironment:
    """What the environment held when the library was loaded, and which process is meant."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.run_dir = env.get("GPUDEBUG_RUN_DIR") or None
        # The program may empty the other one.
        self.records = env.get("GPUDEBUG_RECORDS_DIR") or self.run_dir
        asked = env.get("GPUDEBUG_PROFILE", "")
        self.path = (
            self._path(REPORT if asked in ("1", "true") else asked) if asked not in ("", "0") else None
        )
        self.problem: str | None = None
        self.summary_every = self._every(env.get("GPUDEBUG_PROFILE_SUMMARY", ""))
        self.arranged = False
        self.began_in(env, forked=False)

    def began_in(self, env: Mapping[str, str], forked: bool) -> None:
        """A process begins; what it is given as a rank it shares with its parent."""
        self.forked = forked
        # A process group that was there at the fork is the parent's.
        self.group_is_ours = not (forked and _group_rank() is not None)
        self.rank: int | None = None
        self.given_rank = env.get("RANK")

    def _path(self, name: str) -> str:
        folder = self.records if name == REPORT else self.run_dir
        path = os.path.join(folder or "", os.path.expanduser(name))
        try:
            return os.path.abspath(path)
        except OSError:
            # The working folder is gone: where the process goes next, this may still lead somewhere.
            return path

    def _every(self, text: str) -> int:
        if text.isdecimal():
            return int(text)
        if text:
            self.problem = f"GPUDEBUG_PROFILE_SUMMARY takes a whole number of iterations, not {text!r}"
        return 0

    def reports(self) -> list[str]:
        """Return the files that a report is due in when the process ends."""
        ours = self.path or (self._path(REPORT) if self.records else None)
        return list(dict.fromkeys(path for path in (state.report_path, ours) if path))


def begin(start: Callable[[], None], time_named: Callable[[str], None]) -> None:
    """Enable profiling and time classes if the environment asks for it.

    The import of a training must not fail for us: an error is a line on standard error.
    """
    if places.problem:
        warn(places.problem)
    try:
        if places.path or places.summary_every:
            start()
    except Exception as e:  # noqa: BLE001
        warn(f"sections are not profiled: {type(e).__name__}: {e}")
    named = os.environ.get("GPUDEBUG_PROFILE_METHODS")
    try:
        if named:
            time_named(named)
    except Exception as e:  # noqa: BLE001
        warn(f"methods are not profiled: {type(e).__name__}: {e}")


def arrange(report: Report, forked: Callable[[], None]) -> None:
    """Have the reports written when this process ends, and have its forked children start empty."""
    if places.arranged:
        return
    places.arranged = True
    atexit.register(at_exit, report)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _after_fork(report, forked))


def _after_fork(report: Report, forked: Callable[[], None]) -> None:
    forked()
    places.began_in(os.environ, forked=True)
    # A child of multiprocessing ends without atexit, and forgets what was arranged before it began.
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(places, lambda _: _when_the_child_ends(report))


def _when_the_child_ends(report: Report) -> None:
    from multiprocessing.util import Finalize

    Finalize(None, at_exit, (report,), exitpriority=0)


def at_exit(report: Report) -> None:
    """Write what is due; a failure is one line on standard error."""
    try:
        paths = places.reports()
        if not paths or (_is_child() and not _is_rank()):
            return
        document = report()
        # A launcher asks for every program's sections; most have none.
        if not document["sections"] and not state.asked_by_code and places.run_dir:
            return
        for path in paths:
            _write_or_warn(of_rank(path, document["rank"]), document)
    except Exception as e:  # noqa: BLE001 - the training's own exit status counts
        warn(f"no report of sections: {type(e).__name__}: {e}")


def _write_or_warn(path: str, report: dict[str, object]) -> None:
    try:
        write(path, report)
    except OSError as e:
        warn(f"no report of sections: {path}: {e.strerror or e}")


def warn(text: str) -> None:
    """A line on standard error, if there is one."""
    try:  # noqa: SIM105 - nothing is imported where the process ends
        sys.stderr.write(f"gpudebug: {text}\n")
    except (OSError, ValueError, AttributeError):
        # Closed, full or not there: nowhere is left to say it.
        pass


def write(path: str, document: dict[str, object]) -> None:
    """Write a document as JSON, whole or not at all; makes the folder. OSError if that cannot be.

    Of what is there already only a file is replaced, never a device or a pipe; of a link, what it leads to.
    """
    import json

    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, "is not a file that a report could replace", path)
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    beside = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    try:
        with open(beside, "w", encoding="utf-8") as file:
            # Names are the user's: what no UTF-8 can hold is escaped.
            json.dump(document, file, allow_nan=False)
            file.write("\n")
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.remove(beside)
        raise


def of_rank(path: str, rank: int | None) -> str:
    """`sections.rank3.json` for `sections.json`, but for rank 0 and a process without one."""
    if not rank:
        return path
    stem, suffix = os.path.splitext(path)
    return f"{stem}.rank{rank}{suffix}"


def rank() -> int | None:
    """This process's rank in a distributed training; None without one."""
    text = os.environ.get("RANK", "")
    return int(text) if text.isdecimal() else places.rank


def notice_rank() -> None:
    """See PyTorch's rank while there is one: at the end the process group is often gone."""
    if places.rank is None and places.group_is_ours:
        places.rank = _group_rank()


def _group_rank() -> int | None:
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
    except Exception:  # noqa: BLE001 - half imported, or broken: the training's affair
        return None
    return None


def _is_child() -> bool:
    process = sys.modules.get("multiprocessing.process")
    return places.forked or (process is not None and process.parent_process() is not None)


def _is_rank() -> bool:
    """Tell whether a child took a rank of its own; a loader's worker only has its parent's."""
    return places.rank is not None or os.environ.get("RANK") != places.given_rank


places = ProfilerEnvironment(os.environ)
