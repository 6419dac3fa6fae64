"""What differs between two runs besides their figures, and whether that can explain a difference of speed."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gpudebug.core.answers.compare import OtherValue
from gpudebug.core.command import batch, command_line
from gpudebug.core.records import RunRecord
from gpudebug.core.statistics.across import name as device_name
from gpudebug.core.words import word_set

NOT_SET = "not set"
# Variables that switch compilation off, and those that switch it on, if they are true.
_DISABLING = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "TORCHINDUCTOR_DISABLE", "JAX_DISABLE_JIT")
_ENABLING = ("TORCH_COMPILE", "USE_TORCH_COMPILE", "ACCELERATE_DYNAMO_BACKEND", "ACCELERATE_USE_DYNAMO")
_FALSE = frozenset({"", "0", "false", "no", "none", "off", "eager"})
# Flags that say where a run writes and what it is called: they do not change the speed.
NAMING = word_set(
    "output_dir out_dir output_path outdir output run_dir save_dir save_path logdir log_dir logging_dir "
    "work_dir workdir exp_dir experiment_dir results_dir checkpoint_dir ckpt_dir default_root_dir log_folder "
    "name run_name run_id job_name exp_name experiment_name project wandb_project"
)


@dataclass(frozen=True, slots=True)
class SideFacts:
    """What is known of one side: its run.json, and its own variables if they were seen.

    `variables` holds the value of each variable that the command itself sets; None if only the names
    are known, which run.json keeps.
    """

    record: RunRecord
    variables: Mapping[str, str] | None = None


@dataclass
class Checklist:
    """What differs, what is the same with its value, and what one side does not know."""

    differences: list[OtherValue] = field(default_factory=list)
    same: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    def add(
        self, name: str, a: str | None, b: str | None, *, matters: bool = True, why: str | None = None
    ) -> None:
        """Files one item; None is not known."""
        if a is None or b is None:
            self.unknown.append(name)
        elif a == b:
            self.same[name] = a
        else:
            self.differences.append(OtherValue(name, a, b, matters, why))


def compare(a: SideFacts, b: SideFacts) -> Checklist:
    """Return the checklist of two runs."""
    found = Checklist()
    steering = a.record.knobs is not None and b.record.knobs is not None
    first, second = _variables(a, b, steering), _variables(b, a, steering)
    found.add(
        "compile",
        compilation(_words(a.record), first),
        compilation(_words(b.record), second),
        why="the compiled program needs longer to start and less for each step",
    )
    _machine(found, a.record, b.record)
    _software(found, a.record, b.record)
    _command(found, a.record, b.record)
    _environment(found, first, second, alike=_one_workload(a.record, b.record))
    return found


def surroundings(a: RunRecord, b: RunRecord, meant: Collection[str] = ()) -> list[OtherValue]:
    """Return what differs of machine, software and the variables that steer libraries, but for the variables
    that are `meant` to; what one side does not know is no difference."""
    found = Checklist()
    _machine(found, a, b)
    _software(found, a, b)
    if a.knobs is not None and b.knobs is not None:
        for name in sorted((a.knobs.keys() | b.knobs.keys()) - set(meant)):
            found.add(f"variable {name}", a.knobs.get(name, NOT_SET), b.knobs.get(name, NOT_SET))
    return found.differences


def command_of(record: RunRecord) -> str:
    """Return a run's command on paper, with its own name and folder as `{run}` and `{run_dir}`."""
    words = _words(record)
    return words[-1] if record.shell and words else shlex.join(words)


def compilation(argv: Sequence[str], variables: Mapping[str, str | None]) -> str:
    """`on`, `off` or `not set`, from the flags and variables that ask for torch.compile and its like.

    A variable's value None is not known.
    """
    for name in _DISABLING:
        if name in variables and is_true(variables[name]):
            return "off"
    setting = NOT_SET
    for name in _ENABLING:
        if name in variables:
            setting = "on" if is_true(variables[name]) else "off"
    for option in command_line.options(argv):
        if (asked := _asked(option)) is not None:
            setting = "on" if asked else "off"
    return setting


def is_true(value: str | None) -> bool:
    """Tell whether a flag or variable with this value is on; None is a bare flag."""
    return value is None or value.strip().lower() not in _FALSE


def _asked(option: command_line.Option) -> bool | None:
    """Tell whether a flag asks for compilation or against it; None if it is about something else."""
    name = _last(option.name)
    words = name.split("_")
    if "compile" not in words and "compiled" not in words and name not in ("jit", "dynamo_backend"):
        return None
    if set(words) & {"mode", "args", "options", "kwargs", "cache", "dir", "threads"}:
        return None
    against = bool(set(words) & {"no", "disable", "without"})
    return is_true(option.value) != against


def _last(name: str) -> str:
    """`--policy.compile-model` is compile_model."""
    return command_line.bare_name(name).replace("-", "_").lower().rpartition(".")[2]


def _variables(facts: SideFacts, other: SideFacts, steering: bool) -> Mapping[str, str | None]:
    """Variables that the command sets, those that its campaign watches and, where `steering`, those of its
    surroundings that steer libraries.

    None is a value that is not known: so is one that was watched of the `other` side alone.
    """
    knobs = (facts.record.knobs or {}) if steering else {}
    own, theirs = facts.record.variables or {}, other.record.variables or {}
    watched = {name: value for name, value in own.items() if value is not None}
    named = dict.fromkeys([*facts.record.environment, *(name for name in theirs if name not in own)])
    return {**named, **knobs, **watched, **(facts.variables or {})}


def _words(record: RunRecord) -> tuple[str, ...]:
    """The command with its own name and folder as `{run}` and `{run_dir}`: these differ in any two runs."""
    folder = f"{record.name}/job"
    return tuple(_unnamed(word, record.name, folder) for word in record.argv)


def _unnamed(word: str, name: str, folder: str) -> str:
    at = word.find(folder)
    if at >= 0:
        start = max(word.rfind(mark, 0, at) for mark in "=:,") + 1
        word = f"{word[:start]}{{run_dir}}{word[at + len(folder) :]}"
    return word.replace(name, "{run}")


_SETTINGS = {
    "power limit": "power_limit_w",
    "clocks set": "clocks_mhz",
    "link": "link",
    "NVLinks": "nvlinks",
}


def _machine(found: Checklist, a: RunRecord, b: RunRecord) -> None:
    devices = bool(a.devices and b.devices)
    found.add("device", _devices(a), _devices(b))
    if not devices:
        found.unknown.append("driver")
    elif any(d.driver for d in (*a.devices, *b.devices)):
        found.add("driver", _drivers(a), _drivers(b))
    for name, key in _SETTINGS.items():
        if devices and any(getattr(d, key) is not None for d in (*a.devices, *b.devices)):
            found.add(name, _of_devices(a, key), _of_devices(b, key))
    found.add("host", a.host, b.host)
    if a.host is None or b.host is None:
        found.unknown.append("CPU quota")
    else:
        found.add("CPU quota", _quota(a), _quota(b))


def _devices(record: RunRecord) -> str | None:
    shown = [f"{d.name} ({d.uuid}{f', {_cores(d.cores)}' if d.cores else ''})" for d in record.devices]
    return ", ".join(shown) or None


def _of_devices(record: RunRecord, key: str) -> str | None:
    """Return a setting of all devices, of each if they differ; None if it is not known of all."""
    values = [getattr(d, key) for d in record.devices]
    if None in values:
        return None
    texts = [_setting(value) for value in values]
    if len(set(texts)) == 1:
        return texts[0]
    return ", ".join(f"{device_name(d)} {text}" for d, text in zip(record.devices, texts, strict=True))


def _setting(value: object) -> str:
    if isinstance(value, tuple):
        return "/".join(f"{mhz:g}" for mhz in value) + " MHz"
    return f"{value:g} W" if isinstance(value, float) else str(value)


def _drivers(record: RunRecord) -> str | None:
    return ", ".join(sorted({d.driver for d in record.devices if d.driver})) or None


def _quota(record: RunRecord) -> str:
    return "none" if record.cpu_quota is None else _cores(record.cpu_quota)


def _cores(count: float) -> str:
    return f"{count:g} core{'s' if count != 1 else ''}"


def _software(found: Checklist, a: RunRecord, b: RunRecord) -> None:
    found.add("interpreter", a.interpreter, b.interpreter)
    if not a.packages or not b.packages:
        found.unknown.append("packages")
        return
    names = sorted(n for n in a.packages.keys() | b.packages.keys() if a.packages.get(n) != b.packages.get(n))
    for name in names:
        found.add(f"package {name}", a.packages.get(name, "not there"), b.packages.get(name, "not there"))
    if not names:
        found.same["packages"] = f"{len(a.packages)} versions"


def _command(found: Checklist, a: RunRecord, b: RunRecord) -> None:
    first, second = _words(a), _words(b)
    names = command_line.changed_names(first, second)
    differs = any(d.name == "compile" for d in found.differences)
    for name in names:
        if differs and _asked(command_line.Option(name, None, 0, 0, "bare")) is not None:
            continue
        matters, why = True, None
        if _last(name) in NAMING:
            matters, why = False, "where it writes, or what it is called"
        elif batch.names_batch(name):
            why = "a step is not the same work"
        found.add(name or "arguments", *_values(first, second, name), matters=matters, why=why)
    if not names:
        found.same["command"] = a.command
    found.add("folder", a.cwd, b.cwd, why="other code may be there")
    if a.commit or b.commit:
        found.add("commit", a.commit, b.commit)
    if a.change or b.change:
        found.add("change", a.change or "none", b.change or "none")
    tree = a.identity.get("tree"), b.identity.get("tree")
    if any(tree) and a.commit == b.commit:
        found.add("code", *(t[:12] if t else None for t in tree))
    if a.interval_s != b.interval_s and a.interval_s and b.interval_s:
        found.add("interval", f"{a.interval_s:g} s", f"{b.interval_s:g} s", matters=False, why="of sampling")


def _values(a: Sequence[str], b: Sequence[str], name: str) -> tuple[str, str]:
    if name:
        return _value(a, name), _value(b, name)
    first, second = _bare_words(a), _bare_words(b)
    only_a, only_b = ([w for w in x if w not in y] for x, y in ((first, second), (second, first)))
    if not only_a and not only_b:
        return " ".join(first), " ".join(second)
    return " ".join(only_a) or NOT_SET, " ".join(only_b) or NOT_SET


def _value(argv: Sequence[str], name: str) -> str:
    values = [value for key, value in command_line.flat(argv) if key == name]
    return ", ".join("set" if v is None else v for v in values) or NOT_SET


def _bare_words(argv: Sequence[str]) -> list[str]:
    covered = {i for option in command_line.options(argv) for i in range(option.start, option.stop)}
    return [word for index, word in enumerate(argv) if index not in covered]


def _one_workload(a: RunRecord, b: RunRecord) -> bool:
    """Tell whether a digest says that both have their command, folder and variables from one workload."""
    return a.identity.get("command", "unknown") == b.identity.get("command")


def _environment(
    found: Checklist, a: Mapping[str, str | None], b: Mapping[str, str | None], *, alike: bool
) -> None:
    """`alike` says that variables of which only the names are known are the same."""
    names = sorted((a.keys() | b.keys()) - {*_DISABLING, *_ENABLING})
    named = [n for n in names if n in a and n in b and None in (a[n], b[n])]
    found.unknown += [] if alike else [f"variable {name}" for name in named]
    differing = [n for n in names if n not in named and _shown(a, n) != _shown(b, n)]
    for name in differing:
        found.add(f"variable {name}", _shown(a, name), _shown(b, name))
    if names and not differing and (alike or not named):
        found.same["variables"] = ", ".join(names)


def _shown(variables: Mapping[str, str | None], name: str) -> str:
    if name not in variables:
        return NOT_SET
    value = variables[name]
    return "set" if value is None else value
