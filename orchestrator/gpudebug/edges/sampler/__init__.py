"""The sampler: a process of its own that reads the run's devices on absolute deadlines into samples.csv.

Beside a Python program a thread would be up to 5 ms late and would take the training's interpreter
lock, so the warden starts this as a child (`command`). What they exchange, a JSON line each:

1. standard input: the order (`SamplerOrder`'s keys);
2. standard output: `{"ready": true, "devices": [...], "notes": {...}, "counted": {...}}`, or
   `{"error": {...}}` and exit status 4;
3. standard input: `{"t0": S, "job_pid": N}`, S on the monotonic clock: the launch;
4. standard output, after each row: `{"counted": {"bytes": N, "sha256": "..."}}`, all of samples.csv so far;
5. standard input closed: one last row, `{"notes": {...}, "counted": {...}}`, exit status 0.

The training may write to samples.csv, but not to these lines: they decide what of the file is believed.

A lost device ends it with exit status 3. A driver call that does not return within `hang` seconds
ends it by SIGALRM, as a driver that crashes does by SIGSEGV: the process is what such a call costs.
Started again with `resume`, it goes on in the same file, if that still is what its predecessor `counted`.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from gpudebug.core.command.program import as_notes
from gpudebug.core.errors import DeviceError
from gpudebug.core.samples.row import (
    DeviceLostError,
    DeviceReading,
    HostReading,
    Processes,
    SamplerDevice,
    csv_row,
)
from gpudebug.core.text.shell_words import isolated_argv
from gpudebug.edges.sampler.csvfile import Changed, CsvFile

FORMAT = 1
INTERVAL_S = 0.2
HOST_INTERVAL_S = 1.0
HANG_S = 5.0
EXIT_LOST = 3
EXIT_ERROR = 4
_PR_SET_DUMPABLE = 4

Opener = Callable[[dict[str, Any], Processes], SamplerDevice]
TreeOpener = Callable[..., Processes]


def command() -> tuple[str, ...]:
    """The argument list that runs the sampler, whatever modules the working folder or PYTHONPATH hold."""
    statement = (
        "from gpudebug.edges import devices, sampler; "
        "sys.exit(sampler.main(devices.open_device, devices.ProcessTree))"
    )
    return isolated_argv(sys.executable, package_folders(), statement)


def package_folders() -> list[str]:
    """Return where gpudebug and nvidia-ml-py lie for this process."""
    own = Path(__file__).resolve().parents[3]
    spec = find_spec("pynvml")
    driver = [str(Path(spec.origin).parent)] if spec and spec.origin else []
    return [str(own), *driver]


class SamplerOrder(NamedTuple):
    """What the warden asks for. `device` is a specification that `devices.resolve` made.

    `csv` and `log` (train.log, whose size makes `log_bytes`) are paths; `root_pid` is the root of the
    run's process tree, by default the parent, and `exclude` are processes of ours in it; `attached` says that
    this root is the job itself, which runs already. With `marker` processes with that mark are the run's,
    too, as steps are that a scheduler started. `counted` is what
    the sampler that is resumed counted last, None if it counted nothing; `restarts` how often one was.
    """

    device: dict[str, Any]
    csv: str
    log: str | None = None
    interval: float = INTERVAL_S
    host_interval: float = HOST_INTERVAL_S
    root_pid: int | None = None
    attached: bool = False
    marker: str | None = None
    exclude: tuple[int, ...] = ()
    resume: bool = False
    restarts: int = 0
    counted: dict[str, Any] | None = None
    hang: float = HANG_S


def main(open_device: Opener, open_tree: TreeOpener) -> int:
    """Serve one run over standard input and output; returns the exit status."""
    lines, text = first_order()
    if text is None:
        return 0
    order = SamplerOrder(**json.loads(text))
    root = order.root_pid or os.getppid()
    marks = {} if order.marker is None else {"marker": order.marker}
    tree = open_tree(root, [os.getpid(), *order.exclude], order.attached, log=order.log, **marks)
    try:
        with deadline(order.hang):
            device = open_device(order.device, tree)
        file = CsvFile(Path(order.csv), order.resume, order.counted)
        notes = Notes(order, device, tree, file.last_elapsed)
    except (DeviceError, OSError, Changed) as error:
        _say({"error": as_json(error)})
        return EXIT_ERROR
    ready = {"ready": True, "devices": notes.devices, "notes": notes.as_json()}
    _say({**ready, "counted": file.counted()})
    text = lines.next()
    if text is None:
        return 0
    launch = json.loads(text)
    job_pid = root if order.attached else launch.get("job_pid")
    tree.start(job_pid)
    with deadline(order.hang):
        device.start(job_pid)
    return Sampling(order, device, tree, file, notes).run(float(launch["t0"]), lines)


def first_order() -> tuple[OrderLines, str | None]:
    """Standard input, and what is asked first; None if nothing is."""
    # Ctrl-C reaches the whole terminal group, but the caller decides when sampling ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _close_to_others()
    lines = OrderLines(sys.stdin.fileno())
    return lines, lines.next()


def _say(value: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _say_if_heard(value: dict[str, object]) -> None:
    """Tell the warden if it listens: one that is stopped must not stop the sampling too."""
    if heard():
        _say(value)


def heard() -> bool:
    """Tell whether what is said now would not wait for its reader."""
    return bool(select.select([], [sys.stdout], [], 0)[1])


class Sampling:
    """The loop of one run."""

    def __init__(
        self,
        order: SamplerOrder,
        device: SamplerDevice,
        tree: Processes,
        file: CsvFile,
        notes: Notes,
        say: Callable[[dict[str, object]], None] = _say,
        count: Callable[[dict[str, object]], None] = _say_if_heard,
    ) -> None:
        """Its last word is said by `say`, and what was counted after each row is given to `count`."""
        self._say = say
        self._count = count
        self._order = order
        self._device = device
        self._tree = tree
        self._file = file
        self._notes = notes
        self._log = Path(order.log) if order.log else None
        self._host_due = 0.0

    def run(self, t0: float, lines: OrderLines) -> int:
        """Sample from `t0` (monotonic clock) until standard input ends or the device is lost."""
        interval = self._order.interval
        planned = self._first_tick()
        tick = next_tick(time.monotonic() - t0, interval, planned)
        self._notes.missed = tick - planned
        try:
            while not lines.ended_within(t0 + tick * interval - time.monotonic()):
                self._sample(time.monotonic() - t0)
                following = next_tick(time.monotonic() - t0, interval, tick + 1)
                self._notes.missed += following - tick - 1
                tick = following
            self._sample(time.monotonic() - t0, final=True)
        except DeviceLostError as error:
            self._notes.lost = error.message
        self._file.close()
        with deadline(self._order.hang):
            summary = self._device.summary()
        self._notes.finish(self._device, self._tree, summary)
        self._say({"notes": self._notes.as_json(), "counted": self._file.counted()})
        return EXIT_LOST if self._notes.lost else 0

    def _first_tick(self) -> int:
        last = self._file.last_elapsed
        return 0 if last is None else int(last / self._order.interval) + 1

    def _sample(self, elapsed: float, final: bool = False) -> None:
        with deadline(self._order.hang):
            readings = [r for r in self._device.read(elapsed, final) if self._is_new(r)]
        live = [reading for reading in readings if reading.elapsed is None]
        host = self._host(elapsed, final) if live else HostReading()
        size = _size(self._log)
        rows = [
            csv_row(
                reading
                if reading.elapsed is not None
                else reading._replace(elapsed=elapsed, log_bytes=size, **host._asdict())
            )
            for reading in readings
        ]
        self._notes.ticks += 1
        self._notes.unwritten += not self._file.append("".join(rows))
        self._count({"counted": self._file.counted()})

    def _is_new(self, reading: DeviceReading) -> bool:
        """Not a recorded row that is in the file already, from before this sampler was started again."""
        last = self._file.last_elapsed
        return reading.elapsed is None or last is None or reading.elapsed > last

    def _host(self, elapsed: float, final: bool) -> HostReading:
        self._tree.glance()
        if elapsed < self._host_due and not final:
            return HostReading()
        period = self._order.host_interval
        self._host_due = (elapsed // period + 1) * period
        return self._tree.read()


def next_tick(elapsed: float, interval: float, planned: int) -> int:
    """Return the tick to take next: `planned`, or the current one where whole ticks have gone by.

    Tick k is due k * `interval` s after the launch, whatever became of the ones before: a late tick
    shifts no later one, and ticks that were slept through are skipped, not made up for in a burst.
    """
    return max(planned, int(elapsed / interval))


class Notes:
    """What becomes sampler.json: what was sampled, how, and what the columns lack."""

    def __init__(
        self, order: SamplerOrder, device: SamplerDevice, tree: Processes, resumed_after: float | None
    ) -> None:
        self.devices = device.describe()
        self.ticks = 0
        self.missed = 0
        self.unwritten = 0
        self.lost: str | None = None
        self._order = order
        self._source = device.source
        self._missing = {**device.missing, **tree.missing}
        self._restarts = max(order.restarts, int(order.resume))
        self._resumed_after = resumed_after
        self._summary: dict[str, Any] = {}
        self._written: list[str] = []
        self._processes: list[list[object]] = []
        self._complete = False

    def finish(self, device: SamplerDevice, tree: Processes, summary: dict[str, object]) -> None:
        """The run is over: add its figures."""
        self._source = device.source
        self._missing = {**device.missing, **tree.missing}
        self.devices = device.describe()
        self._summary = dict(summary)
        if self._resumed_after is not None and "energy_j" in self._summary:
            self._summary["energy_j"] = {}
            self._missing["energy_j"] = "the sampler was restarted in mid-run"
        self._written = tree.written
        self._processes = as_notes(tree.seen)
        self._complete = True

    def as_json(self) -> dict[str, object]:
        return {
            "format": FORMAT,
            "devices": self.devices,
            "source": self._source,
            "driver": next((device.get("driver") for device in self.devices), None),
            "interval": self._order.interval,
            "host_interval": self._order.host_interval,
            "ticks": self.ticks,
            "missed": self.missed,
            "unwritten": self.unwritten,
            "missing": self._missing,
            "restarts": self._restarts,
            "resumed_after": self._resumed_after,
            "lost": self.lost,
            "cpu_s": round(time.process_time(), 4),
            "written": self._written,
            "processes": self._processes,
            "complete": self._complete,
            **self._summary,
        }


class OrderLines:
    """Standard input, read without a buffer that `select` could not see into."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""

    def next(self) -> str | None:
        """Return the next line; None at the end."""
        while b"\n" not in self._rest:
            data = os.read(self._fd, 65536)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def ended_within(self, seconds: float) -> bool:
        """Wait until the end of input, at most `seconds`; True if it came."""
        until = time.monotonic() + seconds
        while True:
            readable, _, _ = select.select([self._fd], [], [], max(0.0, until - time.monotonic()))
            if not readable:
                return False
            if not os.read(self._fd, 65536):
                return True


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    # No Python code runs while a driver call hangs; the default action of SIGALRM needs none.
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _size(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def as_json(error: DeviceError | OSError | Changed) -> dict[str, object]:
    if isinstance(error, DeviceError):
        return error.as_json()
    if isinstance(error, Changed):
        return {"code": "store", "message": "samples.csv was changed by another program", "next": None}
    return {
        "code": "store",
        "message": f"cannot write the samples: {error.strerror}",
        "file": error.filename,
        "line": None,
        "next": "free space on the disk or make the folder writable",
    }


def _close_to_others() -> None:
    """Keep other processes of this user, the training among them, out of this one's memory and files.

    Root may look all the same, and a kernel that refuses changes nothing about the samples.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
