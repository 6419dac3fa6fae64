"""CUDA_VISIBLE_DEVICES is read as CUDA reads it."""

from __future__ import annotations

from typing import Any

import pytest

from gpudebug.core.errors import DeviceError
from gpudebug.edges.devices.visible import choose, hides_all


def gpu(index: int, uuid: str, name: str = "A100", **more: Any) -> dict[str, Any]:
    return {"index": index, "uuid": uuid, "name": name, "missing": {}, **more}


PARTS = [
    {
        "index": 2,
        "uuid": "MIG-77aa",
        "name": "A100 MIG",
        "gpu_instance": 1,
        "compute_instance": 0,
        "missing": {},
    },
    {
        "index": 2,
        "uuid": "MIG-77bb",
        "name": "A100 MIG",
        "gpu_instance": 2,
        "compute_instance": 0,
        "missing": {},
    },
]
GPUS = [
    gpu(0, "GPU-aaaa1111"),
    gpu(1, "GPU-aabb2222"),
    gpu(2, "GPU-cccc3333", mig=True, mig_devices=PARTS),
    gpu(3, "GPU-dddd4444"),
]


def uuids(text: str | None, **env: str) -> list[str]:
    found = choose(GPUS, env if text is None else {**env, "CUDA_VISIBLE_DEVICES": text})
    return [device["uuid"] for device in found.devices]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ["GPU-aaaa1111", "GPU-aabb2222", "MIG-77aa", "GPU-dddd4444"]),
        ("1", ["GPU-aabb2222"]),
        ("3,0", ["GPU-dddd4444", "GPU-aaaa1111"]),
        (" 1 , 0 ", ["GPU-aabb2222", "GPU-aaaa1111"]),
        ("0,-1,1", ["GPU-aaaa1111"]),
        ("1,9,0", ["GPU-aabb2222"]),
        ("0,x,1", ["GPU-aaaa1111"]),
        ("1st", ["GPU-aabb2222"]),
        ("GPU-dddd4444", ["GPU-dddd4444"]),
        ("GPU-d", ["GPU-dddd4444"]),
        ("GPU-aaaa,GPU-dd", ["GPU-aaaa1111", "GPU-dddd4444"]),
        ("GPU-dd,GPU-aa", ["GPU-dddd4444"]),
        ("2", ["MIG-77aa"]),
        ("MIG-77bb", ["MIG-77bb"]),
        ("MIG-GPU-cccc3333/2/0", ["MIG-77bb"]),
    ],
)
def test_the_devices_that_a_program_would_see(text: str | None, expected: list[str]) -> None:
    assert uuids(text) == expected


@pytest.mark.parametrize("text", ["9", "GPU-zz", "GPU-aa", "MIG-nope", "MIG-GPU-cccc3333/9/9", "none", "0,0"])
def test_entries_that_leave_no_device_are_an_error_that_names_the_variable(text: str) -> None:
    with pytest.raises(DeviceError) as caught:
        uuids(text)
    assert "CUDA_VISIBLE_DEVICES" in caught.value.message
    assert caught.value.next


def test_the_error_offers_what_there_is() -> None:
    with pytest.raises(DeviceError) as caught:
        uuids("9")
    assert "3 (GPU-dddd4444)" in str(caught.value)


@pytest.mark.parametrize(
    ("env", "hidden"),
    [
        ({}, False),
        ({"CUDA_VISIBLE_DEVICES": ""}, True),
        ({"CUDA_VISIBLE_DEVICES": " "}, True),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, True),
        ({"CUDA_VISIBLE_DEVICES": "0"}, False),
        ({"CUDA_VISIBLE_DEVICES": "9"}, False),
    ],
)
def test_hiding_all(env: dict[str, str], hidden: bool) -> None:
    assert hides_all(env) is hidden


@pytest.mark.parametrize(
    ("text", "order", "noted"),
    [("1", None, True), ("1", "PCI_BUS_ID", False), ("GPU-b", None, False), (None, "PCI_BUS_ID", False)],
)
def test_different_models_chosen_by_index_are_remarked_on(
    text: str | None, order: str | None, noted: bool
) -> None:
    env = {"CUDA_VISIBLE_DEVICES": text, "CUDA_DEVICE_ORDER": order}
    found = choose([gpu(0, "GPU-a", "A100"), gpu(1, "GPU-b", "T4")], {k: v for k, v in env.items() if v})
    assert any("PCI_BUS_ID" in note for note in found.notes) is noted


def test_several_gpus_and_no_choice_are_remarked_on() -> None:
    assert "all 2 GPUs" in choose(GPUS[:2], {}).notes[0]
    assert choose(GPUS[:1], {}).notes == ()


def test_a_whole_gpu_in_mig_mode_stands_for_its_first_part_and_says_so() -> None:
    assert "MIG-77aa" in choose(GPUS, {"CUDA_VISIBLE_DEVICES": "2"}).notes[0]


def test_mig_mode_without_a_part_is_an_error() -> None:
    with pytest.raises(DeviceError, match="no compute instance"):
        choose([gpu(0, "GPU-a", mig=True, mig_devices=[])], {})
