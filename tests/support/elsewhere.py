"""Python without what macOS or Windows lack: `python -m tests.support.elsewhere win32 FILE ARGUMENT…` runs a
program of Python so, with `-m MODULE` in place of FILE a module."""

from __future__ import annotations

import importlib.abc
import mmap
import os
import runpy
import select
import signal
import socket
import sys
import sysconfig
import time
from contextlib import suppress
from importlib import import_module
from types import ModuleType

# Of others, what looks at the platform while it is loaded.
_LOADED = "sqlite3 subprocess tempfile zoneinfo matplotlib.pyplot psutil pydantic.types typer.main"

# docs.python.org: "Availability: Linux" (of these macOS has none), "Availability: Unix".
_LINUX = {
    os: "O_PATH O_TMPFILE memfd_create pidfd_open posix_fadvise posix_fallocate sched_getaffinity "
    "sched_setaffinity getxattr listxattr setxattr eventfd splice copy_file_range statx",
    select: "epoll",
    signal: "sigtimedwait sigwaitinfo SIGRTMIN SIGRTMAX pidfd_send_signal",
    time: "CLOCK_BOOTTIME",
}
_UNIX_MODULES = {"curses", "fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
_UNIX = {
    os: "O_ASYNC O_CLOEXEC O_DIRECTORY O_DSYNC O_NDELAY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC SEEK_DATA "
    "SEEK_HOLE WNOHANG chown chroot confstr ctermid fchdir fchmod fchown fdatasync fork forkpty "
    "fpathconf fstatvfs getegid geteuid getgid getgroups getloadavg getpgid getpgrp getpriority "
    "getresgid getresuid getsid getuid killpg lchown lockf mkfifo mknod nice openpty pathconf pipe2 "
    "posix_spawn pread preadv pwrite pwritev readv register_at_fork sched_yield sendfile setpgid "
    "setpriority setsid setuid statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 "
    "wait4 waitid writev",
    mmap: "MAP_SHARED MAP_PRIVATE PROT_READ PROT_WRITE",
    select: "poll",
    socket: "AF_UNIX socketpair",
    time: "clock_gettime clock_gettime_ns CLOCK_MONOTONIC CLOCK_REALTIME pthread_getcpuclockid tzset",
}
_SIGNALS_OF_WINDOWS = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIG_DFL", "SIG_IGN"}


class _Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in _UNIX_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _take(names: dict[ModuleType, str]) -> None:
    for module, gone in names.items():
        for name in gone.split():
            if hasattr(module, name):
                delattr(module, name)


def become(platform: str) -> None:
    """Take from this process what Python has not on `platform`: `darwin`, `win32`, or nothing on `linux`."""
    if platform == "linux":
        return
    sysconfig.get_config_vars()
    for name in _LOADED.split():
        with suppress(ImportError):
            import_module(name)
    _take(_LINUX)
    sys.platform = platform
    if platform == "win32":
        _take(_UNIX)
        for name in dir(signal):
            word = name.startswith(("SIG", "ITIMER")) and name not in _SIGNALS_OF_WINDOWS
            if word or name in ("alarm", "pause", "pthread_kill", "pthread_sigmask", "setitimer", "sigwait"):
                delattr(signal, name)
        os.supports_dir_fd.clear()
        for name in _UNIX_MODULES:
            sys.modules.pop(name, None)
        sys.meta_path.insert(0, _Missing())


if __name__ == "__main__":
    _, chosen, program, *rest = sys.argv
    module = rest.pop(0) if program == "-m" else None
    sys.argv = [module or program, *rest]
    become(chosen)
    if module:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program, run_name="__main__")
