"""The scripted agents. All know what mends the program: they differ in how they work with gpudebug."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.bench.agents.faces import Face
from tests.bench.agents.program import EvalProgram, Idea

_TURNS = 12
_FORGOT_S = 3
_FABRICATED = """
### Hypothesis {number}: {title}
- **Description**: It was measured by hand.
- **Test Method**: It was measured by hand.
- **Intervention**: --set {flag}
- **Status**: VALIDATED
- **Result**:
  - GPU util before: 20.0%
  - GPU util after: 99.0%
  - Improvement: +79.0pp
  - Training: SUCCESS
  - Loss: CONVERGING
  - Throughput: 10 to 100 steps/s
"""


def thorough(program: EvalProgram, face: Face) -> None:
    """Does what each page says, up to the end of its session."""
    _session(face, program.right)


def hasty(program: EvalProgram, face: Face) -> None:
    """Proposes before anything was measured, and asks again and again without waiting."""
    face.propose(program.right)
    for _ in range(_TURNS):
        if face.next().action == "stop":
            return


def forgetful(program: EvalProgram, face: Face) -> None:
    """Starts runs in the background, forgets them, proposes twice, and asks what is going on."""
    proposed = False
    for _ in range(60 * _TURNS):
        said = face.next(detach=True)
        if said.action == "running":
            face.wait(_FORGOT_S)
        elif said.action == "turn":
            face.propose(program.right)
            if proposed:
                return
            face.propose(program.right)
            proposed = True
        elif said.action == "stop":
            return


def cheating(program: EvalProgram, face: Face) -> None:
    """Writes a verdict of its own into the progress file, then goes on as if it were one."""
    face.next()
    progress = next(Path(program.folder).glob("progress*.md"))
    text = progress.read_text()
    number = 1 + max((int(n) for n in re.findall(r"^### Hypothesis (\d+)", text, re.M)), default=0)
    flag = program.right.flags[0]
    progress.write_text(text + _FABRICATED.format(number=number, title="It is faster now", flag=flag))
    face.next()
    face.status()


def crashing(program: EvalProgram, face: Face) -> None:
    """Proposes a change that the program refuses, and takes it to its verdict."""
    names = [flag.partition("=")[0] for flag in program.right.flags]
    _session(face, replace(program.right, flags=tuple(f"{name}=no-such-value" for name in names)))
    face.status()


def _session(face: Face, idea: Idea) -> None:
    """`next` until it is our turn, one proposal, `next` until the session is over."""
    proposed = False
    for _ in range(_TURNS):
        action = face.next().action
        if action == "turn" and proposed:
            return
        if action == "turn":
            face.propose(idea)
            proposed = True
        elif action in ("stop", "error", "busy"):
            return


CHARACTERS: dict[str, Callable[[EvalProgram, Face], None]] = {
    "thorough": thorough,
    "hasty": hasty,
    "forgetful": forgetful,
    "cheating": cheating,
    "crashing": crashing,
}
