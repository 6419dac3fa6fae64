"""One line for each way in which a command shows no training."""

from __future__ import annotations

from typing import Any

import pytest
from tests.edges.store.test_folders import a_record
from tests.support.diagnoses import stacks
from tests.support.trials import run

from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.diagnosis.look_problem import LookProblem, disturbances, is_blind, problem_of, too_few
from gpudebug.core.diagnosis.rank import diagnose
from gpudebug.core.records import Conditions, Failure, ProbeEvidence, StacksEvidence
from gpudebug.core.words import Outcome
from gpudebug.engine.run import catalogue


def problem(*, leaked: int = 0, log_end: str = "", **evidence: Any) -> LookProblem | None:
    blind = {"window": None, "probe": None, "steps_per_s": None, "duration_s": 2.0, **evidence}
    return problem_of(a_record(leaked=leaked), run(50.0, **blind), log_end)


def text(**given: Any) -> str:
    found = problem(**given)
    assert found is not None
    return found.text


def failed(line: str) -> dict[str, Any]:
    return {"outcome": Outcome.CRASHED, "failure": Failure(kind="exception", lines=("x", line))}


def test_a_training_that_was_seen_is_no_problem() -> None:
    assert problem_of(a_record(), run(50.0)) is None


def test_steps_without_a_long_enough_window_are_no_training_unseen() -> None:
    short = "the window is too short: 4.3 s after warm-up, at least 5 s needed"
    probe = ProbeEvidence(pid=1, steps=200)
    found = problem(outcome=Outcome.ENDED_BY_PLAN, window_reason=short, probe=probe, duration_s=46.0)
    assert found is not None and found.for_s
    assert found.text == f"training steps were seen, but {short}: look for longer, or at a quieter host"


@pytest.mark.parametrize(
    ("outcome", "advice", "for_s"),
    [
        (Outcome.ENDED_BY_PLAN, "look for longer", 300),
        (Outcome.COMPLETED, "the command ended by itself: give it more steps", None),
    ],
)
@pytest.mark.parametrize("window", [None, 6.0])
def test_too_few_steps_are_too_short_a_look(
    outcome: Outcome, advice: str, for_s: int | None, window: float | None
) -> None:
    few = run(50.0, window=window, rate=None, steps=3, first_step_s=50.3, outcome=outcome, duration_s=52.0)
    found = problem_of(a_record(), few)
    assert is_blind(few)
    assert found is not None
    assert found.for_s == for_s
    assert found.text.startswith("too short: 3 steps were seen, the first at 50.3 s, and a cause needs 10")
    assert found.text.endswith(advice)


def test_a_failure_is_told_before_the_count_of_its_steps() -> None:
    assert text(**failed("ValueError: no"), steps=3, progress_per_s=1.0).endswith("ValueError: no")


def test_a_command_that_ends_soon() -> None:
    assert text(outcome=Outcome.COMPLETED).startswith("the command ended by itself after 2.0 s")


def test_a_command_that_forks_and_leaves() -> None:
    assert "left 1 process behind" in text(outcome=Outcome.COMPLETED, leaked=1)
    assert "in the foreground" in text(outcome=Outcome.COMPLETED, leaked=2)


@pytest.mark.parametrize(
    "line",
    [
        "EOFError: EOF when reading a line",
        "_curses.error: cbreak() returned ERR",
        "termios.error: (25, 'Inappropriate ioctl for device')",
        "the input device is not a TTY",
    ],
)
def test_a_command_that_wants_a_terminal(line: str) -> None:
    assert f"wants a terminal, and gpudebug gives it none ({line})" in text(**failed(line))
    assert "wants a terminal" in text(outcome=Outcome.CRASHED, log_end=f"hello\n{line}\n")


def test_a_command_that_completed_did_not_want_a_terminal() -> None:
    warned = text(outcome=Outcome.COMPLETED, log_end="stdout is not a tty, no colours\n")
    assert warned.startswith("the command ended by itself")


def test_a_command_that_fails_says_by_which_line() -> None:
    assert text(**failed("ValueError: no such model")).endswith(
        "failed after 2.0 s: ValueError: no such model"
    )


def test_a_command_that_finds_the_output_of_an_earlier_run_is_given_one_of_its_own() -> None:
    found = problem(**failed("FileExistsError: [Errno 17] File exists: 'out'"))
    assert found is not None and found.for_s is None
    assert "File exists: 'out'; an earlier run left it: write {run}" in found.text


def test_a_command_that_never_trains_may_be_looked_at_for_longer() -> None:
    found = problem(outcome=Outcome.ENDED_BY_PLAN, duration_s=90.0)
    assert found is not None
    assert found.text.startswith("no training step was seen in 1 min 30 s")
    assert found.for_s == 300


def test_a_steady_window_without_a_step_says_so() -> None:
    seen = run(50.0, probe=None, steps_per_s=None, progress_per_s=None, outcome=Outcome.COMPLETED)
    found = problem_of(a_record(), seen)
    assert found is not None
    assert found.text.startswith("no training step was seen")
    assert found.for_s is None


def test_others_on_the_host_make_the_figures_rough() -> None:
    busy = run(50.0, conditions=Conditions(foreign_cpu=40.0, foreign_procs=1))
    assert [note.partition(":")[0] for note in disturbances(busy)] == [
        "another process computed on the device",
        "other programs used 40% of the cores",
    ]
    assert disturbances(run(50.0, conditions=Conditions(foreign_cpu=2.0))) == ()
    yielding = Conditions(foreign_cpu=90.0, cpu_stolen=0.5, cpu_cores=0.2)
    assert disturbances(run(50.0, conditions=yielding)) == ()
    taken = disturbances(run(50.0, conditions=yielding.model_copy(update={"cpu_stolen": 20.0})))
    assert taken[0].startswith("other programs kept 50% of the CPU time that it wanted from the training")


def test_a_failure_is_told_even_if_the_start_up_made_a_window() -> None:
    silent = {"probe": None, "steps_per_s": None, "progress_per_s": None}
    started = run(50.0, **silent, **failed("OSError: no data"))
    found = problem_of(a_record(), started)
    assert found is not None
    assert found.text.endswith("OSError: no data")
    assert is_blind(started)
    assert not is_blind(run(50.0, **failed("OSError: late")))


def test_a_failure_before_the_first_step_names_no_cause_however_much_the_probe_was_there() -> None:
    probe = {"probe": ProbeEvidence(pid=7, steps=0), "steps_per_s": None, "progress_per_s": None}
    assert is_blind(run(50.0, **failed("KeyError: 'text'"), **probe))
    assert not is_blind(run(50.0, **failed("KeyError: 'text'"), **{**probe, "progress_per_s": 3.0}))


def test_a_training_that_still_starts_names_no_cause_and_an_inference_does() -> None:
    """Its imports are most of what is seen, and the probe is there from PyTorch's on."""
    here = {"probe": ProbeEvidence(pid=7, steps=0), "steps_per_s": None, "progress_per_s": None}
    imports = ("t.py:<module>", "<frozen importlib._bootstrap>:_find_and_load")
    seen = stacks(("other", "t.py:<module> imports", 1, 9.0, 9.0)).model_copy(update={"frames": imports})
    started = StacksEvidence(training=seen)
    infers = StacksEvidence(training=stacks(("eval", "t.py:main m.py:Net.forward", 1, 9.0, 9.0)))
    assert is_blind(run(50.0, stacks=started, outcome=Outcome.ENDED_BY_PLAN, **here))
    assert text(stacks=started, outcome=Outcome.ENDED_BY_PLAN, **here).endswith(
        "it still imports its modules"
    )
    assert not is_blind(run(50.0, stacks=infers, outcome=Outcome.ENDED_BY_PLAN, **here))


def seen(steps: int | None = None, *, probe: int | None = None, **more: Any) -> dict[str, Any]:
    told = {"steps": probe, "data_wait_share": 0.8} if probe is not None else None
    return {"run": "0001-x", "steps": steps, "step_unit": "step" if steps else None, "probe": told, **more}


@pytest.mark.parametrize(
    ("runs", "count"),
    [
        ([], None),
        ([seen()], None),
        ([seen(probe=0)], None),
        ([seen(probe=2, first_step_s=50.31)], "2 steps were seen, the first at 50.3 s"),
        ([seen(1)], "1 step was seen"),
        ([seen(9)], "9 steps were seen"),
        ([seen(10)], None),
        ([seen(9, probe=10)], None),
        ([seen(200, probe=5)], None),
        ([seen(7, probe=7, steps_per_s=1.0)], "7 steps were seen"),
        ([seen(7, probe=7, steps_per_s=0.4)], None),
        ([seen(100_007, first_count=100_001, last_count=100_007)], "7 steps were seen"),
        ([seen(50, first_count=50, last_count=50)], None),
        ([seen(1, step_unit="epoch")], None),
        ([seen(1, step_unit="epoch", probe=4)], "4 steps were seen"),
        ([seen(3, latency={"count": 500})], None),
        ([seen(6), seen(6)], None),
        (
            [seen(3, first_step_s=9), seen(4, first_step_s=8)],
            "7 steps were seen in 2 runs, the first at 8.0 s",
        ),
    ],
)
def test_how_many_steps_are_too_few(runs: list[dict[str, Any]], count: str | None) -> None:
    found = too_few(runs)
    assert found == (None if count is None else f"too short: {count}, and a cause needs 10")


def test_too_few_steps_name_no_cause_and_enough_do() -> None:
    causes = catalogue.load(None).causes
    few, enough = (diagnose(causes, facts_of([seen(probe=steps)])) for steps in (4, 40))
    assert few.causes == ()
    assert few.abstains == "too short: 4 steps were seen, and a cause needs 10: make the runs longer"
    assert enough.causes
    assert enough.abstains is None
