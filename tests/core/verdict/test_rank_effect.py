"""Whether a change reached each rank."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.rank_lines import rank

from gpudebug.core.change import intervention
from gpudebug.core.records import RankEvidence
from gpudebug.core.verdict.rank_effect import confirmed, lagging
from gpudebug.core.verdict.took_effect import ChangeEffect, ShownConfiguration, effect_of
from gpudebug.core.words import Result

OLD = ("torchrun", "--nproc_per_node=4", "train.py", "--num_workers=0")


def ranks(*workers: str | None, **more: Any) -> tuple[RankEvidence, ...]:
    return tuple(
        rank(n, loader={} if w is None else {"workers": (w,)}, **more) for n, w in enumerate(workers)
    )


def found(
    change: str, before: tuple[RankEvidence, ...], after: tuple[RankEvidence, ...], **facts: Any
) -> ChangeEffect:
    parsed = intervention.parse(change)
    argv = parsed.apply(OLD, {}, None).argv
    return effect_of(
        parsed,
        [ShownConfiguration(OLD, {}, ranks=before)],
        [ShownConfiguration(argv, {"num_workers": "4"}, ranks=after, facts=facts)],
    )


FLAG = "--set --num_workers=4"


@pytest.mark.parametrize(
    ("workers", "behind"),
    [
        (("4", "4", "4"), None),
        (("4", "0", "4"), "rank 1 has workers: 0"),
        (("4", "0", "0"), "ranks 1, 2 have workers: 0"),
        # Not as in the baseline: the program gives this rank its own.
        (("4", "2", "4"), None),
        # None has it: that is the run's question, not a rank's.
        (("0", "0", "0"), None),
        (("4", None, "4"), None),
    ],
)
def test_a_rank_that_the_change_did_not_reach_is_named(
    workers: tuple[str | None, ...], behind: str | None
) -> None:
    effect = found(FLAG, ranks("0", "0", "0"), ranks(*workers))
    if behind is None:
        assert effect.result is not Result.FAIL
    else:
        assert (effect.result, effect.value) == (
            Result.FAIL,
            f"--num_workers=4 was asked for, {behind}, as in the baseline",
        )


def test_a_rank_that_the_baseline_lacks_shows_nothing() -> None:
    (part,) = intervention.parse(FLAG).changes
    assert lagging(part, [ranks("0")], ranks("4", "0")) is None
    assert lagging(part, [], ()) is None


def test_a_batch_may_be_a_part_of_what_the_flag_says() -> None:
    (part,) = intervention.parse("--set --batch_size=64").changes
    before = tuple(rank(n, loader={"batch_size": ("32",)}) for n in range(2))
    after = tuple(rank(n, loader={"batch_size": (b,)}) for n, b in enumerate(("64", "32")))
    assert lagging(part, [before], after) is None


def test_a_variable_that_a_launcher_did_not_hand_on_is_named_by_rank() -> None:
    """As `mpirun` without `-x` does on other nodes."""
    change = "--env OMP_NUM_THREADS=4"
    before = (rank(0, omp="1"), rank(1))
    effect = found(change, before, (rank(0, omp="4"), rank(1)))
    assert (effect.result, effect.value) == (
        Result.FAIL,
        "OMP_NUM_THREADS=4 was asked for, rank 1 has OMP_NUM_THREADS: unset, as in the baseline",
    )
    effect = found(change, before, (rank(0, omp="4"), rank(1, omp="4")))
    assert (effect.result, effect.value) == (Result.PASS, "OMP_NUM_THREADS: 4 (each of 2 ranks)")


def test_one_process_or_another_variable_confirms_nothing() -> None:
    (omp,) = intervention.parse("--env OMP_NUM_THREADS=4").changes
    (other,) = intervention.parse("--env NCCL_ALGO=Ring").changes
    assert confirmed(omp, ()) is None
    assert confirmed(omp, (rank(0, omp="4"), rank(1))) is None
    assert confirmed(other, (rank(0, omp="Ring"), rank(1, omp="Ring"))) is None
