"""Whether the source of a program shows every option that it takes.

Only of a plain `argparse` parser that is made, filled and asked in one place with names that are written out:
whatever hands the parser on, fills it from elsewhere or leaves options for later may know more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from gpudebug.core.catalogue.own_flags import called, constant, parsed

_PLAIN = frozenset(
    {
        "add_argument",
        "parse_args",
        "set_defaults",
        "error",
        "exit",
        "print_help",
        "print_usage",
        "format_help",
    }
)
_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group"})
_MADE = "argparse.ArgumentParser"
_OTHERS = (
    *("jsonargparse", "configargparse", "sys.argv", "parse_known_args", "parse_intermixed_args"),
    *("parse_known_intermixed_args", "from_cli", "TrlParser"),
)
"""What reads options beside a plain parser."""
_READERS = frozenset(
    {
        "absl",
        "click",
        "docopt",
        "draccus",
        "fire",
        "hydra",
        "pyrallis",
        "simple_parsing",
        "tap",
        "typer",
        "tyro",
    }
)
"""Packages that do."""
_OPEN = frozenset({"parents", "fromfile_prefix_chars", "prefix_chars"})
_CHANGED = _PLAIN | _GROUPS | {"ArgumentParser"}
"""What does another thing once a program assigns to it."""
_HEADS = 3
"""What may be given without a keyword: `prog`, `usage` and `description`."""


def read_whole(sources: Sequence[str]) -> bool:
    """Whether the first of the sources, a program's script, makes its parser and no source fills another.

    The parser is an `argparse.ArgumentParser`, by whatever name it is imported, no class of another's or
    of the program's own, and is asked for the command line itself: `parse_args()`.
    """
    trees = [tree for source in sources if (tree := parsed(source)) is not None]
    if not trees or len(trees) < len(sources) or any(w in source for w in _OTHERS for source in sources):
        return False
    if any(map(_beside, trees)):
        return False
    script, made = trees[0], [node for tree in trees for node in _made(tree)]
    own = list(_made(script))
    if len(made) != 1 or len(own) != 1:
        return False
    target, call = own[0]
    if called(call.func) not in _plain_names(script) or not _closed(call):
        return False
    names = {target, *_groups(script, target)}
    asked = [node for tree in trees for node in ast.walk(tree) if _asks(node)]
    for_itself = bool(asked) and all(called(n.func) == f"{target}.parse_args" and _bare(n) for n in asked)
    return for_itself and all(_plain(script, name) for name in names)


def _beside(tree: ast.Module) -> bool:
    """Whether a source has options from elsewhere, a kind of parser of its own, or changes what one does."""
    plain = _plain_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(n.name.partition(".")[0] in _READERS for n in node.names):
            return True
        if isinstance(node, ast.ImportFrom):
            names = {n.name for n in node.names}
            of_others = node.level == 0 and str(node.module).partition(".")[0] in _READERS
            if of_others or "*" in names or (node.module == "sys" and "argv" in names):
                return True
        if isinstance(node, ast.ClassDef) and any(_is_parser(called(base), plain) for base in node.bases):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _CHANGED and not isinstance(node.ctx, ast.Load):
            return True
    return False


def _plain_names(tree: ast.Module) -> frozenset[str]:
    """What `argparse.ArgumentParser` is called in a source: names that are bound to nothing else in it."""
    meant: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        for name, value in _bound(node):
            meant.setdefault(name, set()).add(value)
    modules = {f"{name}.ArgumentParser" for name, values in meant.items() if values == {"argparse"}}
    return frozenset(modules | {name for name, values in meant.items() if values == {_MADE}})


def _bound(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Each name that a node binds, and the module or object that it imports, "" for everything else."""
    if isinstance(node, ast.Import):
        yield from ((n.asname or n.name.partition(".")[0], n.name) for n in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        yield from ((n.asname or n.name, f"{module}.{n.name}") for n in node.names)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name, ""
    elif isinstance(node, ast.arg):
        yield node.arg, ""
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, ""


def _closed(call: ast.Call) -> bool:
    """Whether a parser is made without options of others."""
    keywords = all(k.arg is not None and k.arg not in _OPEN for k in call.keywords)
    return keywords and len(call.args) <= _HEADS and all(isinstance(constant(a), str) for a in call.args)


def _bare(call: ast.Call) -> bool:
    return not call.args and not call.keywords


def _made(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Each parser that is made, of whatever kind: the name that it gets, "" without a plain one."""
    kept = {
        id(node.value): node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    plain = _plain_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_parser(called(node.func), plain):
            yield kept.get(id(node), ""), node


def _is_parser(name: str, plain: frozenset[str]) -> bool:
    return name.endswith("ArgumentParser") or name in plain


def _groups(tree: ast.Module, parser: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        owner, _, method = called(node.value.func).rpartition(".")
        if owner == parser and method in _GROUPS:
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))


def _asks(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parse_args"
    )


def _plain(tree: ast.Module, name: str) -> bool:
    """Whether a parser or group is only asked for what is known, its options by names in the source."""
    if not name:
        return False
    owners = {id(n.value): n for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    calls = {id(n.func): n for n in ast.walk(tree) if isinstance(n, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id != name or isinstance(node.ctx, ast.Store):
            continue
        used = owners.get(id(node))
        call = calls.get(id(used)) if used is not None else None
        if used is None or call is None or used.attr not in _PLAIN | _GROUPS:
            return False
        if used.attr == "add_argument" and not _written_out(call):
            return False
    return True


def _written_out(call: ast.Call) -> bool:
    """Whether an option's names are texts; what an action of its own adds is not known."""
    names = [constant(argument) for argument in call.args]
    action = next((k.value for k in call.keywords if k.arg == "action"), None)
    known = action is None or isinstance(constant(action), str) or called(action).endswith("OptionalAction")
    spread = any(k.arg is None for k in call.keywords)
    return bool(names) and all(isinstance(name, str) for name in names) and known and not spread
