"""The probe on a real device: run with --run-gpu."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.probed import Told, probed

pytestmark = pytest.mark.gpu

TRAIN = """
    import torch, time
    torch.manual_seed(0)
    {before}
    device = "cuda"
    net = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    data = torch.utils.data.TensorDataset(torch.randn(20 * 32, 1024))
    for (x,) in torch.utils.data.DataLoader(data, batch_size=32, pin_memory={pinned}):
        x = x.to(device, non_blocking=True)
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {each}
    torch.cuda.synchronize()
"""
STEPS = 20
SLOW = """
    class Slow(torch.utils.data.TensorDataset):
        def __getitem__(self, i):
            time.sleep(1e-3)
            return super().__getitem__(i)
    torch.utils.data.TensorDataset = Slow
"""


def _train(tmp_path: Path, each: str = "pass", pinned: bool = False, before: str = "") -> Told:
    code = TRAIN.format(each=each, pinned=pinned, before=before)
    found = probed(tmp_path / "run", code)
    assert (found.status, found.of("off")) == (0, []), found.err
    return found


def test_losses_of_a_device_are_read_without_waiting(tmp_path: Path) -> None:
    found = _train(tmp_path, "print(float(loss), flush=True)")
    printed = [float(text) for text in found.out.split()]
    known = [tuple(one) for line in found.lines for one in line.get("losses", ())]
    assert len(known) >= 8
    assert known == [(step, pytest.approx(printed[step - 1], rel=1e-4)) for step, _ in known]
    counters = _train(tmp_path / "again").counters
    assert (counters["reads_n"], counters["sync_n"]) == (0, 1)


def test_reads_waits_and_copies_of_a_device(tmp_path: Path) -> None:
    each = "loss.item(), float(loss), loss.cpu(), loss.to('cpu'), x[0].tolist(), torch.cuda.synchronize()"
    found = _train(tmp_path, each, pinned=True)
    counters, facts = found.counters, found.facts
    assert counters["reads_n"] == 5 * STEPS
    assert counters["sync_n"] == STEPS + 1
    assert (counters["h2d_n"], counters["h2d_bytes"]) == (STEPS, STEPS * 32 * 1024 * 4)
    assert counters["h2d_pinned_n"] == STEPS
    assert (counters["d2h_n"], counters["d2h_bytes"]) == (2 * STEPS, 2 * STEPS * 4)
    assert (facts["device"], facts["phases"]) == ("cuda:0", "launch")
    assert facts["peak_device_mb"] > 8 * 4
    assert counters["alloc_retries"] == 0
    assert "events" not in facts


def test_pageable_copies_are_told_apart(tmp_path: Path) -> None:
    counters = _train(tmp_path).counters
    assert (counters["h2d_n"], counters["h2d_pinned_n"], counters["reads_n"]) == (STEPS, 0, 0)


def test_device_time_leaves_out_the_wait_for_a_batch(tmp_path: Path) -> None:
    counters = _train(tmp_path, before=SLOW).counters
    assert counters["gpu_n"] >= STEPS - 4
    assert 0 < counters["gpu_s"] < 0.5 * counters["data_s"]


def test_a_step_in_a_captured_graph_survives(tmp_path: Path) -> None:
    code = """
        import torch
        parameter = torch.nn.Parameter(torch.ones(8, device="cuda"))
        optimizer = torch.optim.Adam([parameter], lr=0.1, capturable=True)
        def step():
            optimizer.zero_grad(set_to_none=False)
            parameter.square().sum().backward()
            optimizer.step()
        parameter.grad = torch.zeros_like(parameter)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(5): step()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): step()
        for _ in range(20): graph.replay()
        torch.cuda.synchronize()
        print(parameter.sum().item())
    """
    seen, bare = probed(tmp_path / "run", code), probed(tmp_path / "run", code, probe=False)
    assert (seen.status, seen.out, seen.of("off")) == (0, bare.out, [])
    assert "events" not in seen.facts


def test_results_are_the_same_to_the_bit(tmp_path: Path) -> None:
    before = "torch.use_deterministic_algorithms(True)"
    code = TRAIN.format(each="print(loss.item().hex())", pinned=True, before=before)
    more = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    seen, bare = probed(tmp_path / "run", code, **more), probed(tmp_path / "run", code, probe=False, **more)
    assert (seen.status, len(seen.out.splitlines())) == (0, STEPS)
    assert seen.out == bare.out


def test_cuda_is_not_touched_before_the_training_does(tmp_path: Path) -> None:
    code = """
        import torch
        parameter = torch.nn.Parameter(torch.ones(8))
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        for _ in range(50):
            parameter.grad = torch.ones(8)
            optimizer.step()
            parameter.sum().item()
        print(torch.cuda.is_initialized())
    """
    found = probed(tmp_path / "run", code)
    assert (found.out, found.facts["device"], found.counters["reads_n"]) == ("False\n", "cpu", 50)
