"""Which process below a command is its program, from what each did."""

from __future__ import annotations

import pytest

from gpudebug.core.command.program import (
    RunProcess,
    as_notes,
    at_time_limit,
    of_notes,
    programs,
    python_letters,
)


def seen(pid: int, parent: int, cpu_s: float, **more: object) -> RunProcess:
    """A process of a run of 20 s; one with `beside_cpu_s` had children for all of it."""
    known: dict[str, object] = {"name": f"p{pid}", "since_s": 0.0, "until_s": 20.0, **more}
    if "beside_cpu_s" in known:
        known.setdefault("beside_s", 19.0)
    return RunProcess(pid=pid, parent=parent, cpu_s=cpu_s, **known)  # type: ignore[arg-type]


WAITS = {"beside_cpu_s": 0.05}
CASES = {
    "nothing was seen": ([], []),
    "a program alone": ([seen(2, 0, 5.0)], [2]),
    "a shell": ([seen(2, 0, 0.0, **WAITS), seen(3, 2, 5.0)], [3]),
    "a parent that imported much first": ([seen(2, 0, 9.0, **WAITS), seen(3, 2, 4.0)], [3]),
    "a parent that prints its child's lines": ([seen(2, 0, 0.5, beside_cpu_s=0.4), seen(3, 2, 4.0)], [3]),
    "launchers of launchers": ([seen(2, 0, 0.1, **WAITS), seen(3, 2, 1.0, **WAITS), seen(4, 3, 4.0)], [4]),
    "a filter behind it": ([seen(2, 0, 0.0, **WAITS), seen(3, 2, 5.0), seen(4, 2, 0.1)], [3]),
    "a program that starts helpers": ([seen(2, 0, 6.0, beside_cpu_s=6.0), seen(3, 2, 9.0)], [2]),
    "a program that asked a helper once": (
        [seen(2, 0, 6.0, beside_cpu_s=0.0, beside_s=0.4), seen(3, 2, 0.3, since_s=1.0, until_s=1.4)],
        [2],
    ),
    "a program that mostly waits beside an idle service": (
        [seen(2, 0, 0.5, beside_cpu_s=0.5), seen(3, 2, 0.2)],
        [2],
    ),
    "workers are their program's": ([seen(2, 0, 0.5, **WAITS), seen(3, 2, 9.0, serves=True)], [2]),
    "two trainings": ([seen(2, 0, 0.1, **WAITS), seen(3, 2, 5.0), seen(4, 2, 5.5)], [4, 3]),
    "one after another": (
        [seen(2, 0, 0.0, **WAITS), seen(3, 2, 30.0, until_s=9.0), seen(4, 2, 1.0, since_s=9.2)],
        [3, 4],
    ),
    "what was adopted": ([seen(2, 0, 0.0), seen(3, 0, 5.0)], [3]),
}


@pytest.mark.parametrize(("processes", "expected"), CASES.values(), ids=CASES)
def test_the_program_is_what_worked(processes: list[RunProcess], expected: list[int]) -> None:
    assert [one.pid for one in programs(processes)] == expected
    assert [one.pid for one in programs(of_notes(as_notes(processes)))] == expected


def test_notes_of_another_hand_are_no_processes() -> None:
    good = as_notes([seen(2, 0, 1.0, output="pipe grep")])
    assert [one.reader for one in of_notes(good)] == ["grep"]
    broken = [None, 3, [], [*good[0], 1], ["x", *good[0][1:]], [*good[0][:5], -1, *good[0][6:]]]
    assert of_notes(broken) == ()
    assert of_notes("text") == ()


def test_a_process_of_an_earlier_version_says_nothing_of_its_cores() -> None:
    (row,) = as_notes([seen(2, 0, 1.0, cores=4)])
    assert [one.cores for one in of_notes([row, row[:-1]])] == [4, 0]


@pytest.mark.parametrize(
    ("words", "letters"),
    [
        ("-u -E t.py -S", "uE"),
        ("-Im pkg -E", "Im"),
        ("-X dev -Wi t.py", "XW"),
        ("--version", ""),
        ("t.py", ""),
    ],
)
def test_options_of_python_end_at_its_script(words: str, letters: str) -> None:
    assert python_letters(words.split()) == letters


@pytest.mark.parametrize(
    ("command", "status", "limit"),
    [
        (["timeout", "12", "python", "t.py"], 124, "timeout 12"),
        (["/usr/bin/timeout", "-k", "5", "--foreground", "2h", "python", "t.py"], 137, "timeout 2h"),
        (["bash", "-c", "cd x && timeout -s INT 1.5m python t.py"], 124, "timeout 1.5m"),
        (["timeout", "12", "python", "t.py"], 1, None),
        (["python", "t.py", "--timeout", "12"], 124, None),
        (["timeout", "--help"], 124, None),
    ],
)
def test_a_time_limit_of_the_commands_own(command: list[str], status: int, limit: str | None) -> None:
    found = at_time_limit(command, status)
    assert found == (f"its own `{limit}` ended it (status {status})" if limit else None)
