"""From rows and a log to figures: what a device did, or why that is not known."""

from __future__ import annotations

import math
import random
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.probe_lines import line, training
from tests.support.readings import GPU, phases, row, sampled, samples, steady_steps, steps_log

from gpudebug.core.command.program import RunProcess
from gpudebug.core.evidence import build as evidence
from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.inside.probe import read_probe
from gpudebug.core.records import DeviceInfo, Evidence, Failure, Window
from gpudebug.core.samples.table import Sample, SampleTable
from gpudebug.core.trainlog.reader import LogReader, LogSummary
from gpudebug.core.words import Outcome, Trend

OTHER = (1, "GPU-1")
WINDOW = Window(start_s=10, end_s=40, samples=150, rule="steps")
BUFFERS = RunProcess(7, 0, "train.py", 0.0, 33.0, 9.0, output="log", buffers=True, cores=4)


def build(rows: SampleTable, log: LogSummary | None = None, **more: Any) -> Evidence:
    how = {name: more.pop(name) for name in ("warmup", "advice", "scrub") if name in more}
    ending = {f.name: more.pop(f.name) for f in fields(EndedRun) if f.name in more}
    run = EndedRun(**{"name": "0001-x", "role": "h1", "outcome": Outcome.COMPLETED, **ending})
    return evidence.build(run, RunReadings(samples=rows, log=log or LogSummary(), **more), **how)


def info(index: int) -> DeviceInfo:
    return DeviceInfo(index=index, uuid=f"GPU-{index}", name=f"Device {index}", kind="nvml")


@pytest.mark.parametrize("seconds", [6, 20, 60])
@pytest.mark.parametrize("tick", [0.1, 0.2, 1.0])
def test_a_device_steady_at_15_gives_15(seconds: float, tick: float) -> None:
    found = build(samples(sampled(lambda t: 15.0, seconds, tick=tick)))
    assert found.utilisation == pytest.approx(15)
    (device,) = found.devices
    assert device.gpu_util is not None
    assert (device.gpu_util.p5, device.gpu_util.p50, device.gpu_util.p95) == (15, 15, 15)
    assert found.standard_error == 0
    assert found.window_reason is None


@pytest.mark.parametrize("known", [True, False], ids=["steps known", "no steps"])
@pytest.mark.parametrize("start", [6, 14, 25])
def test_start_up_and_final_save_are_left_out(known: bool, start: float) -> None:
    rng = random.Random(start)
    level = phases((start, 0.0), (start + 20, 30.0), (start + 26, 0.0))
    log = steps_log(steady_steps(start, start + 20, 10)) if known else None
    rows = sampled(lambda t: level(t) and level(t) + rng.uniform(-10, 10), start + 26)
    assert build(samples(rows), log).utilisation == pytest.approx(30, abs=1.5)


def test_a_run_of_two_seconds_is_unknown_and_not_zero() -> None:
    found = build(samples(sampled(lambda t: 0.0, 2)))
    assert found.utilisation is None
    assert found.window is None
    assert "window is too short" in (found.window_reason or "")
    assert found.devices[0].gpu_util is None
    assert found.devices[0].reason == found.window_reason


def test_an_idle_device_is_zero_and_not_unknown() -> None:
    assert build(samples(sampled(lambda t: 0.0, 60))).utilisation == 0


def test_missed_ticks_weigh_what_they_lasted() -> None:
    """A loaded host misses ticks where the device is busy: the plain mean would be too low."""
    level = lambda t: 80.0 if int(t) % 2 else 20.0  # noqa: E731
    rows = sampled(level, 40, skip=lambda t: level(t - 0.1) == 80 and 0.05 < (t - 0.1) % 1 < 0.75)
    plain = sum(r.gpu_util or 0 for r in rows) / len(rows)
    assert plain < 35
    assert build(samples(rows)).utilisation == pytest.approx(50, abs=2)


@given(st.lists(st.tuples(st.floats(0.05, 1.9), st.floats(0, 100)), min_size=60, max_size=120))
def test_the_mean_is_the_integral_over_the_window(gaps: list[tuple[float, float]]) -> None:
    rows, t, total = [], 0.0, 0.0
    for gap, value in gaps:
        t += gap
        rows.append(row(t, value))
    found = build(samples(rows), warmup=3.0)
    window, utilisation = found.window, found.utilisation
    if window is None or utilisation is None:
        return
    start = 0.0
    for sample in rows:
        inside = min(sample.elapsed, window.end_s) - max(start, window.start_s)
        total += max(0.0, inside) * (sample.gpu_util or 0)
        start = sample.elapsed
    assert utilisation == pytest.approx(total / window.duration_s, abs=0.05)


def test_a_driver_slower_than_the_tick_counts_once_a_sample() -> None:
    """Rows repeat the last value with `new_samples` 0 until the driver has a new one, each second."""
    values = [20.0, 40.0] * 15
    rows = [
        row(round(0.2 * (i + 1), 6), values[i // 5] if i % 5 == 4 else values[max(i // 5 - 1, 0)],
            new=1 if i % 5 == 4 else 0)
        for i in range(150)
    ]  # fmt: skip
    found = build(samples(rows))
    assert found.utilisation == pytest.approx(30, abs=0.5)
    assert found.window is not None
    assert found.window.samples == 30


def test_rows_without_new_samples_say_nothing() -> None:
    rows = [row(0.2 * (i + 1), 90.0, new=0) for i in range(200)]
    found = build(samples(rows))
    assert found.utilisation is None
    said = "the window is too short: the run ended before the device gave a reading"
    assert found.devices[0].reason == said


@pytest.mark.parametrize("end", [11.2, 13.5, 18.9])
def test_a_second_of_driver_period_does_not_cost_a_short_window_its_figure(end: float) -> None:
    """The window ends between two readings: it gives up the remainder, and covers all of the rest."""
    rows = sampled(lambda t: 30.0, 25, tick=1.0)
    found = build(samples(rows), steps_log([(10, 5.5), (50, end)]))
    assert found.utilisation == pytest.approx(30)
    assert found.window is not None
    assert found.window.end_s == math.floor(end)


@pytest.mark.parametrize(("gap", "known"), [(1.8, True), (4.0, True), (8.0, False), (20.0, False)])
def test_readings_that_cover_too_little_of_the_window_are_no_figure(gap: float, known: bool) -> None:
    rows = sampled(lambda t: 30.0, 50, skip=lambda t: 15 < t < 15 + gap)
    found = build(samples(rows), steps_log(steady_steps(8, 48, 10)))
    assert (found.utilisation is not None) is known
    if not known:
        assert "of the window" in (found.devices[0].reason or "")


def test_a_lost_device_leaves_the_others_known_and_the_mean_unknown() -> None:
    rows = samples(
        sampled(lambda t: 30.0, 40), sampled(lambda t: 50.0, 40, device=OTHER, skip=lambda t: t > 20)
    )
    found = build(rows, devices=(info(0), info(1)))
    assert [d.gpu_util is not None for d in found.devices] == [True, False]
    assert found.utilisation is None
    assert found.standard_error is None


def test_several_devices_are_averaged_and_each_is_shown() -> None:
    rows = samples(sampled(lambda t: 30.0, 40), sampled(lambda t: 50.0, 40, device=OTHER))
    found = build(rows, devices=(info(0), info(1)))
    assert found.utilisation == pytest.approx(40)
    assert [(d.index, d.uuid, d.name) for d in found.devices] == [
        (0, "GPU-0", "Device 0"),
        (1, "GPU-1", "Device 1"),
    ]
    assert [d.gpu_util.mean for d in found.devices if d.gpu_util] == pytest.approx([30, 50])


def test_devices_whose_samples_come_at_other_ticks_are_both_known() -> None:
    first = sampled(lambda t: 30.0, 40, tick=1.0)
    second = [row(r.elapsed + 0.6, 50.0, OTHER) for r in sampled(lambda t: 0, 39, tick=1.0)]
    found = build(samples(first, second), steps_log(steady_steps(4, 12, 10)))
    assert found.utilisation == pytest.approx(40)


def test_a_device_that_no_row_tells_of_makes_the_mean_unknown() -> None:
    found = build(samples(sampled(lambda t: 30.0, 40)), devices=(info(0), info(1)))
    assert found.utilisation is None
    assert (found.devices[1].uuid, found.devices[1].reason) == ("GPU-1", "no device reading")


def test_no_samples_at_all() -> None:
    found = build(SampleTable(), devices=(info(0),))
    assert found.utilisation is None
    assert found.window_reason == "no device reading"
    assert found.devices[0].reason == "no device reading"
    assert (found.spark, found.peak_device_mb) == ((), None)


def test_a_device_that_lacks_utilisation_says_why() -> None:
    rows = [row(0.2 * (i + 1), None, (0, "MIG-1"), new=None, mem=100.0 + i) for i in range(100)]
    found = build(samples(rows), missing={"gpu_util": "Not Supported"})
    (device,) = found.devices
    assert (device.gpu_util, device.reason, device.mem_used_mb) == (None, "Not Supported", 199)
    assert found.utilisation is None
    assert found.missing == {"gpu_util": "Not Supported"}


def test_too_few_readings_have_no_figure() -> None:
    found = build(samples([row(3.0 * i, 30.0) for i in range(1, 4)]))
    assert found.utilisation is None
    assert found.devices[0].reason == "only 3 readings in the window"


def test_memory_is_told_apart_by_device_without_uuids() -> None:
    rows = [row(0.2 * (i + 1), 30.0, (g, ""), mem=100.0 * (g + 1)) for i in range(50) for g in (0, 1)]
    assert [d.mem_used_mb for d in build(samples(rows)).devices] == [100, 200]


def test_memory_has_a_mean_beside_its_peak() -> None:
    found = build(samples([row(0.2 * (i + 1), 30.0, mem=100.0 if i % 2 else 300.0) for i in range(200)]))
    (device,) = found.devices
    assert device.mem_used_mb == 300
    assert device.mem_mean_mb == pytest.approx(200, rel=0.05)


def test_the_error_of_a_correlated_series_is_wider_than_that_of_its_readings() -> None:
    rng = random.Random(9)
    values, value = [], 0.0
    for _ in range(600):
        value = 0.95 * value + rng.gauss(0, 3)
        values.append(50 + value)
    found = build(samples([row(0.2 * (i + 1), v) for i, v in enumerate(values)]))
    assert found.standard_error is not None
    assert found.standard_error > 3 * 9.6 / math.sqrt(600)


@pytest.mark.parametrize("unit", ["epoch", "samples", "timesteps"])
def test_what_is_no_step_is_progress_only(unit: str) -> None:
    found = build(
        samples(sampled(lambda t: 30.0, 50)),
        steps_log([(n, 4.0 * n) for n in range(1, 12)], unit=unit),
    )
    assert (found.steps_per_s, found.step_unit) == (None, unit)
    assert found.progress_per_s == pytest.approx(0.25)


def test_output_that_was_buffered_to_the_end_leaves_the_window_to_the_readings() -> None:
    reader = LogReader()
    for step in range(1, 201):
        reader.feed(f"step {step} loss {2 / step:.4f}\n".encode(), 33.0)
    rows = sampled(phases((12, 0.0), (31, 24.0), (33, 0.0)), 33)
    found = build(samples(rows), reader.summary(0), seen=(BUFFERS,))
    assert found.window is not None
    assert found.window.rule == "mser5"
    assert found.utilisation == pytest.approx(24, abs=0.5)
    assert found.program is not None and found.program.held


def test_steps_of_a_live_log_bound_the_window() -> None:
    reader = LogReader()
    for step, time in steady_steps(12, 31, 10):
        reader.feed(f"step {step} loss {2 / step:.4f}\n".encode(), time)
    rows = sampled(phases((12, 0.0), (31, 24.0), (36, 60.0)), 36)
    found = build(samples(rows), reader.summary(0), seen=(BUFFERS,))
    assert found.conditions.cores == BUFFERS.cores
    assert found.program is not None and found.program.held is None
    assert found.window is not None
    assert (found.window.rule, found.utilisation) == ("steps", pytest.approx(24, abs=0.5))
    assert found.steps_per_s == pytest.approx(10, rel=0.03)


def test_a_device_that_computed_in_one_burst_is_almost_idle_and_not_unknown() -> None:
    found = build(samples(sampled(phases((1, 100.0), (23, 0.0)), 23)))
    assert found.utilisation == pytest.approx(100 / 23)
    unread = build(samples(sampled(phases((1, 100.0), (23, 0.0)), 23, skip=lambda t: 3 < t < 20)))
    assert unread.utilisation is None
    assert "of the window" in (unread.devices[0].reason or "")


class TestProbe:
    TRAINING = training(begins=2, step_s=0.1, steps=300, per_step={"data_s": 0.06, "samples_n": 8})

    def built(self, text: str, log: LogSummary | None = None, **more: Any) -> Evidence:
        rows = sampled(phases((3, 0.0), (32, 40.0), (36, 0.0)), 36)
        return build(samples(rows), log, told=read_probe(text), probe_reason="nobody told", **more)

    def test_without_a_log_it_tells_window_steps_and_times(self) -> None:
        found = self.built(self.TRAINING)
        assert found.window is not None
        assert (found.window.rule, found.utilisation) == ("probe", pytest.approx(40))
        assert (found.steps, found.steps_by, found.samples_by, found.step_time_by) == (300, *["probe"] * 3)
        assert (found.steps_per_s, found.progress_per_s) == pytest.approx((10, 10))
        assert found.samples_per_s == pytest.approx(80)
        assert (found.step_time_p50_s, found.step_time_p95_s) == pytest.approx((0.1, 0.1), rel=0.03)
        assert found.probe is not None
        assert found.probe.data_wait_share == pytest.approx(0.6)
        assert found.probe_reason is None

    def test_a_start_up_is_no_window_of_the_few_steps_behind_it(self) -> None:
        """The device computes from 3 s on."""
        assert self.built("").window is not None
        found = self.built(training(begins=31, step_s=0.25, steps=2))
        assert found.window is None
        assert found.first_step_s is not None and found.first_step_s > 31
        assert f"(the first step came at {found.first_step_s:.1f} s)" in (found.window_reason or "")

    def test_the_logs_steps_stay_the_unit_and_are_checked(self) -> None:
        found = self.built(self.TRAINING, steps_log(steady_steps(2, 32, 40)))
        assert found.window is not None
        assert (found.window.rule, found.steps_by, found.steps) == ("steps", "arrival", 1200)
        assert found.steps_per_s == pytest.approx(40, rel=0.02)
        assert found.step_time_p50_s == pytest.approx(0.1, rel=0.03)
        assert found.probe is not None
        (note,) = found.probe.notes
        assert "the log counts 4 steps for each step of the optimizer" in note

    def test_a_rate_that_the_log_only_prints_gives_way_to_the_probes(self) -> None:
        found = self.built(self.TRAINING, steps_log(rate=7.5))
        assert (found.steps_per_s, found.progress_per_s) == pytest.approx((10, 10))
        assert found.probe is not None
        assert found.probe.notes == ()

    @pytest.mark.parametrize("unit", ["epoch", "samples", "timesteps"])
    def test_what_is_no_step_stays_the_logs_progress(self, unit: str) -> None:
        found = self.built(self.TRAINING, steps_log([(n, 2.0 * n) for n in range(2, 17)], unit=unit))
        assert (found.step_unit, found.steps_by) == (unit, "probe")
        assert found.progress_per_s == pytest.approx(0.5)
        assert found.steps_per_s == pytest.approx(10)

    def test_a_training_on_the_cpu_beside_a_gpu_is_noted(self) -> None:
        facts = line("facts", 1, 3, facts={"device": "cpu"})
        found = self.built(self.TRAINING + facts, devices=(info(0),))
        assert found.probe is not None
        assert found.probe.notes == ("the training runs on the CPU, and a GPU is sampled",)

    def test_where_nobody_told_it_is_said_why(self) -> None:
        found = self.built("")
        assert (found.probe, found.probe_reason) == (None, "nobody told")
        assert (found.steps_by, found.step_time_by) == (None, None)

    def test_samples_that_are_in_doubt_leave_the_run_without_rates(self) -> None:
        rows = sampled(lambda t: 40.0, 10)
        found = build(samples(rows), told=read_probe(self.TRAINING), duration_s=60.0)
        assert (found.window, found.steps_per_s, found.step_time_p50_s) == (None, None, None)
        assert found.probe is not None
        assert found.probe.data_wait_share == pytest.approx(0.6)

    @pytest.mark.parametrize(
        ("loaders", "expected"),
        [
            ([{"batch_size": 8, "fetched": 90}, {"batch_size": 64, "fetched": 9}], 8),
            ([{"batch_size": 8, "fetched": 9}, {"batch_size": 64, "fetched": 90, "training": False}], 8),
            ([{"batch_size": None, "fetched": 90}], None),
            ([7, {"batch_size": "8"}], None),
            ("none", None),
        ],
    )
    def test_the_batch_is_that_of_the_loader_that_trains(self, loaders: object, expected: int | None) -> None:
        text = self.TRAINING + line("facts", 1, 3, facts={"loaders": loaders})
        assert self.built(text).batch_size == expected


class TestLoss:
    def test_figures_that_are_no_numbers_are_left_out(self) -> None:
        log = LogSummary(loss_name="loss", trend=Trend.NAN, points=9, first=2.0, last=math.nan)
        found = build(SampleTable(), log)
        assert (found.loss.first, found.loss.last, found.loss.trend) == (2.0, None, Trend.NAN)

    @pytest.mark.parametrize(
        ("trend", "expected"), [(Trend.UNKNOWN, "log more"), (Trend.PLATEAU, None), (Trend.CONVERGING, None)]
    )
    def test_advice_is_given_where_the_trend_is_unknown(self, trend: Trend, expected: str | None) -> None:
        found = build(SampleTable(), LogSummary(trend=trend), advice=lambda _: "log more")
        assert found.loss.advice == expected


def test_how_the_run_ended_is_kept() -> None:
    failure = Failure(kind="oom_gpu", lines=("CUDA out of memory",))
    run = EndedRun(
        name="r", role="h2", outcome=Outcome.CRASHED, exit_status=1, failure=failure, duration_s=1.25
    )
    rows = [Sample(1.0, 5.0, 900.0, 0, "GPU-0", 1, 321.0, 5)]
    found = evidence.build(run, RunReadings(samples=SampleTable(rows=rows), log=LogSummary()))
    assert (found.outcome, found.exit_status, found.failure) == (Outcome.CRASHED, 1, failure)
    assert (found.peak_rss_mb, found.peak_device_mb, found.duration_s) == (321, 900, 1.25)


@pytest.mark.parametrize("seconds", [0.4, 5, 60, 600])
def test_a_spark_line_keeps_the_order_and_at_most_forty_means(seconds: float) -> None:
    spark = build(samples(sampled(lambda t: 100 * t / seconds, seconds))).spark
    assert 1 <= len(spark) <= 40
    assert list(spark) == sorted(spark)
    assert 0 <= spark[0] <= spark[-1] <= 100


def test_evidence_survives_its_file() -> None:
    rows = samples(sampled(lambda t: 30.0, 40), sampled(lambda t: 50.0, 40, device=OTHER))
    found = build(rows, steps_log(steady_steps(4, 38, 10)), devices=(info(0), info(1)))
    assert Evidence.model_validate_json(found.model_dump_json()) == found
    assert GPU in rows.devices


def test_evidence_that_was_cut_short_gives_no_figure_and_says_why() -> None:
    rows = samples(sampled(lambda t: 50.0, 30))
    log = steps_log(steady_steps(0, 30, 5), rate=5.0)
    assert build(rows, log, duration_s=31.0).utilisation is not None
    found = build(rows, log, duration_s=90.0)
    assert (found.utilisation, found.steps_per_s, found.window) == (None, None, None)
    assert found.window_reason == "samples.csv is cut short: it ends at 30.0 s of 90.0 s"
    assert found.devices[0].reason == found.window_reason


def test_a_run_that_was_ended_may_end_before_its_samples_say() -> None:
    found = build(samples(sampled(lambda t: 50.0, 30)), duration_s=90.0, outcome=Outcome.TIMED_OUT)
    assert found.utilisation == pytest.approx(50)


def test_the_reason_of_an_ended_run_is_kept() -> None:
    found = build(samples(sampled(lambda t: 50.0, 30)), reason="no step for 5 s", outcome=Outcome.STALLED)
    assert found.reason == "no step for 5 s"


@pytest.mark.parametrize("value", ["1e308", "-1e308", "1e-308", "5e-324", "1" * 320, "1e400", "nan"])
@pytest.mark.parametrize(
    "line",
    [
        "step {n} loss {x} SPS: {x}",
        "samples/s: {x} step time: {x} s",
        "total_timesteps: {n} ep_rew_mean: {x}",
        "latency: {x} ms",
        "tok/s {x} tokens: {x}",
    ],
)
def test_numbers_of_any_size_in_a_log_are_evidence(line: str, value: str) -> None:
    """A training that diverges prints them: it is judged, and gpudebug goes on."""
    reader = LogReader({})
    for n in range(100):
        reader.feed(f"{line.format(n=n, x=value)}\n".encode(), 0.3 * n)
    found = build(samples(sampled(lambda t: 50.0, 30)), reader.summary(0, None))
    assert Evidence.model_validate_json(found.model_dump_json()) == found
