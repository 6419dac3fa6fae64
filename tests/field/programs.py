"""A program of others, set up in a folder of its own, and its truth: a stopwatch, without gpudebug."""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.field.cases import Case, Change, Edit
from tests.support.campaigns import environment, git

HERE = Path(__file__).parent
_IGNORED = (
    "runs/\n__pycache__/\nout*/\noutput/\nlogs/\ncache/\nlightning_logs/\ncheckpoints/\n*.jpg\n*ubyte\n"
)
# Computes for ON seconds of each OF; ends with the one who started it, even if that one is killed.
_STRANGER = """
import os, sys, time
on, of = map(float, sys.argv[1:])
starter, began = os.getppid(), time.monotonic()
while os.getppid() == starter:
    if (time.monotonic() - began) % of < on:
        sum(range(1000000))
    else:
        time.sleep(0.2)
"""
_LIMIT_S = 900.0


@dataclass(frozen=True)
class Place:
    """Where results go and clones lie, the programs' Python, and for how many seconds of how many a stranger
    computes, as `1/1` or `40/90`; empty if none does."""

    out: Path
    sources: Path
    python: Path
    stranger: str = ""

    @property
    def beside(self) -> str:
        """The stranger, at the end of a name."""
        return f"-stranger-{self.stranger.replace('/', '-')}" if self.stranger else ""

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.python.parent), os.environ["PATH"]])
        return {**environment(), "PATH": path, "TOKENIZERS_PARALLELISM": "false"}


def set_up(case: Case, place: Place, folder: Path, length: int, edits: Sequence[Edit] = ()) -> Path:
    """The program in `folder`, a git repository, with the user's edits and then `edits`."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_original(case, place), folder, symlinks=True)
    for change in (*case.edits, *edits):
        apply(folder, change, length)
    (folder / ".gitignore").write_text(_IGNORED)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "The program")
    return folder


def apply(folder: Path, change: Edit, length: int) -> None:
    path = folder / change.file
    content = path.read_text()
    old, new = (text.replace("{length}", str(length)) for text in (change.old, change.new))
    if content.count(old) != 1:
        raise SystemExit(
            f"{change.file} has {old!r} {content.count(old)} times: the case is of another version"
        )
    path.write_text(content.replace(old, new))


def _original(case: Case, place: Place) -> Path:
    """The program with its data, made once."""
    folder = place.out / "programs" / case.name
    if folder.is_dir():
        return folder
    building = folder.with_name(f".{case.name}")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    for name, source in case.files.items():
        target = building / name
        target.parent.mkdir(parents=True, exist_ok=True)
        clone = place.sources / case.repository.rpartition("/")[2]
        if not (clone / source).exists():
            raise SystemExit(
                f"{clone / source} is missing: git clone https://github.com/{case.repository} {clone}"
            )
        shutil.copy(clone / source, target)
    commands = [shlex.join(["python", str(HERE / "data.py"), *case.data])] if case.data else []
    for command in (*commands, *case.prepare):
        subprocess.run(shlex.split(command), cwd=building, env=place.environment, check=True)
    building.rename(folder)
    return folder


def version(case: Case, place: Place) -> str:
    """The package's version; of a clone its commit too, if it has one."""
    ask = f"import importlib.metadata as m; print(m.version({case.package!r}))"
    words = [str(place.python), "-c", ask]
    found = (
        f"{case.package} {subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()}"
    )
    if not case.repository:
        return found
    clone = place.sources / case.repository.rpartition("/")[2]
    done = subprocess.run(
        ["git", "-C", clone, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    commit = done.stdout.strip() if (clone / ".git").exists() else ""
    return f"{case.repository} {commit}".strip() + f", {found}"


def truth(case: Case, place: Place, repeats: int) -> dict[str, object]:
    """How many times as fast the program is with its fix: the time of a long run less that of a short one.

    Base and fix alternate. Beside a stranger the means are compared, else the quickest: what disturbs a quiet
    machine only ever adds. `cpu_ratio` is the same of processor time, which does not depend on others, but
    is the truth only of a program that does one thing at a time.
    """
    seconds: dict[str, list[tuple[float, float]]] = {}
    load = [os.getloadavg()[0]]
    for _ in range(repeats):
        for side, edits in (("base", ()), ("fix", case.fix.edits)):
            for length in case.lengths:
                folder = set_up(case, place, place.out / "work" / f"{case.name}-watch", length, edits)
                command = case.command_of(length).replace("{run}", "watch")
                took = _timed(case.fix.of(command) if side == "fix" else command, folder, place)
                seconds.setdefault(f"{side} {length}", []).append(took)
        load.append(os.getloadavg()[0])
    ratios = [
        _ratio(case, {k: [t[i] for t in v] for k, v in seconds.items()}, bool(place.stranger)) for i in (0, 1)
    ]
    return {"ratio": ratios[0], "cpu_ratio": ratios[1], "seconds": seconds, "load": load}


def _ratio(case: Case, seconds: dict[str, list[float]], disturbed: bool) -> float:
    typical = {key: sum(times) / len(times) if disturbed else min(times) for key, times in seconds.items()}
    short, long = case.lengths
    base, changed = (typical[f"{side} {long}"] - typical[f"{side} {short}"] for side in ("base", "fix"))
    return round(base / changed * case.work, 3)


def _timed(command: str, folder: Path, place: Place) -> tuple[float, float]:
    """Seconds of wall time, and of processor time of all its processes."""
    log = folder.with_suffix(".log")
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("wb") as output:
        done = subprocess.run(
            ["env", *shlex.split(command)],
            cwd=folder,
            env=place.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_LIMIT_S,
            check=False,
        )
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command}: exit status {done.returncode}; see {log}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return round(wall, 2), round(used, 2)


def patch_of(change: Change, folder: Path, length: int) -> Path:
    """The change's edits as a patch in hypotheses/patches; the working tree is as before."""
    for edit in change.edits:
        apply(folder, edit, length)
    path = folder / "hypotheses" / "patches" / f"{change.title.lower().replace(' ', '-')}.patch"
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [edit.file for edit in change.edits]
    path.write_text(git(folder, "diff", "--", *names))
    git(folder, "checkout", "--quiet", "--", *names)
    return path


@contextlib.contextmanager
def stranger(turns: str) -> Iterator[None]:
    """A process that computes on one core for the seconds that `Place.stranger` says."""
    if not turns:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", _STRANGER, *turns.split("/")])
    try:
        yield
    finally:
        process.kill()
        process.wait()
