"""Memory that a section used: resident memory for real, a GPU's counters as PyTorch gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.profiled import by_name, report_of

from gpudebug.training.profiling import memory

GROWING = """
enable_profiling({options})
held = []
for i in range(3):
    with profile("outer", track_memory={each}):
        with profile("inner", track_memory={each}):
            held.append(bytearray(50 << 20))
        with profile_section("plain"):
            pass
"""


@pytest.mark.parametrize(("options", "each"), [("", True), ("track_memory=True", False)])
def test_growth_of_resident_memory(tmp_path: Path, options: str, each: bool) -> None:
    found = by_name(report_of(GROWING.format(options=options, each=each), tmp_path))
    assert 48 <= found["inner"]["mem_peak_mb"] <= 60
    assert found["outer"]["mem_peak_mb"] >= found["inner"]["mem_peak_mb"]
    assert found["outer"]["gpu_peak_mb"] is None
    if each:
        assert found["plain"]["mem_peak_mb"] is None
    else:
        assert found["plain"]["mem_peak_mb"] < 10


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((100, None, None), (160, None, None), (60, None)),
        ((100, None, None), (40, None, None), (0, None)),
        ((None, None, None), (100, None, None), (None, None)),
        # The call raised the process's peak: exact, whatever it left.
        ((0, 10, 50), (0, 10, 80), (0, 70)),
        # It did not: what it left allocated.
        ((0, 10, 50), (0, 30, 50), (0, 20)),
        ((0, 30, 50), (0, 10, 50), (0, 0)),
        # CUDA came up in it.
        ((0, None, None), (0, 30, 50), (0, None)),
    ],
)
def test_what_a_call_used_above_its_beginning(
    before: tuple[int | None, int | None, int | None],
    after: tuple[int | None, int | None, int | None],
    expected: tuple[int | None, int | None],
) -> None:
    assert memory.grown(before, after) == expected


def test_resident_memory_is_what_the_system_says() -> None:
    psutil = pytest.importorskip("psutil")
    resident, _, _ = memory.read()
    assert resident == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)


def test_without_a_way_to_read_memory_it_is_unknown(tmp_path: Path) -> None:
    code = """
    import sys
    sys.modules["psutil"] = None                    # as where it is not installed
    from gpudebug.training.profiling import memory
    memory._statm = lambda: None                    # as on a system without /proc
    enable_profiling(track_memory=True)
    with profile_section("x"): pass
    """
    report = report_of(code, tmp_path)
    assert report["sections"][0]["mem_peak_mb"] is None
    assert any("install psutil" in note for note in report["notes"])


def test_a_gpus_counters_are_read_and_never_reset(tmp_path: Path) -> None:
    code = """
    import sys, types
    MB = 1 << 20
    counters = {"now": 10 * MB, "peak": 10 * MB}
    def allocate(mb):
        counters["now"] += mb * MB; counters["peak"] = max(counters["peak"], counters["now"])
    torch = sys.modules["torch"] = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(
        is_initialized=lambda: True,
        memory_allocated=lambda: counters["now"],
        max_memory_allocated=lambda: counters["peak"],
    )
    enable_profiling(track_memory=True)
    for _ in range(3):                      # as every step does
        with profile_section("step"):
            with profile_section("forward"): allocate(300)
            with profile_section("backward"): allocate(100); allocate(-400)
    with profile_section("kept"): allocate(50)
    """
    found = by_name(report_of(code, tmp_path))
    assert {name: s["gpu_peak_mb"] for name, s in found.items()} == {
        "step": 400,
        "forward": 300,
        "backward": 100,
        "kept": 50,
    }


@pytest.mark.slow
def test_pytorch_without_cuda_or_half_imported_is_no_gpu(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = """
    import sys, types
    enable_profiling(track_memory=True)
    sys.modules["torch"] = types.ModuleType("torch")
    with profile_section("half"): pass
    del sys.modules["torch"]
    import torch
    assert not torch.cuda.is_initialized()
    with profile_section("whole"): pass
    assert not torch.cuda.is_initialized()
    """
    assert {s["gpu_peak_mb"] for s in report_of(code, tmp_path)["sections"]} == {None}
