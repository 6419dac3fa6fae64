"""The stacks of a run's window, few enough for evidence.json."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.support.stack_lines import FRAMES, evidence, told

from gpudebug.core.command.program import RunProcess
from gpudebug.core.inside.probe import ProcessKey
from gpudebug.core.inside.stacks import read_stacks, stacks_evidence, stacks_of
from gpudebug.core.inside.stacks.shares import share
from gpudebug.core.inside.stacks.window import ELSEWHERE, start_up_stacks
from gpudebug.core.records import Window


def test_lines_are_added_up() -> None:
    found = evidence(told(since=2, at=4) + told(since=4, at=6)).training
    assert found is not None
    assert (found.seconds, found.cpu_s, found.samples) == (2.0, 1.0, 80)
    assert found.frames == tuple(FRAMES)
    assert found.stacks == (("data", (0, 1, 2), 7, 1.0, 0.8), ("other", (0, 1), 9, 0.5, 0.0))
    assert found.code == {
        "job/train.py:main:7": "image.resize(size)",
        "job/train.py:main:9": "time.sleep(1)",
    }


WINDOWS = {(2.0, 4.0): 1.0, (3.0, 4.0): 0.5, (3.0, 6.0): 1.5, (0.0, 3.5): 0.75, (5.5, 5.75): 0.125}


@pytest.mark.parametrize(("window", "seconds"), WINDOWS.items(), ids=map(str, WINDOWS))
def test_a_line_counts_for_its_part_in_the_window(window: tuple[float, float], seconds: float) -> None:
    found = evidence(told(since=2, at=4) + told(since=4, at=6), window).training
    assert found is not None
    assert found.seconds == seconds
    assert found.stacks[0][3:] == pytest.approx((seconds / 2, 0.4 * seconds), abs=0.001)


def test_nothing_in_the_window_is_nothing() -> None:
    record = read_stacks(told(since=2, at=4))
    assert stacks_evidence(record, Window(start_s=4, end_s=9, samples=9, rule="steps")) is None
    assert stacks_evidence(None, None) is None


def test_of_several_processes_the_one_that_trains_counts_else_the_one_watched_longest() -> None:
    text = told(1, s=0.5) + told(2, s=1.5) + told(3, s=2.0)
    assert [evidence(text, main=main).training.seconds for main in (1, 2, None, 9)] == [0.5, 1.5, 2.0, 2.0]  # type: ignore[union-attr]


def test_without_pytorch_the_program_counts_and_no_parent_that_waits_for_it() -> None:
    parent = RunProcess(1, 0, "python", 0.0, 9.0, 0.1, beside_s=8.0)
    child, other = RunProcess(2, 1, "python", 1.0, 9.0, 3.0), RunProcess(3, 1, "train", 1.0, 9.0, 3.0)
    record = read_stacks(told(1, of="main", s=2.0) + told(2, of="main", s=0.5))
    of_child = stacks_evidence(record, None, seen=(parent, child))
    of_another = stacks_evidence(record, None, seen=(parent, other))
    assert of_child and of_child.training and of_child.training.seconds == 0.5
    assert of_another is None


LOOP = {"frames": ["train.py:<module>", "pool.py:get", "(kernel):sleep", "train.py:step"]}
WAITS = {**LOOP, "of": "main", "cpu": 0.004, "stacks": [["other", [0, 1, 2], 7, 1.0, 0.004, 40]]}
COMES_BACK = {**WAITS, "stacks": [*WAITS["stacks"], ["other", [0, 3], 8, 0.001, 0.0, 1]]}
WORKS = {**LOOP, "of": "main", "s": 0.5, "cpu": 0.25, "stacks": [["other", [0, 3], 8, 0.5, 0.25, 20]]}


@pytest.mark.parametrize(("parent", "seconds"), [(WAITS, 0.5), (COMES_BACK, 1.0)])
def test_a_main_thread_that_waits_in_one_call_gave_the_training_to_its_pool(
    parent: dict[str, Any], seconds: float
) -> None:
    pool = RunProcess(1, 0, "train.py", 0.0, 9.0, 0.1), RunProcess(2, 1, "python", 1.0, 9.0, 3.0, serves=True)
    found = stacks_evidence(read_stacks(told(1, **parent) + told(2, **WORKS)), None, seen=pool)
    assert found and found.training
    assert found.training.seconds == seconds


@pytest.mark.parametrize(("steps_per_s", "there"), [(None, True), (1.0, True), (500.0, False)])
def test_a_main_thread_that_hardly_runs_makes_no_steps(steps_per_s: float | None, there: bool) -> None:
    found = stacks_evidence(read_stacks(told(1, **WAITS)), None, steps_per_s=steps_per_s)
    assert found
    assert (found.training is not None, ELSEWHERE in found.notes) == (there, not there)


def test_workers_count_together_and_apart() -> None:
    found = evidence(told(1, s=0.5) + told(2, of="workers") + told(3, of="workers"))
    assert found.training is not None
    assert found.workers is not None
    assert (found.training.seconds, found.workers.seconds) == (0.5, 2.0)
    assert evidence(told(2, of="workers")).training is None


def test_secrets_in_source_are_scrubbed() -> None:
    token = "hf_" + "a1b2" * 9
    found = evidence(told(code={"1:7": f'login(token="{token}")'})).training
    assert found is not None
    assert token not in json.dumps(found.model_dump(mode="json"))
    assert found.code["job/train.py:main:7"].startswith("login(token=")


def _wide(count: int, depth: int, users: int) -> str:
    """Stacks that differ in what libraries do within `users` lines of the user's, fifty a line."""
    lines = []
    for first in range(0, count, 50):
        stacks, names, code = [], {}, {}
        for n in range(first, min(first + 50, count)):
            user = n % users
            below = [f"library_{k % 7}/module_{k}.py:Class_{k}.method" for k in range(n, n + depth)]
            frames = [
                names.setdefault(name, len(names)) for name in (f"job/train.py:function_{user}", *below)
            ]
            code[f"{frames[0]}:{user + 1}"] = f"self.layer_{user}(values) + another(values, {user})"
            stacks.append(["forward", frames, user + 1, 1.0, 0.5, 1])
        spent = float(len(stacks))
        lines.append(told(since=first, at=first + 2, s=spent, frames=list(names), stacks=stacks, code=code))
    return "".join(lines)


@pytest.mark.parametrize(("count", "depth", "users"), [(400, 12, 8), (2000, 38, 30), (90, 40, 90)])
def test_evidence_stays_small_and_keeps_what_the_users_lines_took(count: int, depth: int, users: int) -> None:
    text = _wide(count, depth, users)
    found = evidence(text + text.replace('"training"', '"workers"'))
    assert len(json.dumps(found.model_dump(mode="json"), indent=1)) < 30_000
    assert found.training is not None
    assert len(found.training.stacks) <= 100
    total = found.training.seconds
    if users <= 30:
        kept = sum(stack[3] for stack in found.training.stacks)
        assert kept == pytest.approx(count, rel=0.02)
        assert share(found.training, code=re.escape("layer_3(values)"))[0] * total == pytest.approx(
            count / users, rel=0.1
        )


def _packaged() -> str:
    """An installed trainer below one line of the user's: forwards in many places, and a checkpoint
    whose time is in as many."""
    above = ["job/run.py:main", "trainer/loop.py:Trainer.train", "trainer/loop.py:Trainer._inner_loop"]
    saves = [*above, "trainer/loop.py:Trainer._save_checkpoint", "trainer/io.py:write_state"]
    below = [f"library/module_{k}.py:Layer{k}.forward_with_a_long_name" for k in range(60)]
    frames = [*saves, *below]
    place = {name: number for number, name in enumerate(frames)}

    def stack(phase: str, names: list[str], seconds: float) -> list[object]:
        return [phase, [place[name] for name in names], 36, seconds, seconds, 1]

    stacks = [stack("forward", [*above, *below[k : k + 20]], 0.15) for k in range(40)]
    stacks += [stack("other", [*saves, *below[k : k + 20]], 0.05) for k in range(40)]
    return told(since=0, at=8, s=8.0, cpu=8.0, frames=frames, stacks=stacks, code={"0:36": "trainer.train()"})


def test_what_many_short_stacks_of_a_packaged_trainer_have_in_common_keeps_their_time() -> None:
    found = evidence(_packaged()).training
    assert found is not None
    assert share(found, stack="_save_checkpoint").value == pytest.approx(2 / 8, abs=0.002)
    assert share(found, code="trainer.train").value == pytest.approx(1.0, abs=0.002)
    assert max(len(row[1]) for row in found.stacks) > 4


def test_what_the_kernel_waits_for_is_left_out_last() -> None:
    names = ["job/run.py:main", *(f"library/m{k}.py:function_{k}" for k in range(90)), "(kernel):disk"]
    stacks = [["data", [0, *range(k, k + 30), 91], 5, 0.02, 0.0, 1] for k in range(1, 61)]
    stacks += [["data", [0, *range(k, k + 30)], 5, 0.02, 0.02, 1] for k in range(1, 61)]
    text = told(since=0, at=3, s=2.4, cpu=1.2, frames=names, stacks=stacks, code={"0:5": "next(loader)"})
    found = evidence(text).training
    assert found is not None
    assert share(found, stack=re.escape("(kernel):disk")).value == pytest.approx(0.5, abs=0.01)


def test_without_pytorch_the_main_thread_trains_and_of_several_the_first_that_works() -> None:
    launcher = told(1, since=1, at=3, of="main", s=0.1)
    first, second = told(2, since=2, at=4, of="main", s=1.0), told(3, since=3, at=5, of="main", s=2.0)
    found = evidence(launcher + second + first).training
    assert found is not None
    assert found.seconds == 1.0
    trains = evidence(first + told(4, s=0.5)).training
    assert trains is not None
    assert trains.seconds == 0.5


def test_what_a_thread_waited_for_a_core_is_added_up_if_it_is_told() -> None:
    both = evidence(told(since=2, at=4, starved=0.5) + told(since=4, at=6, starved=0.25)).training
    none = evidence(told()).training
    assert both is not None and none is not None
    assert (both.starved_s, none.starved_s) == (0.75, None)


def test_the_stacks_of_one_process_and_of_one_with_a_clock_of_its_own() -> None:
    record = read_stacks(told(1, 2, 4, s=1.0) + told(2, 902, 904, s=0.5) + told(2, 902, 904, of="workers"))
    assert record is not None
    first, second = ProcessKey(None, 1), ProcessKey(None, 2)
    ours, theirs = stacks_of(record, first, (3.0, 9.0)), stacks_of(record, second, (2.0, 9.0), 900.0)
    assert (ours and ours.seconds, theirs and theirs.seconds) == (0.5, 0.5)
    assert stacks_of(record, second, (2.0, 9.0)) is None
    whole = stacks_of(record, second, None)
    assert whole is not None
    assert whole.seconds == 0.5


def test_what_the_process_that_trains_did_before_its_first_step() -> None:
    """A launcher's main thread waits all along; what it trains in comes later."""
    before = (
        told(1, 2, 4, of="main", s=2.0) + told(2, 2, 4, of="main", s=1.0) + told(2, 4, 6, of="main", s=1.0)
    )
    record = read_stacks(before + told(1, 6, 8, of="main", s=0.1) + told(2, 6, 8, s=2.0))
    assert record is not None
    found = start_up_stacks(record, 5.0)
    assert found is not None and found.seconds == 1.5
    # A batch that is fetched is a sign of training: a run that is resumed fetches many before its first step.
    found = start_up_stacks(record, 7.0)
    assert found is not None and found.seconds == 3.0
    trained = read_stacks(told(2, 6, 8, s=2.0))
    assert trained is not None and start_up_stacks(trained, 5.0) is None


def test_processes_of_two_hosts_with_one_number_are_two() -> None:
    record = read_stacks(told(1, s=1.0, host="a") + told(1, s=0.5, host="b"))
    assert record is not None
    found = [stacks_of(record, ProcessKey(host, 1), None) for host in ("a", "b")]
    assert [one and one.seconds for one in found] == [1.0, 0.5]
