"""From a record of the probe and the window to the figures of a run."""

from __future__ import annotations

import pytest
from tests.support.probe_lines import beat, bucket, line, start, training

from gpudebug.core.inside.probe import evidence_of, read_probe
from gpudebug.core.records import ProbeEvidence, Window

WINDOW = Window(start_s=10, end_s=20, samples=50, rule="steps")
PER_STEP = {
    "data_n": 1,
    "data_s": 0.06,
    "forward_s": 0.01,
    "backward_s": 0.02,
    "optimizer_s": 0.005,
    "backward_n": 4,
    "reads_n": 3,
    "reads_s": 0.001,
    "sync_n": 0.5,
    "samples_n": 8,
    "cpu_s": 0.15,
    "gc_s": 0.0002,
    "h2d_n": 2,
    "h2d_bytes": 3 * 2**20,
    "h2d_s": 0.004,
    "h2d_pinned_n": 1,
    "loader_starts_s": 0.001,
    "gpu_n": 0.5,
    "gpu_s": 0.02,
}


def figures(text: str, window: Window | None = WINDOW) -> ProbeEvidence:
    found = evidence_of(read_probe(text), window)
    assert found is not None
    return found


def test_the_figures_of_a_steady_training() -> None:
    found = figures(training(step_s=0.1, steps=300, every=5, per_step=PER_STEP))
    assert (found.steps, found.span_steps, found.start_s, found.end_s) == (300, 100, 10, 20)
    assert found.steps_per_s == pytest.approx(10)
    assert found.samples_per_s == pytest.approx(80)
    assert (found.step_time_p50_s, found.step_time_p95_s) == pytest.approx((0.1, 0.1), rel=0.03)
    assert found.data_wait_share == pytest.approx(0.6)
    shares = found.forward_share, found.backward_share, found.optimizer_share
    assert shares == pytest.approx((0.1, 0.2, 0.05))
    assert (found.blocking_reads_per_step, found.blocking_read_share) == pytest.approx((3, 0.01))
    assert (found.syncs_per_step, found.backwards_per_step) == pytest.approx((0.5, 4))
    assert (found.cpu_cores, found.gc_share, found.loader_start_share) == pytest.approx((1.5, 0.002, 0.01))
    assert found.h2d is not None
    assert (found.h2d.count, found.h2d.mb, found.h2d.seconds) == pytest.approx((200, 300, 0.4))
    assert found.h2d.pinned_share == pytest.approx(0.5)
    assert found.d2h is None


def test_the_devices_time_is_that_of_the_iterations_that_were_timed() -> None:
    """Every other one was, 40 ms each, of 100 ms."""
    assert figures(training(per_step=PER_STEP)).device_time_share == pytest.approx(0.4)


def test_fetches_that_training_does_not_wait_for_are_told_apart() -> None:
    found = figures(training(step_s=0.1, per_step={"eval_data_s": 0.03, "background_data_s": 0.09}))
    assert (found.eval_data_share, found.background_data_share) == pytest.approx((0.3, 0.9))
    assert found.data_wait_share is None


def test_what_nobody_told_is_unknown() -> None:
    found = figures(training())
    unknown = (found.data_wait_share, found.samples_per_s, found.h2d, found.gc_share, found.peak_host_mb)
    assert unknown == (None, None, None, None, None)


def test_without_a_window_its_own_steady_iterations_are_summarised() -> None:
    text = training(begins=2, step_s=0.01, steps=200, every=50, per_step={"data_s": 0.006})
    found = figures(text, None)
    assert (found.start_s, found.end_s, found.span_steps) == (2.5, 4.0, 150)
    assert found.data_wait_share == pytest.approx(0.6)


def test_a_process_that_only_loads_has_no_rates() -> None:
    found = figures(
        start() + line("beat", 1, 3, steps=0, counters={"data_s": 1}) + line("off", 1, 4, why="x")
    )
    assert (found.steps, found.steps_per_s, found.start_s, found.off) == (0, None, None, "x")


def test_few_iterations_have_no_percentiles() -> None:
    slow = training(begins=2, step_s=2.0, steps=20, every=1)
    few = figures(slow, Window(start_s=10, end_s=17, samples=30, rule="steps"))
    some = figures(slow, Window(start_s=10, end_s=24, samples=30, rule="steps"))
    assert (few.step_time_p50_s, few.step_time_p95_s) == (None, None)
    assert some.step_time_p50_s == pytest.approx(2, rel=0.03)
    assert some.step_time_p95_s is None


def test_the_first_and_the_last_iteration() -> None:
    found = figures(training(begins=2, step_s=0.1, steps=100))
    assert (found.first_step_s, found.last_step_s) == pytest.approx((2.1, 12.0))
    assert figures(start(at=2) + beat(1, 3, 10)).first_step_s == pytest.approx(2.1)
    assert figures(start()).first_step_s is None


def test_peaks_and_retries_are_the_whole_runs() -> None:
    facts = line("facts", 1, 3, facts={"peak_host_mb": 812.5, "peak_device_mb": 3000, "device": "cuda:0"})
    found = figures(training(per_step={"alloc_retries": 0.01}) + facts)
    assert (found.peak_host_mb, found.peak_device_mb, found.alloc_retries) == (812.5, 3000, 3)
    assert found.facts["device"] == "cuda:0"


def test_samples_are_those_of_all_ranks() -> None:
    texts = [
        training(10 + rank, rank=rank, world_size=2, per_step={"samples_n": 8, "data_s": 0.01 + 0.02 * rank})
        for rank in (1, 0)
    ]
    found = figures("".join(texts))
    assert (found.pid, found.rank, found.world_size) == (10, 0, 2)
    assert found.samples_per_s == pytest.approx(160)
    assert [(r.pid, r.rank, r.steps) for r in found.ranks] == [(10, 0, 300), (11, 1, 300)]
    assert [r.data_wait_share for r in found.ranks] == pytest.approx([0.1, 0.3])
    assert found.data_wait_share == pytest.approx(0.1)


def test_other_ranks_are_seen_at_the_moments_of_the_first() -> None:
    """They tell more rarely: one of a short run has no two beats after its warm-up."""
    rare = training(11, rank=1, world_size=2, steps=50, every=40, per_step={"data_s": 0.03})
    found = figures(training(10, rank=0, world_size=2, steps=50, every=5) + rare, None)
    assert (found.start_s, found.end_s) == pytest.approx((3.0, 7.0))
    assert found.ranks[1].data_wait_share == pytest.approx(0.3)


def test_a_rank_that_tells_no_samples_leaves_them_unknown() -> None:
    silent = training(11, rank=1, world_size=2)
    assert figures(training(10, rank=0, world_size=2, per_step=PER_STEP) + silent).samples_per_s is None


def test_a_training_that_was_killed_has_figures() -> None:
    text = training(step_s=0.1, steps=300, per_step=PER_STEP, ends=False)
    found = figures(text[:-40])
    assert found.steps == 295
    assert found.data_wait_share == pytest.approx(0.6)


def test_nothing_is_made_of_nothing() -> None:
    assert evidence_of(None, WINDOW) is None
    assert evidence_of(read_probe(start(version=9)), WINDOW) is None


def _uneven(step_s: float, long_s: float, every: int, steps: int = 300) -> str:
    """Every so many iterations one is long; a beat each."""
    lines, at = [start(1, 2.0)], 2.0
    for done in range(1, steps + 1):
        took = long_s if done % every == 0 else step_s
        at += took
        lines.append(line("beat", 1, at, steps=done, counters={}, hist={bucket(took): 1}, opt={"0": done}))
    return "".join(lines)


@pytest.mark.parametrize(
    ("long_s", "every", "share", "one_in"),
    [(1.1, 10, 0.5, 10), (0.6, 50, 0.0909, 50), (0.14, 10, 0.0, None)],
)
def test_time_is_lost_in_steps_far_above_the_median(
    long_s: float, every: int, share: float, one_in: float | None
) -> None:
    """Of steps of 100 ms."""
    found = figures(_uneven(0.1, long_s, every), None)
    # The window may begin or end a long step earlier or later.
    assert found.stall_share == pytest.approx(share, rel=0.1)
    assert found.stall_every_steps == (None if one_in is None else pytest.approx(one_in, rel=0.05))


def test_stalls_of_a_few_steps_are_not_known() -> None:
    found = figures(
        training(step_s=2.0, steps=10, every=1), Window(start_s=12, end_s=18, samples=9, rule="steps")
    )
    assert (found.stall_share, found.stall_every_steps) == (None, None)
