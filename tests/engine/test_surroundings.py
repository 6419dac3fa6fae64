"""What counts as a difference between the surroundings of two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign

from gpudebug.core.models import DeviceInfo
from gpudebug.engine.surroundings import Surroundings, differences

GPU = DeviceInfo(index=0, uuid="GPU-1", name="A", kind="nvml", driver="570")
CPU = DeviceInfo(index=0, uuid="CPU", name="C", kind="cpu", cores=1.0)
BEFORE = Surroundings("/usr/bin/python3 3.11.7", {"torch": "2.1", "numpy": "2.0"}, "host", 2.0, (GPU,))


def changed(**facts: Any) -> Surroundings:
    return Surroundings(**{**vars(BEFORE), **facts})


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (BEFORE, []),
        (changed(packages={"torch": "2.2", "numpy": "2.0"}), ["packages torch"]),
        (changed(packages={"torch": "2.1"}), ["packages numpy"]),
        (
            changed(interpreter="/usr/bin/python3 3.12.1"),
            ["interpreter /usr/bin/python3 3.11.7 and /usr/bin/python3 3.12.1"],
        ),
        (changed(host="other"), ["host host and other"]),
        (changed(cpu_quota=4.0), ["CPU quota 2 and 4 cores"]),
        (changed(devices=(GPU.model_copy(update={"uuid": "GPU-2"}),)), ["device GPU-1 and GPU-2"]),
        (changed(devices=(GPU.model_copy(update={"driver": "580"}),)), ["driver 570 and 580"]),
        (changed(interpreter="/usr/bin/python3", packages={}), []),
        (changed(host=None, cpu_quota=None, devices=()), []),
        (Surroundings(), []),
    ],
)
def test_only_what_both_know_can_differ(after: Surroundings, said: list[str]) -> None:
    assert differences(BEFORE, after) == said
    assert bool(differences(after, BEFORE)) == bool(said)


def test_cores_tell_one_stand_in_from_another() -> None:
    four = CPU.model_copy(update={"cores": 4.0})
    found = differences(Surroundings(devices=(CPU,)), Surroundings(devices=(four,)))
    assert found == ["device CPU with 1 cores and CPU with 4 cores"]


def edit_record(folder: Path, **facts: Any) -> None:
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


@pytest.mark.parametrize(
    "facts",
    [{"host": "an-older-host"}, {"packages": {"pip": "0.1"}}, {"cpu_quota": 0.25}],
)
def test_a_baseline_from_elsewhere_is_recorded_anew_before_a_trial(
    recorded: Campaign, facts: dict[str, Any]
) -> None:
    quota = json.loads((recorded.folder / "runs" / "0001-baseline-workload" / "run.json").read_text())[
        "cpu_quota"
    ]
    if "cpu_quota" in facts and quota is None:
        pytest.skip("no CPU quota on this machine, and unknown is no difference")
    edit_record(recorded.folder / "runs" / "0001-baseline-workload", **facts)
    recorded.propose("--set --lr=0.2")
    answer = recorded.json("next")
    assert answer["action"] == "recorded_baseline"
    assert "recorded elsewhere" in answer["why"]
    assert recorded.json("next")["verdict"] == "VALIDATED"
