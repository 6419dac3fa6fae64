"""Blocking reads: how many, from which line and which thread, known by construction."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.probed import Told, needs_torch, probed, stories

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
