from __future__ import annotations

from typing import Any

import pytest
from tests.support.diagnoses import cause, facts

from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.rank import diagnose

SIGN = {"above": 0.5, "weight": 6}
WAITS = cause(
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
    found = diagnose([WAITS], known).abstains
    assert (found is None) if why is None else (found is not None and found.startswith(why))


def test_many_causes_of_which_none_stands_out() -> None:
    signature: list[dict[str, Any]] = [{"signal": "data_wait_share", "above": 0.2, "weight": 8}]
    many = [cause(f"cause-{n:02}", signature=signature) for n in range(20)]
    found = diagnose(many, facts(data_wait_share=0.6))
    assert found.abstains == "no cause stands out: the most probable, cause-00, has 5%"


def test_the_cause_that_does_not_stand_out_need_not_be_the_most_probable() -> None:
    vague = [cause(f"vague-{n:02}", prior={"default": 400}) for n in range(9)]
    found = diagnose([*vague, WAITS], facts(data_wait_share=0.3))
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
