"""From a record of the probe and the window to the figures of a run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.probe_lines import beat, line, start, training

from gpudebug.core.answers.answer import plain
from gpudebug.core.answers.show import ProbeSide
from gpudebug.core.inside.probe import evidence_of
from gpudebug.core.inside.probe.figures import (
    MOST_SITES,
    NEVER_ASKED,
    NO_OPTIMIZER,
    SWITCHED_OFF,
    factor,
    nodes,
    notes,
    reason,
    side,
    together,
)
from gpudebug.core.inside.probe.processes import read_probe
from gpudebug.core.records import DeviceInfo, ProbeEvidence, Window
from gpudebug.core.records.inside import ProbedCopies, ReadSite

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
    "loader_first_s": 0.004,
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
    assert found.loader_restart_share == pytest.approx(0.05)
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


def test_nobody_asked_for_it() -> None:
    assert reason(False, None) == SWITCHED_OFF
    assert reason(None, None) == NEVER_ASKED


def test_the_record_itself_says_why() -> None:
    assert "version 2; this gpudebug reads version 1" in reason(True, read_probe(start(version=2)))
    off = read_probe(line("off", 1, 3, why="OSError: full"))
    assert reason(True, off) == "the probe switched itself off: OSError: full"


CPU = DeviceInfo(index=0, uuid="CPU", name="a processor", kind="cpu")
GPU = DeviceInfo(index=0, uuid="GPU-0", name="a GPU", kind="nvml")
TWO = {"optimizers": [{"index": 0}, {"index": 1}]}


def probe(rate: float | None = 10.0, **more: Any) -> ProbeEvidence:
    return ProbeEvidence(pid=1, steps=300, steps_per_s=rate, **more)


RATES = {
    "the same": (probe(), 10.0, None),
    "nearly": (probe(), 10.9, None),
    "the log does not tell": (probe(), None, None),
    "the probe does not": (probe(None), 10.0, None),
    "four times": (probe(), 39.6, "the log counts 4 steps for each step of the optimizer"),
    "two optimizers": (probe(facts=TWO), 20.0, "each step of the optimizer: there are 2 optimizers"),
    "accumulated": (probe(backwards_per_step=8.0), 80.5, "gradients are accumulated over 8 backward passes"),
    "a third": (probe(), 3.3, "the optimizer steps 3 times for each step of the log"),
    "apart": (probe(), 14.0, "14 steps/s by the log, 10 by the optimizer's steps"),
    "far beyond": (probe(), 5000.0, "count different things"),
}


@pytest.mark.parametrize(("told", "log_rate", "said"), RATES.values(), ids=RATES)
def test_the_rates_of_log_and_probe(told: ProbeEvidence, log_rate: float | None, said: str | None) -> None:
    found = notes(told, log_rate, [CPU])
    assert len(found) == (said is not None)
    assert all(said in note for note in found if said)


@pytest.mark.parametrize(
    ("device", "sampled", "count"),
    [("cpu", [GPU], 1), ("cpu", [CPU], 0), ("cuda:0", [GPU], 0), (None, [GPU], 0), ("cpu", [], 0)],
)
def test_a_training_on_the_cpu_beside_an_idle_gpu(
    device: str | None, sampled: list[DeviceInfo], count: int
) -> None:
    found = notes(probe(facts={"device": device} if device else {}), None, sampled)
    assert len(found) == count
    assert all("runs on the CPU" in note for note in found)


def test_a_probe_that_switched_itself_off_is_noted() -> None:
    assert notes(probe(off="ValueError: no"), 10.0, [CPU]) == (
        "the probe switched itself off: ValueError: no",
    )


@pytest.mark.parametrize(("optimizers", "noted"), [([], True), ([{"name": "SGD"}], False), (None, False)])
def test_steps_without_an_optimizer_are_noted(optimizers: list[dict[str, str]] | None, noted: bool) -> None:
    found = notes(probe(facts={"optimizers": optimizers}), None, [CPU])
    assert found == (NO_OPTIMIZER,) * noted


@given(st.integers(2, 128), st.floats(-0.14, 0.14))
def test_a_whole_factor_is_found_within_what_rates_are_known_to(times: int, error: float) -> None:
    assert factor(times + min(1.0, 0.05 * times / 0.15) * error) == times


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0, 1.04, 1.5, 2.4, 3.5, 7.5, 129.0, 1e9])
def test_other_ratios_are_no_factor(ratio: float) -> None:
    assert factor(ratio) is None


@pytest.mark.parametrize(("second", "noted"), [(0, True), (1, False)], ids=["the same rank", "another"])
def test_a_node_that_trains_on_its_own_is_named(second: int, noted: bool) -> None:
    text = training(1, steps=60, rank=0, world_size=2, node="n0")
    found = nodes(read_probe(text + training(2, steps=50, rank=second, world_size=2, node="n1")))
    assert [note.partition(",")[0] for note in found] == (["n1 trained"] if noted else [])
    assert nodes(None) == ()


def told(**more: Any) -> dict[str, Any]:
    return ProbeEvidence(pid=1, steps=100, **more).model_dump(mode="json")


def site(name: str, count: int, seconds: float) -> ReadSite:
    return ReadSite(site=name, kind="item", device="cpu", count=count, seconds=seconds)


def test_means_of_what_is_known_and_the_largest_of_peaks() -> None:
    found = together(
        [
            told(steps_per_s=10.0, data_wait_share=0.6, peak_host_mb=800.0, facts={"device": "cpu"}),
            told(steps_per_s=12.0, peak_host_mb=900.0, facts={"device": "cuda:0"}, notes=("a", "b")),
            told(steps_per_s=14.0, data_wait_share=0.4, notes=("b",)),
        ]
    )
    assert found is not None
    assert (found.steps_per_s, found.data_wait_share, found.peak_host_mb) == (12, 0.5, 900)
    assert (found.gc_share, found.h2d, found.facts, found.notes) == (None, None, {}, ("a", "b"))


def test_one_run_is_as_it_was_told() -> None:
    run = told(
        steps_per_s=10.0, h2d=ProbedCopies(count=2, mb=3.0, seconds=0.1, pinned_share=0.5), span_steps=7
    )
    found = together([run])
    assert found is not None
    shown = plain(found)
    assert {**run, **shown} == {**run, "sites": []}


def test_sites_of_a_mean_run_by_their_time() -> None:
    many = tuple(site(f"{n}.py:1", 10, 0.01 * n) for n in range(9))
    found = together([told(sites=(site("a.py:1", 100, 1.0), *many)), told(sites=(site("a.py:1", 50, 0.5),))])
    assert found is not None
    assert len(found.sites) == MOST_SITES
    first = found.sites[0]
    assert (first.site, first.count, first.seconds) == ("a.py:1", 75, pytest.approx(0.75))


def test_a_side_whose_runs_tell_nothing_says_why() -> None:
    silent = {"run": "0001-x", "probe": None, "probe_reason": "no"}
    assert side("trial", [silent]) == ProbeSide(part="trial", runs=("0001-x",), figures=None, reason="no")
    assert side("baseline", [{"run": "0001-x"}]).reason is None
    mixed = side("trial", [silent, {"run": "0002-x", "probe": told(steps_per_s=3.0)}])
    assert (mixed.figures and mixed.figures.steps_per_s, mixed.reason) == (3, None)
