"""How large the package is, and what makes it hard to read: `nox -s figures`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_NOUNS = frozenset({"What", "Whether", "How", "Which", "The", "A", "An"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    package, tests = (sorted((ROOT / folder).rglob("*.py")) for folder in ("orchestrator", "tests"))
    found = [one for path in package for one in functions(path)]
    called = [one for one in found if not is_command(one)]
    docstrings = [text for one in found if (text := ast.get_docstring(one))]
    nouns = sum(text.split(maxsplit=1)[0] in _NOUNS for text in docstrings)
    longest = max(called, key=arguments)
    for name, figure in {
        "lines of the package": f"{lines(package):,}",
        "modules": f"{len(package):,}",
        "functions": f"{len(found):,}",
        "lines of tests": f"{lines(tests):,}",
        "most arguments": f"{arguments(longest)} ({longest.name})",
        "functions with more than 8": str(sum(arguments(one) > 8 for one in called)),
        "functions that take Loaded": str(sum("Loaded" in annotations(one) for one in found)),
        "dict[str, Any] in signatures": str(
            sum(", ".join(annotations(one)).count("dict[str, Any]") for one in found)
        ),
        "docstrings that begin with a noun": f"{100 * nouns / len(docstrings):.0f} %",
    }.items():
        print(f"{name:36}{figure}")


def lines(paths: list[Path]) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def functions(path: Path) -> Iterator[Function]:
    """Yield every function and method of a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, Function):
            yield node


def arguments(function: Function) -> int:
    """Count the arguments, without `self` and `cls`."""
    return sum(one.arg not in ("self", "cls") for one in _all(function))


def is_command(function: Function) -> bool:
    """Tell whether its arguments are the options of a command, which nobody passes."""
    return any("command(" in ast.unparse(decorator) for decorator in function.decorator_list)


def annotations(function: Function) -> list[str]:
    """List the types of a function's arguments and of what it returns."""
    types = [one.annotation for one in _all(function)] + [function.returns]
    return [ast.unparse(one) for one in types if one is not None]


def _all(function: Function) -> list[ast.arg]:
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


if __name__ == "__main__":
    main()
