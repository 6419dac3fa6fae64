"""Runs of one command that did other work."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import run

from gpudebug.core.records import Conditions, LatencyEvidence, LossEvidence, ProbeEvidence
from gpudebug.core.verdict.unlike import fills_cache, finds_cache, is_cold, unlike, unlike_notes
from gpudebug.core.words import Outcome, Trend

WHOLE: dict[str, Any] = {
    "first_count": 1,
    "last_count": 40,
    "step_unit": "epoch",
    "progress_per_s": 0.7,
    "duration_s": 60.0,
}
FEWER: dict[str, Any] = {"last_count": 5, "duration_s": 12.0}


@pytest.mark.parametrize(
    ("changes", "changed", "why"),
    [
        ({}, False, None),
        ({"resumed": "Loading snapshot"}, False, "it goes on where an earlier run ended (Loading snapshot)"),
        ({"resumed": "Loading snapshot"}, True, "it goes on where an earlier run ended (Loading snapshot)"),
        ({"first_count": 36}, False, "it begins at epoch 36, and 0001-x at epoch 1"),
        (FEWER, False, "it ended at epoch 5, and 0001-x at epoch 40"),
        ({**FEWER, "outcome": Outcome.ENDED_BY_PLAN}, False, None),
        (FEWER, True, None),
        # A clock ended both: this one had less of its cores.
        ({"last_count": 5, "progress_per_s": 0.1, "duration_s": 59.0}, False, None),
        ({"last_count": 5, "progress_per_s": None, "duration_s": 59.0}, False, None),
        ({"last_count": 5, "progress_per_s": None, "duration_s": None}, False, None),
        ({**FEWER, "progress_per_s": None}, False, "it ended at epoch 5, and 0001-x at epoch 40"),
        ({"last_count": 30, "duration_s": 40.0}, False, None),
        ({"first_count": 2}, False, None),
        ({"first_count": None}, False, None),
        ({**FEWER, "step_unit": "step"}, False, None),
    ],
)
def test_what_makes_a_run_unlike_another(changes: dict[str, Any], changed: bool, why: str | None) -> None:
    first = run(unit="epoch").model_copy(update=WHOLE)
    other = first.model_copy(update={"run": "0002-x", **changes})
    found = unlike(other, [first], changed=changed)
    assert found == why if why is None else found is not None and found.startswith(why)
    # It is the same the other way round; but what a change lets a run no longer do is its own.
    back = unlike(first, [other], changed=changed)
    assert (back is None) is (why is None or changed)
    # One that is like any of the others is like them.
    assert unlike(other, [first, other]) is None
    assert unlike(other, []) is None


def falling(start: float, end: float, points: int = 40, name: str = "loss") -> LossEvidence:
    curve = tuple((10.0 * n, start + (end - start) * n / 39) for n in range(40))
    return LossEvidence(name=name, trend=Trend.CONVERGING, points=points, curve=curve)


@pytest.mark.parametrize(
    ("loss", "like"),
    [
        (falling(4.1, 1.1), True),
        (falling(1.1, 0.6), False),
        (falling(2.4, 1.0), True),
        (falling(1.1, 0.6, points=4), True),
        (falling(1.1, 0.6, name="val_loss"), True),
    ],
)
def test_a_loss_that_begins_where_another_ended_tells_of_a_snapshot(loss: LossEvidence, like: bool) -> None:
    first, other = run(loss=falling(4.0, 1.0)), run(loss=loss)
    found = unlike(other, [first])
    assert (found is None) is like
    assert like or (found and found.startswith("its loss begins at 1.1, at that step 4 in "))
    back = unlike(first, [other])
    assert (back is None) is like
    assert like or (back and "its loss begins at 1.1, at that step 4 in this one: that one" in back)
    # A change may well make it learn faster; a loss that hardly falls shows nothing.
    assert unlike(other, [first], changed=True) is None
    assert unlike(run(loss=falling(0.9, 0.9)), [run(loss=falling(1.0, 0.9))]) is None


def test_a_comparison_notes_what_it_compared() -> None:
    first = run(unit="epoch").model_copy(update=WHOLE)
    resumed = first.model_copy(update={"run": "0002-x", "resumed": "Loading snapshot"})
    assert unlike_notes([[first, first], [first]]) == []
    within, across = unlike_notes([[first, resumed], []]), unlike_notes([[first], [resumed]])
    assert within == across
    assert within[0].startswith("run 0002-x did other work: it goes on where an earlier run ended")


def test_what_all_runs_do_is_no_difference() -> None:
    both = [run(resumed="Resuming from epoch 3"), run(resumed="Resuming from epoch 3")]
    assert unlike(both[1], both[:1]) is None


def told(line: str | None, loss: LossEvidence, first_count: int = 1) -> Any:
    return run(loss=loss, resumed=line, first_count=first_count, last_count=400)


@pytest.mark.parametrize(
    ("other", "like"),
    [
        # A word alone against counts and losses: pretrained weights, or what is loaded at the end.
        (told("Loading checkpoint x.pt", falling(4.1, 1.1)), True),
        (told("Loading checkpoint x.pt", falling(2.4, 1.0)), False),
        (told("Loading checkpoint x.pt", falling(4.1, 1.1), first_count=7), False),
        (told("Resuming from x.pt", falling(4.1, 1.1)), False),
        (told("Loading checkpoint x.pt", falling(4.1, 1.1, points=4)), False),
        (told("Loading checkpoint x.pt", falling(4.1, 1.1, name="other")), False),
    ],
)
def test_counts_and_losses_decide_more_than_words(other: Any, like: bool) -> None:
    first = told(None, falling(4.0, 1.0))
    assert (unlike(other, [first]) is None) is like
    assert (unlike(first, [other]) is None) is like


@pytest.mark.parametrize(
    ("first_count", "lines", "why"),
    [
        (41, 60, "it begins at step 41, and 0001-x at step 1"),
        # It prints every 50 steps; or too rarely to tell.
        (50, 2, None),
        (50, 3, None),
        (1, 100, None),
    ],
)
def test_a_changed_run_that_skips_steps(first_count: int, lines: int, why: str | None) -> None:
    counts: dict[str, Any] = {"first_count": 1, "last_count": 100, "occasions": {"log": 100}}
    first = run().model_copy(update=counts)
    other = run().model_copy(
        update={**counts, "run": "0002-x", "first_count": first_count, "occasions": {"log": lines}}
    )
    assert unlike(other, [first], changed=True) == why


def probed(steps: int) -> ProbeEvidence:
    return ProbeEvidence(pid=1, steps=steps)


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        ({}, "it made no step of an optimizer, and 0001-x ended at step of an optimizer 200"),
        (
            {"probe": probed(20)},
            "it ended at step of an optimizer 20, and 0001-x at step of an optimizer 200",
        ),
        ({"probe": probed(180)}, None),
        ({"duration_s": 60.0}, None),
        ({"outcome": Outcome.ENDED_BY_PLAN}, None),
    ],
)
def test_a_run_whose_log_counts_nothing(figures: dict[str, Any], why: str | None) -> None:
    silent: dict[str, Any] = {"progress_per_s": None, "duration_s": 60.0, "step_unit": None}
    first = run().model_copy(update={**silent, "probe": probed(200)})
    other = run().model_copy(update={**silent, "run": "0002-x", "duration_s": 5.0, **figures})
    assert unlike(other, [first]) == why


def test_fewer_requests_are_less_work() -> None:
    def infers(count: int, seconds: float, name: str) -> Any:
        latency = LatencyEvidence(count=count, warmup=5, mean_s=0.1)
        return run().model_copy(
            update={"run": name, "latency": latency, "progress_per_s": None, "duration_s": seconds}
        )

    first = infers(295, 60.0, "0001-x")
    assert (
        unlike(infers(25, 9.0, "0002-x"), [first]) == "it ended at inference 30, and 0001-x at inference 300"
    )
    assert unlike(infers(25, 59.0, "0002-x"), [first]) is None


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        pytest.param((120.0, 0.0, 0.1), True, id="cold, then warm"),
        pytest.param((120.0, 118.0, 121.0), False, id="too large for the cache"),
        pytest.param((3.0, 0.0, 0.0), False, id="next to nothing"),
        pytest.param((0.0, 120.0, 0.0), False, id="a later one"),
        pytest.param((120.0, None, 0.0), True, id="one not known"),
        pytest.param((120.0, None), False, id="none to compare with"),
        pytest.param((None, 0.0), False, id="not known"),
        pytest.param((120.0,), False, id="alone"),
        pytest.param((), False, id="none"),
    ],
)
def test_the_first_run_is_compared_with_the_later_ones(
    rates: tuple[float | None, ...], expected: bool
) -> None:
    runs = [run(conditions=Conditions(read_mb_s=rate)) for rate in rates]
    assert is_cold(runs) is expected


FOUND = "Using cached features from data/cache.npy"


@pytest.mark.parametrize(
    ("cached", "wrote", "rates", "why"),
    [
        ((None, FOUND, FOUND), (0.0, 0.0, 0.0), (5.0, 5.0, 5.0), f"a cache that it made ({FOUND})"),
        ((FOUND, FOUND, FOUND), (0.0, 0.0, 0.0), (5.0, 5.0, 5.0), None),
        ((None, FOUND, None), (0.0, 0.0, 0.0), (5.0, 5.0, 5.0), None),
        ((None, None, None), (60.0, 0.0, 0.2), (2.0, 5.0, 5.1), "it wrote 60 MB/s, the next one 0 MB/s"),
        # Checkpoints are written by each; and what is written in passing costs nothing.
        ((None, None, None), (60.0, 58.0, 61.0), (2.0, 5.0, 5.1), None),
        ((None, None, None), (60.0, 0.0, 0.2), (4.9, 5.0, 5.1), None),
        ((None, None, None), (None, None, None), (2.0, 5.0, 5.1), None),
        ((None, None, None), (60.0, 0.0, 0.2), (None, 5.0, 5.1), None),
        ((None,), (60.0,), (2.0,), None),
        ((), (), (), None),
    ],
)
def test_a_first_run_that_makes_what_the_later_ones_find(
    cached: tuple[str | None, ...],
    wrote: tuple[float | None, ...],
    rates: tuple[float | None, ...],
    why: str | None,
) -> None:
    runs = [
        run(cached=line, conditions=Conditions(write_mb_s=mb), progress_per_s=rate)
        for line, mb, rate in zip(cached, wrote, rates, strict=True)
    ]
    found = fills_cache(runs)
    assert found is None if why is None else found is not None and why in found


def test_a_run_beside_recorded_ones_that_finds_what_they_did_not() -> None:
    found, plain = run(cached=FOUND), run()
    assert finds_cache(found, [plain, plain]) == FOUND
    assert finds_cache(found, [plain, found]) is None
    assert finds_cache(plain, [plain]) is None
    assert finds_cache(found, []) is None
