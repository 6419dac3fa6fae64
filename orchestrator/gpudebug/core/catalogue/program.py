"""What the source of a program says without being run: what it uses, and with which settings."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from gpudebug.core.command import command_line
from gpudebug.core.command.command_line import bare_name
from gpudebug.core.command.synonyms import Synonyms, merged

Kind = Literal["int", "float", "str", "bool", "switch", "unset_switch", "pair"]
Default = str | float | bool | None

# What turns the fields of a dataclass into options.
_FROM_DATACLASS = frozenset(
    {"tyro", "draccus", "simple_parsing", "HfArgumentParser", "TrlParser", "jsonargparse", "pyrallis"}
)
_OF_ARGPARSE = frozenset({"action", "choices", "default", "help", "nargs", "required", "type"})
_DEFINED = {"integer": "int", "float": "float", "string": "str", "boolean": "bool", "bool": "bool"}
_KINDS: dict[str, Kind] = {"int": "int", "float": "float", "str": "str", "Path": "str", "bool": "bool"}


class OwnFlag(NamedTuple):
    """One option of a program. `name` is as it is written, with its dashes; of an environment variable, which
    `variable` sets, as it is. A `switch` has no value and turns something on, an `unset_switch`
    off; a `pair` is `--x` and `--no-x`. `default` is None if unknown, `choices` are all values
    that it takes, if it says so. `others` are its other names: `-j` of `--workers`."""

    name: str
    default: Default
    kind: Kind
    variable: bool = False
    choices: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def folded(name: str) -> str:
    """`--num-workers` and `num_workers` are one."""
    return bare_name(name).replace("-", "_")


def own_flags(source: str) -> dict[str, OwnFlag]:
    """The options and variables that a program's source defines, by folded name; {} if it does not parse.

    Reads `argparse`, `click`, `typer`, `absl`, dataclasses that become options (tyro, draccus,
    HfArgumentParser, …), a `configurator.py` as nanoGPT's, and `os.environ`.
    """
    tree = parsed(source)
    return {folded(flag.name): flag for flag in _found(tree, source)} if tree else {}


def parsed(source: str) -> ast.Module | None:
    """Parse source text; None if it is not valid Python. Warnings are the program's matter."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _found(tree: ast.Module, source: str) -> Iterator[OwnFlag]:
    of_dataclasses = any(name in source for name in _FROM_DATACLASS)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, ast.Subscript):
            yield from _of_variable(node)
        elif isinstance(node, ast.ClassDef) and of_dataclasses and _is_dataclass(node):
            yield from _of_fields(node)
        elif isinstance(node, ast.FunctionDef) and "typer" in source:
            yield from _of_parameters(node)
    if "configurator.py" in source:
        yield from _of_constants(tree)


def _of_call(call: ast.Call) -> Iterator[OwnFlag]:
    name = called(call.func).rpartition(".")[2]
    if name == "option":
        yield from _of_click(call)
    elif name == "add_argument" or (name != "Option" and _defines(call)):
        yield from _of_argparse(call)
    elif name.startswith("DEFINE_") and len(call.args) > 1:
        kind, flag = _DEFINED.get(name[7:]), constant(call.args[0])
        if kind and isinstance(flag, str):
            yield OwnFlag(f"--{flag}", constant(call.args[1]), _KINDS[kind])
    elif called(call.func) in ("os.environ.get", "os.getenv", "environ.get", "getenv") and call.args:
        variable = constant(call.args[0])
        if isinstance(variable, str):
            default = constant(call.args[1]) if len(call.args) > 1 else None
            yield OwnFlag(variable, default, "str", variable=True)


def _defines(call: ast.Call) -> bool:
    """Tell whether a function under another name is called as `add_argument` is."""
    first = constant(call.args[0]) if call.args else None
    return isinstance(first, str) and first.startswith("--") and bool(_keywords(call).keys() & _OF_ARGPARSE)


def _of_variable(node: ast.Subscript) -> Iterator[OwnFlag]:
    name = constant(node.slice)
    read = isinstance(node.ctx, ast.Load)
    if read and called(node.value) in ("os.environ", "environ") and isinstance(name, str):
        yield OwnFlag(name, None, "str", variable=True)


def _of_argparse(call: ast.Call) -> Iterator[OwnFlag]:
    name = _longest(call)
    if name is None:
        return
    given = _keywords(call)
    action = given.get("action")
    kind: Kind = _kind(given.get("type"), default := constant(given.get("default")))
    if action is not None:
        word = constant(action) or called(action).rpartition(".")[2]
        switches: dict[object, Kind] = {
            "store_true": "switch",
            "store_false": "unset_switch",
            "BooleanOptionalAction": "pair",
        }
        if word not in (*switches, "store"):
            return
        kind = switches.get(word, kind)
        default = {"switch": False, "unset_switch": True}.get(kind, default)
    others = _others(call, name)
    yield OwnFlag(name, default, kind, choices=_choices(given.get("choices")), others=others)


def _choices(node: ast.expr | None) -> tuple[str, ...]:
    """Return the values of a list that is written out; none if one of them is computed."""
    found = [constant(e) for e in node.elts] if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else []
    return () if None in found else tuple(str(value) for value in found)


def _of_click(call: ast.Call) -> Iterator[OwnFlag]:
    name = _longest(call)
    if name is None:
        return
    given = _keywords(call)
    default = constant(given.get("default"))
    if "/" in name:
        yield OwnFlag(name.partition("/")[0], default, "pair")
    elif constant(given.get("is_flag")) is True:
        yield OwnFlag(name, default or False, "switch", others=_others(call, name))
    else:
        kind = _kind(given.get("type"), default)
        yield OwnFlag(name, default, kind, others=_others(call, name))


def _of_parameters(function: ast.FunctionDef) -> Iterator[OwnFlag]:
    """Parameters that are a `typer.Option`, by their default or their annotation."""
    positional = [*function.args.posonlyargs, *function.args.args]
    defaults = [None] * (len(positional) - len(function.args.defaults)) + list(function.args.defaults)
    pairs = [
        *zip(positional, defaults, strict=True),
        *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True),
    ]
    for parameter, value in pairs:
        annotation, option = parameter.annotation, value
        if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
            parts = annotation.slice.elts
            annotation, option = parts[0], parts[-1]
            default = constant(value)
        elif isinstance(value, ast.Call):
            default = constant(value.args[0]) if value.args else None
        if not isinstance(option, ast.Call) or called(option.func) not in ("typer.Option", "Option"):
            continue
        name = _longest(option) or "--" + parameter.arg.replace("_", "-")
        kind = _kind(annotation, default)
        kind = "pair" if kind == "bool" else kind
        yield OwnFlag(name.partition("/")[0], default, kind, others=_others(option, name))


def _is_dataclass(node: ast.ClassDef) -> bool:
    names = [called(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
    return any(name.rpartition(".")[2] == "dataclass" for name in names)


def _of_fields(node: ast.ClassDef) -> Iterator[OwnFlag]:
    for each in node.body:
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        value = each.value
        if isinstance(value, ast.Call) and called(value.func).rpartition(".")[2] == "field":
            value = _keywords(value).get("default")
        default = constant(value)
        yield OwnFlag(f"--{each.target.id}", default, _kind(each.annotation, default))


def _of_constants(tree: ast.Module) -> Iterator[OwnFlag]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            default = constant(node.value)
            if default is not None:
                yield OwnFlag(f"--{node.targets[0].id}", default, _kind(None, default))


def _names(call: ast.Call) -> list[str]:
    return [word for word in map(constant, call.args) if isinstance(word, str) and word.startswith("-")]


def _others(call: ast.Call, name: str) -> tuple[str, ...]:
    return tuple(word for word in _names(call) if word != name and "/" not in word)


def _longest(call: ast.Call) -> str | None:
    """Return the long name of an option, else its short one; None if it is not an option."""
    words = _names(call)
    return next((word for word in words if word.startswith("--")), words[0] if words else None)


def _kind(annotation: ast.expr | None, default: Default) -> Kind:
    inner = annotation
    if isinstance(annotation, ast.BinOp):
        inner = annotation.left
    elif isinstance(annotation, ast.Subscript) and called(annotation.value).endswith("Optional"):
        inner = annotation.slice
    word = called(inner).rpartition(".")[2]
    if word in _KINDS:
        # argparse's `type=bool` is true for every text; it is still meant as one of two.
        return _KINDS[word]
    if "bool" in word.lower():
        return "bool"
    return _KINDS[type(default).__name__] if default is not None else "str"


def called(node: ast.expr | None) -> str:
    """Return the dotted name of an expression, "" if it is not a name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def constant(node: ast.expr | None) -> Default:
    """Return the text, number or truth that an expression is, None for everything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = constant(node.operand)
        return -number if isinstance(number, (int, float)) and not isinstance(number, bool) else None
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (str, int, float, bool)) else None


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {k.arg: k.value for k in call.keywords if k.arg is not None}


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
