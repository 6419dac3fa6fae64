"""What names and categories say."""

from __future__ import annotations

import pytest

from gpudebug.core.trace.events import (
    LOADER,
    OTHER,
    READ,
    Call,
    Names,
    call_of,
    copy_of,
    holds_sync,
    is_communication,
    is_loader,
    is_own,
    is_read,
    is_transfer,
    step_of,
)

CALLS = {
    "cudaLaunchKernel": Call.LAUNCH,
    "cudaLaunchKernelExC": Call.LAUNCH,
    "cuLaunchKernelEx": Call.LAUNCH,
    "hipExtModuleLaunchKernel": Call.LAUNCH,
    "cudaGraphLaunch": Call.GRAPH,
    "runFunction - job_prep_and_submit_for_execution": Call.LAUNCH,
    "cudaMemcpyAsync": Call.COPY,
    "cudaMemsetAsync": Call.COPY,
    "hipMemcpyAsync": Call.COPY,
    "cudaMemcpy": Call.SYNC,
    "hipMemcpyWithStream": Call.SYNC,
    "cudaDeviceSynchronize": Call.SYNC,
    "cudaStreamSynchronize": Call.SYNC,
    "cudaEventSynchronize": Call.SYNC,
    "cuStreamSynchronize": Call.SYNC,
    "hipDeviceSynchronize": Call.SYNC,
    "cudaMalloc": Call.ALLOCATION,
    "cudaFree": Call.ALLOCATION,
    "cudaHostAlloc": Call.ALLOCATION,
    "cuMemCreate": Call.ALLOCATION,
    "cudaEventQuery": Call.OTHER,
    "cudaStreamIsCapturing": Call.OTHER,
    "cudaStreamWaitEvent": Call.OTHER,
}


@pytest.mark.parametrize(("name", "call"), CALLS.items())
def test_runtime_calls(name: str, call: Call) -> None:
    assert call_of(name) is call


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("Memcpy HtoD (Pageable -> Device)", ("HtoD", "pageable")),
        ("Memcpy HtoD (Pinned -> Device)", ("HtoD", "pinned")),
        ("Memcpy DtoH (Device -> Pinned)", ("DtoH", "pinned")),
        ("Memcpy DtoD (Device -> Device)", ("DtoD", None)),
        ("Memcpy HtoD (Host -> Device)", ("HtoD", None)),
        ("Memcpy PtoP (Device -> Device)", ("PtoP", None)),
        ("CopyHostToDevice", ("HtoD", None)),
        ("CopyDeviceToHost", ("DtoH", None)),
        ("Memset (Device)", ("Memset", None)),
        ("something else", ("other", None)),
    ],
)
def test_copies(name: str, copy: tuple[str, str | None]) -> None:
    assert copy_of(name) == copy


@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", True),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", True),
        ("torch/utils/data/dataloader.py(701): __next__", True),
        ("torch/utils/data/dataloader.py(701): __init__", False),
        ("aten::to", False),
    ],
)
def test_loaders(name: str, loader: bool) -> None:
    assert is_loader(name) is loader


def test_what_else_names_mean() -> None:
    assert is_read("aten::item")
    assert is_read("aten::_local_scalar_dense")
    assert not is_read("aten::items")
    assert holds_sync("aten::nonzero")
    assert holds_sync("<built-in method item of Tensor object at 0x7f>") or holds_sync("train.py(3): item")
    assert holds_sync("torch/cuda/__init__.py(983): synchronize")
    assert is_communication("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)")
    assert is_communication("void ncclKernel_AllReduce")
    assert not is_communication("ampere_sgemm_128x64_nn")
    assert is_transfer("dma_request")
    assert is_transfer("Memset (Device)")
    assert not is_transfer("sgemm")
    assert step_of("ProfilerStep#12") == 12
    assert step_of("my ProfilerStep#12") is None


def test_names_are_learnt_once_and_bounded() -> None:
    names = Names(limit=4)
    loader = names.add("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    read = names.add("aten::item")
    assert names.flags[loader] == LOADER
    assert names.flags[read] & READ
    assert not names.full
    assert names.texts[names.add("x" * 5000)] == "x" * 2000
    assert names.full
    assert names.add("one too many") == OTHER
    assert len(names.ids) == 3


def test_an_objects_address_makes_no_name() -> None:
    names = Names()
    method = "<built-in method {} of Tensor object at 0x{:x}>"
    numbers = {names.add(method.format("item", at)) for at in range(0x7F00, 0x7F99)}
    assert len(numbers) == 1
    assert names.add(method.format("cpu", 1)) not in numbers
    assert names.texts[1:] == ["<built-in method item of Tensor>", "<built-in method cpu of Tensor>"]
    assert len(names.ids) == 2


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("/env/gpudebug/training/probe/gpudebug_probe/reads.py(64): counted", True),
        ("C:\\env\\gpudebug_probe\\calls.py(9): <lambda>", True),
        ("/home/me/gpudebug_probe_tests/train.py(5): main", False),
        ("/home/me/train.py(5): gpudebug_probe", False),
    ],
)
def test_the_probes_own_functions(name: str, own: bool) -> None:
    assert is_own(name) is own
