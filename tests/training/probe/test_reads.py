"""Blocking reads: how many, from which line and which thread, known by construction."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.probed import PROBE, Told, needs_torch, probed, stories

pytestmark = needs_torch

STEPS = 7
TRAIN = f"""
    import threading
    def train(each, steps={STEPS}):
        parameter = torch.nn.Parameter(torch.zeros(3))
        optimizer = torch.optim.Adam([parameter], foreach=False)
        for _ in range(steps):
            parameter.grad = torch.ones(3)
            optimizer.step()
            each(parameter.detach().sum())
"""
EACH: dict[str, str] = {
    "item": "x.item()",
    "tolist": "x.tolist()",
    "numpy": "x.numpy()",
    "cpu": "x.cpu()",
    "bool": "bool(x)",
    "if": "y = 1 if x > 0 else 2",
    "float": "float(x)",
    "int": "int(x)",
    "index": "[0, 1, 2].__getitem__(torch.tensor(1))",
    "formatted": "f'{x:.3f}'",
    "contained": "1 in x.reshape(1)",
    "chained": "x.cpu().numpy()",
    "twice": "x.item(), x.item()",
    "printed": "str(x)",
    "host": "x.to('cpu'), x.double(), x.copy_(x), x.shape, len(x.reshape(1))",
    "unbound": "torch.Tensor.item(x)",
    "moded": "exec('with torch.device(\"cpu\"): x.item()')",
    "parameter": "torch.nn.Parameter(x).item()",
}
# Line and kind of each that counts; every one once an iteration, where not said otherwise.
KINDS: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("item", "tolist", "numpy", "cpu")},
    **{name: (f"__{name}__",) for name in ("bool", "float", "int", "index")},
    **dict.fromkeys(("formatted", "contained", "unbound", "moded", "parameter"), ("item",)),
    "if": ("__bool__",),
    "chained": ("cpu",),
    "twice": ("item", "item"),
    "printed": (),
    "host": (),
}
OTHERS = {
    "loader": """
        class Data(torch.utils.data.Dataset):
            def __len__(self): return 6
            def __getitem__(self, i): return torch.tensor(float(i)).item()
        parameter = torch.nn.Parameter(torch.zeros(3))
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        for batch in torch.utils.data.DataLoader(Data(), batch_size=2):
            parameter.grad = torch.ones(3)
            optimizer.step()
            batch.tolist()
        print(batch)
    """,
    "threads": """
        done = threading.Event()
        def read():
            while not done.is_set(): torch.ones(()).item()
        thread = threading.Thread(target=read)
        def each(x):
            if not thread.ident: thread.start()
            x.item()
        train(each)
        done.set()
        thread.join()
    """,
    "subclass": """
        class Wrapped(torch.Tensor):
            calls = 0
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                cls.calls += 1
                assert func is torch.Tensor.item
                return super().__torch_function__(func, types, args, kwargs or {})
        w = torch.ones(()).as_subclass(Wrapped)
        train(lambda x: w.item())
        print(Wrapped.calls)
    """,
    "refusing": """
        class Refusing(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return 42
        r = torch.ones(()).as_subclass(Refusing)
        train(lambda x: print(r.item(), r.cpu(), r.to("cpu")))
    """,
    "wrong": """
        def attempt(each):
            def one(x):
                try: each(x)
                except Exception as error: print(type(error).__name__, error)
            train(one)
        attempt(lambda x: torch.ones(2).item())
        attempt(lambda x: torch.ones(2, requires_grad=True).numpy())
        attempt(lambda x: x.item(1))
        attempt(lambda x: torch.Tensor.item(3))
        attempt(lambda x: torch.cuda.synchronize())
    """,
    "names": """
        import inspect, pickle
        for name in ("item", "to", "__bool__", "backward"):
            method = getattr(torch.Tensor, name)
            print(method.__name__, method.__qualname__, method.__module__, bool(method.__doc__))
            print(pickle.loads(pickle.dumps(method)) is method)
            try: print(inspect.signature(method))
            except ValueError as error: print("no signature")
        print(inspect.signature(torch.nn.Module.__call__))
        print(*inspect.signature(torch.cuda.synchronize).parameters)
        print(torch.overrides.is_tensor_method_or_property(torch.Tensor.item))
        print(torch.overrides.resolve_name(torch.Tensor.item))
    """,
    "many places": """
        source = "".join(f"def f{i}(x): x.item()\\n" for i in range(1500))
        exec(compile(source, "<string>", "exec"))
        train(lambda x: [globals()[f"f{i}"](x) for i in range(1500)], steps=2)
    """,
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Told]:
    single = {name: f"def each(x):\n    {read}\ntrain(each)" for name, read in EACH.items()}
    codes = {name: textwrap.dedent(code) for name, code in {**single, **OTHERS}.items()}
    return stories(
        tmp_path_factory.mktemp("reads"), {n: textwrap.dedent(TRAIN) + c for n, c in codes.items()}
    )


def _sites(told: Told) -> dict[tuple[str, int, str], int]:
    sites = told.of("sites")[-1]["sites"] if told.of("sites") else []
    return {(Path(file).name, line, kind): count for file, line, kind, device, count, _ in sites}


@pytest.mark.parametrize("name", EACH)
def test_each_read_is_counted_once_an_iteration_where_it_stands(told: Mapping[str, Told], name: str) -> None:
    found, kinds = told[name], KINDS[name]
    assert "Traceback" not in found.out
    assert found.counters["reads_n"] == STEPS * len(kinds)
    line = len(textwrap.dedent(TRAIN).splitlines()) + 2
    where = ("<string>", 1) if name == "moded" else (name, line)
    assert _sites(found) == {(*where, kind): STEPS * len(kinds) for kind in kinds}
    assert (found.counters["reads_s"] > 0) == bool(kinds)


def test_reads_of_a_loader_are_left_out(told: Mapping[str, Told]) -> None:
    assert told["loader"].counters["reads_n"] == 3
    assert [kind for _, _, kind in _sites(told["loader"])] == ["tolist"]


def test_only_the_thread_that_trains_counts(told: Mapping[str, Told]) -> None:
    assert told["threads"].counters["reads_n"] == STEPS


def test_a_subclass_is_asked_once_and_counted_once(told: Mapping[str, Told]) -> None:
    assert (told["subclass"].out, told["subclass"].counters["reads_n"]) == (f"{STEPS}\n", STEPS)


def test_a_subclass_that_does_not_read_counts_nothing(told: Mapping[str, Told]) -> None:
    assert (told["refusing"].out, told["refusing"].counters["reads_n"]) == ("42 42 42\n" * STEPS, 0)


def test_errors_pass_through_and_count_nothing(told: Mapping[str, Told]) -> None:
    found = told["wrong"]
    assert ("Traceback" in found.out, found.of("off"), found.counters["reads_n"]) == (False, [], 0)
    kinds = [line.split()[0] for line in found.out.splitlines() if "Error" in line.split()[0]]
    assert kinds[::STEPS] == ["RuntimeError", "RuntimeError", "TypeError", "TypeError", kinds[-1]]
    assert len(kinds) == 5 * STEPS


def test_replaced_methods_go_by_their_names(told: Mapping[str, Told]) -> None:
    assert told["names"].out.splitlines() == [
        *("item Tensor.item torch True", "True", "no signature"),
        *("to Tensor.to torch True", "True", "no signature"),
        *("__bool__ Tensor.__bool__ torch False", "True", "no signature"),
        *("backward Tensor.backward torch._tensor True", "True"),
        "(self, gradient=None, retain_graph=None, create_graph=False, inputs=None)",
        *("(self, *args, **kwargs)", "device"),
        *("True", "torch.Tensor.item"),
    ]


def test_very_many_places_are_counted_together(told: Mapping[str, Told]) -> None:
    assert told["many places"].counters["reads_n"] == 3000
    (other,) = [s for s in told["many places"].of("sites")[-1]["sites"] if s[0] == "(other)"]
    assert other[4] == 1000


def test_the_users_line_is_named_where_a_library_reads_for_it(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "metering.py"
    package.parent.mkdir()
    package.write_text("def show(x):\n    return deeper(x)\ndef deeper(x):\n    return x.item()\n")
    code = f"""
        import sys, torch
        sys.path.insert(0, {str(package.parent)!r})
        import metering
        parameter = torch.nn.Parameter(torch.zeros(3))
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        for _ in range(4):
            parameter.grad = torch.ones(3)
            optimizer.step()
            metering.show(parameter.sum().detach())
    """
    found = probed(tmp_path / "run", code)
    ((file, line, kind, device, count, seconds),) = found.of("sites")[-1]["sites"]
    assert (file, line, kind, device, count) == (str(tmp_path / "train.py"), 10, "item", "cpu", 4)
    assert seconds > 0


COPYING_STEPS = 5
COPYING = f"""
def train(each, device, steps={COPYING_STEPS}):
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
    **dict.fromkeys(("to", "to with a type", "other"), (COPYING_STEPS, 40 * COPYING_STEPS)),
    **dict.fromkeys(("copy_", "named"), (COPYING_STEPS, 12 * COPYING_STEPS)),
    **dict.fromkeys(("stays", "before", "errors"), (0, 0)),
    "number": (COPYING_STEPS, 4 * COPYING_STEPS),
    "sparse": (COPYING_STEPS, 0),
    "module": (2, 24),
}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Told]:
    return stories(tmp_path_factory.mktemp("copies"), {name: COPYING + code for name, code in CODES.items()})


@pytest.mark.parametrize("name", MOVED)
def test_copies_to_the_device_are_counted_with_their_bytes(copied: Mapping[str, Told], name: str) -> None:
    found = copied[name]
    assert ("Traceback" in found.out, found.of("off")) == (False, []), found.out
    counters = found.counters
    assert (counters["h2d_n"], counters["h2d_bytes"]) == MOVED[name]
    assert (counters["h2d_pinned_n"], counters["d2h_n"], counters["reads_n"]) == (0, 0, 0)
    assert (counters["h2d_s"] > 0) == (MOVED[name][0] > 0)
    assert (found.facts["device"], found.facts["phases"]) == ("meta", "launch")


def test_errors_are_the_same(copied: Mapping[str, Told]) -> None:
    kinds = ["NotImplementedError", "RuntimeError", "TypeError", "RuntimeError"]
    assert copied["errors"].out.splitlines() == kinds * COPYING_STEPS


def test_where_no_device_is_copies_are_unknown(copied: Mapping[str, Told]) -> None:
    counters = copied["on the host"].counters
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
