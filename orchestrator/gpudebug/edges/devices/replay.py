"""A recorded run in place of device and process: its rows and its log again, at their own times."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpudebug.core.errors import DeviceError
from gpudebug.core.samples.row import DeviceReading, parse_row
from gpudebug.core.text.shell_words import isolated_argv
from gpudebug.core.words import RECORDING
from gpudebug.edges import opener

_PREFIX = "recording of "
_RUN = re.compile(r"(\d+)-(.+)")
_LONGEST_NOTES = 64 << 20


def pick(folder: str | Path, role: str, ordinal: int) -> Path:
    """Return the recorded run `NNNN-role` that is number `ordinal` (from 0) of its role.

    Where there are fewer it is the last one again. Raises `DeviceError` if none of the role was recorded.
    """
    runs = recorded_runs(Path(folder))
    own = [run for run in runs if _role(run) == role]
    if not own:
        roles = ", ".join(sorted({_role(run) for run in runs})) or "nothing"
        raise DeviceError(
            f"no run of {role} was recorded, only {roles}",
            file=str(folder),
            next=f"record one as NNNN-{role}",
        )
    return own[min(ordinal, len(own) - 1)]


def recorded_runs(folder: Path) -> list[Path]:
    """Return the recorded runs of a folder by number. Raises `DeviceError` where it cannot be read."""
    try:
        found = [path for path in folder.iterdir() if _RUN.fullmatch(path.name)]
    except OSError as error:
        raise DeviceError(
            f"cannot read recorded runs: {error.strerror}",
            file=str(folder),
            next="name a folder of run folders",
        ) from error
    whole = [path for path in found if (path / "samples.csv").is_file()]
    return sorted(whole, key=lambda path: int(path.name.partition("-")[0]))


def describe(run: Path) -> list[dict[str, object]]:
    """Return the recorded devices as the keys of `core.records.DeviceInfo`, by run.json, else by the rows.

    Whatever the recording says, they are of kind `replay`, and their names say that they are recordings.
    """
    devices = _notes(run / "run.json").get("devices")
    if isinstance(devices, list) and devices and all(isinstance(device, dict) for device in devices):
        return [
            {**device, "kind": RECORDING.name, "name": _recording(device.get("name"))} for device in devices
        ]
    seen: dict[str, DeviceReading] = {}
    for reading in read_rows(run):
        if reading.gpu_uuid is not None:
            seen.setdefault(reading.gpu_uuid, reading)
    return [
        {
            "index": reading.gpu_index or 0,
            "uuid": uuid,
            "name": _recording(None),
            "kind": RECORDING.name,
            "memory_total_mb": reading.mem_total_mb,
            "driver": None,
            "cores": None,
        }
        for uuid, reading in seen.items()
    ]


def _recording(name: object) -> str:
    text = str(name or "unknown device")
    return text if text.startswith(_PREFIX) else _PREFIX + text


def read_rows(run: Path) -> Iterator[DeviceReading]:
    """Yield the rows of samples.csv that have a time; a torn one is left out."""
    path = run / "samples.csv"
    try:
        with io.TextIOWrapper(opener.opened(path, follow=True), "utf-8", "replace") as file:
            for line in file:
                reading = parse_row(line)
                if reading is not None and reading.elapsed is not None:
                    yield reading
    except OSError as error:
        raise DeviceError(
            f"cannot read the recording: {error.strerror}", file=str(path), next="record the run again"
        ) from error


class ReplayDevice:
    """Emits the recorded rows as they are, each at its recorded time divided by `speed`."""

    source = RECORDING.name

    def __init__(self, run: str | Path, speed: float = 1.0) -> None:
        """Raises `DeviceError` where the recording cannot be read or is empty."""
        self._run = Path(run)
        self._speed = speed
        self._rows = list(read_rows(self._run))
        if not self._rows:
            raise DeviceError("the recording has no rows", file=str(self._run), next="record the run again")
        self._next = 0
        self.missing = dict(_notes(self._run / "sampler.json").get("missing") or {})
        self._duration = duration(self._run, self._rows)

    def describe(self) -> list[dict[str, object]]:
        return describe(self._run)

    def start(self, job_pid: int | None) -> None:
        """Nothing to do: the recording begins with its own launch."""

    def read(self, elapsed: float, final: bool = False) -> list[DeviceReading]:
        """What was recorded up to now; at the end of a recording that was played out, all that is left.

        The last rows were written after the job had ended, so they are past its duration.
        """
        until = elapsed * self._speed
        first = self._next
        rest = final and until >= self._duration
        while self._next < len(self._rows) and (rest or (self._rows[self._next].elapsed or 0.0) <= until):
            self._next += 1
        return self._rows[first : self._next]

    def summary(self) -> dict[str, object]:
        notes = _notes(self._run / "sampler.json")
        return {"energy_j": notes.get("energy_j", {}), "replayed": str(self._run)}


def duration(run: Path, rows: list[DeviceReading]) -> float:
    """Return how long the recorded job ran, in s: by run.json, else the time of the last row."""
    recorded = _notes(run / "run.json").get("duration_s")
    return float(recorded) if recorded is not None else float(rows[-1].elapsed or 0.0)


def player_command(run: str | Path, speed: float = 1.0) -> tuple[str, ...]:
    """Return the argument list of a process that plays the recorded job: `play`."""
    folder = str(Path(__file__).resolve().parents[3])
    statement = f"from gpudebug.edges.devices import replay; replay.play({str(run)!r}, {float(speed)!r})"
    return isolated_argv(sys.executable, [folder], statement)


def play(run: str, speed: float) -> None:
    """Write the recorded train.log to standard output at its recorded times, then end as the job did."""
    began = time.monotonic()
    folder = Path(run)
    notes = _notes(folder / "run.json")
    rows = list(read_rows(folder))
    log = folder / "train.log"
    with opener.opened(log, follow=True) if log.exists() else io.BytesIO() as file:
        written = 0
        for row in rows:
            _wait_until(began + (row.elapsed or 0.0) / speed)
            if row.log_bytes is not None and row.log_bytes > written:
                _emit(file.read(row.log_bytes - written))
                written = row.log_bytes
        _emit(file.read())
    _wait_until(began + duration(folder, rows) / speed)
    if notes.get("signal"):
        # Python turns this one into an exception; the job is to be seen dying of it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), int(notes["signal"]))
    sys.exit(notes.get("exit_status") or 0)


def _emit(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def _wait_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _role(run: Path) -> str:
    return run.name.partition("-")[2]


def _notes(path: Path) -> dict[str, Any]:
    """A JSON object of the recording; empty if there is none. Raises `DeviceError` where it is broken."""
    try:
        with opener.opened(path, follow=True) as file:
            value = json.loads(opener.read(file, _LONGEST_NOTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DeviceError(
            f"cannot read the recording: {error}", file=str(path), next="record the run again"
        ) from error
    return value if isinstance(value, dict) else {}
