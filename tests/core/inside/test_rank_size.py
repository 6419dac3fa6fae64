"""Hundreds of ranks in evidence.json, and who is named with all of what was seen and with what is kept."""

from __future__ import annotations

import json
import random

import pytest
from tests.support.rank_lines import rank

from gpudebug.core.diagnosis.ranks import judged
from gpudebug.core.inside.rank_size import MOST_LINED, compact
from gpudebug.core.inside.stacks.shares import LONGEST_SOURCE
from gpudebug.core.records import RankEvidence, RankLine

LONG = "loss = criterion(model(batch.to(device)), targets)  # " + "x" * 99
NOISE = 0.02


def line(number: int, share: float) -> RankLine:
    return RankLine(frame="job/train.py:train", line=number, state="waiting", code=LONG, share=share)


def job(world: int, late: int | None, seed: int = 1) -> list[RankEvidence]:
    """Ranks that wait 0.3 of the time for others but one, which saves; all have the same lines."""
    made = random.Random(seed)
    found = []
    for number in range(world):
        saves = 0.28 if number == late else 0.0
        waits, batches = 0.3 - saves + made.uniform(-NOISE, NOISE), 0.2 + made.uniform(-NOISE, NOISE)
        lines = (line(88, saves), line(7, batches), line(9, 0.123456789), line(11, 0.1), line(12, 0.05))
        kept = tuple(one for one in lines if one.share > 0)
        shares = {"wait_share": waits, "save_share": saves, "data_share": batches, "other_share": 0.0}
        found.append(rank(number, world_size=world, uuid=f"GPU-{number:032d}", lines=kept, **shares))
    return found


@pytest.mark.parametrize("world", [2, 8, 64])
@pytest.mark.parametrize("late", [None, 1])
def test_the_straggler_is_the_same(world: int, late: int | None) -> None:
    for seed in range(5):
        whole = job(world, late, seed)
        (before, why), (after, still) = judged(whole, world), judged(compact(whole), world)
        assert (before is None, why) == (after is None, still)
        assert (before is None) == (late is None)
        if before is not None and after is not None:
            assert before.gap == pytest.approx(after.gap, rel=1e-4)
            assert (before.rank, before.cause, before.line, before.for_) == (
                *(after.rank, after.cause, after.line, after.for_),
            )
            assert str(after.line).startswith("train.py:88 train (waiting): `loss = criterion(")
            assert str(after.line).endswith("…`")


def test_the_others_have_no_lines_in_a_large_job() -> None:
    found = compact(job(64, 5))
    lined = [one for one in found if one.lines]
    assert len(lined) == MOST_LINED
    assert found[5] in lined
    # By far the most of it takes a median rank in the line that all have.
    assert [(one.line, one.others) for one in found[5].lines][:3] == [
        (88, 0.0),
        (7, pytest.approx(0.2, abs=NOISE)),
        (9, 0.12346),
    ]
    assert all(len(one.code or "") == LONGEST_SOURCE + 1 for one in found[5].lines)
    size = len(json.dumps([one.model_dump(mode="json") for one in found], indent=1))
    assert size < 64 * 1200 + MOST_LINED * 5 * 250


def test_what_is_unknown_stays_so() -> None:
    (one,) = compact([rank(0, wait_share=None, samples=None, own_s=None, lines=(line(1, 0.5),))])
    assert (one.wait_share, one.own_s, one.lines) == (None, None, ())
