"""What the options of a program steer: the functions and classes that stand where their values are used."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

_ROUNDS = 2
"""How often a value is followed under another name: `memory=args.memory`, then `kind=memory`."""
_LARGEST = 60
"""Names in a statement; one with more says nothing of a single option."""
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Assert, ast.Raise)


def touches(trees: Sequence[ast.AST], options: Iterable[str]) -> dict[str, frozenset[str]]:
    """By option (folded name), the names of functions, classes and attributes that its value decides on.

    Those are the names in the statements that use it, and in both branches of a choice that depends on it.
    """
    statements = [told for tree in trees for told in _statements(tree)]
    return {option: frozenset(_touched(option.rpartition(".")[2], statements)) for option in options}


class _Told:
    """One statement: the names that decide in it, those that it decides on, and other names of its values."""

    def __init__(self, decides: Sequence[ast.AST], on: Sequence[ast.AST]) -> None:
        self.used = {name for node in decides for name in _names(node)}
        self.names = self.used | {name for node in on for name in _names(node)}
        self.aliases = [pair for node in decides for pair in _aliases(node)]


def _touched(option: str, statements: Sequence[_Told]) -> set[str]:
    known, found = {option}, set[str]()
    for _ in range(_ROUNDS):
        for told in statements:
            if known & told.used and len(told.names) <= _LARGEST:
                found |= told.names
        known |= {alias for told in statements for alias, of in told.aliases if of in known}
    return found - known


def _statements(tree: ast.AST) -> Iterator[_Told]:
    for node in ast.walk(tree):
        if isinstance(node, _SIMPLE):
            yield _Told([node], [])
        elif isinstance(node, ast.If):
            yield _Told([node.test], [*node.body, *node.orelse])
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield _Told([node.iter], [])
        elif isinstance(node, ast.While):
            yield _Told([node.test], [])
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield _Told([item.context_expr for item in node.items], [])


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name


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
    where any class has a method of that name."""
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
