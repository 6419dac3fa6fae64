from __future__ import annotations

import pytest
from tests.support.diagnoses import cause, facts, stacks

from gpudebug.core.diagnosis.code_lines import calls_of, cores_for, line_of
from gpudebug.core.diagnosis.odds import score
from gpudebug.core.records import Stacks

CODE = {
    "job/train.py:main:9": "next(batches)",
    "job/train.py:main:12": "loss = net(x)",
    "job/report.py:push:3": "session.post(url)",
}


def training(push: float = 4.0, *, wait: str = "(kernel):socket", push_cpu: float = 0.0) -> Stacks:
    """10 s of a thread: data, computing, and one line that pushes a report."""
    rest = 10.0 - push
    return stacks(
        ("data", "job/train.py:main torch/loader.py:next", 9, rest / 2, 0.0),
        ("forward", "job/train.py:main nn/linear.py:forward", 12, rest / 2, rest / 2),
        ("other", f"job/train.py:main job/report.py:push {wait}", 3, push, push_cpu),
        code=CODE,
    )


LOADER = cause("dl", signature=[{"signal": "data_wait_share", "above": 0.2, "weight": 8}],
               exposed=[{"signal": "data_wait_share"}])  # fmt: skip
PUSH = cause("push", signature=[{"stack": r"report\.py:push", "above": 0.1, "weight": 8}],
             exposed=[{"stack": r"report\.py:push"}])  # fmt: skip
EITHER = cause("either", signature=[{"signal": "data_wait_share", "above": 0.2, "weight": 8}],
               exposed=[{"stack": r"report\.py:push"}, {"signal": "data_wait_share"}])  # fmt: skip
SYNC = cause("sync", signature=[{"signal": "sync_share", "above": 0.2, "weight": 8}],
             exposed=[{"signal": "sync_share"}])  # fmt: skip


@pytest.mark.parametrize(
    ("one", "line"),
    [(PUSH, "report.py:3"), (LOADER, "train.py:9"), (SYNC, None)],
    ids=["its stack", "the hottest of its phase", "unknown"],
)
def test_the_line_to_read_for_a_cause(one: object, line: str | None) -> None:
    known = facts(stacks=training(), data_wait_share=0.3, sync_share=0.3)
    found = line_of(one, score(one, known).signs, known)  # type: ignore[arg-type]
    assert (str(found).split(" ")[0] if found else None) == line


@pytest.mark.parametrize(("waits", "line"), [(0.7, "train.py:9"), (0.3, "report.py:3")])
def test_the_line_is_of_what_explains_most_of_the_time(waits: float, line: str) -> None:
    known = facts(stacks=training(), data_wait_share=waits)
    assert str(line_of(EITHER, score(EITHER, known).signs, known)).startswith(f"{line} ")


def test_a_sign_with_a_place_stands_for_a_share_without_one() -> None:
    both = cause("both", signature=[{"stack": r"report\.py:push", "above": 0.1, "weight": 8}],
                 exposed=[{"signal": "sync_share"}])  # fmt: skip
    known = facts(stacks=training(), sync_share=0.3)
    assert str(line_of(both, score(both, known).signs, known)).startswith("report.py:3 ")


def test_the_calls_that_show_a_cause_begin_at_the_programs_line() -> None:
    known = facts(stacks=training(push=3.0))
    [(words, seconds)] = calls_of(PUSH, known)
    assert seconds == 3.0
    assert {"session", "post", "report", "kernel"} <= words and "train" not in words
    assert calls_of(LOADER, known) == () and calls_of(PUSH, facts()) == ()


@pytest.mark.parametrize(
    ("reads_s", "busy", "limit"),
    [
        (0.4, 0.2, None),  # It waits for its store, and the cores are idle.
        (2.0, 0.5, 2.0),  # It computes.
        (0.4, 0.9, 2.0),  # Others of the run compute meanwhile.
        (0.4, None, 2.0),
    ],
)
def test_more_hands_than_cores_only_of_what_waits(
    reads_s: float, busy: float | None, limit: float | None
) -> None:
    seen = stacks(
        ("data", "job/train.py:main job/data.py:read", 9, 3.0, reads_s),
        ("forward", "job/train.py:main nn/linear.py:forward", 12, 7.0, 7.0),
    )
    signals = {"cores": 2.0, **({"cores_busy_share": busy} if busy is not None else {})}
    assert cores_for(LOADER, facts(stacks=seen, **signals)) == limit


def test_without_stacks_hands_have_a_core_each() -> None:
    assert cores_for(LOADER, facts(cores=2.0, cores_busy_share=0.1)) == 2.0
    assert cores_for(LOADER, facts()) is None
