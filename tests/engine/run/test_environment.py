"""What counts as a difference between the surroundings of two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign
from tests.support.tampering import reseal

from gpudebug.core.records import DeviceInfo, RunNode, RunRecord
from gpudebug.engine.run.environment import Surroundings, differences, knobs_in, ranges
from gpudebug.engine.run.environment import recorded as recorded_surroundings

GPU = DeviceInfo(
    index=0,
    uuid="GPU-1",
    name="A",
    kind="nvml",
    driver="570",
    clocks_mhz=(1410, 1593),
    power_limit_w=400.0,
)
CPU = DeviceInfo(index=0, uuid="CPU", name="C", kind="cpu", cores=1.0)
KNOBS = {"OMP_NUM_THREADS": "1"}
BEFORE = Surroundings(
    "/usr/bin/python3 3.11.7",
    {"torch": "2.1", "numpy": "2.0"},
    "host",
    2.0,
    (GPU,),
    KNOBS,
    variables={"PROCS": "0", "UNSET": None},
)


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
        (changed(devices=(GPU.model_copy(update={"driver": None}),)), []),
        (
            changed(devices=(GPU.model_copy(update={"clocks_mhz": (1200, 1593), "power_limit_w": 350.0}),)),
            ["clocks 1410/1593 MHz and 1200/1593 MHz", "power limit 400 W and 350 W"],
        ),
        (changed(knobs={"OMP_NUM_THREADS": "4"}), ["variable OMP_NUM_THREADS 1 and 4"]),
        (changed(knobs={}), ["variable OMP_NUM_THREADS 1 and unset"]),
        (changed(knobs={"OMP_NUM_THREADS": "4"}, meant=frozenset({"OMP_NUM_THREADS"})), []),
        (changed(knobs=None), []),
        (changed(variables={"PROCS": "0", "LATER": "1"}), []),
        (changed(variables={"PROCS": None}), ["variable PROCS 0 and unset"]),
        (changed(variables={"PROCS": "2"}), ["variable PROCS 0 and 2"]),
        (changed(variables={"PROCS": "2"}, meant=frozenset({"PROCS"})), []),
        (changed(interpreter="/usr/bin/python3", packages={}), []),
        (changed(host=None, cpu_quota=None, devices=()), []),
        (Surroundings(), []),
    ],
)
def test_only_what_both_know_can_differ(after: Surroundings, said: list[str]) -> None:
    assert differences(BEFORE, after) == said
    assert bool(differences(after, BEFORE)) == bool(said)


NODE = RunNode(
    name="n0",
    allocation="412",
    nodes=("n0", "n1"),
    boot="b0",
    cores=(0, 1, 2, 3),
    memory_limit_mb=64000.0,
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"allocation": "413"}, []),
        ({"name": "n2", "nodes": ("n2", "n1"), "boot": "b1"}, ["node n0 and n2"]),
        ({"boot": "b1"}, ["node n0 before and after it was started again"]),
        ({"boot": None}, []),
        ({"cores": (4, 5, 6, 8)}, ["cores 0-3 and 4-6,8"]),
        ({"cores": ()}, []),
        ({"nodes": ("n0", "n2")}, ["other nodes n1 and n2"]),
        ({"nodes": ("n0",)}, ["other nodes n1 and none"]),
        ({"nodes": ("n1", "n0")}, []),
        ({"nodes": ()}, []),
        ({"memory_limit_mb": 32000.0}, ["memory limit 64000 MB and 32000 MB"]),
        ({"memory_limit_mb": None}, ["memory limit 64000 MB and none"]),
    ],
)
def test_another_node_and_another_share_of_it_differ(changes: dict[str, Any], said: list[str]) -> None:
    after = changed(node=NODE.model_copy(update=changes))
    assert differences(changed(node=NODE), after) == said
    assert differences(BEFORE, after) == differences(after, BEFORE) == []


def test_two_nodes_of_one_host_are_two_and_a_node_is_one_whatever_its_host_is_called() -> None:
    one = NODE.model_copy(update={"nodes": ("n0",)})
    other = NODE.model_copy(update={"name": "n1", "nodes": ("n1",)})
    assert differences(changed(node=one), changed(node=other)) == ["node n0 and n1"]
    assert differences(changed(node=NODE), changed(node=NODE, host="renamed")) == []
    assert differences(changed(node=NODE), changed(host="renamed")) == ["host host and renamed"]


def test_the_cores_of_a_record_are_written_as_the_kernel_does() -> None:
    assert [ranges(c) for c in ((), (3,), (0, 1, 2), (9, 0, 1, 4))] == ["", "3", "0-2", "0-1,4,9"]


def test_the_gpus_whose_settings_differ_are_named() -> None:
    three = tuple(GPU.model_copy(update={"index": i, "uuid": f"GPU-{i}"}) for i in range(3))
    capped = (*three[:1], *(d.model_copy(update={"power_limit_w": 300.0}) for d in three[1:]))
    newer = tuple(d.model_copy(update={"driver": "580", "link": "PCIe 4 x8"}) for d in capped)
    linked = tuple(d.model_copy(update={"link": "PCIe 4 x16"}) for d in three)
    sides = Surroundings(devices=linked), Surroundings(devices=newer)
    assert differences(*sides) == [
        "driver 570 and 580",
        "power limit 400 W and 300 W (GPU 1, GPU 2)",
        "link PCIe 4 x16 and PCIe 4 x8",
    ]


def test_parts_of_one_gpu_are_named_apart() -> None:
    parts = tuple(GPU.model_copy(update={"index": 0, "uuid": f"MIG-{i}"}) for i in range(2))
    capped = (parts[0], parts[1].model_copy(update={"power_limit_w": 300.0}))
    said = differences(Surroundings(devices=parts), Surroundings(devices=capped))
    assert said == ["power limit 400 W and 300 W (GPU 0 (MIG-1))"]


def test_cores_tell_one_stand_in_from_another() -> None:
    four = CPU.model_copy(update={"cores": 4.0})
    found = differences(Surroundings(devices=(CPU,)), Surroundings(devices=(four,)))
    assert found == ["device CPU with 1 cores and CPU with 4 cores"]


def test_only_variables_that_steer_libraries_are_knobs() -> None:
    env = {
        "OMP_NUM_THREADS": "1",
        "NCCL_P2P_DISABLE": "1",
        "PYTORCH_CUDA_ALLOC_CONF": "x",
        "CUDA_VISIBLE_DEVICES": "0",
        "NCCL_DEBUG": "INFO",
        "HF_TOKEN": "secret",
        "PATH": "/bin",
    }
    assert list(knobs_in(env)) == ["NCCL_P2P_DISABLE", "OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF"]


def test_what_the_change_sets_is_meant_to_differ() -> None:
    record = RunRecord(
        name="0002-h1",
        campaign="c",
        role="h1",
        command="t",
        argv=("t",),
        cwd="/",
        start="now",
        change="--env OMP_NUM_THREADS=4",
        knobs={"OMP_NUM_THREADS": "4"},
    )
    assert recorded_surroundings(record).meant == {"OMP_NUM_THREADS"}
    assert differences(BEFORE, recorded_surroundings(record)) == []


def test_a_variable_of_the_shell_outdates_the_baseline(recorded: Campaign) -> None:
    recorded.propose("--env OMP_NUM_THREADS=3")
    answer = recorded.json("next", env={"MKL_NUM_THREADS": "5"})
    assert answer["action"] == "recorded_baseline"
    assert "variable MKL_NUM_THREADS unset and 5" in answer["why"]
    answer = recorded.json("next", env={"MKL_NUM_THREADS": "5"})
    assert answer["action"] == "tested"
    parity = next(g for g in answer["gates"] if g["name"] == "environment_parity")
    assert parity["result"] == "pass"


def edit_record(folder: Path, **facts: Any) -> None:
    """The run as it would have been recorded elsewhere."""
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))
    reseal(folder)


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


def test_an_nvlink_that_is_down_is_named_by_its_gpu() -> None:
    eight = tuple(GPU.model_copy(update={"index": i, "uuid": f"GPU-{i}", "nvlinks": 18}) for i in range(8))
    hurt = tuple(d.model_copy(update={"nvlinks": 17}) if d.index == 5 else d for d in eight)
    unknown = tuple(d.model_copy(update={"nvlinks": None}) for d in eight)
    assert differences(Surroundings(devices=eight), Surroundings(devices=hurt)) == [
        "NVLinks 18 and 17 (GPU 5)"
    ]
    assert differences(Surroundings(devices=unknown), Surroundings(devices=hurt)) == []


def test_devices_of_a_node_that_was_not_sampled_are_named_with_the_reason() -> None:
    other = GPU.model_copy(update={"uuid": "GPU-2", "node": "n1"})
    both = changed(devices=(GPU, other), node=RunNode(name="n0"))
    one = changed(node=RunNode(name="n0", unsampled={"n1": "its sampler did not answer"}))
    why = "; those of node n1 are unknown: its sampler did not answer"
    assert differences(both, one) == [f"device GPU-1, GPU-2 and GPU-1{why}"]
    assert differences(one, both) == [f"device GPU-1 and GPU-1, GPU-2{why}"]
    assert differences(one, one) == []
