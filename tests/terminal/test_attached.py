"""The line of a job that ran already."""

from __future__ import annotations

from gpudebug.core.answers.why import AttachedLook
from gpudebug.terminal.attached import job, ranks, unseen

MAIN: dict[str, object] = {"of": "training", "cores": 1.5, "main_running": 0.4, "main_ready": 0.2}


def look(*processes: dict[str, object], members: int | None = 1, cost: float | None = 0.008) -> AttachedLook:
    return AttachedLook(pid=7, members=members, processes=processes, cost=cost)


def test_a_job_is_one_line() -> None:
    assert job(look(MAIN)) == (
        "Job 7: 1 Python process, 1.50 cores; its thread runs 40%, waits for a core 20%; "
        "looking took 0.8% of a core"
    )


def test_of_a_job_without_python_the_processes_are_counted() -> None:
    assert job(look({**MAIN, "main_ready": None}, members=None)).startswith("Job 7: 1 process, 1.50 cores; ")
    assert job(look(MAIN, {"of": "other", "cores": 0.5}, members=None)).startswith("Job 7: 2 processes, 2.00")


def test_ranks_are_counted_and_of_very_many_processes_it_says_which_part_was_seen() -> None:
    ranks = [{"of": "rank", "cores": 1.0} for _ in range(31)]
    assert job(look(MAIN, *ranks, members=289)).startswith(
        "Job 7: 32 ranks, 289 Python processes, 32 of them 32.50 cores; "
    )


def test_waiting_for_a_disk_and_faults_are_named_if_there_are_any() -> None:
    slow = {**MAIN, "main_ready": 0.01, "disk_wait": 0.3, "read_mb_s": 120.4, "major_faults_s": 40.0}
    assert "runs 40%, waits for a disk 30%, reads 120 MB/s, 40 page faults/s" in job(look(slow))


def test_a_rank_that_is_elsewhere_than_the_others_is_named() -> None:
    waits = {"place": "train.py:9 step", "place_share": 0.7}
    others = [{"of": "rank", "rank": n, **waits} for n in range(1, 3)]
    slow = {"of": "rank", "rank": 3, "place": "data.py:4 decode", "place_share": 0.8}
    assert ranks(look({**MAIN, **waits}, *others, slow)) == [
        "Ranks: 3 of 4 mostly in train.py:9 step; rank 3 80% in data.py:4 decode"
    ]
    # Two places as often say nothing of who is the odd one, and ranks that agree need no line.
    assert ranks(look({**MAIN, **waits}, *others)) == []
    assert ranks(look({**MAIN, **waits}, slow)) == []
    assert ranks(look({**MAIN, **waits}, others[0], slow, {**slow, "rank": 4})) == []


def test_stacks_that_are_missing_are_said_with_what_allows_them() -> None:
    refused = {**MAIN, "why": "kernel.yama.ptrace_scope is 1", "allow": "sudo gpudebug why --pid 7"}
    assert unseen(look(refused)) == [
        "Stacks unknown: kernel.yama.ptrace_scope is 1",
        "To see them: sudo gpudebug why --pid 7",
    ]
    assert unseen(look({**MAIN, "why": None, "allow": None})) == []


def test_what_is_unknown_is_left_out_and_never_0() -> None:
    blank = {"of": "training", "cores": None, "main_running": None, "read_mb_s": None}
    assert job(look(blank, members=None, cost=None)) == "Job 7: nothing was seen of it"
