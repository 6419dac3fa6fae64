"""Helpers for tests with real processes: a stand-in for gpudebug that can be killed, and who is left."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from gpudebug.core.errors import GpudebugError
from gpudebug.edges import launcher

ZOO = Path(__file__).parent / "zoo_jobs.py"
WITNESS = "ZOO_RUN"

_PR_CAPBSET_DROP = 24
_ABOVE_PERMISSIONS = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def drop_privileges() -> None:
    """What this process starts is held by the permissions of files, also where it is root."""
    libc = ctypes.CDLL(None)
    for capability in _ABOVE_PERMISSIONS:
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def job_argv(name: str, mode: str, folder: Path) -> tuple[str, ...]:
    return (sys.executable, str(ZOO), name, mode, str(folder))


def spec_for(argv: tuple[str, ...], folder: Path, **changes: Any) -> launcher.LaunchSpec:
    """A launch in `folder`: log in train.log, marker the folder, a short ladder."""
    folder.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {
        "argv": argv,
        "cwd": str(folder),
        "env": {**os.environ, WITNESS: str(folder)},
        "log": str(folder / "train.log"),
        "marker": str(folder),
        "ladder": (0.2, 0.2),
        **changes,
    }
    return launcher.LaunchSpec(**facts)


def sampler_for(folder: Path, fault: str = "", **changes: Any) -> launcher.SamplerSpec:
    """The stand-in sampler of zoo_jobs, at 20 Hz."""
    csv = str(folder / "samples.csv")
    facts: dict[str, Any] = {
        "argv": (sys.executable, str(ZOO), "sampler"),
        "env": {**os.environ, WITNESS: str(folder)},
        "request": {"csv": csv, "interval": 0.05, "fault": fault},
        "csv": csv,
        "interval": 0.05,
        **changes,
    }
    return launcher.SamplerSpec(**facts)


def fork(body: Callable[[], object]) -> int:
    """Runs `body` in a forked child without the test runner's own endings; returns the child's number."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(0)
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stderr.flush()
            os._exit(status)
    return pid


class Driver:
    """A process that does what gpudebug does around one launch, and can be killed like it."""

    def __init__(
        self,
        spec: launcher.LaunchSpec,
        observe: Callable[[launcher.Tick], str | None] | None = None,
        poll: float = 0.1,
    ) -> None:
        self.folder = Path(spec.marker)
        self.result = self.folder / "launched.json"
        self.started = time.monotonic()

        def body() -> None:
            # The warden inherits it: with this a warden that stays behind is found too.
            os.environ[WITNESS] = str(self.folder)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                outcome = asdict(launcher.launch(spec, observe, poll))
            except GpudebugError as error:
                outcome = {"error": error.as_json()}
            temporary = self.result.with_suffix(".new")
            temporary.write_text(json.dumps(outcome))
            temporary.rename(self.result)

        self.pid = fork(body)

    def wait(self, within: float = 30.0) -> int:
        """Its exit status; a driver that hangs fails the test."""
        deadline = time.monotonic() + within
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f"launch of {self.folder.name} did not return within {within} s")
            time.sleep(0.01)

    def launched(self) -> dict[str, Any]:
        return dict(json.loads(self.result.read_text()))

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def warden(self) -> psutil.Process | None:
        """Its warden, if it is there already or still."""
        return self._find(self.pid, "warden")

    def sampler(self) -> psutil.Process | None:
        warden = self.warden()
        return None if warden is None else self._find(warden.pid, "sampler")

    @staticmethod
    def _find(parent: int, word: str) -> psutil.Process | None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(parent).children():
                with contextlib.suppress(psutil.NoSuchProcess):
                    if any(word in part for part in child.cmdline()):
                        return child
        return None


def wait_until(condition: Callable[[], object], within: float = 15.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {within} s")
        time.sleep(0.01)


def witnesses() -> dict[str, list[int]]:
    """Every live process that carries a WITNESS, by its value."""
    found: dict[str, list[int]] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.status() != psutil.STATUS_ZOMBIE:
                value = process.environ().get(WITNESS)
                if value is not None and process.pid != os.getpid():
                    found.setdefault(value, []).append(process.pid)
    return found


def noted(folder: Path) -> list[int]:
    """The processes in FOLDER/pids that still live, by number and start time."""
    listed = folder / "pids"
    lines = listed.read_text().split("\n")[:-1] if listed.exists() else []
    return [int(pid) for pid, start in (line.split() for line in lines) if _lives(int(pid), start)]


def _lives(pid: int, start: str) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[19] == start and (fields[0] not in "ZX" or int(fields[17]) > 1)


def left_of(folders: list[Path]) -> dict[str, list[int]]:
    """Who is still alive, by the folder's name."""
    marked = witnesses()
    left = {folder.name: sorted({*noted(folder), *marked.get(str(folder), [])}) for folder in folders}
    return {name: pids for name, pids in left.items() if pids}


def left_after(folders: list[Path], within: float = 2.0) -> dict[str, list[int]]:
    """Waits until nobody is left, for at most that long, and says who is: the answer must be {}."""
    deadline = time.monotonic() + within
    while True:
        left = left_of(folders)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


@contextlib.contextmanager
def nobody_left(folders: list[Path]) -> Iterator[None]:
    """Kills whoever is left at the end of the block, so that the next test starts clean."""
    try:
        yield
    finally:
        for pids in left_of(folders).values():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
