"""What the source of a program says without being run: what it uses, and with which settings."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath

from gpudebug.core.catalogue.own_flags import Default, OwnFlag, called, constant, own_flags, parsed
from gpudebug.core.command import command_line
from gpudebug.core.command.synonyms import Synonyms, merged


@dataclass(frozen=True)
class Program:
    """A program by its source, whose script lies at `path`.

    `uses` are the dotted names that it imports or takes from what it imports, `options` the flags and
    variables of its own by folded name. `calls` are the arguments of each call of such a name: the number,
    text or truth that is there; `options_of` the option whose value does: workers for `args.workers`;
    `computed` are those whose value the source does not say, `**` for arguments that it does not name.
    """

    path: str
    uses: frozenset[str] = frozenset()
    options: Mapping[str, OwnFlag] = field(default_factory=dict)
    calls: Mapping[str, Mapping[str, Default]] = field(default_factory=dict)
    options_of: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    computed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def synonyms(self) -> Synonyms:
        """Its options with several names."""
        return merged((flag.name, *flag.others) for flag in self.options.values())


def scripts(argv: Sequence[str]) -> tuple[str, ...]:
    """Where the command's own program may lie, from its working folder: a script, or a module's file."""
    start = command_line.program_start(argv)
    program = argv[start - 1] if start else ""
    if program.endswith(".py"):
        return (program,)
    if start > 1 and argv[start - 2] in ("-m", "--module"):
        path = program.replace(".", "/")
        return (f"{path}.py", f"{path}/__main__.py", f"src/{path}.py", f"src/{path}/__main__.py")
    return ()


@lru_cache(maxsize=4)
def neighbours(source: str, path: str) -> tuple[str, ...]:
    """Return the files beside a script that its imports may mean: its options may be defined there."""
    tree = parsed(source)
    folder = PurePosixPath(path).parent
    names = {name.partition(".")[0] for name in _imported(tree)} if tree else set()
    return tuple(str(folder / f"{name}.py") for name in sorted(names) if name)


def look(path: str, sources: Sequence[str]) -> Program:
    """What the sources of a program say together, its script's first; what does not parse says nothing."""
    uses, options = set[str](), dict[str, OwnFlag]()
    calls: dict[str, dict[str, Default]] = {}
    options_of: dict[str, dict[str, str]] = {}
    computed: dict[str, frozenset[str]] = {}
    for source in sources:
        tree = parsed(source)
        if tree is None:
            continue
        aliases, constants = _aliases(tree), _constants(tree)
        uses |= set(aliases.values())
        options = {**own_flags(source), **options}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                uses |= {_resolved(called(node), aliases)} - {""}
            elif isinstance(node, ast.Call) and (name := _resolved(called(node.func), aliases)):
                values, options_ = calls.setdefault(name, {}), options_of.setdefault(name, {})
                unknown = {a.arg or "**" for a in node.keywords if not _note(a, values, options_, constants)}
                computed[name] = computed.get(name, frozenset()) | unknown
    return Program(path, frozenset(uses), options, calls, options_of, computed)


def _note(
    argument: ast.keyword,
    values: dict[str, Default],
    options: dict[str, str],
    constants: Mapping[str, Default],
) -> bool:
    """Note what an argument's value is, or whose; whether either is known."""
    if argument.arg is None:
        return False
    named = argument.value.id if isinstance(argument.value, ast.Name) else None
    value = constant(argument.value) if named is None else constants.get(named)
    if value is not None:
        values.setdefault(argument.arg, value)
    elif isinstance(argument.value, ast.Attribute):
        options.setdefault(argument.arg, argument.value.attr)
    return value is not None or isinstance(argument.value, ast.Attribute)


def _constants(tree: ast.Module) -> dict[str, Default]:
    """Return the names that a module binds once, at its top, to a number, text or truth."""
    bound = Counter(
        node.arg if isinstance(node, ast.arg) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
    )
    found = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and len(targets) == 1:
            name = targets[0]
            if isinstance(name, ast.Name) and bound[name.id] == 1:
                found[name.id] = constant(node.value)
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.module
            else:
                yield from (alias.name for alias in node.names)


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Map each imported name to its full name; a module imported under its own name to itself."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _resolved(name: str, aliases: Mapping[str, str]) -> str:
    """Return a dotted name by what was imported; "" where its head was not."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        head = aliases.get(".".join(parts[:length]))
        if head is not None:
            return ".".join([head, *parts[length:]])
    # `import a.b` lets `a` be used, too.
    return (
        name
        if any(module.startswith(f"{parts[0]}.") for module in aliases.values()) and len(parts) > 1
        else ""
    )
