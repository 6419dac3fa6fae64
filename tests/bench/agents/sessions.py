"""Runs one session of one kind, and reads from the files what its user is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.bench.agents.characters import CHARACTERS
from tests.bench.agents.faces import PATIENCE_S, opened
from tests.bench.agents.outcome import CONTROL, AgentOutcome, Cell, Ratio
from tests.bench.agents.program import EvalProgram, Watch, prepare, stopwatch, timed, with_change
from tests.support.campaigns import environment, gpudebug

VARIABLE = "GPUDEBUG_EVAL_AGENT"
REAL = ("agent", "agent-alone")
"""The agent of `GPUDEBUG_EVAL_AGENT`, with gpudebug and without."""
_TAIL = 30
_PROFILE = 40
_CLAIM = re.compile(
    r"CLAIM:\s*(?P<value>\d+(?:\.\d+)?)\s*x(?:\s*\((?P<low>[\d.]+)\s*to\s*(?P<high>[\d.]+)\))?"
)
_TASK = """\
This training is slow: find out why and fix it, by one change of its flags.
Its command, in this folder: {command}
End your answer with one line: CLAIM: R.RRx, by how many times more steps a second it makes now, with an \
interval as `(L.LL to H.HH)` if you know one; or CLAIM: none.
"""


def session(cell: Cell, transcripts: Path | None = None) -> AgentOutcome:
    """Run one session in a folder of its own; `transcripts` is a folder for what was said."""
    with tempfile.TemporaryDirectory(prefix="gpudebug-eval-") as folder:
        program = prepare(cell.program, Path(folder) / "repository")
        began = time.monotonic()
        with Watch(program.folder) as watch:
            if cell.character == CONTROL:
                claim, characters, text = _control(program)
                verdict = told = ""
            elif cell.character in REAL:
                claim, verdict, told, characters, text = _real(program, alone=cell.character == REAL[1])
            else:
                with opened(cell.face, program.folder, f"eval-{cell.character}") as face:
                    CHARACTERS[cell.character](program, face)
                characters, text = face.characters, "\n".join(face.transcript)
                claim, verdict, told = claimed(program.folder)
        wall = time.monotonic() - began
        gained = claim is not None and cell.character in CHARACTERS
        exported = _exported(program.folder) if gained else None
        beside = stopwatch(program) if gained else None
    if transcripts is not None:
        transcripts.mkdir(parents=True, exist_ok=True)
        name = f"{cell.program}-{cell.character}-{cell.face}-{cell.repeat}.txt"
        (transcripts / name).write_text(text)
    device_s, wall_s = round(watch.seconds, 1), round(wall, 1)
    return AgentOutcome(cell, claim, verdict, told, device_s, wall_s, characters, exported, beside)


def claimed(folder: Path) -> tuple[Ratio | None, str, str]:
    """The gain that gpudebug vouches for after a session, the verdict, and its reason."""
    rows = gpudebug(folder, "status", "--json").json["hypotheses"]
    row = next((row for row in rows if row["verified"]), rows[-1] if rows else None)
    if row is None:
        return None, "", ""
    if not row["verified"] or row["status"] != "VALIDATED":
        return None, row["status"], row["why"] or ""
    for path in sorted((folder / "runs").glob("*/verdict.json"), reverse=True):
        verdict = json.loads(path.read_text())
        ratio = verdict["throughput_ratio"] if verdict["hypothesis"] == row["number"] else None
        if ratio:
            return _ratio(ratio), row["status"], row["why"] or ""
    return None, row["status"], row["why"] or ""


def _exported(folder: Path) -> Ratio | None:
    """What a person reads who accepts what was validated and exports it."""
    row = next(row for row in gpudebug(folder, "status", "--json").json["hypotheses"] if row["verified"])
    gpudebug(folder, "accept", str(row["number"])).expect(0)
    answer = gpudebug(folder, "export", "--json").expect(0).json
    return _ratio(answer["combined"]["throughput_ratio"])


def _ratio(estimate: Mapping[str, float | None] | None) -> Ratio | None:
    if estimate is None or estimate["value"] is None:
        return None
    value = estimate["value"]
    return Ratio(value, estimate["low"] or value, estimate["high"] or value)


def _control(program: EvalProgram) -> tuple[Ratio, int, str]:
    """What an agent does by itself: baseline, profile, one change; it claims the quotient of both rates."""
    command, changed = list(program.argv), with_change(program.argv, program.right.flags)
    before = timed(program, command)
    profile = subprocess.run(
        [command[0], "-m", "cProfile", "-s", "tottime", *command[1:]],
        cwd=program.folder,
        env={**environment(), **program.env},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    ).stdout
    after = timed(program, changed)
    table = profile[profile.find("function calls") :]
    read = [_tail(before.text), "\n".join(table.splitlines()[:_PROFILE]), _tail(after.text)]
    written = [
        " ".join(command),
        " ".join([*command[:1], "-m cProfile -s tottime", *command[1:]]),
        " ".join(changed),
    ]
    value = after.rate / before.rate
    text = "\n".join(f"> {w}\n{r}" for w, r in zip(written, read, strict=True))
    return Ratio(value, value, value), sum(map(len, (*read, *written))), text


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-_TAIL:])


def _real(program: EvalProgram, *, alone: bool) -> tuple[Ratio | None, str, str, int, str]:
    """The agent of the variable: a command that reads its task on standard input, in the program's folder."""
    task = _TASK.format(command=" ".join(program.argv))
    if alone:
        (program.folder / "gpudebug.yaml").unlink()
    else:
        gpudebug(program.folder, "init", "--agent", "agents").expect(0)
    # An agent calls `gpudebug`, wherever this one is.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", os.environ[VARIABLE]],
        cwd=program.folder,
        env={**environment(), "PATH": path, "GPUDEBUG_SESSION": "eval-agent"},
        input=task,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    found = list(_CLAIM.finditer(done.stdout))
    claim = None
    if found:
        value = float(found[-1]["value"])
        claim = Ratio(value, float(found[-1]["low"] or value), float(found[-1]["high"] or value))
    verdict, told = ("", "") if alone else claimed(program.folder)[1:]
    return claim, verdict, told, len(task) + len(done.stdout), done.stdout


def available() -> bool:
    """Whether a real agent is named."""
    return bool(os.environ.get(VARIABLE))
