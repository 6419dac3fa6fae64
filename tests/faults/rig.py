"""One point of a series: a command, one fault in it, the command again, and what must hold."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.faults.story import Scenario, State, foreign, left_over, state
from tests.support.campaigns import environment

SOURCE = Path(__file__).with_name("tracer.c")
CLASSES = ("gpudebug", "git", "helper")
"""Those of gpudebug: what a training does when its own calls fail is its own."""
KILLS = ("before", "after")
ERRORS = {"ENOSPC": 28, "EIO": 5, "EACCES": 13, "EROFS": 30, "EMFILE": 24, "EINTR": 4}
FAILURES = (*ERRORS, "short")
# What a call may fail with: a descriptor that is open needs no new one, and only data can be short.
_OPENING = ("open", "openat", "creat")
_DATA = ("write", "pwrite")
PATIENCE_S = 120.0
# After a kill what still runs must end by itself within this long, on a busy machine.
LEFT_S = 20.0
DOCUMENTED = (0, 1, 2, 4, 5, 6, 7, 130)
REPEATS = 5
UNDECIDED = frozenset({"INCONCLUSIVE", "INVALID"})


class Unavailable(Exception):
    """This machine cannot trace: no x86-64 Linux, no compiler, or ptrace is forbidden."""


def build(folder: Path) -> Path:
    """Compile the tracer into `folder`. Raises Unavailable."""
    if os.uname().machine != "x86_64":
        raise Unavailable("the tracer knows the system calls of x86-64 only")
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        raise Unavailable("a C compiler is needed")
    made = folder / "tracer"
    subprocess.run([compiler, "-O2", "-o", made, SOURCE], check=True)
    done = subprocess.run(
        [made, "--under", "/nowhere", "--class", "git", "--", "true"], capture_output=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"ptrace does not work here: {done.stderr.decode().strip()}")
    return made


@dataclass(frozen=True)
class Point:
    """The fault: call number `at` of the processes of a class, in one scenario."""

    scenario: str
    process: str
    at: int
    fault: str
    on: bool = False


@dataclass(frozen=True)
class Result:
    """What came of a point: `call` is the call that it met, `problems` what did not hold."""

    point: Point
    call: str
    status: int
    seconds: float
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def fits(fault: str, call: str) -> bool:
    """Whether this call can meet this fault."""
    name = call.split(" ", 1)[0]
    if fault == "short":
        return name in _DATA
    if fault in ("EMFILE", "EINTR"):
        return name in (*_OPENING, *((*_DATA, "flock") if fault == "EINTR" else ()))
    if fault in ("EACCES", "EROFS"):
        return name not in (*_DATA, "fsync", "fdatasync", "flock", "ftruncate")
    return fault != "ENOSPC" or name not in ("flock", "chmod", "fchmod", "unlink", "unlinkat", "rmdir")


class Bench:
    """A place to run points of one story in, one at a time. `stages` are the story's repositories."""

    def __init__(self, folder: Path, tracer: Path, stages: Mapping[str, Path], *, warm: bool = False) -> None:
        """With `warm` the repetitions are forks of this process, which has loaded gpudebug: no threads."""
        self.warm = warm
        self.folder = folder / "repo"
        self.temporary = folder / "tmp"
        self.locks = folder / "locks"
        self.log = folder / "calls"
        self.tracer = tracer
        self.stages = stages
        self.ends: dict[str, State] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def restore(self, scenario: Scenario) -> None:
        for path in (self.folder, self.temporary, self.locks):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.stages[scenario.stage], self.folder, symlinks=True)
        self.temporary.mkdir()
        if scenario.before:
            self.plain(scenario.before, GPUDEBUG_SESSION="first")

    def env(self, **more: str) -> dict[str, str]:
        return environment({"TMPDIR": str(self.temporary), "GPUDEBUG_LOCK_DIR": str(self.locks), **more})

    def plain(self, words: tuple[str, ...], **more: str) -> tuple[int, str]:
        if self.warm:
            return _forked(words, self.folder, self.env(**more))
        return self.call([sys.executable, "-m", "gpudebug", *words], **more)

    def call(self, command: list[str], **more: str) -> tuple[int, str]:
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.env(**more), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return -1, "it did not end"
        return process.returncode, (out + err).decode(errors="replace")

    def traced(self, scenario: Scenario, process: str, *fault: str) -> tuple[int, str]:
        watching = ["--under", str(self.folder), "--class", process, "--log", str(self.log), *fault]
        return self.call(
            [str(self.tracer), *watching, "--", sys.executable, "-m", "gpudebug", *scenario.words]
        )

    def calls(self, scenario: Scenario) -> list[tuple[str, str]]:
        """Class and call of each in an undisturbed run; what the campaign is afterwards is remembered."""
        self.restore(scenario)
        self.traced(scenario, CLASSES[0])
        self.settle(scenario)
        self.ends[scenario.name] = state(self.folder)
        return self._counted()

    def _counted(self) -> list[tuple[str, str]]:
        lines = self.log.read_text(errors="replace").splitlines()
        place = str(self.folder.parent)
        return [(line.split(" ", 1)[0], line.split(" ", 2)[2].replace(place, "")) for line in lines]

    def settle(self, scenario: Scenario) -> list[str]:
        """Repeat the command until it has nothing left to do; what of that was wrong."""
        for _ in range(REPEATS):
            status, text = self.plain(scenario.words)
            if scenario.then:
                self.plain(scenario.then)
            if wrong := _wrong(status, text):
                return [f"again: {wrong}"]
            if status in scenario.settled:
                return []
        return [f"again: it does not come to its end, but to {status}: {text[-300:]}"]

    def run(self, scenario: Scenario, point: Point) -> Result:
        """Run one point. Its scenario was counted before, with `calls`."""
        self.restore(scenario)
        began, theirs, at_first = time.monotonic(), foreign(self.folder), state(self.folder)
        how = str(ERRORS.get(point.fault, point.fault))
        more = ["--on"] if point.on else []
        status, text = self.traced(scenario, point.process, "--at", str(point.at), "--do", how, *more)
        problems = []
        killed = point.fault in KILLS
        if not (killed and status == 128 + signal.SIGKILL) and (wrong := _wrong(status, text)):
            problems.append(wrong)
        problems += _compared("the user's files", theirs, foreign(self.folder))
        problems += self._read("after the fault")
        if not killed and status in scenario.done and scenario.then is None and not point.on:
            problems += self._claims(scenario, at_first, status)
        problems += self.settle(scenario)
        problems += self._read("after the repetition")
        end, wanted = state(self.folder), self.ends[scenario.name]
        # A sampler that was killed costs readings, so that too few may be left for a verdict either way.
        undecided = point.process == "helper" and end == _undecided(wanted, end)
        if not problems and end != wanted and not undecided:
            problems.append(f"ends as {end}, not as {wanted}")
        problems += _compared("the user's files, at the end", theirs, foreign(self.folder))
        problems += [f"left: {what}" for what in left_over(self.folder, self.temporary)]
        problems += [f"still runs: {what}" for what in self.alive()]
        met = [call for process, call in self._counted() if process == point.process]
        call = met[point.at - 1] if len(met) >= point.at else "not reached"
        return Result(point, call, status, round(time.monotonic() - began, 2), tuple(problems))

    def _read(self, when: str) -> list[str]:
        try:
            state(self.folder)
        except Exception as e:  # noqa: BLE001  # whatever a torn file makes of its reader
            return [f"{when}: {type(e).__name__}: {e}"]
        return []

    def _claims(self, scenario: Scenario, at_first: State, status: int) -> list[str]:
        """A command that says that it is done, in spite of a failing call, has done something."""
        changes = self.ends[scenario.name] != at_first
        if changes and status == 0 and 0 in scenario.done and state(self.folder) == at_first:
            return ["says that it is done, and nothing is"]
        return []

    def alive(self) -> list[str]:
        deadline = time.monotonic() + LEFT_S
        while (found := list(_processes(str(self.folder.parent)))) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found


def _forked(words: tuple[str, ...], folder: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """`gpudebug WORDS` in a fork of this process: what a start would cost is paid once."""
    import gpudebug.__main__ as program
    import gpudebug.cli
    import gpudebug.engine.cycle.next

    assert gpudebug.cli and gpudebug.engine.cycle
    with tempfile.TemporaryFile() as output:
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                os.chdir(folder)
                os.environ.clear()
                os.environ.update(env)
                null = os.open(os.devnull, os.O_RDONLY)
                for target, source in enumerate((null, output.fileno(), output.fileno())):
                    os.dup2(source, target)
                sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
                sys.argv = ["gpudebug", *words]
                program.main()
            except SystemExit as e:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(e.code if isinstance(e.code, int) else 1)
            finally:
                os._exit(99)
        deadline = time.monotonic() + PATIENCE_S
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return -1, "it did not end"
            time.sleep(0.005)
        output.seek(0)
        return os.waitstatus_to_exitcode(ended[1]), output.read().decode(errors="replace")


def points(bench: Bench, scenarios: Iterable[Scenario], faults: Iterable[str]) -> list[Point]:
    """Each fault at each counted call of each scenario that it fits."""
    faults, found = tuple(faults), list[Point]()
    for scenario in scenarios:
        numbers: Counter[str] = Counter()
        for process, call in bench.calls(scenario):
            numbers[process] += 1
            if process in CLASSES:
                here = [f for f in faults if fits(f, call)]
                found += [Point(scenario.name, process, numbers[process], fault) for fault in here]
    return found


def _undecided(wanted: State, end: State) -> State:
    """`wanted` with the statuses of `end` where these are no verdict either way."""
    told = {number: status for number, _, status, _ in end.hypotheses if status in UNDECIDED}
    rows = ((n, title, told.get(n, status), runs) for n, title, status, runs in wanted.hypotheses)
    return wanted._replace(hypotheses=tuple(rows))


def _wrong(status: int, text: str) -> str | None:
    if "Traceback" in text:
        return f"a traceback: {text[-1500:]}"
    return None if status in DOCUMENTED else f"exit status {status}: {text[-600:]}"


def _compared(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    changed = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    return [f"{what} changed: {changed}"] if changed else []


def _processes(mark: str) -> Iterator[str]:
    """Command lines of live processes that work below `mark` or are of a run there."""
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            stat = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2].split()
            run = f"GPUDEBUG_RUN={mark}".encode() in Path(entry.path, "environ").read_bytes()
            if stat[0] != "Z" and (run or os.readlink(f"{entry.path}/cwd").startswith(mark)):
                yield Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
