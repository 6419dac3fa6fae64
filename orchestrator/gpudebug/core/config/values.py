"""The kinds of value that gpudebug.yaml knows; each refuses another, and says what it expects."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from gpudebug.core.change import permits
from gpudebug.core.text import values
from gpudebug.core.words import WorkName
from gpudebug.core.yaml.models import expected, shaped, shown, unexpected

_LATENCIES = ("latency_p50", "latency_p95", "latency_p99")
METRICS = (
    *("gpu_util", "steps_per_s", "samples_per_s", "work_per_s", "step_time_p50", "step_time_p95"),
    *_LATENCIES,
    "joules_per_step",
)
LOWER_IS_BETTER = ("step_time_p50", "step_time_p95", *_LATENCIES, "joules_per_step", "section:")

LEAST_RUN_S = 5.0
"""A shorter window of a run has no figure (`core.samples.window`)."""

_NAMED_METRIC = r"(section|log):[^\x00-\x1f\x7f]{1,100}"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f]"
_RATIO = r"([0-9]{1,6}(?:\.[0-9]{1,9})?) ?x"
_POINTS = r"([0-9]{1,6}(?:\.[0-9]{1,9})?) ?pp"


def text(value: Any) -> str:
    """Any text without control characters."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise unexpected("text", value)
    result = str(getattr(value, "text", value))
    if re.search(_CONTROL, result):
        raise ValueError("has a control character")
    return result


def quoted(value: Any) -> str:
    """Text of a command's word or a variable: numbers as they were written; true and false must be quoted,
    because programs differ in how they spell them."""
    if isinstance(value, bool) or value is None:
        raise ValueError(f"expected text, found {shown(value)}: quote it, as in 'true' or ''")
    return text(value)


Text = Annotated[str, BeforeValidator(text)]
Quoted = Annotated[str, BeforeValidator(quoted)]
Boolean = Annotated[bool, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False), expected("a number such as 20")]
Count = Annotated[int, Field(strict=True, ge=1, le=1000), expected("a whole number from 1 to 1000")]
# One run shows no noise.
Several = Annotated[int, Field(strict=True, ge=2, le=1000), expected("a whole number from 2 to 1000")]
Target = Annotated[
    Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False), expected("a number above 0")] | None,
    shaped((int, float), "a number above 0"),
]


def _quantity(parse: Callable[[str], float], what: str, value: Any) -> float:
    """Return what `parse` reads, above 0."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise unexpected(what, value)
    try:
        result = parse(str(getattr(value, "text", value)))
    except values.QuantityError:
        raise unexpected(what, value) from None
    if result <= 0:
        raise unexpected(f"{what.partition(' such as')[0]} above 0", value)
    return result


duration = partial(_quantity, values.parse_duration, "a duration such as 30m, 90s or 0.2s")
_size = partial(_quantity, values.parse_size, "a size such as 2GB or 500MB")


def _warmup(value: Any) -> float | None:
    """Seconds that are cut; None for `auto`."""
    if value == "auto":
        return None
    if value == 0 and not isinstance(value, bool):
        return 0.0
    try:
        return duration(value)
    except ValueError:
        raise unexpected("auto or a duration such as 30s", value) from None


def run_for(value: Any) -> float | str | None:
    """Seconds of steady window after which gpudebug ends a run; `end`: never, `phase NAME` with or without
    seconds: once that phase has them; None for `auto`."""
    if value in ("auto", "end"):
        return None if value == "auto" else "end"
    found: float | str
    try:
        if isinstance(value, str) and value.startswith("phase "):
            seconds, found = values.parse_phase(value).seconds, value
        else:
            seconds = found = duration(value)
    except ValueError:
        raise unexpected("auto, end, a duration such as 90s, or phase ppo 60s", value) from None
    if seconds is not None and seconds < LEAST_RUN_S:
        raise unexpected(f"at least {LEAST_RUN_S:g}s: shorter windows say too little", value)
    return found


_PHASE_NAME = r"[A-Za-z0-9](?:[\w .-]{0,38}[\w.-])?"


def phase(name: str) -> str:
    """Return the name of a phase."""
    if not re.fullmatch(_PHASE_NAME, name):
        raise ValueError(f"{name!r} is no name of a phase: write letters, digits, '_', '-', '.' or spaces")
    return name


Duration = Annotated[float, BeforeValidator(duration)]
# Faster polling slows the training, slower misses it.
Interval = Annotated[Duration, Field(ge=0.02, le=10), expected("an interval from 0.02s to 10s")]
Warmup = Annotated[float | None, BeforeValidator(_warmup)]
RunFor = Annotated[float | str | None, BeforeValidator(run_for)]
Size = Annotated[int, BeforeValidator(_size)]


def _path(value: Any) -> str:
    """Return a path inside the repository, as far as the text shows; the store resolves links."""
    result = text(value)
    parts = result.split("/")
    if not result or result.startswith(("/", "~")) or "\\" in result or "\n" in result or ".." in parts:
        raise unexpected("a path inside the repository such as progress/name.md", value)
    if ".git" in parts:
        raise unexpected("a path outside .git", value)
    return result


def _of_a_file(path: str) -> str:
    if path.rpartition("/")[2] in ("", "."):
        raise unexpected("the path of a file such as progress/name.md", path)
    return path


# A name that is safe in a path.
Slug = Annotated[
    Text,
    Field(pattern=r"^[a-z0-9](\.?[a-z0-9_-])*\.?$", max_length=64),
    expected("a name of a-z, 0-9, '.', '_' and '-' such as act-relative-rtc"),
]
Path = Annotated[str, BeforeValidator(_path)]
FilePath = Annotated[Path, AfterValidator(_of_a_file)]
Paths = Annotated[tuple[Path, ...], shaped(list, "a list of paths such as [plans/notes.md]")]
Words = Annotated[tuple[Quoted, ...], shaped(list, "a list such as [--batch_size]")]


def metric(value: Any) -> str:
    if value in METRICS or (isinstance(value, str) and re.fullmatch(_NAMED_METRIC, value)):
        return str(value)
    raise unexpected(f"one of {', '.join(METRICS)}, section:NAME, log:NAME", value)


WORK = {
    "environment_steps": WorkName.ENVIRONMENT_STEPS,
    "env_steps": WorkName.ENVIRONMENT_STEPS,
    "timesteps": WorkName.ENVIRONMENT_STEPS,
    "frames": WorkName.ENVIRONMENT_STEPS,
    "tokens": WorkName.TOKENS,
    "samples": WorkName.SAMPLES,
    "optimizer_steps": WorkName.OPTIMIZER_STEPS,
    "steps": WorkName.OPTIMIZER_STEPS,
    "epochs": WorkName.EPOCHS,
}
"""What may be written for a unit of work, with `_` or spaces."""


def work(value: Any) -> str:
    """Return a unit of work by its full name, `log:NAME`, or `auto`."""
    if isinstance(value, str):
        unit = WORK.get(value.strip().lower().replace(" ", "_").replace("-", "_"))
        if unit is not None:
            return str(unit)
        if value == "auto" or (value.startswith("log:") and re.fullmatch(_NAMED_METRIC, value)):
            return value
    raise unexpected(
        "auto, environment steps, tokens, samples, optimizer steps, epochs or log:NAME of a counter", value
    )


class Ratio(float):
    """A factor of improvement, 1 or above: trial over baseline for a rate, baseline over trial for a
    time or an energy."""


def threshold(value: Any) -> float:
    """Percentage points as a float, or a Ratio of 1 or above from `1.2x`."""
    if isinstance(value, Ratio):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return _points(float(value), value)
    ratio, points = re.fullmatch(_RATIO, str(value)), re.fullmatch(_POINTS, str(value))
    if ratio:
        if float(ratio[1]) < 1:
            raise unexpected("an improvement of 1x or more (for a time: baseline over trial)", value)
        return Ratio(ratio[1])
    if points is None:
        raise unexpected("percentage points such as 20, or a ratio such as 1.2x", value)
    return _points(float(points[1]), value)


def _points(result: float, value: Any) -> float:
    if not 0 <= result <= 100:
        raise unexpected("0 to 100 percentage points", value)
    return result


def _devices(value: Any) -> Any:
    """Return what utilisation is judged by; None for `mean`."""
    if value not in ("mean", "least", "working"):
        raise unexpected("mean, least or working", value)
    return None if value == "mean" else value


Metric = Annotated[str, BeforeValidator(metric)]
Work = Annotated[str, BeforeValidator(work)]
# Pydantic's own float would forget that it is a Ratio.
Threshold = Annotated[float, PlainValidator(threshold)]
Devices = Annotated[Literal["least", "working"] | None, BeforeValidator(_devices)]


def _command(value: Any) -> str | tuple[str, ...]:
    """Return text to be split, or the words themselves."""
    if isinstance(value, list):
        return tuple(quoted(word) for word in value)
    if not isinstance(value, str):
        raise unexpected("a command, as text or as a list of words", value)
    if not value.strip(" \t\r\n"):
        raise ValueError("the command is empty")
    return text(value)


def _variable(name: str) -> str:
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"{name!r} is not a name of a variable")
    return name


def _harmless(name: str) -> str:
    if permits.chooses_code(name):
        raise ValueError(f"{name} decides which code runs: no hypothesis may set it, workload.env may")
    return name


def _launcher(name: str) -> str:
    from gpudebug.core.command import launchers

    if name not in launchers.LAUNCHERS:
        raise unexpected(f"one of {', '.join(sorted(launchers.LAUNCHERS))}", name)
    return name


def _launchers_flag(flag: str) -> str:
    from gpudebug.core.command import launchers

    if not re.fullmatch(r"--?[A-Za-z][\w-]*", flag, re.ASCII):
        raise unexpected("a flag such as --nproc_per_node", flag)
    if launchers.folded(flag) in launchers.NEVER_OPEN:
        raise ValueError(f"{flag} decides what is run: no hypothesis may set it")
    return flag


def expression(written: str) -> str:
    """Refuse what is not an expression, or one whose search has no bound."""
    from gpudebug.core.text.expressions import Unbounded, bounded

    try:
        bounded(written)
    except Unbounded as error:
        raise ValueError(f"{written!r} {error}; write it with fewer repeats") from None
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"no regular expression: {error}") from None
    return written


def _with_value(written: str) -> str:
    if "value" not in re.compile(written).groupindex:
        raise ValueError(r"expected a group named value, as in loss:(?P<value>\S+)")
    return written


def _in_order(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] > pair[1]:
        raise ValueError(f"expected the lower number first, found [{pair[0]:g}, {pair[1]:g}]")
    return pair


_VariableName = Annotated[str, AfterValidator(_variable)]
Command = Annotated[str | tuple[str, ...], BeforeValidator(_command)]
Variables = Annotated[dict[_VariableName, Quoted], shaped(dict, "a mapping such as {OMP_NUM_THREADS: 1}")]
VariableNames = Annotated[
    tuple[Annotated[Quoted, AfterValidator(_variable), AfterValidator(_harmless)], ...],
    shaped(list, "a list of variables such as [MY_WORKERS]"),
]
LauncherFlags = Annotated[
    dict[
        Annotated[str, AfterValidator(_launcher)],
        Annotated[
            tuple[Annotated[Quoted, AfterValidator(_launchers_flag)], ...],
            shaped(list, "a list such as [--nproc_per_node]"),
        ],
    ],
    shaped(dict, "a mapping such as {torchrun: [--nproc_per_node]}"),
]
# Regular expressions with the group `value`, by name.
Patterns = Annotated[
    dict[str, Annotated[Text, AfterValidator(expression), AfterValidator(_with_value)]],
    shaped(dict, r"a mapping such as {loss: 'loss:(?P<value>\S+)'}"),
]
# The expression of the line that begins it, by a phase's name.
Phases = Annotated[
    dict[Annotated[Quoted, AfterValidator(phase)], Annotated[Text, AfterValidator(expression)]],
    shaped(dict, "a mapping such as {ppo: 'teacher off'}"),
]
Phase = Annotated[Text, AfterValidator(phase)]
_Range = Annotated[
    tuple[Number, Number], expected("two numbers such as [150, 250]"), AfterValidator(_in_order)
]
# Figure -> device -> (least, most).
Expectations = Annotated[
    dict[str, Annotated[dict[str, _Range], shaped(dict, "a mapping such as {default: [150, 250]}")]],
    shaped(dict, "a mapping such as {steps_per_s: {default: [150, 250]}}"),
]


def _device(value: str) -> str:
    try:
        values.parse_device(value)
    except values.QuantityError:
        raise unexpected(values.DEVICES, value) from None
    return value


Device = Annotated[str, shaped(str, values.DEVICES), AfterValidator(_device)]
