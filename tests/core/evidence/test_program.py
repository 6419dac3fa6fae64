"""The program of a run: what ran beside it, where its output stays, and what that says."""

from __future__ import annotations

import pytest

from gpudebug.core.command.program import RunProcess
from gpudebug.core.evidence.program import notes, program_evidence


def process(pid: int, parent: int = 0, cpu_s: float = 5.0, **more: object) -> RunProcess:
    return RunProcess(pid, parent, "python", 0.0, 20.0, cpu_s)._replace(**more)  # type: ignore[arg-type]


SHELL = process(1, cpu_s=0.0, name="bash", beside_s=20.0)
HELD = {
    "through grep": (
        {"output": "pipe grep"},
        "through `grep`, which holds it back: give it --line-buffered",
    ),
    "through conda": ({"output": "pipe conda"}, "conda run --no-capture-output"),
    "to its parent": ({"output": "pipe python3.11"}, "the python3.11 that started it reads its output"),
    "in a notebook": ({"output": "kernel"}, "papermill --log-output"),
    "to a file": ({"output": "file"}, "| tee FILE"),
    "in Python's buffer": ({"output": "log", "buffers": True}, "python -u, or PYTHONUNBUFFERED=1"),
    "through tee": ({"output": "pipe tee"}, None),
    "nowhere: it prints nothing": ({"output": "log"}, None),
}


@pytest.mark.parametrize(("where", "expected"), HELD.values(), ids=HELD)
def test_what_keeps_its_output_from_the_log(where: dict[str, object], expected: str | None) -> None:
    seen = [SHELL, process(2, 1, **where)]
    found = program_evidence(seen, (), (), silent=True)
    assert found is not None and found.pid == 2
    assert expected in (found.held or "") if expected else found.held is None
    assert len(notes(found)) == (expected is not None)
    shown = program_evidence(seen, (), (), silent=False)
    assert shown is not None and shown.held is None


def test_what_keeps_the_probe_out() -> None:
    found = [program_evidence([process(2, apart=apart)], (), (), silent=False) for apart in ("-E", "env", "")]
    assert [(one.apart or "")[:11] for one in found if one] == ["`python -E`", "the program", ""]


def test_a_run_without_a_probe_has_nothing_that_keeps_it_out() -> None:
    found = program_evidence([process(2, apart="path")], (), (), silent=False, probed=False)
    assert found is not None and found.apart is None


def test_two_trainings_are_named_and_the_ranks_of_one_are_not() -> None:
    seen = [SHELL, process(2, 1), process(3, 1, 6.0), process(4, 1, 0.2)]
    plain = program_evidence(seen, (), (), silent=False)
    alone = program_evidence(seen, (2,), (2, 3), silent=False)
    ranks = program_evidence(seen, (2, 3), (2, 3), silent=False)
    assert plain and alone and ranks
    assert (plain.pid, plain.beside) == (3, ("python (2)",))
    assert (alone.pid, alone.beside) == (2, ("python (3)",))
    assert (ranks.pid, ranks.beside) == (2, ())
    assert notes(alone) == (
        "2 programs ran side by side below the command: python (2) is shown, python (3) not",
    )


def test_nothing_is_said_of_a_run_whose_processes_were_not_seen() -> None:
    assert program_evidence((), (7,), (7,), silent=True) is None
    assert notes(None) == ()
