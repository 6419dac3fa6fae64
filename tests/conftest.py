"""Options, fixtures, and the guard that every test runs under."""

from __future__ import annotations

import compileall
import contextlib
import fcntl
import gc
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support import forkserver  # noqa: E402 - the checkout has to be found first

if TYPE_CHECKING:
    from tests.support.slurm import SlurmSystem

OPT_IN = {
    "slow": "takes more than 5 s",
    "heavy": "installs a real training framework, or repeats much",
    "gpu": "needs an NVIDIA GPU",
}
_Made = TypeVar("_Made")
# What a test starts inherits this, and with it what that starts: nobody escapes by changing parents.
_MARK = "GPUDEBUG_TESTS_RUN_BY"
# What is just ending may take this long.
_PATIENCE_S = 2.0
_HOSTILE = {
    "blanks": "a b  c",
    "quotes": 'it\'s "here"',
    "unicode": "Größe-模型-é",
    "shell": "$HOME;&|*?[x]{run}",
    "dash": "-C --json",
    "newline": "two\nlines",
}

# Examples of a property. A busy machine takes longer over one, and that is no finding.
hypothesis.settings.register_profile("some", deadline=None, max_examples=30)
hypothesis.settings.register_profile("many", deadline=None, max_examples=300)


def pytest_addoption(parser: pytest.Parser) -> None:
    for marker, why in OPT_IN.items():
        parser.addoption(f"--run-{marker}", action="store_true", help=f"run what {why}")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Below a coding agent the tests are started once more, where its ancestors are not theirs."""
    from tests.support import apart

    if apart.needed():
        config.pluginmanager.getplugin("capturemanager").stop_global_capturing()
        apart.start_again()
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):
        # In the background of a shell Ctrl-C is ignored, and all that tests start would inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    hypothesis.settings.load_profile("many" if config.getoption("--run-heavy") else "some")
    if not hasattr(config, "workerinput"):
        # Else each process that a test starts compiles it again where the environment forbids to keep that.
        compileall.compile_dir(ROOT / "orchestrator", quiet=2)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """Keep the compiled tests, and begin in each process with another share of them.

    Compiling takes longer than all else of collecting, and each process would compile all. What is collected
    stays to the end: the collector of garbage need not look for it then or later.
    """
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    gc.disable()
    try:
        if worker := getattr(session.config, "workerinput", None):
            paths = [Path(argument.partition("::")[0]).resolve() for argument in session.config.args]
            files = sorted({file for path in paths for file in path.rglob("test_*.py")})
            for file in files[int(worker["workerid"][2:]) :: worker["workercount"]]:
                # What fails here fails again where it is collected, and is told of there.
                with contextlib.suppress(Exception, pytest.skip.Exception):
                    importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        sys.dont_write_bytecode = kept


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes may hold the time of day (gzip does); processes that share the tests must name them alike."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for marker, why in OPT_IN.items():
            if item.get_closest_marker(marker) and not config.getoption(f"--run-{marker}"):
                item.add_marker(pytest.mark.skip(reason=f"{why}: --run-{marker}"))


@pytest.fixture(params=_HOSTILE.values(), ids=_HOSTILE)
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A new folder whose name breaks what is quoted, split or printed carelessly."""
    folder = tmp_path / str(request.param)
    folder.mkdir()
    return folder


@pytest.fixture(scope="session", autouse=True)
def own_device_locks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nobody else on this host waits for a test's devices, nor a test for theirs."""
    os.environ["GPUDEBUG_LOCK_DIR"] = str(tmp_path_factory.mktemp("locks") / "devices")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], _Made]], _Made]:
    """`made_once(name, make)`: what `make(folder)` gives as JSON, made by the first process that asks.

    For what takes long to make and is only read: the processes that share the tests share it too.
    """
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent

    def get(name: str, make: Callable[[Path], _Made]) -> _Made:
        folder = shared / "made" / name
        folder.mkdir(parents=True, exist_ok=True)
        found = folder / "made.json"
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not found.exists():
                text = json.dumps(make(folder))
                found.write_text(text)
        made: _Made = json.loads(found.read_text())
        return made

    return get


@pytest.fixture(scope="session")
def slurm_system() -> Iterator[SlurmSystem]:
    """A real Slurm for all tests of this process; skipped where the machine has none."""
    from tests.support import slurm

    if missing := slurm.lacking():
        pytest.skip(f"no Slurm here: {', '.join(missing)} (Debian: slurm-wlm, munge)")
    with slurm.running() as system:
        yield system


@pytest.fixture
def slurm(slurm_system: SlurmSystem, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmSystem]:
    """The real Slurm with an empty queue, which this process's commands ask; emptied again after the test."""
    for name, value in slurm_system.env.items():
        monkeypatch.setenv(name, value)
    slurm_system.clear()
    yield slurm_system
    slurm_system.clear()


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    """Fails a test that leaves a process, a thread, or a file of a campaign in this checkout."""
    os.environ[_MARK] = str(os.getpid())
    before, threads, files = _seen.now(), set(threading.enumerate()), _checkout()
    yield
    deadline = time.monotonic() + _PATIENCE_S
    while (left := _left(before, threads)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left.get("processes", {}):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    assert not left, f"left behind: {left}"
    assert not (written := _checkout() - files), f"written into the checkout: {sorted(written)}"


class _Seen:
    """The processes that this one started, looked for when it has started any since the last look.

    Looking at every process of the machine takes longer than most tests.
    """

    def __init__(self) -> None:
        self._signs: tuple[object, ...] = ()
        self._processes: dict[int, str] = {}

    def now(self) -> dict[int, str]:
        signs = _signs()
        if signs != self._signs:
            self._processes = _processes()
            self._signs = signs if not self._processes else ()
        return self._processes


_seen = _Seen()


def _signs() -> tuple[object, ...]:
    """What changes when this process starts another: its children, and what those that ended have cost."""
    listed = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    return listed, resource.getrusage(resource.RUSAGE_CHILDREN), forkserver.commands


def _left(processes: dict[int, str], threads: set[threading.Thread]) -> dict[str, object]:
    left = {pid: name for pid, name in _seen.now().items() if pid not in processes}
    alive = [t.name for t in threading.enumerate() if t not in threads]
    return {key: value for key, value in (("processes", left), ("threads", alive)) if value}


def _processes() -> dict[int, str]:
    """Everything that this test process started, at whatever remove: number and command line."""
    mark = f"{_MARK}={os.getpid()}".encode()
    found = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) in (os.getpid(), forkserver.pid()):
            continue
        # It may end, or be somebody else's, while it is looked at.
        with contextlib.suppress(OSError):
            stat = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2].split()
            ours = int(stat[1]) == os.getpid() or mark in Path(entry.path, "environ").read_bytes().split(
                b"\0"
            )
            if ours and (stat[0] != "Z" or int(stat[1]) == os.getpid()):
                command = Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(entry.name)] = command.decode(errors="replace").strip() or "(a zombie)"
    return found


def _checkout() -> set[str]:
    """Names at the top of the checkout and in its folders that belong to campaigns."""
    found = set()
    for folder in ("", "runs/", "progress/", "hypotheses/"):
        # Twice a test: for most this took longer than the test itself with a path made of each name.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            found |= {f"{folder}{name}" for name in os.listdir(f"{ROOT}/{folder}")}
    return {name for name in found if not name.endswith("_cache")} - {".hypothesis", "__pycache__"}
