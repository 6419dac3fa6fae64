"""What a program's options decide on, read from its source."""

from __future__ import annotations

import ast

import pytest

from gpudebug.core.catalogue.touches import meets, touches

PROGRAM = """
class ListMemory:
    def add(self, moment): self.kept = [*self.kept, moment]

class RingMemory:
    def add(self, moment): self.kept[0] = moment

class Network(Module):
    def __init__(self, neighbours, wide):
        self.search = neighbours
        self.layer = Linear(8, wide)

    def forward(self, atoms):
        if self.search == "matrix":
            near = cdist(atoms, atoms)
        else:
            near = self.pairs_within(atoms)
        return self.layer(near)

def main(args):
    memory = RingMemory() if args.memory == "ring" else ListMemory()
    network = Network(args.neighbours, wide=args.wide)
    for step in range(args.steps):
        if step % args.eval_every == 0:
            evaluate(network)
        memory.add(step)
"""
OPTIONS = ("memory", "neighbours", "wide", "eval_every", "steps", "train.memory")


@pytest.fixture(scope="module")
def found() -> dict[str, frozenset[str]]:
    return touches([ast.parse(PROGRAM)], OPTIONS)


def test_both_sides_of_a_choice_are_touched(found: dict[str, frozenset[str]]) -> None:
    assert {"ListMemory", "RingMemory"} <= found["memory"]
    assert found["train.memory"] == found["memory"]
    assert "evaluate" in found["eval_every"]
    assert "evaluate" not in found["memory"]


def test_a_value_is_followed_under_the_names_that_it_gets(found: dict[str, frozenset[str]]) -> None:
    assert {"cdist", "pairs_within"} <= found["neighbours"]
    assert "Linear" in found["wide"] and "pairs_within" not in found["wide"]


@pytest.mark.parametrize(
    ("function", "option", "expected"),
    [
        ("ListMemory.add", "memory", True),
        ("Network.pairs_within", "neighbours", True),
        ("Network.forward", "eval_every", False),
        ("evaluate", "eval_every", True),
        ("evaluate", "memory", False),
        ("Other.add", "memory", False),
        ("evaluate", "unheard_of", False),
    ],
)
def test_a_function_meets_what_is_touched_by_its_name_or_its_class(
    found: dict[str, frozenset[str]], function: str, option: str, expected: bool
) -> None:
    assert meets(function, found, option) is expected


def test_what_stands_beside_an_option_in_a_call_is_not_touched() -> None:
    program = "loader = DataLoader(Tiles(args.root, kind=args.kind), num_workers=args.workers)"
    told = touches([ast.parse(program)], ["workers", "kind"])
    assert told == {"workers": frozenset({"DataLoader"}), "kind": frozenset({"Tiles"})}


def test_what_is_picked_by_an_option_is_touched() -> None:
    told = touches([ast.parse("memory = {'ring': Ring, 'list': List}[args.memory]()")], ["memory"])
    assert {"Ring", "List"} <= told["memory"]


def test_a_choice_of_everything_says_nothing_of_one_option() -> None:
    body = "\n".join(f"    f{n}(b{n})" for n in range(40))
    assert touches([ast.parse(f"if args.a1:\n{body}")], ["a1"]) == {"a1": frozenset()}


def test_an_expression_deeper_than_the_stack_is_looked_at() -> None:
    told = touches([ast.parse(f"pick({'+'.join(['args.depth'] * 1200)})")], ["depth"])
    assert told == {"depth": frozenset({"pick"})}
