"""The kinds of value that gpudebug.yaml knows; each reader refuses another, and says what it expects."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from gpudebug.core.change import permits
from gpudebug.core.text import values
from gpudebug.core.words import WorkName

_LATENCIES = ("latency_p50", "latency_p95", "latency_p99")
METRICS = (
    *("gpu_util", "steps_per_s", "samples_per_s", "work_per_s", "step_time_p50", "step_time_p95"),
    *_LATENCIES,
    "joules_per_step",
)
LOWER_IS_BETTER = ("step_time_p50", "step_time_p95", *_LATENCIES, "joules_per_step", "section:")

LEAST_RUN_S = 5.0
"""A shorter window of a run has no figure (`core.samples.window`)."""

_SLUG = r"[a-z0-9][a-z0-9._-]{0,63}"
_NAMED_METRIC = r"(section|log):[^\x00-\x1f\x7f]{1,100}"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f]"
_RATIO = r"([0-9]{1,6}(?:\.[0-9]{1,9})?) ?x"
_POINTS = r"([0-9]{1,6}(?:\.[0-9]{1,9})?) ?pp"
_DEVICE = r"cpu:([0-9]{1,4}(?:\.[0-9]{1,3})?)|replay:(.+?)(?:@([0-9]{1,4}(?:\.[0-9]+)?)x)?"


class Ratio(float):
    """A factor of improvement, 1 or above: trial over baseline for a rate, baseline over trial for a
    time or an energy."""


class DeviceChoice(NamedTuple):
    """`device:` taken apart. `kind` is auto, nvml, cpu or replay; `cores` is None for all that the process
    may use; `speed` is how much faster than recorded a replay runs."""

    kind: str
    cores: float | None = None
    path: str | None = None
    speed: float = 1.0


def shown(value: object) -> str:
    """Return a value as its writer would recognise it, on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, (bool, dict, list)):
        return {bool: str(value).lower(), dict: "a mapping", list: "a list"}[type(value)]
    text = getattr(value, "text", value)
    return f"{text!r}" if len(str(text)) <= 60 else f"{str(text)[:57]!r}…"


def _expected(what: str, value: object) -> ValueError:
    return ValueError(f"expected {what}, found {shown(value)}")


def text(value: Any) -> str:
    """Any text without control characters."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _expected("text", value)
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


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _expected("true or false", value)
    return value


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _expected("a number such as 20", value)
    return float(value)


def positive(value: Any) -> float:
    result = number(value)
    if result <= 0:
        raise _expected("a number above 0", value)
    return result


def count(value: Any, least: int = 1) -> int:
    """Return a whole number from `least` to 1000."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 1000:
        raise _expected(f"a whole number from {least} to 1000", value)
    return int(value)


several = partial(count, least=2)
"""One run shows no noise."""


def duration(value: Any) -> float:
    """Seconds above 0."""
    what = "a duration such as 30m, 90s or 0.2s"
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _expected(what, value)
    try:
        seconds = values.parse_duration(str(getattr(value, "text", value)))
    except values.QuantityError:
        raise _expected(what, value) from None
    if seconds <= 0:
        raise _expected("a duration above 0", value)
    return seconds


def interval(value: Any) -> float:
    """Seconds between two samples, 0.02 to 10: faster polling slows the training, slower misses it."""
    seconds = duration(value)
    if not 0.02 <= seconds <= 10:
        raise _expected("an interval from 0.02s to 10s", value)
    return seconds


def warmup(value: Any) -> float | None:
    """Seconds that are cut; None for `auto`."""
    if value == "auto":
        return None
    if value == 0 and not isinstance(value, bool):
        return 0.0
    try:
        return duration(value)
    except ValueError:
        raise _expected("auto or a duration such as 30s", value) from None


def run_for(value: Any) -> float | str | None:
    """Seconds of steady window after which gpudebug ends a run; `end`: never; None for `auto`."""
    if value in ("auto", "end"):
        return None if value == "auto" else "end"
    try:
        seconds = duration(value)
    except ValueError:
        raise _expected("auto, end or a duration such as 90s", value) from None
    if seconds < LEAST_RUN_S:
        raise _expected(f"at least {LEAST_RUN_S:g}s: shorter windows say too little", value)
    return seconds


def size(value: Any) -> int:
    """Bytes above 0."""
    what = "a size such as 2GB or 500MB"
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _expected(what, value)
    try:
        result = values.parse_size(str(getattr(value, "text", value)))
    except values.QuantityError:
        raise _expected(what, value) from None
    if result <= 0:
        raise _expected("a size above 0", value)
    return result


def slug(value: Any) -> str:
    """Return a name that is safe in a path."""
    what = "a name of a-z, 0-9, '.', '_' and '-' such as act-relative-rtc"
    name = text(value)
    if not re.fullmatch(_SLUG, name) or ".." in name:
        raise _expected(what, value)
    return name


def path(value: Any) -> str:
    """Return a path inside the repository, as far as the text shows; the store resolves links."""
    result = text(value)
    parts = result.split("/")
    if not result or result.startswith(("/", "~")) or "\\" in result or "\n" in result or ".." in parts:
        raise _expected("a path inside the repository such as progress/name.md", value)
    if ".git" in parts:
        raise _expected("a path outside .git", value)
    return result


def file_path(value: Any) -> str:
    """Return a path that can name a file."""
    result = path(value)
    if result.endswith("/") or result.rsplit("/", 1)[-1] == ".":
        raise _expected("the path of a file such as progress/name.md", value)
    return result


def metric(value: Any) -> str:
    if value in METRICS or (isinstance(value, str) and re.fullmatch(_NAMED_METRIC, value)):
        return str(value)
    raise _expected(f"one of {', '.join(METRICS)}, section:NAME, log:NAME", value)


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
    raise _expected(
        "auto, environment steps, tokens, samples, optimizer steps, epochs or log:NAME of a counter", value
    )


def one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise _expected(" or ".join(words), value)
        return str(value)

    return read


def devices(value: Any) -> str | None:
    """`least` or `working`; None for `mean`, the default."""
    found = one_of("mean", "least", "working")(value)
    return None if found == "mean" else found


def threshold(value: Any) -> float:
    """Percentage points as a float, or a Ratio of 1 or above from `1.2x`."""
    if isinstance(value, Ratio):
        return value
    if isinstance(value, (int, float)):
        return _points(number(value), value)
    written = str(value)
    ratio, points = re.fullmatch(_RATIO, written), re.fullmatch(_POINTS, written)
    if ratio:
        if float(ratio[1]) < 1:
            raise _expected("an improvement of 1x or more (for a time: baseline over trial)", value)
        return Ratio(ratio[1])
    if points is None:
        raise _expected("percentage points such as 20, or a ratio such as 1.2x", value)
    return _points(float(points[1]), value)


def _points(result: float, value: Any) -> float:
    if not 0 <= result <= 100:
        raise _expected("0 to 100 percentage points", value)
    return result


def command(value: Any) -> str | tuple[str, ...]:
    """Text to be split, or the words themselves."""
    if isinstance(value, list):
        return words(value)
    if not isinstance(value, str):
        raise _expected("a command, as text or as a list of words", value)
    if not value.strip(" \t\r\n"):
        raise ValueError("the command is empty")
    return text(value)


def words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _expected("a list such as [--batch_size]", value)
    return tuple(quoted(word) for word in value)


def paths(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _expected("a list of paths such as [plans/notes.md]", value)
    return tuple(path(item) for item in value)


def variables(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _expected("a mapping such as {OMP_NUM_THREADS: 1}", value)
    result = {}
    for name, content in value.items():
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(f"{name!r} is not a name of a variable")
        try:
            result[name] = quoted(content)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return result


def variable_names(value: Any) -> tuple[str, ...]:
    """Names of variables, none of which decides which code runs."""
    if not isinstance(value, list):
        raise _expected("a list of variables such as [MY_WORKERS]", value)
    names = tuple(quoted(item) for item in value)
    for name in names:
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(f"{name!r} is not a name of a variable")
        if permits.chooses_code(name):
            raise ValueError(f"{name} decides which code runs: no hypothesis may set it, workload.env may")
    return names


def launcher_flags(value: Any) -> dict[str, tuple[str, ...]]:
    """Launcher -> its flags, none of which decides what is run."""
    if not isinstance(value, dict):
        raise _expected("a mapping such as {torchrun: [--nproc_per_node]}", value)
    return {name: _flags(name, flags) for name, flags in value.items()}


def _flags(name: str, value: Any) -> tuple[str, ...]:
    from gpudebug.core.command import launchers

    if name not in launchers.LAUNCHERS:
        raise ValueError(f"{name}: expected one of {', '.join(sorted(launchers.LAUNCHERS))}")
    if not isinstance(value, list):
        raise ValueError(f"{name}: expected a list such as [--nproc_per_node], found {shown(value)}")
    flags = tuple(quoted(flag) for flag in value)
    for flag in flags:
        if not re.fullmatch(r"--?[A-Za-z][\w-]*", flag, re.ASCII):
            raise ValueError(f"{name}: expected a flag such as --nproc_per_node, found {shown(flag)}")
        if launchers.folded(flag) in launchers.NEVER_OPEN:
            raise ValueError(f"{name}: {flag} decides what is run: no hypothesis may set it")
    return flags


def patterns(value: Any) -> dict[str, str]:
    """Regular expressions with the group `value`, by name."""
    if not isinstance(value, dict):
        raise _expected(r"a mapping such as {loss: 'loss:(?P<value>\S+)'}", value)
    return {name: _pattern(name, content) for name, content in value.items()}


def _pattern(name: str, value: Any) -> str:
    from gpudebug.core.text.expressions import Unbounded, bounded

    written = text(value)
    try:
        groups = bounded(written).pattern.groupindex
    except Unbounded as error:
        raise ValueError(f"{name}: {written!r} {error}; write it with fewer repeats") from None
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{name}: no regular expression: {error}") from None
    if "value" not in groups:
        raise ValueError(rf"{name}: expected a group named value, as in loss:(?P<value>\S+)")
    return written


def expectations(value: Any) -> dict[str, dict[str, tuple[float, float]]]:
    """Figure -> device -> (least, most)."""
    what = "a mapping such as {steps_per_s: {default: [150, 250]}}"
    if not isinstance(value, dict) or not all(isinstance(ranges, dict) for ranges in value.values()):
        raise _expected(what, value)
    return {
        figure: {name: _range(name, pair) for name, pair in ranges.items()}
        for figure, ranges in value.items()
    }


def _range(name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"{name}: expected two numbers such as [150, 250], found {shown(value)}")
    low, high = number(value[0]), number(value[1])
    if low > high:
        raise ValueError(f"{name}: expected the lower number first, found [{low:g}, {high:g}]")
    return low, high


def device(value: Any) -> str:
    device_choice(value)
    return str(value)


def device_choice(value: Any) -> DeviceChoice:
    """`auto`, `nvml`, `cpu`, `cpu:N` and `replay:PATH[@Nx]` taken apart; ValueError for anything else."""
    if value in ("auto", "nvml", "cpu"):
        return DeviceChoice(str(value))
    match = re.fullmatch(_DEVICE, value) if isinstance(value, str) else None
    if match and match[1] and float(match[1]) > 0:
        return DeviceChoice("cpu", cores=float(match[1]))
    if match and match[2] and not re.search(_CONTROL, match[2]) and float(match[3] or 1) > 0:
        return DeviceChoice("replay", path=match[2], speed=float(match[3] or 1))
    raise _expected("auto, nvml, cpu, cpu:N or replay:PATH", value)
