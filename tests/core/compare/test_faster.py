"""Two sides of runs: which figure decides, what it says of B, and what is said beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.comparisons import run

from gpudebug.core.answers.compare import RateSpread
from gpudebug.core.compare import faster, sides
from gpudebug.core.compare.faster import ComparedRun, Name, SpeedAnswer, judge
from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Estimate, ProbeEvidence
from gpudebug.core.trainlog.latency import Latency

POSITIVE = st.floats(1e-3, 1e6)
SIDE = st.lists(POSITIVE, min_size=1, max_size=5)


def rates(*values: float) -> list[ComparedRun]:
    return [run(rate=v, wall=600 / v) for v in values]


def walls(*values: float | None) -> list[ComparedRun]:
    return [run(rate=None, wall=v) for v in values]


def latencies(*values: float) -> list[ComparedRun]:
    return [run(rate=None, latency=v) for v in values]


ANSWERS = {
    "throughput, faster": (rates(10, 10.1), rates(13, 13.1), Name.THROUGHPUT, SpeedAnswer.FASTER, 1.30),
    "throughput, slower": (rates(13, 13.1), rates(10, 10.1), Name.THROUGHPUT, SpeedAnswer.SLOWER, 0.77),
    "throughput, the same": (rates(10, 10.1), rates(10, 10.1), Name.THROUGHPUT, SpeedAnswer.CANNOT_TELL, 1.0),
    "too noisy": (rates(5, 15), rates(8, 20), Name.THROUGHPUT, SpeedAnswer.CANNOT_TELL, 1.46),
    "one run each, far apart": (rates(10), rates(20), Name.THROUGHPUT, SpeedAnswer.FASTER, 2.0),
    "one run each, near": (rates(10), rates(11), Name.THROUGHPUT, SpeedAnswer.CANNOT_TELL, 1.1),
    "wall time, faster": (walls(10, 10.1), walls(5, 5.1), Name.WALL_TIME, SpeedAnswer.FASTER, 1.99),
    "wall time, slower": (walls(5, 5.1), walls(10, 10.1), Name.WALL_TIME, SpeedAnswer.SLOWER, 0.50),
    "latency, faster": (
        latencies(0.02, 0.021),
        latencies(0.01, 0.011),
        Name.LATENCY,
        SpeedAnswer.FASTER,
        1.95,
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
        there, back = faster.compare(make(*a), make(*b)), faster.compare(make(*b), make(*a))
        assert there.ratio.value * back.ratio.value == pytest.approx(1)
        assert there.answer is MIRROR[back.answer]


@given(a=SIDE, b=SIDE, unit=st.floats(0.01, 100))
def test_the_unit_of_a_rate_does_not_matter(a: list[float], b: list[float], unit: float) -> None:
    plain = faster.compare(rates(*a), rates(*b)).ratio
    scaled = faster.compare(rates(*(v * unit for v in a)), rates(*(v * unit for v in b))).ratio
    assert (plain.value, plain.low, plain.high) == pytest.approx((scaled.value, scaled.low, scaled.high))
    assert plain.low is not None and plain.high is not None
    assert 0 <= plain.low <= plain.value <= plain.high


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
    assert "those of others the probe's" in found.notes[0]
    alike = faster.compare([run(rate=10.0, steps_by="probe")], [run(rate=40.0, steps_by="probe")])
    assert alike.figure.name is Name.THROUGHPUT


def test_where_the_probe_told_of_every_run_its_steps_are_compared() -> None:
    slow, fast = (ProbeEvidence(pid=1, steps=9, steps_per_s=rate) for rate in (9.0, 36.0))
    found = faster.compare([run(rate=10.0, probe=slow)], [run(rate=36.0, steps_by="probe", probe=fast)])
    assert found.figure.name is Name.THROUGHPUT
    assert found.ratio.value == pytest.approx(4, rel=0.1)
