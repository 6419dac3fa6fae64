from __future__ import annotations

import pytest
from tests.support.diagnoses import cause, facts

from gpudebug.core.answers.diagnosis import Missing
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.rank import diagnose

WAITS = cause(
    layer="cached_batch",
    signature=[
        {"signal": "data_wait_share", "above": 0.2, "weight": 8},
        {"signal": "mean_kernel_us", "below": 10, "weight": 2},
    ],
)


def missing(known: DiagnosisFacts) -> dict[str, Missing]:
    return {one.what: one for one in diagnose([WAITS], known).missing}


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
    found = {one.what for one in diagnose([WAITS, saves], facts(data_wait_share=0.5, **used)).missing}
    assert "layer test cached-batch" not in found
    assert "layer test quiet" in found
