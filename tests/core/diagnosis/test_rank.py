from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.diagnoses import cause, facts, stacks

from gpudebug.core.answers.diagnosis import Missing
from gpudebug.core.catalogue.frameworks import StartedProgram
from gpudebug.core.diagnosis import model
from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.diagnosis.model import Diagnosis, DiagnosisFacts, Ranked
from gpudebug.core.diagnosis.rank import LARGE, Ceiling, bound, ceiling, cost, diagnose, shares, shown
from gpudebug.engine.run import catalogue

WAITS = cause(
    "dl-waits",
    waits=True,
    signature=[
        {"signal": "data_wait_share", "above": 0.2, "weight": 8},
        {"signal": "loader_workers", "equals": 0, "weight": 3},
        {"signal": "step_time_spread", "below": 1.5, "weight": 1.3},
        {"signal": "log_data_share", "above": 0.2, "weight": 2},
        {"signal": "layer_cached_batch_ratio", "above": 1.2, "weight": 3, "otherwise": 0.2},
    ],
    exposed=[{"signal": "data_wait_share"}],
)
READS = cause(
    "sync-item",
    signature=[
        {"signal": "blocking_read_share", "above": 0.2, "weight": 6},
        {"signal": "blocking_reads_per_step", "above": 5, "weight": 6, "otherwise": 0.3},
    ],
    exposed=[{"signal": "blocking_read_share"}],
)
DEBUG = cause("debug-mode", gate=True, signature=[{"signal": "anomaly", "equals": True, "weight": 20}])
ALL = (WAITS, READS, DEBUG)


def test_the_cause_with_the_signs_is_first_with_its_facts_and_ceiling() -> None:
    known = facts(
        gpu_util=30.0, device_stand_in=False, steps_per_s=10.0, data_wait_share=0.6, loader_workers=0,
        log_data_share=0.6, step_time_spread=1.1, blocking_read_share=0.01, blocking_reads_per_step=1,
    )  # fmt: skip
    found = diagnose(ALL, known)
    first = found.causes[0]
    assert first.id == "dl-waits"
    assert first.probability > 0.9
    assert first.speaks_for == (
        "training waits 60% of its time for batches",
        "loader workers: 0",
        "the log's data time is 60% of a step",
    )
    assert first.speaks_against == ()
    assert (first.ceiling_pp, first.expected_util) == (pytest.approx(45.0), pytest.approx(75.0))
    assert (first.ceiling_ratio, first.ceiling_steps_per_s) == (pytest.approx(2.5), pytest.approx(25.0))
    assert next(c for c in found.causes if c.id == "sync-item").speaks_against == (
        "blocking reads of tensors: 1 a step",
    )
    assert (found.gates, found.abstains) == ((), None)


def test_on_the_stand_in_only_what_waits_can_show_in_utilisation() -> None:
    known = facts(gpu_util=50.0, device_stand_in=True, data_wait_share=0.5, blocking_read_share=0.5)
    by_id = {c.id: c for c in diagnose(ALL, known).causes}
    assert by_id["dl-waits"].ceiling_pp == pytest.approx(50.0)
    assert by_id["sync-item"].ceiling_pp is None
    assert by_id["sync-item"].ceiling_ratio == pytest.approx(2.0)


def test_where_the_mean_of_several_gpus_misleads_the_ceiling_is_of_what_tells() -> None:
    """Seven GPUs that wait for one are busy: their mean has hardly any room."""
    known = facts(gpu_util=88.0, device_stand_in=False, data_wait_share=0.6, loader_workers=0)
    by_mean = diagnose(ALL, known).causes[0]
    telling = replace(known, signals={**known.signals, "telling_util": 20.0})
    found = diagnose(ALL, telling).causes[0]
    assert (by_mean.ceiling_pp, by_mean.expected_util) == (pytest.approx(12.0), 100.0)
    assert (found.ceiling_pp, found.expected_util) == (pytest.approx(30.0), pytest.approx(50.0))
    assert found.ceiling_ratio == by_mean.ceiling_ratio


def test_of_a_full_device_throughput_alone_is_offered() -> None:
    known = facts(gpu_util=90.0, device_stand_in=False, steps_per_s=10.0, data_wait_share=0.5)
    below, full = (diagnose(ALL, known, full=full).causes[0] for full in (False, True))
    assert (below.ceiling_pp, below.expected_util) == (pytest.approx(10.0), 100.0)
    assert (full.ceiling_pp, full.expected_util) == (None, None)
    assert (full.ceiling_ratio, full.ceiling_steps_per_s) == (pytest.approx(2.0), pytest.approx(20.0))
    assert full.probability == below.probability


def test_a_gate_that_is_definite_stands_apart_and_is_ranked() -> None:
    found = diagnose(ALL, facts(anomaly=True, data_wait_share=0.02))
    assert [g.id for g in found.gates] == ["debug-mode"]
    assert found.causes[0].id == "debug-mode"
    assert diagnose(ALL, facts(anomaly=False)).gates == ()


def test_a_rejection_brings_the_next_cause_to_the_front() -> None:
    known = facts(data_wait_share=0.4, loader_workers=0, blocking_read_share=0.3, blocking_reads_per_step=9)
    assert diagnose(ALL, known).causes[0].id == "dl-waits"
    rejected = model.Tested(("dl-waits",), "REJECTED", 0.9, 1)
    assert diagnose(ALL, known, [rejected]).causes[0].id == "sync-item"
    old = model.Tested(("dl-waits",), "REJECTED", 0.9, 1, before_accepting=True)
    assert diagnose(ALL, known, [old]).causes[0].id == "dl-waits"


def test_what_is_ruled_out_is_not_named() -> None:
    needs = cause("dl-few-workers", requires=[{"signal": "loader_workers", "above": 0}])
    assert [c.id for c in diagnose((needs, WAITS), facts(loader_workers=0)).causes] == ["dl-waits"]


def test_equal_causes_stand_in_the_order_of_their_ids() -> None:
    assert [c.id for c in diagnose((cause("b"), cause("c"), cause("a")), facts()).causes] == ["a", "b", "c"]


SHARES = st.none() | st.floats(0, 1)


@given(
    SHARES, SHARES, st.none() | st.floats(0, 100), st.none() | st.integers(0, 8), st.none() | st.booleans()
)
def test_probabilities_are_a_distribution_with_room_for_none(
    wait: float | None, read: float | None, util: float | None, workers: int | None, stand_in: bool | None
) -> None:
    signals: dict[str, Any] = {
        "data_wait_share": wait, "blocking_read_share": read, "gpu_util": util, "loader_workers": workers,
        "device_stand_in": stand_in,
    }  # fmt: skip
    found = diagnose(ALL, facts(**{k: v for k, v in signals.items() if v is not None}))
    chances = [c.probability for c in found.causes]
    assert all(0.0 < p < 1.0 for p in chances)
    assert sum(chances) < 1.0
    costs = [cost(c) for c in found.causes]
    assert costs == sorted(costs, reverse=True)
    assert all(c.ceiling_pp is None or 0.0 <= c.ceiling_pp <= 100.0 for c in found.causes)


@given(st.floats(0.05, 1), st.floats(0.05, 1))
def test_a_longer_wait_never_ranks_lower(one: float, other: float) -> None:
    places = []
    for wait in sorted((one, other)):
        known = facts(data_wait_share=wait, blocking_read_share=0.3, blocking_reads_per_step=9)
        places.append([c.id for c in diagnose(ALL, known).causes].index("dl-waits"))
    assert places[1] <= places[0]


def test_the_code_that_a_cause_shows_in() -> None:
    seen = stacks(
        ("data", "t.py:main d.py:Set.to_square PIL/ImageOps.py:pad", 7, 3.0, 3.0),
        ("other", "t.py:main", 2, 1.0, 1.0),
        code={"d.py:Set.to_square:7": "return pad(photo, side)", "t.py:main:2": "pass"},
    )
    resizes = cause("pp-resize-cpu", signature=[{"stack": "PIL/", "above": 0.2, "weight": 5}])
    sleeps = cause("dl-storage", signature=[{"code": "sleep", "above": 0.2, "weight": 5}])
    assert shown([resizes, sleeps, WAITS], facts(stacks=seen, data_wait_share=0.9)) == {
        "pp-resize-cpu": "Set.to_square return pad(photo, side)"
    }


def known_by(signal: str, id: str, **more: Any) -> Any:
    return cause(
        id, signature=[{"signal": signal, "above": 0.01, "weight": 25}], exposed=[{"signal": signal}], **more
    )


def test_what_takes_little_is_not_likely_however_sure_it_is_that_it_is_there() -> None:
    (small,) = diagnose([known_by("gc_share", "py-gc")], facts(gc_share=0.069, stacks_s=9.0)).causes
    (large,) = diagnose([known_by("gc_share", "py-gc")], facts(gc_share=0.4, stacks_s=9.0)).causes
    assert small.probability < 0.35
    assert large.probability > 0.9
    assert bound(0.0) > 0.0
    assert bound(LARGE) == bound(None) == 1.0


def test_causes_stand_in_the_order_of_what_they_cost() -> None:
    causes = [known_by("gc_share", "py-gc", prior={"default": 3}), known_by("data_wait_share", "dl-waits")]
    found = diagnose(causes, facts(gc_share=0.2, data_wait_share=0.8, stacks_s=9.0)).causes
    assert [c.id for c in found] == ["dl-waits", "py-gc"]


CROWD = known_by("starved_share", "cpu-contention", gate=True, group="hardware")


def test_a_crowded_host_stands_behind_a_likely_cause_and_takes_nothing_from_it() -> None:
    own = known_by("gc_share", "py-gc")
    alone = diagnose([own], facts(gc_share=0.3, stacks_s=9.0)).causes[0]
    found = diagnose([own, CROWD], facts(gc_share=0.3, starved_share=0.7, stacks_s=9.0))
    assert [c.id for c in found.causes] == ["py-gc", "cpu-contention"]
    assert found.causes[0].probability == alone.probability
    assert [g.id for g in found.gates] == ["cpu-contention"]
    small = diagnose([own, CROWD], facts(gc_share=0.01, starved_share=0.7, stacks_s=9.0))
    assert small.causes[0].id == "cpu-contention"
    assert small.abstains is not None


def test_a_crowded_host_stands_before_what_is_hardly_likely() -> None:
    own, hardly = known_by("gc_share", "py-gc"), known_by("hot_share", "zz-small")
    known = facts(gc_share=0.3, hot_share=0.01, starved_share=0.7, stacks_s=9.0)
    found = diagnose([own, hardly, CROWD], known)
    assert [c.id for c in found.causes] == ["py-gc", "cpu-contention", "zz-small"]


def test_no_function_speaks_both_for_and_against() -> None:
    steps = cause(
        "env-step",
        signature=[
            {"code": "env", "above": 0.1, "weight": 4},
            {"stack": "t.py:main", "state": "waiting", "above": 0.5, "weight": 2, "otherwise": 0.5},
            {"signal": "gc_share", "below": 0.5, "weight": 0.5},
        ],
    )
    seen = stacks(("other", "t.py:main", 7, 5.0, 4.0), code={"t.py:main:7": "env.step()"})
    (found,) = diagnose([steps], facts(stacks=seen, gc_share=0.1, stacks_s=5.0)).causes
    assert found.speaks_for == ("100% of the time in t.py:7 main (running): `env.step()`",)
    assert found.speaks_against == ("garbage collection takes 10% of the time",)


SEEN = Path(__file__).parents[2] / "data" / "why"
"""What `gpudebug why` recorded of programs of others on two crowded cores, each with a slowdown that a user
could have made."""
CATALOGUE = catalogue.load(None).causes
FIRST = {
    "hf-checkpoint": "checkpoint",
    "hf-tokenise": "pp-tokenise",
    "inference-images": "no-batching",
    "jax-pipeline": "pp-augment",
    "jax-shapes": "recompile",
    "lightning-logging": "logging",
    "lightning-validation": "eval-frequent",
    "timm-workers": "dl-no-workers",
    "torchrun-threads": "dl-oversubscribed",
    "video-frames": "dl-video-decode",
}


def recorded(name: str) -> model.Diagnosis:
    seen = json.loads(gzip.decompress((SEEN / f"{name}.json.gz").read_bytes()))
    record = seen["record"]
    return diagnose(
        CATALOGUE,
        facts_of(
            [seen["evidence"]], [record],
            StartedProgram(record["argv"], record["framework"], record["kind"]),
        ),
    )  # fmt: skip


@pytest.mark.parametrize(("name", "cause"), FIRST.items(), ids=FIRST)
def test_what_slows_a_program_of_others_is_first(name: str, cause: str) -> None:
    found = recorded(name)
    assert found.causes[0].id == cause
    assert found.abstains is None


def test_a_healthy_program_beside_others_names_no_cause_of_its_own() -> None:
    found = recorded("hf-healthy")
    assert found.abstains is not None
    assert [cause.id for cause in found.causes[:1]] == ["cpu-contention"]


def test_what_many_short_stacks_of_a_trainer_cost_is_what_the_stopwatch_says() -> None:
    """15.2 steps a second without checkpoints, 11.1 with one after every second step: 1.37x."""
    first = recorded("hf-checkpoint").causes[0]
    assert first.ceiling_ratio is not None
    assert 1.2 < first.ceiling_ratio < 1.55


RANKS = ("straggler", "comm-exposed", "metric-sync")
DDP = "parallel/distributed.py:DistributedDataParallel"


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_ddp_around_the_forward_is_no_sign_of_a_wait_for_ranks(device: str) -> None:
    """A healthy training: a GPU's backward pass is slept through in any case."""
    waits = 0.0 if device == "cpu" else 4.0
    healthy = stacks(
        ("forward", f"t.py:train {DDP}.forward {DDP}._run_ddp_forward t.py:net", 7, 5.0, 5.0),
        ("backward", "t.py:train", 8, 4.0, 4.0 - waits),
        ("optimizer", "t.py:train", 9, 1.0, 1.0),
    )
    probe = {"steps": 500, "world_size": 4, "facts": {"device": device}}
    run = {"run": "a", "utilisation": 60.0, "stacks": {"training": healthy.model_dump()}, "probe": probe}
    devices = [{"uuid": "CPU" if device == "cpu" else "GPU-1"}]
    found = {cause.id: cause for cause in diagnose(CATALOGUE, facts_of([{**run, "devices": devices}])).causes}
    for name in RANKS:
        assert found[name].speaks_for == ()
        assert found[name].probability < 0.02


@pytest.mark.parametrize(
    ("exposed", "util", "rate", "shows", "expected"),
    [
        (0.5, 40.0, 10.0, True, Ceiling(40.0, 80.0, 2.0, 20.0)),
        (0.5, 40.0, 10.0, False, Ceiling(None, None, 2.0, 20.0)),
        (0.8, 40.0, None, True, Ceiling(60.0, 100.0, 5.0, None)),
        (0.0, 40.0, 10.0, True, Ceiling(0.0, 40.0, 1.0, 10.0)),
        (None, 40.0, 10.0, True, Ceiling()),
        (0.5, None, None, True, Ceiling(None, None, 2.0, None)),
        (1.0, 1.0, None, True, Ceiling(19.0, 20.0, 20.0, None)),
    ],
)
def test_what_a_fix_brings_at_most(
    exposed: float | None, util: float | None, rate: float | None, shows: bool, expected: Ceiling
) -> None:
    found = ceiling(exposed, util, rate, shows=shows)
    for name, wanted in vars(expected).items():
        assert getattr(found, name) == (None if wanted is None else pytest.approx(wanted)), name


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 100))
def test_more_exposed_time_never_promises_less(one: float, other: float, util: float) -> None:
    less, more = (ceiling(share, util, 5.0, shows=True) for share in sorted((one, other)))
    assert less.pp is not None and more.pp is not None and less.util is not None and more.util is not None
    assert 0.0 <= less.pp <= more.pp + 1e-9
    assert util <= less.util + 1e-9 <= more.util + 2e-9 <= 100.0 + 3e-9
    assert 1.0 <= (less.ratio or 0.0) <= (more.ratio or 0.0) <= 20.0 + 1e-6


SIGN = {"above": 0.5, "weight": 6}
WAITS_of_abstention = cause(
    signature=[{"signal": "data_wait_share", "above": 0.2, "weight": 8, "otherwise": 0.5}],
    exposed=[{"signal": "data_wait_share"}],
)


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (facts(data_wait_share=0.6), None),
        (DiagnosisFacts(), "no run of the workload has evidence yet"),
        (facts(gpu_util=20.0, absent={"probe": "`probe: false`"}), "the evidence is thin: `probe: false`"),
        (facts(gpu_util=20.0), "the evidence is thin: nothing shows where the time goes"),
        (facts(data_wait_share=0.01), "nothing in the catalogue explains idling here"),
        (facts(log_data_share=0.3), "nothing in the catalogue explains idling here"),
        (
            facts(data_wait_share=0.5, absent={"steps": "too short: 4 steps were seen"}),
            "too short: 4 steps were seen",
        ),
    ],
)
def test_when_no_cause_is_named(known: DiagnosisFacts, why: str | None) -> None:
    found = diagnose([WAITS_of_abstention], known).abstains
    assert (found is None) if why is None else (found is not None and found.startswith(why))


def test_many_causes_of_which_none_stands_out() -> None:
    signature: list[dict[str, Any]] = [{"signal": "data_wait_share", "above": 0.2, "weight": 8}]
    many = [cause(f"cause-{n:02}", signature=signature) for n in range(20)]
    found = diagnose(many, facts(data_wait_share=0.6))
    assert found.abstains == "no cause stands out: the most probable, cause-00, has 5%"


def test_the_cause_that_does_not_stand_out_need_not_be_the_most_probable() -> None:
    vague = [cause(f"vague-{n:02}", prior={"default": 400}) for n in range(9)]
    found = diagnose([*vague, WAITS_of_abstention], facts(data_wait_share=0.3))
    assert max(found.causes, key=lambda c: c.probability).id == "vague-00"
    assert found.abstains is not None
    assert found.abstains.startswith(
        "no cause stands out: the most probable that is worth a test, dl-waits, has "
    )


def test_what_others_do_on_the_host_is_no_cause_of_the_workloads_own() -> None:
    crowd = cause(
        "cpu-contention", gate=True, group="hardware", signature=[{**SIGN, "signal": "foreign_cpu"}]
    )
    debug = cause("debug-mode", gate=True, group="python", signature=[{**SIGN, "signal": "gc_share"}])
    known = facts(foreign_cpu=80.0, data_wait_share=0.01, gc_share=0.9)
    found = diagnose([crowd], known)
    assert found.abstains is not None
    assert [g.id for g in found.gates] == ["cpu-contention"]
    assert diagnose([crowd, debug], known).abstains is None


WAITS_of_missing_evidence = cause(
    layer="cached_batch",
    signature=[
        {"signal": "data_wait_share", "above": 0.2, "weight": 8},
        {"signal": "mean_kernel_us", "below": 10, "weight": 2},
    ],
)


def missing(known: DiagnosisFacts) -> dict[str, Missing]:
    return {one.what: one for one in diagnose([WAITS_of_missing_evidence], known).missing}


def test_what_would_tell_more_and_how_to_record_it() -> None:
    found = missing(
        facts(
            loader_used=True,
            absent={"probe": "`probe: false` in gpudebug.yaml", "stacks": "the same", "log": "no loss"},
        )
    )
    assert "set probe: true" in found["the probe's figures from inside the training"].next
    assert found["steps and loss in the log"].why == "no loss"
    assert found["layer test cached-batch"].next == "gpudebug diagnose --layer cached-batch"
    assert "reference:" in found["a workload with good utilisation here"].next
    assert "stacks of the training thread" not in found


def test_a_trace_is_asked_for_on_a_gpu_where_a_probable_cause_reads_one() -> None:
    wanted = "a trace of some steps"
    assert (
        missing(facts(device_stand_in=False))[wanted].next
        == "gpudebug baseline workload --torch-profile default"
    )
    assert wanted not in missing(facts(device_stand_in=True))
    assert wanted not in missing(facts(device_stand_in=False, trace_busy_share=0.4, mean_kernel_us=5))


def test_nothing_is_missing_where_all_is_there() -> None:
    whole = facts(device_stand_in=True, loader_used=True, layer_cached_batch_ratio=1.0, reference=facts())
    assert missing(whole) == {}


def test_stacks_and_device_say_why_they_are_absent() -> None:
    found = missing(facts(absent={"stacks": "none told", "device": "the window is too short"}))
    assert found["stacks of the training thread"].why == "none told"
    assert found["utilisation of the device"].why == "the window is too short"


def test_a_layer_test_that_could_not_tell_was_made() -> None:
    found = missing(facts(loader_used=True, absent={"layer_cached_batch": "no batch was replayed"}))
    told = found["layer test cached-batch"]
    assert told.why == "it would bound dl-waits: the last one was inconclusive: no batch was replayed"
    assert told.next == "mend that, then gpudebug diagnose --layer cached-batch"


@pytest.mark.parametrize("used", [{"loader_used": False}, {}], ids=["no loader", "unknown"])
def test_a_batch_is_cached_only_where_a_loader_feeds_the_training(used: dict[str, bool]) -> None:
    saves = cause("stalls", layer="quiet", signature=[{"signal": "gc_share", "above": 0.2, "weight": 2}])
    found = {
        one.what
        for one in diagnose([WAITS_of_missing_evidence, saves], facts(data_wait_share=0.5, **used)).missing
    }
    assert "layer test cached-batch" not in found
    assert "layer test quiet" in found


FOUND = Diagnosis(
    causes=(
        Ranked("dl", "", 0.6, exposed=0.5, ceiling_pp=30.0),
        Ranked("sync", "", 0.3, exposed=0.2),
        Ranked("amp", "", 0.05),
    )
)


def test_chance_times_the_share_of_the_time() -> None:
    matches = {1: {"amp": 1.0}, 2: {"dl": 0.9, "sync": 0.5}, 3: {}, 4: {"unknown": 1.0}, 5: {"dl": 1.0}}
    found = shares(FOUND, matches)
    assert found[2] == pytest.approx(0.6 * 0.9 * 0.5 + 0.3 * 0.5 * 0.2)
    assert (found[3], found[4]) == (0.0, 0.0)
    assert found[2] == pytest.approx(found[5]) and found[5] > found[1] > 0.0


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_tests_a_cause_better_never_brings_less(one: float, other: float) -> None:
    found = shares(FOUND, {1: {"dl": min(one, other)}, 2: {"dl": max(one, other)}})
    assert found[1] <= found[2]


def test_hypotheses_stand_as_the_causes_that_they_test() -> None:
    causes = (Ranked("a", "", 0.9, exposed=0.4, ceiling_pp=13.0), Ranked("b", "", 0.6, exposed=0.5))
    found = Diagnosis(causes=causes)
    assert [cost(c) for c in causes] == [pytest.approx(v) for v in (0.36, 0.3)]
    assert shares(found, {2: {"b": 1.0}, 1: {"a": 1.0}}) == {1: pytest.approx(0.36), 2: pytest.approx(0.3)}


def test_threads_of_a_program_without_pytorch_that_fight_for_the_cores_are_a_cause() -> None:
    known = facts(gpu_util=50.0, device_stand_in=True, steps_per_s=20.0, ready_over_cores=1.3)
    found = diagnose(CATALOGUE, known)
    assert (found.causes[0].id, found.abstains) == ("dl-oversubscribed", None)
