"""Two recordings of a process -> its stacks with the time that they took and ran."""

from __future__ import annotations

import json

import pytest

from gpudebug.core.inside.attached.foreign_frames import RawFrame, RawStack
from gpudebug.core.inside.attached.looks import (
    Looks,
    PtraceFacts,
    hottest_place,
    looks_of,
    refusal,
    stacks_line,
)
from gpudebug.core.inside.attached.record import read_attached
from gpudebug.core.inside.stacks import read_stacks

TORCH = "/v/lib/python3.11/site-packages/torch/"
LOAD = (
    RawFrame("main", "/p/train.py", 1),
    RawFrame("_SingleProcessDataLoaderIter._next_data", TORCH + "utils/data/dataloader.py", 2),
    RawFrame("fetch", "/p/data.py", 6),
)
MODEL = (RawFrame("main", "/p/train.py", 3), RawFrame("Module._call_impl", TORCH + "nn/modules/module.py", 4))
WAIT = (RawFrame("run", "/usr/lib/python3.11/threading.py", 5),)


def seen(frames: tuple[RawFrame, ...], times: int, tid: int = 1, *, main: bool = True) -> RawStack:
    return RawStack(str(tid), tid, main, frames, times)


def joined(
    stacks: list[RawStack], ran: list[RawStack] | None, cpu_s: float | None, looks: int = 100
) -> Looks:
    found = looks_of(stacks, ran, seconds=10.0, ran_looks=looks, cpu_of=lambda _: cpu_s)
    assert found is not None
    return found


def by_phase(looks: Looks) -> dict[str, tuple[float, float]]:
    return {one.stack.phase: (round(one.seconds, 3), round(one.cpu_s, 3)) for one in looks.stacks}


def test_time_is_the_share_of_looks_and_what_ran_comes_to_what_the_kernel_counts() -> None:
    found = joined([seen(LOAD, 60), seen(MODEL, 40)], [seen(LOAD, 6), seen(MODEL, 44)], 4.5)
    spent = by_phase(found)
    assert spent["data"][0] == 6.0
    assert spent["forward"][0] == 4.0
    assert sum(cpu for _, cpu in spent.values()) == pytest.approx(4.5, abs=0.1)
    assert spent["forward"][1] > 0.9 * 4.0
    assert spent["data"][1] < 0.2 * 6.0


def test_the_place_with_the_most_time_is_a_line_of_the_program() -> None:
    found = joined([seen(LOAD, 60), seen(MODEL, 40)], None, 1.0)
    assert hottest_place(found) == ("data.py:6 fetch", 0.6)
    assert hottest_place(joined([seen(WAIT, 10)], None, 1.0)) == ("threading.py run", 1.0)


def test_without_the_kernels_count_the_looks_alone_say_what_ran() -> None:
    found = joined([seen(LOAD, 50), seen(MODEL, 50)], [seen(MODEL, 30)], None)
    assert by_phase(found) == {"data": (5.0, 0.0), "forward": (5.0, 3.0)}


def test_where_py_spy_cannot_see_who_runs_the_model_computes_first() -> None:
    found = joined([seen(LOAD, 60), seen(MODEL, 40)], None, 5.0)
    assert by_phase(found) == {"data": (6.0, 1.0), "forward": (4.0, 4.0)}


def test_nothing_is_claimed_to_have_run_if_nothing_counts_it() -> None:
    assert joined([seen(MODEL, 10)], None, None).cpu_s == 0.0


def test_the_thread_that_trains_is_looked_at_even_if_it_is_not_pythons_first() -> None:
    found = joined([seen(WAIT, 100), seen(MODEL, 100, 2, main=False)], None, 1.0)
    assert [one.stack.phase for one in found.stacks] == ["forward"]
    # Of several that are in the model, as data parallel threads are, the main one.
    both = joined([seen(MODEL, 80), seen(MODEL, 100, 2, main=False)], None, 1.0)
    assert both.count == 80


def test_a_process_without_a_stack_is_unknown() -> None:
    assert looks_of([], [], seconds=1.0, ran_looks=5, cpu_of=lambda _: 1.0) is None


def test_the_line_is_read_as_the_probes_own() -> None:
    looks = joined([seen(LOAD, 60), seen(MODEL, 40)], [seen(MODEL, 40)], 4.0)
    line = stacks_line(
        looks, pid=42, since=103.0, until=113.0, t0=100.0, sources={("/p/data.py", 6): "time.sleep(1)"}
    )
    record = read_stacks(json.dumps(line))
    assert record is not None
    (one,) = record.lines
    assert (one.process.pid, one.of, one.start_s, one.end_s, one.samples) == (42, "training", 3.0, 13.0, 100)
    (data,) = [stack for stack in one.places if stack.phase == "data"]
    assert (data.frames[data.user], data.line) == ("p/data.py:fetch", 6)
    assert one.code["p/data.py:fetch", 6] == "time.sleep(1)"
    assert one.places[data][0] == 6.0


def test_of_very_many_stacks_the_longest_are_told() -> None:
    many = [seen((RawFrame(f"f{n}", f"/p/{n}.py", 1),), n) for n in range(1, 20)]
    line = stacks_line(joined(many, None, 1.0), pid=1, since=0.0, until=10.0, t0=0.0, sources={}, most=3)
    assert [stack[5] for stack in line["stacks"]] == [19, 18, 17]


MAIN = {"kind": "process", "pid": 5, "of": "training", "cores": 1.5, "looks": 90, "loader": "x"}
END = {"kind": "observer", "pid": 9, "seconds": 40.0, "cpu_s": 0.2, "members": 3, "ended": False}


def lines(*entries: object) -> str:
    return "\n".join(json.dumps(entry) for entry in entries)


def test_processes_and_what_looking_cost_are_read() -> None:
    found = read_attached(lines(MAIN, {**MAIN, "pid": 6, "of": "worker"}, END))
    assert found is not None
    assert found.main is not None
    assert (found.main.pid, found.main.cores) == (5, 1.5)
    assert [one.pid for one in found.of("worker")] == [6]
    assert (found.members, found.observer_cores) == (3, 0.005)


def test_a_run_that_was_launched_has_none() -> None:
    assert read_attached('{"kind":"start","pid":3,"t":1,"t0":0}\n') is None


def test_a_line_that_is_not_the_followers_counts_for_nothing() -> None:
    text = lines(MAIN, {"kind": "process", "pid": 8}, {**MAIN, "pid": 10, "cores": "many"}) + "\n{torn"
    found = read_attached(text)
    assert found is not None
    assert [one.pid for one in found.processes] == [5]
    assert found.observer_cores is None


FREE = PtraceFacts(yama=None, capable=True, root=True, same_user=True, filtered=False, contained=False)
USER = FREE._replace(capable=False, root=False)
COMMAND = "gpudebug why --pid 7"


@pytest.mark.parametrize(
    ("facts", "why", "allow"),
    [
        (USER._replace(yama=1), "ptrace_scope is 1", f"sudo {COMMAND} or sudo sysctl"),
        (USER._replace(yama=2), "ptrace_scope is 2", f"sudo {COMMAND}"),
        (FREE._replace(yama=3), "until a reboot", "reboot"),
        (USER._replace(same_user=False), "another user's", f"sudo {COMMAND}"),
        (FREE._replace(capable=False, same_user=False), "CAP_SYS_PTRACE", "--cap-add SYS_PTRACE"),
        (FREE._replace(filtered=True), "seccomp", "seccomp=unconfined"),
        (USER, "protected", f"sudo {COMMAND}"),
        (FREE, "the kernel refuses it", "dmesg"),
        (FREE._replace(contained=True), "the kernel refuses it", "--cap-add SYS_PTRACE"),
    ],
)
def test_each_refusal_names_its_reason_and_what_allows_it(facts: PtraceFacts, why: str, allow: str) -> None:
    found = refusal(facts, COMMAND)
    assert why in found.why
    assert allow in found.allow


def test_root_is_not_told_to_become_root() -> None:
    assert "sudo" not in refusal(FREE._replace(capable=False, same_user=False), COMMAND).allow
