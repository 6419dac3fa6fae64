"""An object's methods under sections, and back again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.profiled import by_name, places, report_of, run

from gpudebug.training.profiling.objects import parse

POLICY = """
import asyncio, copy, pickle
enable_profiling()
class Base:
    def reset(self): return "reset"
    def __len__(self): return 3
class Policy(Base):
    factor = 2
    def __init__(self): self.weight = 5; self.hook = lambda x: x + self.weight
    def act(self, x): return self._inner(x) + self.encode(x)
    def encode(self, x): return x * self.weight
    def _inner(self, x): return x
    @staticmethod
    def twice(x): return 2 * x
    @classmethod
    def build(cls): return cls()
    @property
    def size(self): return 1
    async def wait(self): await asyncio.sleep(0); return "waited"
    def items(self):
        yield from range(3)
policy = Policy()
def use(p):
    assert (p.act(1), p.twice(2), p.reset(), p.size, len(p), list(p.items())) == (
        1 + p.weight, 4, "reset", 1, 3, [0, 1, 2])
    assert type(p.build()) is Policy and asyncio.run(p.wait()) == "waited"
"""


def test_public_methods_are_nested_sections(tmp_path: Path) -> None:
    code = """
before = dict(vars(policy))
profiled = profile_object(policy, "policy")
use(policy)
use(Policy())          # another object of the class is not profiled
assert asyncio.iscoroutinefunction(policy.wait)
profiled.undo()
assert vars(policy) == before
use(policy)
profiled.undo()
"""
    report = report_of(POLICY + code, tmp_path)
    assert {name: s["calls"] for name, s in by_name(report).items()} == {
        "policy.act": 1,
        "policy.encode": 1,
        "policy.twice": 1,
        "policy.build": 1,
        "policy.wait": 1,
        "policy.items": 4,
        "policy.reset": 1,
    }
    assert "policy.act/policy.encode" in places(report)


def test_methods_may_be_chosen_and_taken_back_at_the_end_of_a_with(tmp_path: Path) -> None:
    code = """
with profile_object(policy, methods=["_inner", "act", "hook"]) as profiled:
    assert policy.act(1) == 6 and policy.hook(1) == 6
assert policy.act(1) == 6 and set(vars(policy)) == {"weight", "hook"}
"""
    found = by_name(report_of(POLICY + code, tmp_path))
    assert {name: s["calls"] for name, s in found.items()} == {
        "Policy._inner": 1,
        "Policy.act": 1,
        "Policy.hook": 1,
    }


def test_where_no_method_is_found_the_report_says_so(tmp_path: Path) -> None:
    code = "class Bare: pass\nenable_profiling()\nassert profile_object(Bare()).methods == []"
    assert "profile_object(Bare): no public method" in " ".join(report_of(code, tmp_path)["notes"])


def test_a_copy_and_a_pickle_are_their_own(tmp_path: Path) -> None:
    code = """
del policy.hook
profiled = profile_object(policy)
copies = [copy.deepcopy(policy), copy.copy(policy), pickle.loads(pickle.dumps(policy))]
for other in copies:
    other.weight = 7
    assert (policy.act(1), policy.encode(2), other.encode(2)) == (6, 10, 14)
    use(other)
profiled.undo()
assert "reset" not in vars(Policy) and Policy.act.__code__.co_name == "act"
for other in copies:
    use(other)
"""
    report_of(POLICY + code, tmp_path)


def test_objects_of_a_class_are_told_apart_until_the_last_is_left(tmp_path: Path) -> None:
    code = """
import gc
act, first, second = Policy.act, Policy(), Policy()
one, two = profile_object(first, "one"), profile_object(second, "two", methods="act")
again = profile_object(first, "again", methods=["act", "wait", "items"])
first.act(1); second.act(1); policy.act(1); asyncio.run(first.wait()); assert list(first.items()) == [0, 1, 2]
again.undo(); first.act(1)
one.undo(); second.act(1)
two.undo(); first.act(1); second.act(1)
assert Policy.act is act
lost = profile_object(Policy(), "lost", methods="act"); del lost; gc.collect()
assert all(Policy().act(1) == 6 for _ in range(100))
"""
    found = by_name(report_of(POLICY + code, tmp_path))
    assert {n: s["calls"] for n, s in found.items() if n.endswith("act")} == {
        "one.act": 2,
        "again.act": 1,
        "two.act": 2,
    }


def test_a_class_and_a_module(tmp_path: Path) -> None:
    code = """
import json
with profile_object(Policy), profile_object(json, "json", methods=["dumps"]):
    use(Policy())
    json.dumps([1])
use(Policy()); json.dumps([1])
assert "reset" not in vars(Policy) and isinstance(vars(Policy)["twice"], staticmethod)
"""
    found = by_name(report_of(POLICY + code, tmp_path))
    assert {"Policy.act", "Policy.reset", "Policy.twice", "Policy.build", "json.dumps"} <= set(found)
    assert {s["calls"] for n, s in found.items() if n != "Policy.items"} == {1}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("object()", "an object of"),
        ("policy, methods='missing'", "'missing'"),
        ("policy, methods=['missing']", "missing"),
        ("policy, methods=['weight']", "Policy.weight is no method"),
    ],
)
def test_what_cannot_be_profiled_is_refused_and_left_as_it_is(tmp_path: Path, target: str, said: str) -> None:
    code = f"""
before = dict(vars(policy))
try:
    profile_object({target})
except (AttributeError, TypeError) as e:
    print(e)
assert vars(policy) == before
"""
    out = run(POLICY + code, tmp_path).out
    assert said.replace("an object of", "has no attributes of its own") in out


def test_a_model_of_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = """
import copy, io, torch
enable_profiling()
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.encoder = torch.nn.Linear(4, 4)
    def encode(self, x): return self.encoder(x)
    def forward(self, x): return self.encode(x).sum()
torch.manual_seed(0)
net, x = Net(), torch.ones(2, 4)
plain = net(x).item()
profiled, layer = profile_object(net, "net"), profile_object(net.encoder, "encoder")
assert profiled.methods == ["encode", "forward"] and "forward" in layer.methods
assert net(x).item() == plain and set(net.state_dict()) == {"encoder.weight", "encoder.bias"}
replica = net._replicate_for_data_parallel()    # as DataParallel makes one a GPU
replica._parameters = dict(net._parameters); replica.encode = lambda x: torch.ones(3)
assert replica(x).item() == 3
twin = copy.deepcopy(net)                       # as an EMA of the weights does
with torch.no_grad():
    for p in net.parameters(): p.zero_()
assert net(x).item() == 0 and twin(x).item() == plain
buffer = io.BytesIO(); torch.save(twin, buffer); buffer.seek(0)
assert torch.load(buffer, weights_only=False)(x).item() == plain
profiled.undo(); layer.undo()
assert not {"forward", "encode"} & set(vars(net))
"""
    tree = places(report_of(code, tmp_path))
    assert "net.forward/net.encode/encoder.forward" in tree


MODULE = """
class Policy:
    kind = property(lambda self: 1)
    def __init__(self): self.calls = 0
    def forward(self, x): return self._inner(x) + self.twice(x)
    def _inner(self, x): self.calls += 1; return x
    @staticmethod
    def twice(x): return 2 * x
class Other:
    def run(self): return 1
"""
PROGRAM = """
import {first}
from pkg.policy import Policy, Other
p = Policy()
assert [p.forward(1) for _ in range(3)] == [3] * 3 and p.calls == 3 and p.kind == 1 and Other().run() == 1
"""


def sections(
    tmp_path: Path, variable: str, first: str = "gpudebug.training.profiling"
) -> tuple[dict[str, int], list[str]]:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "policy.py").write_text(MODULE)
    env = {**os.environ, "GPUDEBUG_PROFILE": str(tmp_path / "r.json"), "GPUDEBUG_PROFILE_METHODS": variable}
    command = [sys.executable, "-c", PROGRAM.format(first=first)]
    subprocess.run(command, cwd=tmp_path, env=env, check=True)
    report = json.loads((tmp_path / "r.json").read_text())
    return {s["name"]: s["calls"] for s in report["sections"]}, report["notes"]


def test_every_method_of_a_class_private_ones_too(tmp_path: Path) -> None:
    found, _ = sections(tmp_path, "pkg.policy:Policy")
    assert found == {"Policy.forward": 3, "Policy._inner": 3, "Policy.twice": 3}


@pytest.mark.parametrize("first", ["gpudebug.training.profiling", "pkg.policy, gpudebug.training.profiling"])
def test_a_module_is_all_its_classes_imported_before_or_after(tmp_path: Path, first: str) -> None:
    found, _ = sections(tmp_path, "pkg.policy", first)
    assert found == {"Policy.forward": 3, "Policy._inner": 3, "Policy.twice": 3, "Other.run": 1}


def test_a_name_that_is_not_there_is_a_note(tmp_path: Path) -> None:
    found, notes = sections(tmp_path, "pkg.policy:Polisy, nowhere.at.all:X")
    assert found == {}
    assert "GPUDEBUG_PROFILE_METHODS: pkg.policy has no class Polisy" in notes


def test_what_the_variable_names() -> None:
    assert parse(" a.b:C , a.b:D,e,, ") == {"a.b": ["C", "D"], "e": []}
