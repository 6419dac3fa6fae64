"""Programs that run with the probe in their Python, and what they told."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import environment

from gpudebug.edges import launcher

PROBE = Path(launcher.__file__).resolve().parents[2] / "training" / "probe"
Line = dict[str, Any]
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")


@dataclass(frozen=True)
class Told:
    """How a program ended, what it printed, and the lines that it wrote, in order."""

    status: int
    out: str
    err: str
    lines: list[Line]

    def of(self, kind: str) -> list[Line]:
        return [line for line in self.lines if line["kind"] == kind]

    @property
    def end(self) -> Line:
        """The last line of the only process that told."""
        (line,) = self.of("end")
        return line

    @property
    def counters(self) -> dict[str, float]:
        return dict(self.end["counters"])

    @property
    def facts(self) -> dict[str, Any]:
        return dict(self.of("facts")[-1]["facts"])

    @property
    def kinds(self) -> list[str]:
        return [line["kind"] for line in self.lines]


def lines_of(folder: Path) -> list[Line]:
    path = folder / launcher.PROBE
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def variables(run: Path, **more: str | None) -> dict[str, str]:
    """The environment of a run that is probed; its lines go to the folder `run`."""
    env = environment({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": None, "OMP_NUM_THREADS": "1", **more})
    return {**launcher.inject(env), "GPUDEBUG_RECORDS_DIR": str(run), "GPUDEBUG_T0": "12.5"}


def probed(
    run: Path, code: str, *flags: str, python: str = sys.executable, probe: bool = True, **more: str | None
) -> Told:
    """Run `code` as a program in the folder above `run`, with the probe or without."""
    run.mkdir(exist_ok=True)
    program = run.parent / "train.py"
    program.write_text(textwrap.dedent(code))
    env = variables(run, **more)
    if not probe:
        ours = ("PYTHONPATH", "GPUDEBUG_PROBE", "GPUDEBUG_PROFILE", "GPUDEBUG_RECORDS_DIR")
        env = {name: value for name, value in env.items() if name not in ours}
    done = subprocess.run(
        [python, *flags, str(program)],
        env=env,
        cwd=run.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Told(done.returncode, done.stdout, done.stderr, lines_of(run))


_EACH = """
import atexit, json, os, sys, torch, traceback
def main():
    # What an optimizer imports takes as long as torch itself.
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    # None was made, as far as a fork can tell.
    torch.optim.SGD.step = torch.optim.SGD.step.__wrapped__
    for name, code in json.load(open(sys.argv[0] + ".json")).items():
        pid = os.fork()
        if not pid:
            out = os.open(f"{name}.out", os.O_WRONLY | os.O_CREAT)
            os.dup2(out, 1), os.dup2(out, 2)
            try:
                exec(compile(code, name, "exec"), globals())
            except BaseException:
                traceback.print_exc()
            # As a program ends, but for taking a PyTorch apart that the next one needs again.
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print(json.dumps([name, pid, os.WEXITSTATUS(status), os.WTERMSIG(status)]), flush=True)
if __name__ == "__main__":
    main()
"""


def stories(folder: Path, codes: Mapping[str, str], **more: str | None) -> dict[str, Told]:
    """Run each code in a fork of one process that has imported torch, which takes seconds."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py.json").write_text(json.dumps({k: textwrap.dedent(v) for k, v in codes.items()}))
    told = probed(folder / "run", _EACH, **more)
    assert (told.status, told.err) == (0, "")
    found = {}
    for line in told.out.splitlines():
        name, pid, status, signal = json.loads(line)
        lines = [entry for entry in told.lines if entry["pid"] == pid]
        found[name] = Told(-signal or status, (folder / f"{name}.out").read_text(), "", lines)
    whose = {line["pid"] for t in found.values() for line in t.lines}
    # Loader workers tell their stacks, and nothing else.
    others = [line for line in told.lines if line["pid"] not in whose]
    assert [line for line in others if line["kind"] != "stacks"] == []
    return found
