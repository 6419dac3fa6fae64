"""Copies to a device, and device time from events. PyTorch's `meta` device stands for a GPU: it computes
nothing, but tensors are moved to it as to any other."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.probed import PROBE, Told, needs_torch, stories

pytestmark = needs_torch

STEPS = 5
TRAIN = f"""
def train(each, device, steps={STEPS}):
    parameter = torch.nn.Parameter(torch.zeros(3, device=device))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    for _ in range(steps):
        parameter.grad = torch.ones(3, device=device)
        optimizer.step()
        each(parameter)
"""
CODES = {
    "to": "x = torch.ones(10)\ntrain(lambda p: x.to('meta'), 'meta')",
    "to with a type": "x = torch.ones(10)\ntrain(lambda p: x.to('meta', torch.float64, True), 'meta')",
    "other": "x = torch.ones(10)\ntrain(lambda p: x.to(p), 'meta')",
    "copy_": "x = torch.ones(3)\ntrain(lambda p: p.detach().copy_(x), 'meta')",
    "named": "x = torch.ones(3)\ntrain(lambda p: p.detach().copy_(other=x, non_blocking=True), 'meta')",
    "number": "train(lambda p: p.detach().copy_(torch.tensor(2.0)), 'meta')",
    "stays": "x = torch.ones(3)\n"
    "train(lambda p: (x.to('cpu'), x.to(torch.float64), p.to('meta'), p.detach().copy_(p)), 'meta')",
    "sparse": "x = torch.ones(3).to_sparse()\ntrain(lambda p: x.to('meta'), 'meta')",
    "module": "m = torch.nn.Linear(2, 2)\ntrain(lambda p: m.to('cpu').to('meta'), 'meta', steps=1)",
    "before": "torch.nn.Linear(2, 2).to('meta')\ntrain(lambda p: None, 'meta')",
    "on the host": "x = torch.ones(10)\ntrain(lambda p: (x.to('meta'), x.to('cpu')), 'cpu')",
    "errors": "x = torch.ones(3)\n"
    "def each(p):\n"
    "    for wrong in (lambda: p.to('cpu'), lambda: x.to('nowhere'), lambda: x.copy_(), lambda: p.item()):\n"
    "        try: wrong()\n"
    "        except Exception as error: print(type(error).__name__)\n"
    "train(each, 'meta')",
}
MOVED = {
    **dict.fromkeys(("to", "to with a type", "other"), (STEPS, 40 * STEPS)),
    **dict.fromkeys(("copy_", "named"), (STEPS, 12 * STEPS)),
    **dict.fromkeys(("stays", "before", "errors"), (0, 0)),
    "number": (STEPS, 4 * STEPS),
    "sparse": (STEPS, 0),
    "module": (2, 24),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Told]:
    return stories(tmp_path_factory.mktemp("copies"), {name: TRAIN + code for name, code in CODES.items()})


@pytest.mark.parametrize("name", MOVED)
def test_copies_to_the_device_are_counted_with_their_bytes(told: Mapping[str, Told], name: str) -> None:
    found = told[name]
    assert ("Traceback" in found.out, found.of("off")) == (False, []), found.out
    counters = found.counters
    assert (counters["h2d_n"], counters["h2d_bytes"]) == MOVED[name]
    assert (counters["h2d_pinned_n"], counters["d2h_n"], counters["reads_n"]) == (0, 0, 0)
    assert (counters["h2d_s"] > 0) == (MOVED[name][0] > 0)
    assert (found.facts["device"], found.facts["phases"]) == ("meta", "launch")


def test_errors_are_the_same(told: Mapping[str, Told]) -> None:
    kinds = ["NotImplementedError", "RuntimeError", "TypeError", "RuntimeError"]
    assert told["errors"].out.splitlines() == kinds * STEPS


def test_where_no_device_is_copies_are_unknown(told: Mapping[str, Told]) -> None:
    counters = told["on the host"].counters
    assert [name for name in counters if name.startswith(("h2d", "d2h", "sync", "gpu"))] == []


class _Device:
    """Time on an imaginary device: an event is done once `now` has passed what it was recorded at."""

    def __init__(self) -> None:
        self.now = 0.0
        self.behind = 0.0
        self.made = 0
        self.initialized = self.capturing = False

    def is_initialized(self) -> bool:
        return self.initialized

    def is_current_stream_capturing(self) -> bool:
        assert self.initialized
        return self.capturing

    def Event(self, enable_timing: bool) -> _Event:
        assert self.initialized and enable_timing
        self.made += 1
        return _Event(self)


class _Event:
    def __init__(self, device: _Device) -> None:
        self.device = device
        self.at: float | None = None

    def record(self) -> None:
        assert not self.device.capturing
        self.at = self.device.now + self.device.behind

    def query(self) -> bool:
        assert not self.device.capturing and self.at is not None
        return self.device.now >= self.at

    def elapsed_time(self, end: _Event) -> float:
        assert self.query() and end.query() and self.at is not None and end.at is not None
        return (end.at - self.at) * 1000


@pytest.fixture
def probe() -> Iterator[Any]:
    sys.path.insert(0, str(PROBE))
    try:
        import gpudebug_probe.events

        yield gpudebug_probe
    finally:
        sys.path.remove(str(PROBE))
        for name in [name for name in sys.modules if name.startswith("gpudebug_probe")]:
            del sys.modules[name]


def _events(probe: Any, device: _Device) -> tuple[Any, dict[str, float]]:
    counters: dict[str, float] = {}

    def add(name: str, amount: float = 1) -> None:
        counters[name] = counters.get(name, 0) + amount

    recorder = SimpleNamespace(on=True, counters=counters, facts={}, add=add)
    return probe.events.Events(SimpleNamespace(cuda=device), recorder), counters


def _iterate(events: Any, device: _Device, count: int, fetch_s: float, step_s: float) -> None:
    for step in range(count):
        device.now += fetch_s
        events.fetched()
        device.now += step_s
        events.stepped(step + 1)


def test_nothing_is_asked_of_cuda_before_the_training_uses_it(probe: Any) -> None:
    device = _Device()
    events, counters = _events(probe, device)
    _iterate(events, device, 10, 0.1, 0.1)
    events.known()
    assert (device.made, counters) == (0, {})


def test_waiting_for_a_batch_is_no_device_time(probe: Any) -> None:
    device = _Device()
    device.initialized = True
    events, counters = _events(probe, device)
    _iterate(events, device, 11, fetch_s=0.03, step_s=0.02)
    assert counters["gpu_n"] == 9
    assert counters["gpu_s"] == pytest.approx(9 * 0.02)


def test_without_a_loader_the_whole_iteration_is(probe: Any) -> None:
    device = _Device()
    device.initialized = True
    events, counters = _events(probe, device)
    for step in range(11):
        device.now += 0.05
        events.stepped(step + 1)
    assert counters["gpu_s"] == pytest.approx(9 * 0.05)


def test_events_are_reused_and_given_up_where_the_device_does_not_follow(probe: Any) -> None:
    device = _Device()
    device.initialized = True
    events, counters = _events(probe, device)
    _iterate(events, device, 1000, 0.0, 0.01)
    assert device.made <= 4
    device.behind = 1e6
    _iterate(events, device, 1000, 0.0, 0.01)
    assert device.made == 2 * probe.events.SPANS
    device.behind, device.now = 0.0, 1e7
    counted = counters["gpu_n"]
    _iterate(events, device, 100, 0.0, 0.01)
    assert counters["gpu_n"] > counted + 90


def test_a_captured_graph_is_left_alone(probe: Any) -> None:
    device = _Device()
    device.initialized = True
    events, counters = _events(probe, device)
    _iterate(events, device, 5, 0.0, 0.01)
    device.capturing = True
    _iterate(events, device, 5, 0.0, 0.01)
    device.capturing = False
    _iterate(events, device, 5, 0.0, 0.01)
    assert counters["gpu_n"] >= 8


def test_an_error_of_the_device_ends_the_events_alone(probe: Any) -> None:
    device = _Device()
    device.initialized = True
    events, counters = _events(probe, device)
    _iterate(events, device, 3, 0.0, 0.01)

    def broken() -> bool:
        raise RuntimeError("CUDA error: an illegal memory access")

    device.is_current_stream_capturing = broken  # type: ignore[method-assign]
    _iterate(events, device, 3, 0.0, 0.01)
    counted = dict(counters)
    _iterate(events, device, 3, 0.0, 0.01)
    assert counters == counted


def test_a_forked_child_does_not_touch_its_parents_events(probe: Any) -> None:
    device = _Device()
    device.initialized = True
    events, _ = _events(probe, device)
    _iterate(events, device, 5, 0.0, 0.01)
    made, touched = device.made, []

    class Child(_Device):
        def Event(self, enable_timing: bool) -> _Event:
            touched.append(1)
            return _Event(self)

    events.anew()
    events._cuda = child = Child()
    child.initialized = True
    _iterate(events, child, 5, 0.0, 0.01)
    assert device.made == made and touched
