"""How many samples a step takes: what a command's flags set, and what a program prints.

Where two runs' batches differ, a step is another thing in each of them, and only samples can be compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from gpudebug.core.command import command_line
from gpudebug.core.records import Evidence

_SIZE = re.compile(r"(?:\w*_)?batch_?size(?:_\w+)?|batch|bs|\w+_bs")
_ACCUMULATED = re.compile(r"\w*accum\w*|grad_acc\w*")
_NOT_TRAINED = re.compile(
    r"(?:^|[_\W])(?:e?val(?:id\w*|uation)?|test\w*|infer\w*|predict\w*|auto\w*|find)(?![a-z])"
)

_PRINTED = re.compile(
    r"(?P<before>[^=:;,|]{0,60}?)batch[ _-]?size"
    r"(?P<behind>\w{0,20}(?: ?\([^)]*\)| per \w+){0,2})['\"]?\s*[:= ]\s*['\"]?"
    r"(?P<value>\d{1,9})(?![\d.]*\d)(?:\s*[x*]\s*\d+){0,3}(?:\s*=\s*(?P<product>\d{1,9}))?"
)
_WHOLE = re.compile(r"total|effective|global")


def flags(argv: Sequence[str]) -> dict[str, str]:
    """The program's flags that set the size of a training batch or how many make a step: name -> value."""
    found = {}
    for option in command_line.program_options(argv):
        name = _folded(option.name)
        if option.value is not None and (_sizes(name) or _ACCUMULATED.fullmatch(name)):
            found[name] = option.value
    return found


def names_batch(variable: str) -> bool:
    """Whether an environment variable's name speaks of the size of a batch."""
    name = _folded(variable)
    return _sizes(name) or bool(_ACCUMULATED.fullmatch(name))


def _folded(name: str) -> str:
    return command_line.bare_name(name).replace("-", "_").lower().rsplit(".", 1)[-1]


def _sizes(name: str) -> bool:
    return bool(_SIZE.fullmatch(name)) and not _NOT_TRAINED.search(name)


def size(given: dict[str, str]) -> float | None:
    """Samples a step (of one device) by these flags; None if they do not say, or say it twice.

    A step takes one batch if no flag says that several are accumulated.
    """
    sizes = [value for name, value in given.items() if _sizes(name)]
    factors = [*sizes, *(value for name, value in given.items() if not _sizes(name))]
    if len(sizes) != 1 or not all(
        value.isascii() and value.isdigit() and int(value) > 0 for value in factors
    ):
        return None
    return float(math.prod(int(value) for value in factors))


def printed(lines: Iterable[str]) -> float | None:
    """Samples a step as a program prints them, the total before the part; None if it says several."""
    whole: set[int] = set()
    parts: set[int] = set()
    for line in lines:
        for match in _PRINTED.finditer(line.lower()):
            name = match["before"] + "batch_size" + match["behind"]
            if not _NOT_TRAINED.search(name):
                value = int(match["product"] or match["value"])
                (whole if match["product"] or _WHOLE.search(name) else parts).add(value)
    rest = (whole or parts) - {0}
    return float(rest.pop()) if len(rest) == 1 else None


def differs(runs: Sequence[Evidence]) -> bool:
    """Whether the batch of these runs is not the same in all, as far as flags and prints tell."""
    sizes = {e.batch_size for e in runs if e.batch_size is not None}
    return len({tuple(sorted(e.batch_flags.items())) for e in runs}) > 1 or len(sizes) > 1
