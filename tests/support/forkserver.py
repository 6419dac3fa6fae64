"""`python -m gpudebug` from a process that has its modules loaded: each command is a fork of it.

Starting an interpreter and importing takes a command longer than most of its work. What is forked is a real
process all the same, with its own number, working folder, environment, streams, locks and exit status.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import hashlib
import importlib
import json
import os
import pickle
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# What an interpreter reads of the environment while it starts.
_EARLY = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC", "GLIBC")
# Dependencies that commands load when they first need them.
_LIBRARIES = (
    "typer",
    "rich.console",
    "rich.text",
    "rich.table",
    "pydantic.dataclasses",
    "yaml",
    "git",
    "jinja2",
)
_EXPRESSIONS = ("stack", "section", "flag", "printed", "matches")
_FLOORS = ("cli", "core", "edges", "engine", "terminal")


class Server:
    """The process that forks, as the tests see it: one a test process, started when it is first needed."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            subprocess.run(
                [sys.executable, "-m", "tests.support.forkserver", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                check=True,
            )
        self._socket = ours
        # It ends when this process does, or closes.
        self.pid = int(ours.recv(16))

    def run(
        self, words: tuple[str, ...], folder: Path | str, env: Mapping[str, str], timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Run one command to its end: exit status as `subprocess` gives it, standard output and error."""
        global commands  # noqa: PLW0603
        commands += 1
        order = json.dumps({"words": words, "folder": os.fspath(folder), "env": dict(env)}).encode()
        pipes = [os.pipe() for _ in range(3)]
        told, out, err = (read for read, _ in pipes)
        with contextlib.ExitStack() as held:
            for read, _ in pipes:
                held.callback(os.close, read)
            try:
                memory = os.memfd_create("order")
                held.callback(os.close, memory)
                os.write(memory, order)
                socket.send_fds(self._socket, [b"run"], [memory, *(write for _, write in pipes)])
            finally:
                for _, write in pipes:
                    os.close(write)
            texts = _drained((told, out, err), time.monotonic() + timeout)
        if texts is None:
            raise subprocess.TimeoutExpired(list(words), timeout)
        return int(texts[0].split()[-1]), texts[1], texts[2]


def _drained(pipes: tuple[int, ...], until: float) -> list[bytes] | None:
    """What comes from each until all are closed; None, and the command killed, if that is too late."""
    texts: dict[int, bytes] = dict.fromkeys(pipes, b"")
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, until - time.monotonic()))
            if not ready:
                with contextlib.suppress(ProcessLookupError, ValueError):
                    os.kill(int(texts[pipes[0]].split()[0]), signal.SIGKILL)
                return None
            for key, _ in ready:
                read = os.read(key.fd, 1 << 16)
                texts[key.fd] += read
                if not read:
                    selector.unregister(key.fd)
    return list(texts.values())


def same_start(env: Mapping[str, str]) -> bool:
    """Whether an interpreter that is started with this environment starts as this one did."""
    names = {name for name in (*env, *os.environ) if name.startswith(_EARLY)}
    return all(env.get(name) == os.environ.get(name) for name in names)


commands = 0
"""How many commands this process has had run."""
_server: Server | None = None
_owner = 0


def server() -> Server:
    """The server of this process: a forked child does not share its parent's."""
    global _server, _owner
    if _server is None or _owner != os.getpid():
        _server, _owner = Server(), os.getpid()
    return _server


def pid() -> int | None:
    """The number of this process's server, if it has one."""
    return _server.pid if _server is not None and _owner == os.getpid() else None


def _load() -> None:
    """Load what commands load, and read once what each would read of gpudebug's own files.

    Not what loads NumPy, which begins threads.
    """
    for name in _LIBRARIES:
        importlib.import_module(name)
    import gpudebug

    home = Path(gpudebug.__path__[0])
    for path in (path for floor in _FLOORS for path in sorted((home / floor).rglob("*.py"))):
        place = path.relative_to(home).with_suffix("")
        if not place.is_relative_to("core/trace") and not place.is_relative_to("edges/charts"):
            importlib.import_module(".".join(("gpudebug", *place.parts)).removesuffix(".__init__"))
    import typer.main

    from gpudebug.cli import app
    from gpudebug.core.inside.stacks.shares import pattern
    from gpudebug.edges import templates
    from gpudebug.engine.run import adapters, catalogue

    # The parser of all commands is the same each time, and making it takes longer than most commands.
    typer.main.get_command = functools.cache(typer.main.get_command)
    typer.main.get_command(app)
    adapters.known()
    environment = templates._environment()
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)
    for cause in catalogue.load(None).causes:
        knobs = (names for knob in cause.knobs for names in knob.names)
        for expression in (*cause.words, *knobs, *_named(cause.model_dump(mode="json"))):
            pattern(expression)
    # Most campaigns train with one program, and each command would read it again.
    adapters._looked("train.py", (ROOT.joinpath("tests/support/trainer.py").read_text(),))
    adapters.of_command(("python", "train.py", "--lr=0.1"), ROOT / "tests" / "support")


def _named(value: Any) -> Iterator[str]:
    """The expressions of a cause's conditions: of a stack, a section, an option, a setting."""
    if isinstance(value, Mapping):
        yield from (v for k, v in value.items() if k in _EXPRESSIONS and isinstance(v, str))
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _named(inner)


def _keep_answers(folder: Path) -> None:
    """Ask the tests' own Python once in each environment: it reports the same to every command."""
    from gpudebug.edges.launcher import interpreter

    ask = interpreter._asked

    def asked(
        path: str, binary: tuple[int, ...], env: tuple[tuple[str, str], ...], names: tuple[str, ...]
    ) -> Any:
        if path != sys.executable or names or "PYTHONPATH" in dict(env):
            return ask(path, binary, env, names)
        told = repr([(name, value) for name, value in env if name != "PYTEST_CURRENT_TEST"])
        kept = folder / hashlib.sha256(told.encode()).hexdigest()
        if kept.exists():
            return pickle.loads(kept.read_bytes())
        found = ask(path, binary, env, names)
        if found is not None:
            new = kept.with_suffix(f".{os.getpid()}")
            new.write_bytes(pickle.dumps(found))
            new.rename(kept)
        return found

    asked.cache_clear = ask.cache_clear  # type: ignore[attr-defined]
    interpreter._asked = asked  # type: ignore[assignment]


def _serve(listening: socket.socket) -> None:
    _load()
    answers = Path(tempfile.mkdtemp(prefix="tests-answers-"))
    _keep_answers(answers)
    # A fork has only the thread that forks: a lock that another one holds would stay held.
    assert len(os.listdir("/proc/self/task")) == 1
    # Else each fork copies all of it when its collector looks.
    gc.freeze()
    listening.send(str(os.getpid()).encode())
    running: dict[int, tuple[int, int]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(listening, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd != listening.fileno():
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    _reap(*running.pop(key.fd))
                    continue
                message, fds, _, _ = socket.recv_fds(listening, 16, 4)
                if not message:
                    shutil.rmtree(answers)
                    return
                child = _start(fds, [listening.fileno(), *running, *(told for _, told in running.values())])
                watched = os.pidfd_open(child)
                running[watched] = (child, fds[1])
                selector.register(watched, selectors.EVENT_READ)


def _reap(child: int, told: int) -> None:
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):
        os.write(told, f" {os.waitstatus_to_exitcode(status)}".encode())
    os.close(told)


def _start(fds: list[int], ours: list[int]) -> int:
    """Fork for one order: (the order, where its number and status go, standard output and error)."""
    order, told, out, err = fds
    child = os.fork()
    if child == 0:
        text: Any = json.loads(os.pread(order, os.fstat(order).st_size, 0))
        nothing = os.open(os.devnull, os.O_RDONLY)
        for fd, place in ((nothing, 0), (out, 1), (err, 2)):
            os.dup2(fd, place)
        for fd in (nothing, *fds, *ours):
            os.close(fd)
        _become(text)
    os.write(told, str(child).encode())
    for fd in (order, out, err):
        os.close(fd)
    return child


def _become(order: Mapping[str, Any]) -> None:
    """Run the command in this process, as `python -m gpudebug` would, and end."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    for number, name in ((1, "stdout"), (2, "stderr")):
        first = getattr(sys, name)
        stream = open(number, "w", encoding=first.encoding, errors=first.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.stderr.reconfigure(line_buffering=True)  # type: ignore[attr-defined]
    sys.argv = ["gpudebug", *order["words"]]
    sys.path[0] = os.getcwd()
    for name in [name for name in sys.modules if name == "tests" or name.startswith("tests.")]:
        del sys.modules[name]
    status = 0
    try:
        runpy.run_module("gpudebug", run_name="__main__", alter_sys=True)
    except SystemExit as e:
        if not (e.code is None or isinstance(e.code, int)):
            raise
        status = e.code or 0
    # What an interpreter does at its end, but for taking down every module: that would copy all of the
    # server's memory, and take longer than most commands.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    # No child of the tests: a sampler takes its parent's children for those of the run.
    if os.fork():
        os._exit(0)
    _serve(socket.socket(fileno=int(sys.argv[1])))
