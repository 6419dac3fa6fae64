"""Jobs that misbehave, and a stand-in for the sampler: `python zoo_jobs.py NAME stay|leave|SECONDS FOLDER`.

Standard library only. Each job writes the number and start time of every process that it makes to
FOLDER/pids, the last of them before it writes FOLDER/ready. `stay` keeps the leader running for a
minute, a number for that many seconds; `leave` lets it exit with status 0 once everything is up.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

LIFE_S = 60.0


class Stage:
    """Where the processes of one job leave their traces."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note(self) -> None:
        """Adds the calling process to the list, in one write."""
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        fd = os.open(self.folder / "pids", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, f"{os.getpid()} {fields[19]}\n".encode())
        os.close(fd)

    def ready(self) -> None:
        (self.folder / "ready").touch()

    def child(self, body: Callable[[], None]) -> int:
        """Forks a process that notes itself, runs `body` and never returns."""
        pid = os.fork()
        if pid == 0:
            try:
                self.note()
                body()
            finally:
                os._exit(0)
        return pid

    def wait_for(self, count: int) -> None:
        """Until that many processes are noted."""
        while len((self.folder / "pids").read_text().splitlines()) < count:
            time.sleep(0.005)


def live() -> None:
    end = time.monotonic() + LIFE_S
    while time.monotonic() < end:
        time.sleep(1)


def deaf() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def obedient(stage: Stage) -> None:
    """One process and nothing else."""


def ignores_signals(stage: Stage) -> None:
    deaf()


def setsid_child(stage: Stage) -> None:
    def body() -> None:
        os.setsid()
        deaf()
        live()

    stage.child(body)
    stage.wait_for(2)


def daemon(stage: Stage) -> None:
    """Double fork, own session, no descriptors, another folder."""

    def body() -> None:
        os.setsid()

        def inner() -> None:
            os.chdir("/")
            os.closerange(0, 64)
            live()

        stage.child(inner)

    os.waitpid(stage.child(body), 0)
    stage.wait_for(3)


def loader_workers(stage: Stage) -> None:
    """Three workers with a helper each; deaf to signals, waiting on a queue as loader workers do."""

    def worker() -> None:
        deaf()
        stage.child(live)
        read, _ = os.pipe()
        os.read(read, 1)

    for _ in range(3):
        stage.child(worker)
    stage.wait_for(7)


def respawner(stage: Stage, link_s: float = 0.01) -> None:
    """A chain: each link forks the next and exits."""

    def link() -> None:
        os.setsid()
        end = time.monotonic() + LIFE_S
        while time.monotonic() < end:
            time.sleep(link_s)
            if os.fork():
                os._exit(0)

    stage.child(link)
    stage.wait_for(2)


def quick_respawner(stage: Stage) -> None:
    """A chain that a look at the process table rarely sees."""
    respawner(stage, link_s=0.0)


def watch_each_other(stage: Stage) -> None:
    """Two processes, each of which starts the other again when it is gone."""

    def pair() -> None:
        os.setsid()
        deaf()
        end = time.monotonic() + LIFE_S
        while time.monotonic() < end:
            pid = os.fork()
            if pid == 0:
                parent = os.getppid()
                while os.getppid() == parent:
                    time.sleep(0.01)
                continue
            os.waitpid(pid, 0)

    stage.child(pair)
    stage.wait_for(2)


def stopped(stage: Stage) -> None:
    """A child that is stopped, and a leader that stops itself."""

    def body() -> None:
        os.kill(os.getpid(), signal.SIGSTOP)
        live()

    stage.child(body)
    stage.wait_for(2)


def keeps_stdout(stage: Stage) -> None:
    """A child that goes on printing when the leader is gone."""

    def body() -> None:
        while True:
            os.write(1, b"still here\n")
            time.sleep(0.05)

    stage.child(body)
    stage.wait_for(2)


def clears_environment(stage: Stage) -> None:
    """A daemon in which no marker can be found."""

    def body() -> None:
        os.setsid()
        if os.fork() == 0:
            stage.note()
            os.execve("/bin/sleep", ["sleep", str(int(LIFE_S))], {})
        os._exit(0)

    os.waitpid(stage.child(body), 0)
    stage.wait_for(3)


def headless(stage: Stage) -> None:
    """A child whose first thread has ended while another runs on: it reads as a zombie."""

    def body() -> None:
        deaf()
        threading.Thread(target=live).start()
        # pthread_exit: Python itself would wait for the other thread.
        ctypes = __import__("ctypes")
        ctypes.CDLL(None).pthread_exit(None)

    stage.child(body)
    stage.wait_for(2)


def closes_everything(stage: Stage) -> None:
    os.closerange(0, 256)


JOBS: dict[str, Callable[[Stage], None]] = {
    job.__name__: job
    for job in (
        obedient,
        ignores_signals,
        setsid_child,
        daemon,
        loader_workers,
        respawner,
        watch_each_other,
        stopped,
        keeps_stdout,
        clears_environment,
        headless,
        closes_everything,
    )
}


def sampler() -> int:
    """The sampler's protocol, with the fault that its request names.

    `error`, `silent`, `crash_early`: before it is ready. `crash`, `crash_once`, `hang_once`, `device_lost`:
    after three rows; those with `_once` behave when resumed.
    """
    request = json.loads(sys.stdin.readline() or "null")
    if request is None:
        return 0
    fault = request.get("fault", "")
    if fault == "error":
        print(
            json.dumps({"error": {"code": "device", "message": "no device", "next": "plug one in"}}),
            flush=True,
        )
        return 4
    if fault == "silent":
        live()
    if fault == "crash_early":
        print("driver: terrible things", file=sys.stderr, flush=True)
        os.abort()
    print("a library's chatter", flush=True)
    print(json.dumps({"ready": True, "env": sorted(os.environ)}), flush=True)
    line = sys.stdin.readline()
    if not line:
        return 0
    if request.get("resume") and fault.endswith("_once"):
        fault = ""
    return _sample(request, json.loads(line), fault)


def _sample(request: dict, launch: dict, fault: str) -> int:
    rows = 0
    with Path(request["csv"]).open("a", buffering=1) as file:
        closed = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), closed.set()), daemon=True).start()
        while not closed.wait(request["interval"]):
            elapsed = time.monotonic() - launch["t0"]
            file.write(f"{elapsed:.3f},{launch['job_pid']},{bool(request.get('resume'))}\n")
            rows += 1
            if rows == 3 and fault.startswith("crash"):
                os.kill(os.getpid(), signal.SIGSEGV)
            if rows == 3 and fault.startswith("hang"):
                deaf()
                live()
            if rows == 3 and fault == "device_lost":
                return 3
        file.write("last\n")
    print(json.dumps({"rows": rows}), flush=True)
    return 0


def main() -> None:
    if sys.argv[1] == "sampler":
        code = sampler()
        sys.stdout.flush()
        os._exit(code)
    name, mode, folder = sys.argv[1:4]
    stage = Stage(Path(folder))
    stage.note()
    (quick_respawner if name == quick_respawner.__name__ else JOBS[name])(stage)
    stage.ready()
    if mode == "stay":
        if name == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        with contextlib.suppress(KeyboardInterrupt):
            live()
    elif mode != "leave":
        time.sleep(float(mode))
    os._exit(0)


if __name__ == "__main__":
    main()
