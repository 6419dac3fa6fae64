"""What PyTorch compiles, traces, maps and learns is the same with the probe as without it, to the bit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.probed import needs_torch, probed

pytestmark = needs_torch

# Every attempt prints its result or its error. The training has begun before, so that the probe is at work.
PROGRAM = """
    import copy, io, pickle, warnings
    import torch
    import torch.fx

    def step(optimizer=None):
        parameter = torch.nn.Parameter(torch.zeros(2))
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        parameter.grad = torch.ones(2)
        optimizer.step()
        return parameter.detach()

    def attempt(name, function):
        try: print(name + ":", function())
        except Exception as error: print(name + ":", type(error).__name__, str(error).splitlines()[0])

    def hook(module, given: tuple[torch.Tensor], result: torch.Tensor):
        return result + 1

    class Inner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
            self.two.register_forward_hook(hook)
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.two(torch.relu(self.one(x)))

    class Optional(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> float:
            if bool(x.sum() > 0):
                return float(x[0].item())
            return x.to(torch.float64).cpu().sum().item()

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print("asked", func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    torch.manual_seed(0)
    step()
    x = torch.tensor([1.0, 2.0])
    inner = Inner()
    whole = lambda function: torch.compile(function, fullgraph=True, backend="eager")
    broken = lambda function: torch.compile(function, backend="eager")

    attempt("to", lambda: whole(lambda x: x.to(torch.float64) + x.cpu())(x))
    attempt("unbound", lambda: whole(lambda x: torch.Tensor.to(x, torch.float64) + 1)(x))
    attempt("copied", lambda: whole(lambda x: torch.zeros(2).copy_(x))(x))
    attempt("module", lambda: whole(inner)(x))
    attempt("inlined", lambda: whole(lambda x: inner(x) * 2)(x))
    own = Inner(); own.compile(backend="eager", fullgraph=True)
    attempt("own", lambda: own(x))
    attempt("read whole", lambda: whole(lambda x: x * x.sum().item())(x))
    for name, function in {
        "item": lambda x: x * x[0].item(), "item unbound": lambda x: x * torch.Tensor.item(x[0]),
        "float": lambda x: x * float(x[0]), "bool": lambda x: x + 1 if x.sum() > 0 else x,
        "tolist": lambda x: x * x.tolist()[0], "numpy": lambda x: x * x.numpy()[0],
        "deep": lambda x: inner(x * x[0].item()).sum().item() + x,
        "stepping": lambda x: step() + x,
        "backward": lambda x: ((x * 2).requires_grad_().sum().backward(), x)[1],
    }.items():
        attempt(name, lambda: broken(function)(x))
        # What the optimizer's step looks at differs by the hooks that it has.
        told = ("stats", "resumes") if name in ("stepping", "backward") else ("stats", "resumes", "frames")
        print({n: dict(torch._dynamo.utils.counters[n]) for n in told})
    parameter = torch.nn.Parameter(torch.zeros(2)); parameter.grad = torch.ones(2)
    compiled = torch.optim.Adam([parameter], lr=torch.tensor(0.1))
    attempt("optimizer", lambda: (broken(compiled.step)(), parameter))
    attempt("exported", lambda: torch.export.export(inner, (x,)).graph_module.code)
    attempt("scripted", lambda: (torch.jit.script(inner)(x), torch.jit.script(Optional())(x)))
    attempt("script", lambda: torch.jit.script(inner).code)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moved = lambda x: x.to(torch.float64).cpu() * x.sum().item()
        attempt("traced", lambda: torch.jit.trace(moved, x).code)
        attempt("module traced", lambda: torch.jit.trace(inner, x).code)
    attempt("symbolic", lambda: torch.fx.symbolic_trace(lambda x: x.to(torch.float64).cpu() + 1).code)
    attempt("symbolic module", lambda: torch.fx.symbolic_trace(inner).code)
    attempt("vmap", lambda: torch.func.vmap(inner)(x.expand(3, 2)))
    attempt("vmap read", lambda: torch.func.vmap(lambda x: x.item())(x))
    attempt("grad", lambda: torch.func.grad(lambda x: inner(x).to(torch.float64).sum())(x))
    attempt("functional", lambda: torch.func.functional_call(inner, dict(inner.named_parameters()), (x,)))
    sub = x[0].as_subclass(Sub)
    attempt("subclass", lambda: (sub.item(), float(sub), bool(sub), sub.to(torch.float64), sub.cpu()))
    attempt("deepcopy", lambda: copy.deepcopy(inner)(x))
    from multiprocessing.reduction import ForkingPickler
    attempt("shared", lambda: pickle.loads(ForkingPickler.dumps([x, torch.nn.Parameter(x)])))
    attempt("pickled", lambda: pickle.loads(pickle.dumps([x, sub])))
    def reload(thing):
        buffer = io.BytesIO(); torch.save(thing, buffer); buffer.seek(0)
        return torch.load(buffer, weights_only=False)
    inner.two._forward_hooks.clear()
    attempt("saved", lambda: (reload(inner)(x), reload(inner.state_dict()), reload(step)))
    print(sorted(vars(inner)))
    with torch.device("cpu"):
        attempt("device", lambda: (x.item() if x.numel() == 1 else x[0].item(), torch.ones(2).cpu()))
    from torch._subclasses import FakeTensorMode
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        attempt("fake", lambda: (mode.from_tensor(x).to("meta").shape, mode.from_tensor(x)[0].item() > 0))
    attempt("meta", lambda: (torch.ones(2, device="meta").to("cpu")))
    attempt("sparse", lambda: (x.to_sparse().cpu(), x.to_sparse().to(torch.float64)))
    attempt("quantized", lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).cpu().tolist())
    print(inner.two(x).requires_grad, [p.grad for p in inner.parameters()])

    data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    def losses(compiled):
        layers = torch.nn.Linear(4, 16), torch.nn.Dropout(0.3), torch.nn.ReLU(), torch.nn.Linear(16, 1)
        net = torch.nn.Sequential(*layers)
        run = torch.compile(net, backend="eager") if compiled else net
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        for epoch in range(4):
            workers = 2 * (epoch == 1)
            for x, y in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, num_workers=workers):
                optimizer.zero_grad()
                with torch.autocast("cpu", torch.bfloat16, enabled=epoch == 2):
                    loss = torch.nn.functional.mse_loss(run(x.to("cpu")), y)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                print("loss:", loss.item().hex(), f"{loss:.20f}", bool(loss > 1))
        print(net.state_dict(), torch.get_rng_state().sum().item())
    losses(False)
    losses(True)
"""
ADDRESS = re.compile(r"0x[0-9a-f]+")


@pytest.mark.slow
def test_the_same_is_compiled_traced_and_computed(tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    seen = probed(tmp_path / "with" / "run", PROGRAM)
    bare = probed(tmp_path / "without" / "run", PROGRAM, probe=False)
    assert (seen.status, bare.status, seen.of("off"), bare.lines) == (0, 0, [], [])
    for name in ("unbound", "module", "inlined", "own", "optimizer", "scripted", "traced", "vmap", "saved"):
        (line,) = [line for line in bare.out.splitlines() if line.startswith(name + ":")]
        assert "Error" not in line and "Unsupported" not in line, line
    assert ADDRESS.sub("", seen.out).splitlines() == ADDRESS.sub("", bare.out).splitlines()
    # Whatever PyTorch warns of, it warns of as often; at another line where a method is replaced.
    assert seen.err.count("Warning") == bare.err.count("Warning"), seen.err
    assert seen.out.count("loss: 0x") == 64
    assert seen.counters["reads_n"] > 3 * 64
    assert seen.facts["compile"]["graphs"] > 20
