"""Forking the job and the sampler: what happens between fork and exec."""
# pathlib would cost the warden a quarter of its start.

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import stat

from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .cgroup import Cgroup


FAILED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
EVENTS = 1


def raw(text: str) -> bytes:
    """Bytes of a path, argument or variable: they travel as Latin-1 so that no encoding can change them."""
    return text.encode("latin-1")


def shown(text: str) -> str:
    """Return the same for people to read."""
    return raw(text).decode("utf-8", "backslashreplace")


def _settle(parent: int) -> None:
    """Gives the forked child its own session, default signals, and death with the warden."""
    processes.prctl(processes.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(FAILED)  # the warden died before the line above could take effect
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        # Some C libraries keep real-time signals to themselves; no program's default is lost with them.
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _fork(child: Callable[[int], NoReturn]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        child(parent)
    return pid


def spawn_job(spec: dict[str, object], log: int, cgroup: Cgroup | None) -> tuple[int, int]:
    """Starts the job with standard input /dev/null and its output in the log.

    Returns (pid, descriptor): the descriptor reads end-of-file once the program runs, or a JSON object
    `{"status": 125|126|127, "message": ...}` if it could not be started. All other descriptors of the
    warden close on exec.
    """
    told, tell = os.pipe()

    def child(parent: int) -> NoReturn:
        answer: dict[str, int | str] = {"status": FAILED, "message": "the job could not be prepared"}
        try:
            _settle(parent)
            if cgroup is not None:
                cgroup.join()
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            answer = _enter(spec)
        finally:
            # Reached only if nothing was executed.
            os.write(tell, json.dumps(answer).encode())
            os._exit(FAILED)

    pid = _fork(child)
    os.close(tell)
    return pid, told


def _enter(spec: dict[str, Any]) -> dict[str, int | str]:
    """Becomes the job's program; returns the reason if that fails."""
    try:
        os.chdir(raw(spec["cwd"]))
    except OSError as error:
        return {"status": FAILED, "message": f"cannot enter {shown(spec['cwd'])}: {error.strerror}"}
    path = raw(spec["path"])
    argv = [raw(word) for word in spec["argv"]]
    env = {raw(key): raw(value) for key, value in spec["env"].items()}
    try:
        try:
            os.execve(path, argv, env)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without a first line that names its interpreter: as execvp(3) does.
            os.execve(b"/bin/sh", [b"/bin/sh", path, *argv[1:]], env)
    except OSError as error:
        return _explain(error, path, shown(spec["argv"][0]))


def _explain(error: OSError, path: bytes, name: str) -> dict[str, int | str]:
    if error.errno == errno.ENOENT and os.path.exists(path):
        message = f"{name}: the interpreter that its first line names does not exist"
        return {"status": NOT_FOUND, "message": message}
    if error.errno == errno.ENOENT:
        return {"status": NOT_FOUND, "message": f"{name}: not found"}
    return {"status": NOT_EXECUTABLE, "message": f"{name}: {error.strerror}"}


def spawn_sampler(spec: dict[str, Any]) -> tuple[int, int, int]:
    """Starts the sampler; returns (pid, its standard input, its standard output), both non-blocking.

    They are sockets: unlike a pipe, no other process can open one through /proc and speak in its name.
    """
    import socket

    theirs_in, ours_in = (end.detach() for end in socket.socketpair())
    ours_out, theirs_out = (end.detach() for end in socket.socketpair())

    def child(parent: int) -> NoReturn:
        try:
            _settle(parent)
            os.dup2(theirs_in, 0)
            os.dup2(theirs_out, 1)
            env = {raw(key): raw(value) for key, value in spec["env"].items()}
            os.execvpe(raw(spec["argv"][0]), [raw(word) for word in spec["argv"]], env)
        except OSError as error:
            os.write(2, f"{shown(spec['argv'][0])}: {error.strerror}\n".encode())
        finally:
            os._exit(NOT_FOUND)

    pid = _fork(child)
    os.close(theirs_in)
    os.close(theirs_out)
    os.set_blocking(ours_in, False)
    os.set_blocking(ours_out, False)
    return pid, ours_in, ours_out


def open_log(path: str) -> int:
    """Return the log for appending, mode 0600 when new; raises OSError also for what is no regular file."""
    # O_NONBLOCK: opening a FIFO without a reader fails instead of blocking for ever.
    fd = os.open(raw(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file")
    os.set_blocking(fd, True)
    return fd


class JobLog:
    """`grown` counts bytes ever added: a job that truncates its log earns no new allowance."""

    def __init__(self, path: str) -> None:
        self.fd = open_log(path)
        self._size = os.fstat(self.fd).st_size
        self.grown = 0

    def measure(self) -> int:
        size = os.fstat(self.fd).st_size
        self.grown += max(0, size - self._size)
        self._size = size
        return self.grown


def emit(event: str, **facts: object) -> None:
    # With gpudebug dead it has no reader; ending the tree matters more.
    with contextlib.suppress(ConnectionError):
        os.write(EVENTS, json.dumps({"event": event, **facts}).encode() + b"\n")
