"""Whether the source of a program shows every option that it takes.

Only of a plain `argparse` parser that is made, filled and asked in one place with names that are written out:
whatever hands the parser on, fills it from elsewhere or leaves options for later may know more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

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
_OTHERS = ("jsonargparse", "configargparse", "sys.argv", "parse_known_args", "parse_intermixed_args")
"""What reads options beside a plain parser."""
_OPEN = frozenset({"parents", "fromfile_prefix_chars", "prefix_chars"})


def read_whole(sources: Sequence[str]) -> bool:
    """Whether the first of the sources, a program's script, makes its parser and no source fills another."""
    trees = [parsed(source) for source in sources]
    script = trees[0] if trees else None
    if script is None or None in trees or any(word in source for word in _OTHERS for source in sources):
        return False
    made = [node for tree in trees if tree is not None for node in _made(tree)]
    own = list(_made(script))
    if len(made) != 1 or len(own) != 1:
        return False
    target, call = own[0]
    if any(k.arg is None or k.arg in _OPEN for k in call.keywords):
        return False
    names = {target, *_groups(script, target)}
    asked = any(_is_call(node, "parse_args") for node in ast.walk(script))
    return asked and all(_plain(script, name) for name in names)


def _made(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Each parser that is made: the name that it gets, "" without a plain one."""
    kept = {
        id(node.value): node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node.func).endswith("ArgumentParser"):
            yield kept.get(id(node), ""), node


def _groups(tree: ast.Module, parser: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        owner, _, method = called(node.value.func).rpartition(".")
        if owner == parser and method in _GROUPS:
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))


def _is_call(node: ast.AST, method: str) -> bool:
    return isinstance(node, ast.Call) and called(node.func).rpartition(".")[2] == method


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
