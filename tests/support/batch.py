"""A cluster of one node: `sbatch`, `squeue`, `scancel` on PATH that do what Slurm's do, by files.

What is asked of the real one is in the tests that start it; this one is up at once and does as it is told.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[2])
_PROGRAM = """\
#!PYTHON
import sys
sys.path.insert(0, {root!r})
from tests.support.batch import main
main({name!r}, {folder!r})
""".replace("PYTHON", sys.executable)


class Batch:
    """Its folder: `queue` holds a file a job, `bin` the commands, `calls` a line for each command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.queue = folder / "queue"
        self.queue.mkdir(parents=True)
        self.bin.mkdir()
        for name in ("sbatch", "squeue", "scancel", "sacct", "scontrol", "sinfo"):
            path = self.bin / name
            path.write_text(_PROGRAM.format(name=name, folder=str(folder), root=_ROOT))
            path.chmod(0o755)

    def hold(self, reason: str | None) -> None:
        """Jobs that are submitted from now on wait for this reason; None: they begin at once."""
        held = self.folder / "held"
        if reason is None:
            held.unlink(missing_ok=True)
            subprocess.run([self.bin / "scontrol", "release"], check=True)
        else:
            held.write_text(reason)

    def begins(self, most: int | None) -> None:
        """So many elements of an array begin, the others once this is None."""
        limit = self.folder / "begins"
        if most is None:
            limit.unlink()
            subprocess.run([self.bin / "scontrol", "release"], check=True)
        else:
            limit.write_text(str(most))

    def jobs(self) -> list[str]:
        return sorted((p.stem for p in self.queue.glob("*.json")), key=lambda id: [*map(int, id.split("_"))])

    def job(self, id: str) -> dict[str, str]:
        return _state(self.folder, id)

    def calls(self, name: str) -> int:
        path = self.folder / "calls"
        return path.read_text().splitlines().count(name) if path.exists() else 0

    def accounts(self, by: int) -> None:
        """There is accounting, and this user is who cancels jobs."""
        (self.folder / "accounting").write_text(str(by))

    def end(self, id: str, word: str) -> None:
        """The cluster ends a job at once, with this word: no signal is heard."""
        job = self.job(id)
        _put(self.folder, id, {**job, "word": word})
        _kill(int(job["pid"]), 9)

    def requeue(self, id: str, number: int = 15) -> None:
        """The cluster ends a job with a signal, and begins it again."""
        subprocess.run([self.bin / "scontrol", "requeue", id, str(number)], check=True)

    def close(self) -> None:
        for id in self.jobs():
            if self.job(id)["word"] == "RUNNING":
                self.end(id, "CANCELLED")


def main(name: str, folder_name: str) -> None:
    folder = Path(folder_name)
    with (folder / "calls").open("a") as calls:
        calls.write(f"{name}\n")
    words = sys.argv[1:]
    if name == "sbatch":
        print(_submit(folder, sys.stdin.read()))
    elif name == "squeue":
        for path in sorted((folder / "queue").glob("*.json")):
            job = _state(folder, path.stem)
            print(f"{path.stem}|{job['word']}|{job['reason']}|n0|1:00:00")
    elif name == "scancel":
        # An array's own number is of all its elements.
        arrays = [path.stem for id in words for path in (folder / "queue").glob(f"{id}_*.json")]
        for id in [*arrays, *(id for id in words if (folder / "queue" / f"{id}.json").exists())]:
            job = _state(folder, id)
            _put(folder, id, {**job, "word": "CANCELLED"})
            if "pid" in job:
                _kill(int(job["pid"]), 15)
    elif words == ["release"]:
        for path in sorted((folder / "queue").glob("*.json")):
            if _state(folder, path.stem)["word"] == "PENDING":
                _begin(folder, path.stem)
    elif words[:1] == ["requeue"]:
        _kill(int(_state(folder, words[1])["pid"]), int(words[2]))
        _begin(folder, words[1])
    elif name == "sacct" and (folder / "accounting").exists():
        by = (folder / "accounting").read_text()
        for id in words[words.index("-j") + 1].split(","):
            word = _state(folder, id)["word"]
            print(f"{id}|{f'CANCELLED by {by}' if word == 'CANCELLED' else word}|0:0|n0")
    elif name == "sacct":
        sys.exit("Slurm accounting storage is disabled")


def _submit(folder: Path, script: str) -> str:
    """One job, or one for each number of an array, all of which begin at once."""
    id = str(len(list((folder / "queue").glob("*.json"))) + 1)
    held = folder / "held"
    reason = held.read_text() if held.exists() else "None"
    limit = folder / "begins"
    most = int(limit.read_text()) if limit.exists() else None
    for place, each in enumerate([f"{id}_{number}" for number in _elements(script)] or [id]):
        (folder / f"{each}.sh").write_text(script)
        _put(folder, each, {"word": "PENDING", "reason": reason})
        if not held.exists() and (most is None or place < most):
            _begin(folder, each)
    return id


def _elements(script: str) -> list[int]:
    """The numbers of `#SBATCH --array=1-3,5%2`."""
    found = re.search(r"--array=([0-9,-]+)", script)
    parts = [part.split("-") for part in found[1].split(",")] if found else []
    return [number for part in parts for number in range(int(part[0]), int(part[-1]) + 1)]


def _begin(folder: Path, id: str) -> None:
    """Start the script in a session of its own, as the node does."""
    script = (folder / f"{id}.sh").read_text()
    output = next(w.partition("=")[2] for w in script.split() if w.startswith("--output="))
    begun = int(_state(folder, id).get("begun", "0"))
    array, _, element = id.partition("_")
    output = output.replace("%A", array).replace("%a", element)
    env = {**os.environ, "SLURM_JOB_ID": array, "SLURMD_NODENAME": "n0", "SLURM_JOB_NODELIST": "n0"}
    env["SLURM_RESTART_COUNT"] = str(begun)
    if element:
        own = {"SLURM_JOB_ID": f"{array}00{element}", "SLURM_ARRAY_JOB_ID": array}
        env = {**env, **own, "SLURM_ARRAY_TASK_ID": element}
    if (pid := os.fork()) == 0:
        os.setsid()
        fd = os.open(output.replace("%j", id), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        os.execve("/bin/bash", ["bash", str(folder / f"{id}.sh")], env)
    _put(folder, id, {"word": "RUNNING", "reason": "None", "pid": str(pid), "begun": str(begun + 1)})


def _state(folder: Path, id: str) -> dict[str, str]:
    job: dict[str, str] = json.loads((folder / "queue" / f"{id}.json").read_text())
    if job["word"] == "RUNNING" and not _alive(int(job["pid"])):
        job["word"] = "COMPLETED"
    return job


def _put(folder: Path, id: str, job: dict[str, str]) -> None:
    path = folder / "queue" / f"{id}.json"
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(job))
    beside.replace(path)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kill(pid: int, number: int) -> None:
    """The session of the script, and after a while what is left of it."""
    sessions = {pid}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) in sessions:
            try:
                os.kill(int(path.parent.name), number)
            except ProcessLookupError:
                continue
    if number == 15:
        deadline = time.monotonic() + 10
        while _alive(pid) and time.monotonic() < deadline:
            time.sleep(0.1)
