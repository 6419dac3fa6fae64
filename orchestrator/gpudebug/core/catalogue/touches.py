"""What the options of a program steer: the functions and classes that stand where their values are used."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

_ROUNDS = 2
"""How often a value is followed under another name: `memory=args.memory`, then `kind=memory`."""
_LARGEST = 60
"""Names that one choice decides on; one with more says nothing of a single option."""

_Use = tuple[set[str], set[str]]


def touches(trees: Sequence[ast.AST], options: Iterable[str]) -> dict[str, frozenset[str]]:
    """By option (folded name), the names of functions, classes and attributes that its value decides on.

    Those are what is called with it, what is picked by it, and the names in both branches of a choice that
    depends on it; not what is beside it in the same call.
    """
    uses = [use for tree in trees for use in _uses(tree)]
    aliases = [pair for tree in trees for pair in _aliases(tree)]
    return {option: frozenset(_touched(option.rpartition(".")[2], uses, aliases)) for option in options}


def _touched(option: str, uses: Sequence[_Use], aliases: Sequence[tuple[str, str]]) -> set[str]:
    known, found = {option}, set[str]()
    for _ in range(_ROUNDS):
        for deciding, names in uses:
            if known & deciding and len(names) <= _LARGEST:
                found |= names
        known |= {alias for alias, of in aliases if of in known}
    return found - known


def _uses(tree: ast.AST) -> Iterator[_Use]:
    """The names that decide somewhere, and those that they decide on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            yield _use([name for a in arguments for name in _names(a, calls=False)], [node.func])
        elif isinstance(node, ast.IfExp):
            yield _use(_names(node.test), [node.body, node.orelse])
        elif isinstance(node, ast.If):
            yield _use(_names(node.test), [*node.body, *node.orelse])
        elif isinstance(node, ast.Subscript):
            yield _use(_names(node.slice), [node.value])


def _use(deciding: Iterable[str], on: Iterable[ast.AST]) -> _Use:
    return set(deciding), {name for node in on for name in _names(node)}


def _names(node: ast.AST, *, calls: bool = True) -> Iterator[str]:
    """The names in an expression or statement; without `calls` not those within calls in it."""
    # No recursion: generated code nests deeper than Python's stack.
    open_ = [node]
    while open_:
        node = open_.pop()
        if isinstance(node, ast.Call) and not calls:
            continue
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        open_ += ast.iter_child_nodes(node)


def _aliases(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Another name for a value: (`kind`, `memory`) of `Buffer(kind=args.memory)` and `self.kind = memory`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg and (of := _called(node.value)):
            yield node.arg, of
        elif isinstance(node, ast.Assign) and (of := _called(node.value)):
            yield from ((name, of) for target in node.targets if (name := _called(target)))


def _called(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def meets(function: str, touched: Mapping[str, frozenset[str]], option: str) -> bool:
    """Whether a function (`Class.method`, `function`) is among what an option touches: itself, or its class
    if any class has a method of that name."""
    names = touched.get(option, frozenset())
    owner, _, name = function.rpartition(".")
    return (name in names and not _common(name)) or (bool(owner) and owner.rpartition(".")[2] in names)


def _common(name: str) -> bool:
    return name.startswith("__") or name in _COMMON


_COMMON = frozenset(
    {
        *("forward", "backward", "step", "train", "main", "run", "fit", "call", "get", "update", "reset"),
        *("item", "mean", "append", "parameters", "to", "size", "shape", "add", "collate"),
    }
)
