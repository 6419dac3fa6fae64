"""Asking a training's Python about itself: contained like a run, for at most some seconds.

It is started in the environment that gpudebug.yaml gives the training, without what lies in the repository
on its path, and in an empty folder: no file that is under test runs, and what it starts is ended.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpudebug.core.errors import GpudebugError, LaunchError, StoreError
from gpudebug.core.words import Outcome
from gpudebug.edges import opener, temporary
from gpudebug.edges.launcher.follower import WARDEN_LOST, LaunchSpec, launch

PATIENCE_S = 10.0
_PROGRAM = Path(__file__).resolve().parents[2] / "training" / "asking" / "installed.py"
_MARK = b"gpudebug-asked "
_LONGEST = 8 << 20
_TRAINING = Path(__file__).resolve().parents[2] / "training"
_SHIM = _TRAINING / "shim"
_SELFTEST = _TRAINING / "profiling" / "selftest.py"
_SELFTEST_S = 60.0


@dataclass(frozen=True)
class Asked:
    """What a Python reported of itself. `path` is its search path, without the program's own folder.

    `found` holds the folder of each package that was asked for and whether it is a namespace, `early` the
    same of those that a finder in front of the path knows.
    """

    version: str
    packages: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    found: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    early: Mapping[str, tuple[str, bool]] = field(default_factory=dict)


def ask(
    path: str, env: Mapping[str, str], apart: tuple[Path, ...] = (), names: tuple[str, ...] = ()
) -> Asked | None:
    """What the Python at `path` says of itself and of the packages `names`; None if it does not answer.

    `apart` are folders that are left out of its PYTHONPATH. Asked once as long as it is the same file.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    binary = status.st_size, status.st_mtime_ns, status.st_ino
    return _asked(path, binary, tuple(sorted(environment(path, env, apart).items())), names)


def ask_anew() -> None:
    """Forget what interpreters reported: packages may have been installed since."""
    _asked.cache_clear()


def environment(path: str, env: Mapping[str, str], apart: tuple[Path, ...]) -> dict[str, str]:
    """`env` without what would make Python load files of the folders `apart`.

    One that lies there itself, as in a virtual environment, keeps its own variables.
    """
    own = inside(path, apart)
    kept = {k: v for k, v in env.items() if not (k.startswith("PYTHON") and not own and inside(v, apart))}
    entries = env.get("PYTHONPATH", "").split(os.pathsep)
    searched = [entry for entry in entries if os.path.isabs(entry) and not inside(entry, apart)]
    kept.pop("PYTHONPATH", None)
    return {**kept, "PYTHONPATH": os.pathsep.join(searched)} if searched else kept


def inside(path: str, folders: tuple[Path, ...]) -> bool:
    """Tell whether an absolute path lies in one of the folders, by its name or where its links lead."""
    if not os.path.isabs(path):
        return False
    spellings = Path(path), Path(os.path.realpath(path))
    return any(p.is_relative_to(f) for p in spellings for f in (*folders, *map(Path.resolve, folders)))


@lru_cache(maxsize=16)
def _asked(
    path: str, binary: tuple[int, ...], env: tuple[tuple[str, str], ...], names: tuple[str, ...]
) -> Asked | None:
    with temporary.workplace("gpudebug-ask-") as made:
        folder = made.path
        empty = folder / "empty"
        empty.mkdir()
        spec = LaunchSpec(
            argv=(path, str(_PROGRAM), json.dumps(names)),
            cwd=str(empty),
            env=dict(env),
            log=str(folder / "answer"),
            marker=str(folder),
            timeout=PATIENCE_S,
            max_output=_LONGEST,
            ladder=(0.2, 0.2),
            give_up=5.0,
        )
        try:
            launched = launch(spec)
        except LaunchError:
            return None
        # A warden that is gone is no Ctrl-C: then nothing is known of the interpreter.
        lost = (launched.reason or "").startswith(WARDEN_LOST)
        if launched.outcome is Outcome.INTERRUPTED and not lost:
            raise KeyboardInterrupt
        if launched.outcome is not Outcome.COMPLETED:
            return None
        return _answer(opener.read_head(Path(spec.log), _LONGEST))


def _answer(text: bytes) -> Asked | None:
    lines = [line for line in text.splitlines() if line.startswith(_MARK)]
    try:
        answer = json.loads(lines[-1].removeprefix(_MARK))
        return Asked(
            str(answer["version"]),
            {str(name): str(version) for name, version in sorted(answer["packages"].items())},
            tuple(map(str, answer["path"])),
            _places(answer["found"]),
            _places(answer["early"]),
        )
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def _places(said: Mapping[str, Any]) -> dict[str, tuple[str, bool]]:
    return {str(name): (str(folder), bool(namespace)) for name, (folder, namespace) in said.items()}


def try_profiling(python: str) -> dict[str, Any]:
    """Run the library's self-test: what it printed, and under `report` what it wrote.

    `version` of the Python, `package` the file it imported, nanoseconds `pair_ns`, `section_ns`, `bound_ns`,
    `section_off_ns`, `bound_off_ns`. GpudebugError if it fails, hangs, or wrote no report.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUDEBUG_")}
    env = {**env, "PYTHONPATH": str(_SHIM), "GPUDEBUG_PROFILE": "at-exit.json"}
    with temporary.workplace("gpudebug-profiling-") as made:
        folder = made.path
        done = _run(python, folder, env)
        try:
            told = json.loads(done.stdout.splitlines()[-1])
            at_exit = json.loads(opener.read_file(folder / "at-exit.json"))
            report = json.loads(opener.read_file(folder / "report.json"))
        except (StoreError, ValueError, IndexError) as e:
            raise _failed(python, f"no readable report: {e}") from e
    return {**told, "report": report, "at_exit": at_exit}


def _run(python: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            [python, str(_SELFTEST)],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SELFTEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise _failed(python, f"not done after {_SELFTEST_S:.0f} s") from e
    except OSError as e:
        raise _failed(python, e.strerror or str(e)) from e
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise _failed(python, lines[-1])
    return done


def _failed(python: str, why: str) -> GpudebugError:
    return GpudebugError(
        f"the profiling library does not work in {python}: {why}",
        next=f"see the whole error with: PYTHONPATH={_SHIM} {python} {_SELFTEST}",
    )
