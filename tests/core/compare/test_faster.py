"""Two sides of runs: which figure decides, what it says of B, and what is said beside it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.comparisons import run

from gpudebug.core.answers.compare import RateSpread
from gpudebug.core.compare import faster, sides
from gpudebug.core.compare.compared_run import ComparedRun
from gpudebug.core.compare.faster import Name, SpeedAnswer, judge
from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Estimate, ProbeEvidence
from gpudebug.core.trainlog.latency import Latency

POSITIVE = st.floats(1e-3, 1e6)
SIDE = st.lists(POSITIVE, min_size=1, max_size=5)


def begun(turn: int, in_b: bool = False) -> dict[str, str]:
    """The start of a run of either side: A B A B, a minute each."""
    return {"start": f"2026-01-01T00:{2 * turn + in_b:02}:00+00:00"}


def rates(*values: float, in_b: bool = False) -> list[ComparedRun]:
    return [run(rate=v, wall=600 / v, facts=begun(i, in_b)) for i, v in enumerate(values)]


def walls(*values: float | None, in_b: bool = False) -> list[ComparedRun]:
    return [run(rate=None, wall=v, facts=begun(i, in_b)) for i, v in enumerate(values)]


def latencies(*values: float) -> list[ComparedRun]:
    return [run(rate=None, latency=v, facts=begun(i)) for i, v in enumerate(values)]


ANSWERS = {
    "throughput, faster": (rates(10, 10.1), rates(13, 13.1), Name.THROUGHPUT, SpeedAnswer.FASTER, 1.30),
    "throughput, slower": (rates(13, 13.1), rates(10, 10.1), Name.THROUGHPUT, SpeedAnswer.SLOWER, 0.77),
    "throughput, the same": (rates(10, 10.1), rates(10, 10.1), Name.THROUGHPUT, SpeedAnswer.CANNOT_TELL, 1.0),
    "too noisy": (rates(5, 15), rates(8, 20), Name.THROUGHPUT, SpeedAnswer.CANNOT_TELL, 1.37),
    "one run each, far apart": (rates(10), rates(20), Name.THROUGHPUT, SpeedAnswer.FASTER, 2.0),
    "one run each, near": (rates(10), rates(11), Name.THROUGHPUT, SpeedAnswer.CANNOT_TELL, 1.1),
    "wall time, faster": (walls(10, 10.1), walls(5, 5.1), Name.WALL_TIME, SpeedAnswer.FASTER, 1.99),
    "wall time, slower": (walls(5, 5.1), walls(10, 10.1), Name.WALL_TIME, SpeedAnswer.SLOWER, 0.50),
    "latency, faster": (
        latencies(0.02, 0.021),
        latencies(0.01, 0.011),
        Name.LATENCY,
        SpeedAnswer.FASTER,
        1.96,
    ),
    "latency, slower": (
        latencies(0.01, 0.011),
        latencies(0.02, 0.021),
        Name.LATENCY,
        SpeedAnswer.SLOWER,
        0.51,
    ),
    "one run lacks its rate": (
        rates(10, 10),
        [*rates(20), *walls(30)],
        Name.WALL_TIME,
        SpeedAnswer.FASTER,
        2.0,
    ),
}


@pytest.mark.parametrize(("a", "b", "figure", "answer", "ratio"), ANSWERS.values(), ids=ANSWERS)
def test_the_answer(
    a: list[ComparedRun], b: list[ComparedRun], figure: Name, answer: SpeedAnswer, ratio: float
) -> None:
    found = faster.compare(a, b)
    assert (found.figure.name, found.answer) == (figure, answer)
    assert found.ratio.value == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (1.01, 1.5, SpeedAnswer.FASTER),
        (1.0, 1.5, SpeedAnswer.CANNOT_TELL),
        (0.9, 1.0, SpeedAnswer.CANNOT_TELL),
        (0.9, 0.99, SpeedAnswer.SLOWER),
        (None, None, SpeedAnswer.CANNOT_TELL),
    ],
)
def test_only_an_interval_beside_one_tells(
    low: float | None, high: float | None, answer: SpeedAnswer
) -> None:
    assert judge(Estimate(value=1.2, low=low, high=high)) is answer
    assert judge(None) is SpeedAnswer.CANNOT_TELL


MIRROR = {
    SpeedAnswer.FASTER: SpeedAnswer.SLOWER,
    SpeedAnswer.SLOWER: SpeedAnswer.FASTER,
    SpeedAnswer.CANNOT_TELL: SpeedAnswer.CANNOT_TELL,
}


@given(a=SIDE, b=SIDE)
def test_the_other_way_round_is_the_reciprocal(a: list[float], b: list[float]) -> None:
    for make in (walls, rates):
        one, other = make(*a), make(*b, in_b=True)
        there, back = faster.compare(one, other), faster.compare(other, one)
        assert there.ratio.value * back.ratio.value == pytest.approx(1)
        assert there.answer is MIRROR[back.answer]


@given(a=SIDE, b=SIDE, unit=st.floats(0.01, 100))
def test_the_unit_of_a_rate_does_not_matter(a: list[float], b: list[float], unit: float) -> None:
    def ratio(unit: float) -> Estimate:
        sides = ([run(rate=v * unit, facts=begun(i)) for i, v in enumerate(side)] for side in (a, b))
        return faster.compare(*sides).ratio

    plain, scaled = ratio(1.0), ratio(unit)
    assert (plain.value, plain.low, plain.high) == pytest.approx((scaled.value, scaled.low, scaled.high))
    assert plain.low is not None and plain.high is not None
    assert 0 <= plain.low <= plain.value <= plain.high


@pytest.mark.parametrize("make", [rates, walls])
@pytest.mark.parametrize("noise", [0.03, 0.10])
def test_two_runs_a_side_in_turn_tell_half_as_fast_again_and_nothing_of_the_same(
    make: Callable[..., list[ComparedRun]], noise: float
) -> None:
    rng = random.Random(7)

    def answer(speed: float) -> SpeedAnswer:
        a, b = ([10 * speed**side * math.exp(rng.gauss(0, noise)) for _ in "12"] for side in (0, 1))
        return faster.compare(make(*a), make(*b, in_b=True)).answer

    same = [answer(1.0) for _ in range(200)]
    assert sum(one is not SpeedAnswer.CANNOT_TELL for one in same) <= 0.05 * len(same)
    other = SpeedAnswer.FASTER if make is rates else SpeedAnswer.SLOWER
    told = [answer(1.5) is other for _ in range(200)]
    assert sum(told) >= (0.98 if noise < 0.05 else 0.65) * len(told)


def test_runs_in_turn_tell_more_than_runs_of_other_days() -> None:
    def width(*starts: str) -> float:
        a, b = (
            run(rate=rate, facts={"start": start}) for rate, start in zip((10.0, 10.0), starts, strict=True)
        )
        found = faster.compare([a], [b]).ratio
        assert found.low is not None and found.high is not None
        return math.log(found.high / found.low)

    turn = width("2026-01-01T00:00:00+00:00", "2026-01-01T00:01:00+00:00")
    day, month = (
        width("2026-01-01T00:00:00+00:00", f"{later}T00:00:00+00:00")
        for later in ("2026-01-02", "2026-02-02")
    )
    assert turn < 0.9 * day and day == month


def test_a_short_window_tells_less() -> None:
    def answer(window: float) -> SpeedAnswer:
        a, b = ([run(rate=rate, window=window, facts=begun(i)) for i in range(2)] for rate in (10.0, 13.5))
        return faster.compare(a, b).answer

    assert (answer(30.0), answer(5.0)) == (SpeedAnswer.FASTER, SpeedAnswer.CANNOT_TELL)


def test_milliseconds_are_within_what_starting_a_program_takes() -> None:
    assert faster.compare(walls(0.012, 0.013), walls(0.02, 0.021)).answer is SpeedAnswer.CANNOT_TELL
    assert faster.compare(walls(12, 13), walls(20, 21)).answer is SpeedAnswer.SLOWER


@given(values=SIDE)
def test_a_side_against_itself_is_never_told_apart(values: list[float]) -> None:
    assert faster.compare(rates(*values), rates(*values)).answer is SpeedAnswer.CANNOT_TELL


def notes(a: Sequence[ComparedRun], b: Sequence[ComparedRun]) -> str:
    return "\n".join(faster.compare(a, b).notes)


def test_one_run_only_is_said() -> None:
    assert "only one run a side" in notes(rates(10), rates(20))
    assert "only one run of one side" in notes(rates(10, 10), rates(20))
    assert "only one run" not in notes(rates(10, 10), rates(20, 20))


def test_sides_that_count_different_things_are_compared_by_wall_time() -> None:
    a = [run(unit="step", wall=60)] * 2
    b = [run(unit="samples", wall=20)] * 2
    found = faster.compare(a, b)
    assert found.figure.name is Name.WALL_TIME
    assert found.answer is SpeedAnswer.FASTER
    assert "A counts steps and B samples" in found.notes[0]


def test_wall_time_is_per_step_where_the_counts_differ() -> None:
    a = [run("python t.py --steps=100", rate=None, wall=60)] * 2
    b = [run("python t.py --steps=200", rate=None, wall=60)] * 2
    found = faster.compare(a, b)
    assert (found.figure.unit, found.ratio.value) == ("s/step", pytest.approx(2))
    assert "time is per step" in "\n".join(found.notes)


def test_more_wall_time_is_no_loss_where_a_step_takes_other_work() -> None:
    """Eight environments instead of one, and nothing counts their steps."""
    a = [run(rate=None, wall=w, step_flags={"n_envs": "1"}) for w in (20.0, 20.2, 20.1)]
    b = [run(rate=None, wall=w, step_flags={"n_envs": "8"}) for w in (40.0, 40.2, 40.1)]
    found = faster.compare(a, b)
    assert (found.figure.name, found.answer) == (Name.WALL_TIME, SpeedAnswer.CANNOT_TELL)
    assert "n_envs differs and no work is counted: B took longer, perhaps for more of it" in found.notes
    assert faster.compare(a, walls(40.0, 40.2, 40.1)).answer is SpeedAnswer.CANNOT_TELL
    assert faster.compare(walls(20.0, 20.2, 20.1), walls(40.0, 40.2, 40.1)).answer is SpeedAnswer.SLOWER


def batches(size: int, rate: float, samples_by: str | None = "flags", **more: Any) -> list[ComparedRun]:
    samples = {"samples_per_s": size * rate, "samples_by": samples_by} if samples_by else {}
    return [run(rate=rate, batch_flags={"batch_size": str(size)}, **samples, **more)] * 2


def test_samples_are_counted_where_the_batch_differs() -> None:
    a, b = batches(8, 10, wall=60, steps=600), batches(4, 15, wall=90, steps=1200)
    found = faster.compare(a, b)
    assert found.figure.unit == "samples"
    assert found.answer is SpeedAnswer.SLOWER
    assert found.ratio.value == pytest.approx(0.75)
    assert found.notes == ("the batch differs: samples are counted, not steps",)
    shown = RateSpread(mean=80, min=80, max=80, unit="samples")
    assert sides.side("A", a, other_batch=True).throughput == shown
    assert found.figures[-1].unit == "s"


@pytest.mark.parametrize(("a", "b"), [(None, None), ("flags", None), ("flags", "printed")])
def test_steps_of_other_batches_are_not_compared(a: str | None, b: str | None) -> None:
    found = faster.compare(batches(8, 10, a), batches(4, 15, b))
    assert found.figure.name is Name.WALL_TIME
    assert "a step of A is not the work of a step of B" in "\n".join(found.notes)


def test_a_whole_short_runs_rate_gives_way_to_what_the_program_timed() -> None:
    a = [run(rate=10, latency=0.1, window=None)] * 2
    b = [run(rate=10, latency=0.05, window=None)] * 2
    found = faster.compare(a, b)
    assert (found.figure.name, found.answer) == (Name.LATENCY, SpeedAnswer.FASTER)
    assert faster.compare([run(rate=10, window=None)], [run(rate=10, window=None)]).figure.whole


def test_a_rate_that_the_run_is_too_short_for_is_none() -> None:
    """Other output may hold what looks like one."""
    a = [run(rate=0.2, wall=1.0, window=None, steps=2)] * 2
    b = [run(rate=0.2, wall=5.0, window=None, steps=7)] * 2
    found = faster.compare(a, b)
    assert (found.figure.name, found.answer) == (Name.WALL_TIME, SpeedAnswer.SLOWER)
    assert (found.figure.unit, found.ratio.value) == ("s", pytest.approx(0.2))
    assert sides.side("A", a).throughput is None
    assert sides.side("A", [run(rate=0.2, wall=1.0)]).throughput is not None


def test_a_gain_that_start_up_eats_is_said() -> None:
    a = [run(rate=10, wall=60)] * 2
    b = [run(rate=20, wall=120)] * 2
    assert faster.compare(a, b).answer is SpeedAnswer.FASTER
    assert "by wall time B is slower" in notes(a, b)
    assert "by wall time" not in notes(a, [run(rate=20, wall=30)] * 2)


WARMUPS: dict[str, tuple[ComparedRun, str | None]] = {
    "a steady window": (run(), "cut"),
    "none": (run(window=None), "not cut"),
    "wall time": (run(rate=None), "not cut"),
    "many latencies": (run(rate=None, latency=0.1), "cut"),
    "few latencies": (run(rate=None, latency=Latency(0.1, count=5)), "not cut"),
    "a printed mean": (run(rate=None, latency=Latency(0.1)), None),
}


@pytest.mark.parametrize(("one", "said"), WARMUPS.values(), ids=WARMUPS)
def test_whether_warm_up_is_cut_is_on_the_checklist(one: ComparedRun, said: str | None) -> None:
    found = faster.compare([one], [one]).checklist
    assert found.same.get("warm-up") == said
    assert ("warm-up" in found.unknown) is (said is None)


def test_warm_up_in_one_only_is_a_difference() -> None:
    few = Latency(0.1, count=5)
    found = faster.compare([run(rate=None, latency=0.1)], [run(rate=None, latency=few)]).checklist
    assert [(d.name, d.a, d.b) for d in found.differences] == [("warm-up", "cut", "not cut")]


@pytest.mark.parametrize("wall", [None, 0.0, -3.0])
def test_a_clock_that_jumped_is_named_and_nothing_is_guessed(wall: float | None) -> None:
    with pytest.raises(GpudebugError, match="run 0001-x has no duration: did its clock jump"):
        faster.compare(walls(10, 10), walls(10, wall))
    found = faster.compare(rates(10, 10), [run(rate=20, wall=wall)] * 2)
    assert found.figure.name is Name.THROUGHPUT
    assert found.figures[-1].ratio is None


def test_steps_of_the_log_are_not_compared_with_those_of_the_probe() -> None:
    found = faster.compare([run(rate=10.0)], [run(rate=40.0, steps_by="probe")])
    assert found.figure.name is Name.WALL_TIME
    assert "from the probe in others" in found.notes[0]
    alike = faster.compare([run(rate=10.0, steps_by="probe")], [run(rate=40.0, steps_by="probe")])
    assert alike.figure.name is Name.THROUGHPUT


def test_where_the_probe_told_of_every_run_its_steps_are_compared() -> None:
    slow, fast = (ProbeEvidence(pid=1, steps=9, steps_per_s=rate) for rate in (9.0, 36.0))
    found = faster.compare([run(rate=10.0, probe=slow)], [run(rate=36.0, steps_by="probe", probe=fast)])
    assert found.figure.name is Name.THROUGHPUT
    assert found.ratio.value == pytest.approx(4, rel=0.1)
