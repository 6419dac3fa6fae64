"""The sampler as the warden sees it: started before the job, watched, restarted once, closed after the job.

Protocol, one JSON object a line. To the sampler: its request; then, once the job runs,
`{"t0": monotonic seconds of the launch, "job_pid": N}`; then end-of-file. From the sampler:
`{"ready": true, ...}` or `{"error": {...}}`; whatever it prints last is kept as its summary. A message
may carry `counted` (length and digest of samples.csv so far) and `notes` (what becomes sampler.json).
Exit status 3 says that the device is lost.
"""
# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import contextlib
import json
import os
import signal
import time

from . import spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEVICE_LOST_STATUS = 3
MIN_SILENCE_S = 3.0
SILENT_TICKS = 20
LONGEST_ANSWER = 32 * 1024


class SamplerProcess:
    """One sampler of one run, over at most one restart.

    `answer` is its last greeting, `error` why it never became ready (an error object), `device_lost`
    and `lost` what happened while the job ran. `counted` and `notes` are what it reported last of each;
    `finished` once it reported what it leaves behind.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.pid: int | None = None
        self.abandoned: set[int] = set()
        self.stdin: int | None = None
        self.stdout: int | None = None
        self.answer: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.summary: Any = None
        self.counted: dict[str, Any] | None = None
        self.notes: dict[str, Any] | None = None
        self.finished = False
        self.restarts = 0
        self.why: str | None = None
        self.lost = False
        self.device_lost = False
        self.exit_status: int | None = None
        self.signal: int | None = None
        self._job: dict[str, Any] | None = None
        self._buffer = b""
        self._ready_by = 0.0
        self._size = -1
        self._grown_at = 0.0
        self._watching = False
        self._retired = False
        self._closed = False

    @property
    def pids(self) -> set[int]:
        """Its processes that are not reaped: never part of the job's tree."""
        return self.abandoned | ({self.pid} if self.pid is not None else set())

    def start(self) -> None:
        self._buffer, self.answer, self._watching, self.finished = b"", None, False, False
        self.pid, self.stdin, self.stdout = spawn.spawn_sampler(self.spec)
        self._ready_by = time.monotonic() + self.spec["ready_timeout"]
        resume: dict[str, Any] = {}
        if self._job is not None:
            resume = {"resume": True}
            if self.counted is not None:
                resume = {**resume, "restarts": self.restarts, "counted": self.counted}
        self._tell({**self.spec["request"], **resume})

    def begin(self, t0: float, job_pid: int) -> None:
        """The job runs since `t0`: from now on rows are expected."""
        self._job = {"t0": t0, "job_pid": job_pid}
        self._greet()

    def _greet(self) -> None:
        if self._job is not None and self.answer is not None and not self._retired:
            self._tell(self._job)
            self._size, self._grown_at, self._watching = -1, time.monotonic(), True

    def _tell(self, message: dict[str, object]) -> None:
        # A sampler that is dead or does not read is noticed by its silence.
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError, BlockingIOError):
                os.write(self.stdin, json.dumps(message).encode() + b"\n")

    def read(self) -> None:
        """Takes what it printed; call when `stdout` is readable."""
        if self.stdout is None:
            return
        try:
            data = os.read(self.stdout, 65536)
        except BlockingIOError:
            return
        if not data:
            os.close(self.stdout)
            self.stdout = None
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._take(line)
        if len(self._buffer) > LONGEST_ANSWER:
            self._buffer = b""

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line) if len(line) <= LONGEST_ANSWER else None
        except ValueError:
            return  # a library's chatter
        if not isinstance(message, dict):
            return
        if isinstance(message.get("counted"), dict):
            self.counted, self._grown_at = message["counted"], time.monotonic()
        if isinstance(message.get("notes"), dict):
            self.notes, self.finished = message["notes"], self.answer is not None
        if self.answer is not None:
            if message.keys() != {"counted"}:
                self.summary = message
        elif message.get("ready"):
            self.answer = message
            self._greet()
        elif isinstance(message.get("error"), dict):
            self.error = message["error"]

    def reaped(self, pid: int, status: int) -> bool:
        """Tell whether that child was the sampler; notes how it ended."""
        if pid in self.abandoned:
            self.abandoned.discard(pid)
            return True
        if pid != self.pid:
            return False
        self.read()  # its last words may still be in the pipe
        self.pid = None
        code = os.waitstatus_to_exitcode(status)
        self.exit_status, self.signal = (code, None) if code >= 0 else (None, -code)
        if not self._closed:
            ending = f"signal {-code}" if code < 0 else f"status {code}"
            self._ended(f"ended with {ending}", code == DEVICE_LOST_STATUS)
        return True

    def check(self, now: float) -> None:
        """Notices a sampler that does not answer; call a few times a second."""
        if self.pid is None or self._retired:
            return
        if self.answer is None:
            if now >= self._ready_by:
                self._give_up(f"did not answer within {self.spec['ready_timeout']:g} s")
            return
        if not self._watching:
            return
        size = -1
        with contextlib.suppress(OSError):  # a job may put anything in its place
            size = os.stat(spawn.raw(self.spec["csv"])).st_size
        if size != self._size:
            self._size, self._grown_at = size, now
        allowed = max(MIN_SILENCE_S, SILENT_TICKS * self.spec["interval"])
        if now - self._grown_at > allowed:
            self._give_up(f"wrote no row for {allowed:g} s")

    def excuse(self, seconds: float) -> None:
        """The whole machine stood still that long: silence meanwhile is not the sampler's."""
        self._grown_at += seconds
        self._ready_by += seconds

    def _give_up(self, why: str) -> None:
        self.kill()
        if self.pid is not None:
            self.abandoned.add(self.pid)
            self.pid = None
        self.signal = int(signal.SIGKILL)
        self._ended(why, False)

    def _ended(self, why: str, device_lost: bool) -> None:
        """It is gone although it was not closed: an error before the launch, one restart after it."""
        self._close_pipes()
        self.why = f"the sampler {why}"
        self.device_lost = device_lost
        if self.error is not None:
            self.why = f"the sampler: {self.error.get('message')}"
        if self._job is None:
            if self.error is None:
                self.error = {
                    "code": "device",
                    "message": f"{self.why} before the launch",
                    "next": "run `gpudebug doctor` to see which device can be read",
                    "died": True,
                }
        elif not device_lost and not self._retired:
            if self.restarts:
                self.lost = True
            else:
                self.restarts = 1
                self.start()

    def retire(self) -> None:
        """The job is over: from now on its death or silence costs nothing and starts no other."""
        self._retired = True

    def close(self) -> None:
        """The job's tree has ended: end-of-file asks for the last row."""
        self._retired = self._closed = True
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None

    def kill(self) -> None:
        # Not reaped yet, so the number is still its own.
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)

    def _close_pipes(self) -> None:
        for fd in (self.stdin, self.stdout):
            if fd is not None:
                os.close(fd)
        self.stdin = self.stdout = None

    def record(self) -> dict[str, object]:
        """Return what the run's record says of the sampler."""
        return {
            "ready": self.answer,
            "restarts": self.restarts,
            "lost": self.lost,
            "device_lost": self.device_lost,
            "why": self.why,
            "exit_status": self.exit_status,
            "signal": self.signal,
            "summary": self.summary,
            "counted": self.counted,
            "notes": self.notes,
            "finished": self.finished,
        }
