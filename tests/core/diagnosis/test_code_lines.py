from __future__ import annotations

import pytest
from tests.support.diagnoses import cause, facts, stacks

from gpudebug.core.diagnosis.code_lines import LEAST, line_of, unexplained
from gpudebug.core.diagnosis.odds import score
from gpudebug.core.diagnosis.rank import diagnose, outweighs
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
SYNC = cause("sync", signature=[{"signal": "sync_share", "above": 0.2, "weight": 8}],
             exposed=[{"signal": "sync_share"}])  # fmt: skip


def test_a_wait_without_a_cause_is_named_with_its_line_and_ceiling() -> None:
    known = facts(stacks=training(), data_wait_share=0.3, gpu_util=40.0)
    found = unexplained([LOADER], known)
    assert found is not None
    assert found.share == pytest.approx(0.4)
    assert str(found.line) == "report.py:3 push (waiting): `session.post(url)`"
    whole = diagnose([LOADER, PUSH.model_copy(update={"prior": {"default": 1e-6}})], known).unexplained
    assert whole is not None
    assert whole.ceiling_ratio == pytest.approx(1 / 0.6)
    assert whole.ceiling_pp == pytest.approx(40 / 0.6 - 40)


@pytest.mark.parametrize(
    ("causes", "stack"),
    [
        ([LOADER, PUSH], training()),
        ([LOADER], training(10 * LEAST - 0.1)),
        ([LOADER], training(wait="(kernel):futex")),
        ([LOADER], training(wait="job/report.py:inner")),
        ([LOADER], training(push_cpu=4.0)),
    ],
    ids=["explained", "small", "own threads", "unknown to the kernel", "it runs"],
)
def test_what_is_no_unexplained_wait(causes: list[object], stack: Stacks) -> None:
    assert unexplained(causes, facts(stacks=stack, data_wait_share=0.3)) is None  # type: ignore[arg-type]


def test_waiting_for_batches_without_a_cause_is_one() -> None:
    found = unexplained([], facts(stacks=training(push=1.0)))
    assert found is not None
    assert (found.share, found.line.line) == (pytest.approx(0.45), 9)


def test_what_a_cause_takes_somewhere_is_taken_from_it() -> None:
    known = facts(stacks=training(), data_wait_share=0.3, sync_share=0.3)
    assert unexplained([LOADER, SYNC], known) is None
    assert unexplained([LOADER], known) is not None


@pytest.mark.parametrize(("stand_in", "named"), [(False, False), (True, True)])
def test_the_host_of_a_busy_device_may_wait(stand_in: bool, named: bool) -> None:
    known = facts(stacks=training(), gpu_util=95.0, device_stand_in=stand_in)
    assert (unexplained([LOADER], known) is not None) is named


def test_without_stacks_nothing_is_known() -> None:
    assert unexplained([], facts(data_wait_share=0.9)) is None


def test_a_cause_that_is_likely_explains_and_an_abstention_explains_nothing() -> None:
    known = facts(stacks=training(), data_wait_share=0.3, gpu_util=40.0)
    assert diagnose([LOADER, PUSH], known).unexplained is None
    nothing = diagnose([cause("none", signature=[{"signal": "anomaly", "equals": True, "weight": 9}])], known)
    assert nothing.abstains is not None
    assert nothing.unexplained is not None


@pytest.mark.parametrize(
    ("one", "line"),
    [(PUSH, "report.py:3"), (LOADER, "train.py:9"), (SYNC, None)],
    ids=["its stack", "the hottest of its phase", "unknown"],
)
def test_the_line_to_read_for_a_cause(one: object, line: str | None) -> None:
    known = facts(stacks=training(), data_wait_share=0.3, sync_share=0.3)
    found = line_of(one, score(one, known).signs, known)  # type: ignore[arg-type]
    assert (str(found).split(" ")[0] if found else None) == line


def test_a_sign_with_a_place_stands_for_a_share_without_one() -> None:
    both = cause("both", signature=[{"stack": r"report\.py:push", "above": 0.1, "weight": 8}],
                 exposed=[{"signal": "sync_share"}])  # fmt: skip
    known = facts(stacks=training(), sync_share=0.3)
    assert str(line_of(both, score(both, known).signs, known)).startswith("report.py:3 ")


def test_what_promises_more() -> None:
    known = facts(stacks=training(), data_wait_share=0.3, gpu_util=40.0)
    found = diagnose([LOADER], known)
    first = found.causes[0]
    assert found.unexplained is not None
    assert outweighs(found.unexplained, first)
    assert outweighs(found.unexplained, None)
    assert not outweighs(None, first)
    assert not outweighs(None, None)
