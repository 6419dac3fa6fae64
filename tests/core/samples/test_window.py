"""Where the steady window lies, from steps where the log tells of them, from the readings where not."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.places import DATA
from tests.support.readings import GPU, phases, row, sampled, steady_steps, steps_log

from gpudebug.core.records import Window
from gpudebug.core.samples.window import (
    Stretch,
    arrivals,
    find_window,
    first_step,
    step_bounds,
    stretches,
)
from gpudebug.core.trainlog.reader import LogReader, LogSummary

NO_LOG = LogSummary()
RECORDED = DATA / "logs"
# First and last true optimizer step of recorded programs, seconds since launch.
TRUE_STEPS = {
    "autoresearch__converge_pty": (4.427, 19.103),
    "autoresearch__late_diverge_pipe": (3.162, 16.639),
    "autoresearch__plateau_pipe": (5.009, 15.428),
    "hf_trainer__blowup_then_hidden_nan_pipe": (14.667, 20.353),
    "keras__torch_verbose2_stuck_high_pipe": (11.81, 19.704),
    "lerobot04__converge_pty": (21.092, 37.489),
    "lerobot04__databound_pipe": (15.029, 67.784),
    "lightning__rich_oom_pty": (13.62, 19.032),
    "lightning__tqdm_converge_refresh20_leave_pipe": (18.533, 29.592),
    "mmengine__databound_pipe": (8.579, 23.084),
    "nanogpt__killed_pipe": (6.077, 14.37),
    "sb3__ppo_nan_pipe": (6.421, 15.983),
    "timm__converge_pipe": (6.34, 20.87),
    "timm__killed_pipe": (5.738, 12.732),
}
BUFFERED = [
    "lightning__csvlogger_nobar_pipe",
    "lightning__csvlogger_prints_pipe",
    "lightning__rich_converge_pipe",
    "nanogpt__converge_pipe",
    "nanogpt__evalonly_lines_pipe",
    "pytorch_mnist__converge_pipe",
]


def window(level: object, seconds: float, log: LogSummary = NO_LOG, warmup: float | None = None) -> Window:
    found, reason = find_window({GPU: stretches(sampled(level, seconds), GPU)}, log, warmup)  # type: ignore[arg-type]
    assert found is not None, reason
    return found


class TestStretches:
    def test_each_reading_stands_for_the_time_since_the_one_before(self) -> None:
        rows = [row(0.2, 10), row(0.4, 20), row(1.0, 30), row(1.2, 40)]
        found = stretches(rows, GPU)
        assert [(s.end, s.value) for s in found] == [(0.2, 10), (0.4, 20), (1.0, 30), (1.2, 40)]
        assert [s.width for s in found] == pytest.approx([0.2, 0.2, 0.6, 0.2])

    def test_repeated_driver_samples_do_not_count(self) -> None:
        rows = [row(0.2 * (i + 1), 10.0 * (i // 5), new=1 if i % 5 == 4 else 0) for i in range(15)]
        found = stretches(rows, GPU)
        assert [s.value for s in found] == [0, 10, 20]
        assert [s.width for s in found] == pytest.approx([1, 1, 1])

    def test_readings_that_are_absent_or_of_another_device_do_not_count(self) -> None:
        rows = [row(0.2, None), row(0.4, 10), row(0.4, 90, (1, "GPU-1")), row(0.4, 50), row(0.3, 50)]
        assert stretches(rows, GPU) == [Stretch(0.4, 0.4, 10)]

    def test_a_gap_without_readings_is_not_covered(self) -> None:
        found = stretches(sampled(lambda t: 20, 30, skip=lambda t: 10 < t < 20), GPU)
        assert max(s.width for s in found) == pytest.approx(2)

    def test_a_gap_that_the_driver_kept_samples_of_is_covered(self) -> None:
        rows = sampled(lambda t: 20, 30, skip=lambda t: 10 < t < 20)
        late = next(i for i, r in enumerate(rows) if r.elapsed >= 20)
        rows[late] = row(rows[late].elapsed, 20, new=50)
        assert max(s.width for s in stretches(rows, GPU)) == pytest.approx(10)

    def test_the_cpu_has_measured_its_gap_and_not_the_ticks_before_it_was_found(self) -> None:
        cpu = (0, "CPU")
        rows = [row(t / 5, 0, cpu, new=0) for t in range(1, 16)]
        rows += [row(3.2, 50, cpu), row(9.2, 60, cpu), row(9.4, 70, cpu)]
        assert [s.width for s in stretches(rows, cpu)] == pytest.approx([0.2, 6.0, 0.2])

    def test_a_coarse_monitor_is_believed_for_its_own_period(self) -> None:
        found = stretches([row(15.0 * i, 30) for i in range(1, 9)], GPU)
        assert [s.width for s in found] == pytest.approx([15] * 8)

    @given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100), st.integers(0, 3)), max_size=30))
    def test_stretches_never_overlap(self, values: list[tuple[float, float, int]]) -> None:
        found = stretches([row(t, v, new=n) for t, v, n in values], GPU)
        starts = [s.end - s.width for s in found]
        assert all(s.width > 0 for s in found)
        assert all(start >= before.end - 1e-9 for before, start in zip(found, starts[1:], strict=False))
        assert all(start >= -1e-9 for start in starts)


class TestSteps:
    def test_from_step_ten_to_the_last_step(self) -> None:
        log = steps_log(steady_steps(4, 34, 5))
        found = window(lambda t: 40, 40, log)
        assert found.rule == "steps"
        assert found.start_s == pytest.approx(6, abs=0.3)
        assert found.end_s == pytest.approx(34, abs=0.3)

    def test_from_a_twentieth_of_many_steps(self) -> None:
        log = steps_log(steady_steps(4, 44, 100))
        assert window(lambda t: 40, 50, log).start_s == pytest.approx(6, abs=0.3)

    def test_a_run_that_goes_on_from_a_checkpoint_warms_up_too(self) -> None:
        times = [(100_000 + n, t) for n, t in steady_steps(4, 34, 5, every=5)]
        assert window(lambda t: 40, 40, steps_log(times)).start_s == pytest.approx(6, abs=0.3)

    def test_a_few_printed_steps_are_enough(self) -> None:
        log = steps_log([(50, 8.0), (100, 16.0), (150, 24.0), (200, 32.0)])
        assert (step_bounds(log), window(lambda t: 40, 36, log).rule) == ((8.0, 32.0), "steps")

    def test_two_printed_steps_are_enough(self) -> None:
        assert step_bounds(steps_log([(100, 12.0), (200, 21.0)])) == (12.0, 21.0)

    @pytest.mark.parametrize("unit", ["epoch", "samples", "timesteps"])
    def test_ten_of_anything_else_are_no_ten_steps(self, unit: str) -> None:
        log = steps_log([(1, 8.0), (2, 16.0), (3, 24.0), (4, 32.0)], unit=unit)
        assert step_bounds(log) == (8.0, 32.0)

    @pytest.mark.parametrize(
        "times",
        [
            [],
            [(200, 25.0)],
            [(n, 30.0) for n in range(1, 201)],
            [(n, 29.8 if n < 100 else 30.0) for n in range(1, 201)],
            [(1, 2.0)] + [(n, 30.0) for n in range(2, 201)],
        ],
        ids=["no step", "one line", "one burst", "a burst over two ticks", "first line, then a burst"],
    )
    def test_steps_that_do_not_tell_when_they_were_made_bound_nothing(
        self, times: list[tuple[int, float]]
    ) -> None:
        assert step_bounds(steps_log(times)) is None
        found = window(phases((10, 0.0), (28, 30.0), (30, 0.0)), 30, steps_log(times))
        assert found.rule == "mser5"
        assert found.start_s == pytest.approx(10, abs=1.1)
        assert found.end_s == pytest.approx(28, abs=0.3)

    def test_a_last_step_that_came_late_is_no_end(self) -> None:
        """The bar is closed, or the rest of a buffer printed, after the final save."""
        times = [(n, 2.0 * n) for n in range(1, 16)]
        late = step_bounds(steps_log([*times, (16, 41.0)], unit="epoch"))
        assert late == (2, 30)
        assert step_bounds(steps_log([*times, (16, 32.0)], unit="epoch")) == (2, 32)

    def test_the_last_step_that_is_printed_again_is_no_more_work(self) -> None:
        times = [*steady_steps(4, 24, 5), (100, 24.5), (100, 24.9)]
        assert step_bounds(steps_log(times)) == pytest.approx((6.2, 24.2))

    @pytest.mark.parametrize(
        ("level", "start_s"),
        [
            # Up to the device's level: the first 10 steps end at 6 s.
            (lambda t: 60 * (1 - math.exp(-(t - 4) / 4)), 13),
            (lambda t: 20 if t < 12 else 60, 12),
            # No rise to a level: less after the start, more only at the end, noise.
            (lambda t: 60 if t < 12 else 20, 6),
            (lambda t: 20 if t < 30 else 60, 6),
            (lambda t: 40 + 3 * math.sin(7 * t), 6),
        ],
    )
    def test_a_rise_to_the_devices_level_is_left_out(
        self, level: Callable[[float], float], start_s: float
    ) -> None:
        log = steps_log(steady_steps(4, 34, 5))
        series = {GPU: stretches(sampled(level, 36), GPU)}
        found, _ = find_window(series, log, None)
        assert found is not None and found.start_s == pytest.approx(start_s, abs=2.6)

    def test_a_short_training_is_not_mistaken_for_a_buffer(self) -> None:
        log = steps_log(steady_steps(20, 22, 30))
        found, reason = find_window({GPU: stretches(sampled(phases((20, 0), (22, 60)), 22), GPU)}, log, None)
        assert found is None
        assert "too short: 1." in (reason or "")

    def test_blocks_of_lines_bound_the_window_by_their_arrival(self) -> None:
        times = [(n, 20.0 + 20 * ((n - 1) // 120)) for n in range(1, 601)]
        assert arrivals(steps_log(times)) == [(20, 120), (40, 240), (60, 360), (80, 480), (100, 600)]
        assert step_bounds(steps_log(times)) == (20, 100)


class TestProbe:
    """Steps that the training process told, where the log tells none."""

    def test_its_steady_iterations_bound_the_window(self) -> None:
        found, _ = find_window({GPU: stretches(sampled(lambda t: 40, 40), GPU)}, NO_LOG, None, (6.1, 34.1))
        assert found is not None
        assert (found.rule, found.start_s, found.end_s) == ("probe", 6.1, 34.0)

    def test_steps_of_the_log_come_first(self) -> None:
        log = steps_log(steady_steps(4, 34, 5))
        found, _ = find_window({GPU: stretches(sampled(lambda t: 40, 40), GPU)}, log, None, (10.0, 20.0))
        assert found is not None
        assert found.rule == "steps"

    def test_a_log_that_came_at_the_end_leaves_it_to_the_probe(self) -> None:
        log = steps_log([(n, 39.8) for n in range(200)])
        found, _ = find_window({GPU: stretches(sampled(lambda t: 40, 40), GPU)}, log, None, (10.0, 20.0))
        assert found is not None
        assert found.rule == "probe"

    def test_a_fixed_warm_up_replaces_the_start(self) -> None:
        found, _ = find_window({GPU: stretches(sampled(lambda t: 40, 40), GPU)}, NO_LOG, 8.0, (10.0, 20.0))
        assert found is not None
        assert (found.rule, found.start_s, found.end_s) == ("fixed", 8.0, 20.0)

    def test_a_bar_of_a_pass_before_the_training_is_not_its_steps(self) -> None:
        busy = {GPU: stretches(sampled(lambda t: 40, 60), GPU)}
        before = steps_log(steady_steps(1, 9, 10))
        found, _ = find_window(busy, before, None, (10.0, 58.0))
        assert found is not None
        assert (found.rule, found.start_s) == ("probe", pytest.approx(10.0, abs=0.3))
        # A log that has the training's own steps is believed for where they are.
        found, _ = find_window(busy, steps_log(steady_steps(12, 50, 3)), None, (10.0, 58.0))
        assert found is not None and found.rule == "steps"

    def test_a_training_that_was_short_has_no_window_whatever_ran_around_it(self) -> None:
        found, why = find_window({GPU: stretches(sampled(lambda t: 40, 40), GPU)}, NO_LOG, None, (10.0, 13.0))
        assert found is None
        assert "3.0 s after warm-up" in (why or "")


BUSY_START = {GPU: stretches(sampled(lambda t: 40 + 20 * math.sin(7 * t) if t < 60 else 0.0, 64), GPU)}
BURST = {GPU: stretches(sampled(phases((1, 100.0), (23, 0.0)), 23), GPU)}


class TestFirstStep:
    """What was read before the first step is start-up, whichever rule finds the window."""

    @pytest.mark.parametrize(
        ("log", "probed", "warmup", "rule"),
        [
            (NO_LOG, None, None, "mser5"),
            (NO_LOG, None, 8.0, "fixed"),
            (NO_LOG, (20.0, 60.0), None, "probe"),
            (steps_log(steady_steps(20, 60, 5)), None, None, "steps"),
        ],
    )
    def test_no_rule_begins_before_it(
        self,
        log: LogSummary,
        probed: tuple[float, float] | None,
        warmup: float | None,
        rule: str,
    ) -> None:
        before, _ = find_window(BUSY_START, log, warmup, probed)
        assert before is not None and before.start_s < 40
        found, _ = find_window(BUSY_START, log, warmup, probed, first=40.3)
        assert found is not None
        assert (found.rule, found.start_s) == (rule, pytest.approx(40.3, abs=0.3))
        assert found.start_s >= 40.3
        assert found.end_s == pytest.approx(60, abs=0.3)

    @pytest.mark.parametrize(
        ("unit", "epoch_s", "rule"),
        [("epoch", 2, "steps"), ("epoch", 18, "probe"), ("step", 2, "steps")],
    )
    def test_long_epochs_are_cut_where_the_process_reports_its_steps(
        self, unit: str, epoch_s: float, rule: str
    ) -> None:
        lines = steps_log(steady_steps(12, 60, 1 / epoch_s))
        found, _ = find_window(BUSY_START, replace(lines, step_unit=unit), None, (10.0, 60.0))
        assert found is not None and found.rule == rule

    def test_a_start_up_that_looks_steady_is_no_window(self) -> None:
        series = {GPU: stretches(sampled(phases((50, 20.0), (51, 5.0)), 51), GPU)}
        assert find_window(series, NO_LOG, None)[0] is not None
        found, reason = find_window(series, NO_LOG, None, first=50.3)
        assert found is None
        assert reason == (
            "the window is too short: 0.7 s after warm-up (the first step came at 50.3 s), "
            "at least 5 s needed"
        )

    def test_a_step_after_the_last_reading_leaves_nothing(self) -> None:
        found, reason = find_window(BUSY_START, NO_LOG, None, first=70.0)
        assert found is None
        assert "too short: 0.0 s" in (reason or "")

    @pytest.mark.parametrize(
        ("log", "seen"),
        [
            (NO_LOG, None),
            (steps_log([(1, 50.3)]), 50.3),
            (steps_log([(0, 50.3), (1, 50.5)]), 50.3),
            (steps_log([(1, 50.3), (2, 50.5)]), 50.3),
            (steps_log([(10, 50.0), (20, 52.0)]), 48.2),
            (steps_log([(100_010, 50.0), (100_020, 52.0)]), 48.2),
            (steps_log([(n, 20.0 + 20 * ((n - 1) // 120)) for n in range(1, 601)]), 1 / 6),
            (steps_log([(200, 25.0)]), None),
            (steps_log([(n, 30.0) for n in range(1, 201)]), None),
            (steps_log([(n, 29.8 if n < 100 else 30.0) for n in range(1, 201)]), None),
            (steps_log([(1, 2.0)] + [(n, 30.0) for n in range(2, 201)]), 2.0),
            (steps_log([(1, 38.0)], unit="epoch"), None),
            (steps_log([(1, 20.0), (2, 38.0)], unit="epoch"), 2.0),
        ],
        ids=[
            *("no log", "one step", "counted from 0", "two steps", "every tenth", "from a checkpoint"),
            *("blocks", "one line", "one burst", "a burst over two ticks", "first line, then a burst"),
            *("one epoch", "epochs"),
        ],
    )
    def test_the_log_shows_it_unless_its_lines_came_late(self, log: LogSummary, seen: float | None) -> None:
        assert first_step(log, None) == (None if seen is None else pytest.approx(seen, abs=0.01))

    def test_it_is_the_first_that_either_saw(self) -> None:
        assert first_step(steps_log([(1, 50.3), (2, 50.5)]), 12.0) == 12.0
        assert first_step(steps_log([(1, 5.0), (2, 5.5)]), 12.0) == 5.0
        assert first_step(NO_LOG, 12.0) == 12.0


class TestAlmostIdle:
    """A burst is neither all of a run nor its warm-up."""

    @pytest.mark.parametrize(
        ("probed", "first", "start"),
        [(None, None, 0.0), ((0.6, 0.9), 0.4, 0.4), (None, 2.0, 2.0)],
        ids=["no step", "steps of the burst", "a step behind it"],
    )
    def test_what_followed_a_burst_counts(
        self, probed: tuple[float, float] | None, first: float | None, start: float
    ) -> None:
        found, reason = find_window(BURST, NO_LOG, None, probed, first=first)
        assert found is not None, reason
        assert (found.start_s, found.end_s) == (start, 23.0)

    def test_a_burst_in_the_warm_up_is_cut(self) -> None:
        found, _ = find_window(BURST, NO_LOG, 8.0)
        assert found is not None
        assert (found.start_s, found.end_s) == (8.0, 23.0)

    def test_a_run_that_goes_on_may_only_be_starting(self) -> None:
        found, reason = find_window(BURST, NO_LOG, None, over=False)
        assert found is None
        assert "too short: 1.0 s" in (reason or "")

    def test_a_short_training_with_a_slow_end_stays_too_short(self) -> None:
        rows = sampled(phases((10, 0.0), (13, 60.0), (20, 0.0)), 20)
        found, reason = find_window({GPU: stretches(rows, GPU)}, NO_LOG, None)
        assert found is None
        assert "too short: 3.0 s" in (reason or "")


class TestReadings:
    @pytest.mark.parametrize("start", [0, 3, 12, 20, 24])
    @pytest.mark.parametrize("save", [0, 2, 5])
    def test_an_idle_start_and_end_are_cut(self, start: float, save: float) -> None:
        rng = random.Random(3)
        level = phases((start, 0.0), (start + 10, 30.0), (99, 0.0))
        found = window(lambda t: level(t) and max(2, level(t) + rng.gauss(0, 12)), start + 10 + save)
        assert start - 0.2 <= found.start_s <= start + 5
        assert found.end_s == pytest.approx(start + 10, abs=0.4)

    def test_a_busy_start_is_cut(self) -> None:
        rng = random.Random(4)
        level = phases((6, 100.0), (40, 30.0))
        found = window(lambda t: min(100, level(t) + rng.gauss(0, 3)), 40)
        assert found.start_s == pytest.approx(6, abs=1.1)
        assert found.end_s == pytest.approx(40)

    def test_a_tail_that_is_less_busy_but_not_idle_is_cut(self) -> None:
        found = window(phases((30, 60.0), (35, 12.0)), 35)
        assert found.end_s == pytest.approx(30, abs=1.1)

    def test_training_at_the_end_is_not_taken_for_a_tail(self) -> None:
        found, reason = find_window(
            {GPU: stretches(sampled(phases((10, 0.0), (13, 60.0)), 13), GPU)}, NO_LOG, None
        )
        assert found is None
        assert "too short: 3.0 s" in (reason or "")

    def test_evaluation_at_the_end_stays(self) -> None:
        assert window(phases((30, 30.0), (36, 90.0)), 36).end_s == pytest.approx(36)

    @pytest.mark.parametrize("level", [0.0, 15.0, 100.0])
    def test_a_steady_device_keeps_all_of_its_run(self, level: float) -> None:
        found = window(lambda t: level, 20)
        assert (found.start_s, found.end_s, found.samples) == (0.0, 20.0, 100)

    def test_several_devices_settle_by_their_mean(self) -> None:
        other = (1, "GPU-1")
        series = {
            GPU: stretches(sampled(lambda t: 30, 40), GPU),
            other: stretches(sampled(phases((12, 0.0), (40, 60.0)), 40, device=other), other),
        }
        found, _ = find_window(series, NO_LOG, None)
        assert found is not None
        assert found.start_s == pytest.approx(12, abs=1.1)


class TestFixed:
    def test_a_fixed_warm_up_counts_from_launch_and_keeps_the_end(self) -> None:
        found = window(phases((30, 30.0), (34, 0.0)), 34, warmup=8)
        assert (found.rule, found.start_s) == ("fixed", 8)
        assert found.end_s == pytest.approx(30, abs=0.3)

    def test_a_fixed_warm_up_goes_before_the_steps(self) -> None:
        log = steps_log(steady_steps(4, 34, 5))
        found = window(lambda t: 40, 40, log, warmup=20)
        assert (found.rule, found.start_s) == ("fixed", 20)
        assert found.end_s == pytest.approx(34, abs=0.3)

    def test_one_longer_than_the_run_leaves_nothing(self) -> None:
        found, reason = find_window({GPU: stretches(sampled(lambda t: 40, 20), GPU)}, NO_LOG, 60)
        assert found is None
        assert "too short: 0.0 s" in (reason or "")


@pytest.mark.parametrize("seconds", [0.2, 2, 4.8])
def test_a_run_of_a_moment_has_no_window(seconds: float) -> None:
    found, reason = find_window({GPU: stretches(sampled(lambda t: 70, seconds), GPU)}, NO_LOG, None)
    assert found is None
    assert reason is not None
    assert reason.startswith("the window is too short")
    assert "5 s needed" in reason


def test_no_reading_is_no_window() -> None:
    assert find_window({}, NO_LOG, None) == (None, "no device reading")
    assert find_window({GPU: []}, NO_LOG, 3) == (None, "no device reading")


@given(
    st.lists(st.tuples(st.floats(0.01, 3), st.floats(0, 100)), max_size=80),
    st.lists(st.tuples(st.integers(0, 50), st.floats(0, 100)), max_size=30),
    st.none() | st.floats(0, 50),
    st.none() | st.floats(0, 50),
)
def test_a_window_lies_within_the_readings_and_is_long_enough(
    gaps: list[tuple[float, float]],
    steps: list[tuple[int, float]],
    warmup: float | None,
    probed: float | None,
) -> None:
    elapsed, rows = 0.0, []
    for gap, value in gaps:
        elapsed += gap
        rows.append(row(elapsed, value))
    numbers = sorted(n for n, _ in steps)
    times = sorted(t for _, t in steps)
    log = steps_log(list(zip(numbers, times, strict=True)))
    first = first_step(log, probed)
    found, reason = find_window({GPU: stretches(rows, GPU)}, log, warmup, first=first)
    assert (found is None) is (reason is not None)
    if found is not None:
        assert round(first or 0.0, 3) <= found.start_s < found.end_s <= round(elapsed, 3)
        assert found.duration_s >= 4.999
        assert found.samples >= 1


def recorded(name: str) -> LogSummary:
    """A recorded program's output as the samples see it: at ticks of 0.2 s."""
    reader, data, at = LogReader(), (RECORDED / f"{name}.log").read_bytes(), 0
    for line in (RECORDED / "arrival" / f"{name}.jsonl").read_text().splitlines():
        time, size = json.loads(line)[:2]
        reader.feed(data[at : at + size], round((int(time / 0.2) + 1) * 0.2, 3))
        at += size
    return reader.summary()


@pytest.mark.parametrize("name", TRUE_STEPS)
def test_steps_of_recorded_programs_were_made_within_the_bounds_found(name: str) -> None:
    first, last = TRUE_STEPS[name]
    bounds = step_bounds(recorded(name))
    assert bounds is not None
    assert first < bounds[0] < first + 0.45 * (last - first)
    assert last - 0.1 * (last - first) < bounds[1] < last + 0.4


@pytest.mark.parametrize("name", BUFFERED)
def test_recorded_output_that_came_at_the_end_bounds_nothing(name: str) -> None:
    assert step_bounds(recorded(name)) is None
