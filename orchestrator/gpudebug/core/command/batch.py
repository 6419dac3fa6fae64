"""How many samples a step takes: what a command's flags set, and what a program prints.

Where two runs' batches differ, a step is another thing in each of them, and only samples can be compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from gpudebug.core.command import command_line
from gpudebug.core.command.synonyms import Synonyms, long_name
from gpudebug.core.lazy import regex
from gpudebug.core.records import Evidence

_SIZE = regex(r"(?:\w*_)?batch_?size(?:_\w+)?|batch|bs|\w+_bs")
_ACCUMULATED = regex(r"\w*accum\w*|grad_acc\w*")
_NOT_TRAINED = regex(
    r"(?:^|[_\W])(?:e?val(?:id\w*|uation)?|test\w*|infer\w*|predict\w*|auto\w*|find)(?![a-z])"
)

_PRINTED = regex(
    r"(?P<before>[^=:;,|]{0,60}?)batch[ _-]?size"
    r"(?P<behind>\w{0,20}(?: ?\([^)]*\)| per \w+){0,2})['\"]?\s*[:= ]\s*['\"]?"
    r"(?P<value>\d{1,9})(?![\d.]*\d)(?:\s*[x*]\s*\d+){0,3}(?:\s*=\s*(?P<product>\d{1,9}))?"
)
_WHOLE = regex(r"total|effective|global")
_OF_ALL = regex(r"global|effective")
_TOKENS = regex(r"tokens (?:per|/) ?(?:iteration|iter|step|update|global batch)[^:=\d]{0,20}[:=] ?(\d[\d,]*)")
_ENVIRONMENTS_TOLD = regex(r"number of environments\W{0,8}(\d[\d,]*)")
_FRAMES_PLANNED = regex(
    r"(?:(?:total|num|n|max|train|training)_)*(?:timesteps|(?:env|environment|agent)_(?:steps|frames)|frames)"
)
_PLAIN_NUMBER = regex(r"\d[\d_]{0,15}(?:\.\d{1,15})?(?:e\+?\d{1,2})?", re.I)
LEAST_FRAMES = 1000
"""Fewer frames than this are those of a stack or of a video."""

_ENVIRONMENTS = regex(r"(?:num_|n_)?(?:envs|environments)")


def flags(argv: Sequence[str], synonyms: Synonyms = ()) -> dict[str, str]:
    """The program's flags that set the size of a training batch or how many make a step: name -> value."""
    found = {}
    for option in command_line.program_options(argv):
        name = _folded(long_name(option.name, synonyms))
        if option.value is not None and (sets_size(name) or _ACCUMULATED.fullmatch(name)):
            found[name] = option.value
    return found


def names_batch(variable: str) -> bool:
    """Tell whether an environment variable's name speaks of the size of a batch."""
    name = _folded(variable)
    return sets_size(name) or bool(_ACCUMULATED.fullmatch(name))


def _folded(name: str) -> str:
    return command_line.bare_name(name).replace("-", "_").lower().rsplit(".", 1)[-1]


def sets_size(name: str) -> bool:
    """Tell whether an option of this folded name sets the size of a training batch."""
    return bool(_SIZE.fullmatch(name)) and not _NOT_TRAINED.search(name)


def size(given: dict[str, str]) -> float | None:
    """Samples a step (of one device) by these flags; None if they do not say, or say it twice.

    A step takes one batch if no flag says that several are accumulated. One that sets the whole of a step
    counts alone: parts of it may be set beside it.
    """
    whole = [value for name, value in given.items() if sets_size(name) and _OF_ALL.search(name)]
    if len(whole) == 1:
        given = {"batch_size": whole[0]}
    sizes = [value for name, value in given.items() if sets_size(name)]
    factors = [*sizes, *(value for name, value in given.items() if not sets_size(name))]
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


def printed_tokens(lines: Iterable[str]) -> float | None:
    """Tokens a step as a program prints them: `tokens per iteration will be: 12,288`; None of several."""
    found = _only(_TOKENS, lines)
    return float(found) if found is not None else None


def printed_environments(lines: Iterable[str]) -> int | None:
    """Environments as a program prints them: `Number of environments: 4096`; None of several."""
    return _only(_ENVIRONMENTS_TOLD, lines)


def _only(pattern: re.Pattern[str], lines: Iterable[str]) -> int | None:
    """Return the one number above 0 that the pattern finds in all lines."""
    found = {int(match[1].replace(",", "")) for line in lines for match in pattern.finditer(line.lower())}
    found -= {0}
    return found.pop() if len(found) == 1 else None


def environments(given: Mapping[str, str]) -> int | None:
    """How many environments these options or this configuration set; None if that is not one number."""
    sizes = {value for name, value in given.items() if _ENVIRONMENTS.fullmatch(_folded(name))}
    if len(sizes) != 1:
        return None
    value = sizes.pop()
    return int(value) if value.isascii() and value.isdigit() and int(value) > 0 else None


def settings(argv: Sequence[str], synonyms: Synonyms = ()) -> dict[str, str]:
    """Return the program's options that have a value, by their long names."""
    options = command_line.program_options(argv)
    return {long_name(o.name, synonyms): o.value for o in options if o.value is not None}


def environment_plans(given: Mapping[str, str]) -> frozenset[int]:
    """Return the environment steps that these options or this configuration plan: `--total-timesteps 1e6`."""
    found = set()
    for name, value in given.items():
        if _FRAMES_PLANNED.fullmatch(_folded(name)) and _PLAIN_NUMBER.fullmatch(value):
            planned = float(value)
            if planned >= LEAST_FRAMES and planned == int(planned):
                found.add(int(planned))
    return frozenset(found)


def differs(runs: Sequence[Evidence]) -> bool:
    """Tell whether the batch of these runs is not the same in all, as far as flags and prints tell."""
    sizes = {e.batch_size for e in runs if e.batch_size is not None}
    return len({tuple(sorted(e.batch_flags.items())) for e in runs}) > 1 or len(sizes) > 1
