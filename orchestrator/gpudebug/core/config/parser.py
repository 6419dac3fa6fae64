"""gpudebug.yaml's text to a `Config`: read, complete, validate, cross-check; one error with its line."""

from __future__ import annotations

import copy
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from gpudebug.core.config import pins, runners, schema, values
from gpudebug.core.config.schema import ClusterFile, Config, ServerSettings, Workload
from gpudebug.core.errors import ConfigError, UsageError
from gpudebug.core.text import shell_words
from gpudebug.core.text.values import parse_phase
from gpudebug.core.yaml.document import Document, Path, YamlProblem, named, nearest, read, refuse
from gpudebug.core.yaml.models import problems

_DEFAULT_RATIOS = {"success": values.Ratio(1.2), "failure": values.Ratio(1.1)}


def load(
    text: str, file: str, *, campaign: str = "campaign", cluster: Mapping[str, Any] | None = None
) -> Config:
    """The settings in `text`; `file` is only named in errors, `campaign` is the name if the text gives none.

    `cluster` is what `cluster_defaults` read: `runner.slurm` inherits it, if the text has that key.
    Raises ConfigError with file, line, what was expected and what to write: the first of all problems.
    """
    document = read(text, file)
    if not isinstance(document.value, dict):
        raise ConfigError(
            "expected settings such as workload: {command: …}",
            file=file,
            line=document.line(()),
            next="write a new one with gpudebug init",
        )
    _refuse_gone(document)
    given = _completed(document.value, campaign, cluster or {})
    try:
        config = Config.model_validate(given)
    except ValidationError as error:
        found = [_mended(one, given) for one in _problems(error, Config, document)]
        refuse(found, document, ConfigError)
        raise AssertionError("settings that are refused have a problem") from None
    refuse(_contradictions(config, document), document, ConfigError)
    complete: dict[str, Any] = {"progress": config.progress or f"progress/{config.campaign}.md"}
    for name, workload in (("workload", config.workload), ("reference", config.reference)):
        if workload is not None and config.server is not None:
            complete[name] = workload.model_copy(update={"server": config.server})
    return config.model_copy(update=complete)


def _refuse_gone(document: Document) -> None:
    """Name all settings that are gone at once: whoever upgrades has several."""
    gone = {path: what for key, what in pins.GONE.items() if (path := tuple(key.split("."))) in document.keys}
    if not gone:
        return
    lines = [document.keys[path] for path in gone]
    told = [f"{named(path)} is gone: {what}" for path, what in gone.items()]
    if len(gone) == 1:
        raise ConfigError(told[0], file=document.file, line=lines[0], next="delete this key")
    whole = "; ".join(f"{text} (line {line})" for line, text in sorted(zip(lines, told, strict=True)))
    numbers = ", ".join(map(str, sorted(set(lines))))
    raise ConfigError(whole, file=document.file, line=min(lines), next=f"delete these keys: line {numbers}")


def cluster_defaults(text: str, file: str) -> Mapping[str, Any]:
    """The `runner.slurm` of a cluster's own file, as it is written. ConfigError names its line, as `load`."""
    document = read(text, file)
    given = document.value if document.value is not None else {}
    try:
        ClusterFile.model_validate(_with_runner(given, {}) if isinstance(given, dict) else given)
    except ValidationError as error:
        refuse(_problems(error, ClusterFile, document), document, ConfigError)
    runner = given.get("runner") or {}
    return dict(runner.get("slurm") or {})


def counted_in(option: str) -> str:
    """Return the unit that `--work` names. Raises UsageError if it names none."""
    try:
        return values.work(option)
    except ValueError as e:
        raise UsageError(f"--work: {e}", next="leave --work out, or write --work tokens") from None


def run_for_in(option: str) -> float | str | None:
    """Return what `--run-for` says, as `protocol.run_for` does. Raises UsageError if it says nothing."""
    try:
        return values.run_for(option)
    except ValueError as e:
        raise UsageError(f"--run-for: {e}", next="write auto, end or --run-for 90s") from None


def _completed(given: dict[str, object], campaign: str, cluster: Mapping[str, Any]) -> dict[str, object]:
    """The settings with what follows from others filled in; wrong types are left for the models to refuse."""
    data = _with_runner(given, cluster)
    data.setdefault("campaign", campaign)
    for group in ("criteria", "protocol", "budget", "worktree", "goal", "guidelines"):
        if group in data and data[group] is None:
            del data[group]
    if _is_lower(data.get("metric")):
        data.setdefault("direction", "lower")
    if data.get("metric", "gpu_util") != "gpu_util" and isinstance(data.get("criteria", {}), dict):
        data["criteria"] = {**_DEFAULT_RATIOS, **data.get("criteria", {})}
    if data.get("reference") is None:
        data.pop("reference", None)
    elif isinstance(data["reference"], dict) and isinstance(data.get("workload"), dict):
        data["reference"] = _inherited(data["workload"], data["reference"])
    return data


def _with_runner(given: dict[str, object], cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with `runner.slurm` over the cluster's; `slurm:` alone asks for all of these."""
    runner = given.get("runner")
    if not isinstance(runner, dict) or "slurm" not in runner:
        return dict(given)
    own = runner["slurm"] if runner["slurm"] is not None else {}
    if not isinstance(own, dict):
        return dict(given)
    return {**given, "runner": {**runner, "slurm": {**cluster, **own}}}


def _is_lower(metric: object) -> bool:
    return isinstance(metric, str) and metric.startswith(values.LOWER_IS_BETTER)


def _inherited(workload: dict[str, Any], reference: dict[str, Any]) -> dict[str, object]:
    """Return the reference with everything of the workload that it does not say itself; variables one by one,
    and a shell only for text."""
    valid = {
        key: value for key, value in workload.items() if key in Workload.model_fields and key != "command"
    }
    if isinstance(reference.get("command"), list):
        valid.pop("shell", None)
    merged = {**valid, **reference}
    if isinstance(valid.get("env"), dict) and isinstance(reference.get("env"), dict):
        merged["env"] = {**valid["env"], **reference["env"]}
    return merged


def _problems(error: ValidationError, model: type[BaseModel], document: Document) -> list[YamlProblem]:
    def advice(path: Path, _valid: str) -> str:
        return _example(path, document)

    return problems(error, model, advice, elsewhere=(path for path, _ in schema.all_keys(model)))


def _mended(problem: YamlProblem, given: Mapping[str, Any]) -> YamlProblem:
    """Return the problem with what was likely meant as its remedy: a value that is valid at its place.

    Of words that the message lists the nearest, else the value as a list of one; without either a choice
    among listed words stays one.
    """
    value: Any = given
    for part in problem.path:
        value = value.get(part) if isinstance(value, dict) else None
    if not isinstance(value, str) or problem.key:
        return problem
    listed = problem.message.partition(": expected ")[2].rpartition(", found ")[0]
    near = nearest(value, re.findall(r"[a-z][a-z0-9_]+", listed))
    for meant, written in ((near, near), ([value], f"[{value}]")):
        if meant is not None and _valid_at(problem.path, meant, given):
            return problem._replace(next=f"write {problem.path[-1]}: {written}")
    return problem._replace(next="write one of these") if listed.startswith("one of ") else problem


def _valid_at(path: Path, value: object, given: Mapping[str, Any]) -> bool:
    whole = copy.deepcopy(dict(given))
    around = whole
    for part in path[:-1]:
        around = around[str(part)]
    around[str(path[-1])] = value
    try:
        Config.model_validate(whole)
    except ValidationError as error:
        return not any(detail["loc"][: len(path)] == path for detail in error.errors(include_url=False))
    return True


def _example(path: Path, document: Document) -> str:
    """Return `key: value` for the setting at `path` that fits the campaign's metric."""
    ratios = document.value.get("metric", "gpu_util") != "gpu_util"
    if ratios and path in (("criteria", "success"), ("criteria", "failure")):
        return f"{path[-1]}: {_DEFAULT_RATIOS[str(path[-1])]:g}x"
    return example(path)


def example(path: Path) -> str:
    """Return `key: value` for the setting at `path` or, for an entry inside it, the setting around it."""
    text = f"{path[-1]}: …"
    group: type[BaseModel] | None = Config
    for part in path:
        field = group.model_fields.get(str(part)) if group is not None else None
        if field is None:
            break
        group = schema.group_of(field)
        text = f"{part}: {_written(field)}"
    return text


def _written(field: FieldInfo) -> str:
    group = schema.group_of(field)
    if field.examples or group is None:
        return str((field.examples or "…")[0])
    name, first = next(iter(group.model_fields.items()))
    return f"{{{name}: {_written(first)}}}"


def _contradictions(config: Config, document: Document) -> Iterator[YamlProblem]:
    for part, workload in (("workload", config.workload), ("reference", config.reference)):
        if workload is not None:
            yield from _command(part, workload, document)
    if config.server is not None:
        yield from _command("server", config.server, document)
    yield from _server(config.server, document.keys)
    yield from _direction(config, document)
    yield from _thresholds(config, document)
    yield from _own_metric(config, document)
    yield from _own_work(config)
    yield from _own_learning(config)
    yield from _own_phase(config)
    if config.metric == "gpu_util" and config.target is not None and config.target > 100:
        yield YamlProblem(("target",), "target: expected at most 100 percent", "write target: 80")
    for knob in config.locked:
        if not knob.strip("-+ "):
            yield YamlProblem(("locked",), f"locked: {knob!r} names no flag", "write [--batch_size]")


def _command(part: str, workload: Workload | ServerSettings, document: Document) -> Iterator[YamlProblem]:
    try:
        schema.split_command(workload.command, shell=workload.shell)
    except shell_words.ShellSyntaxError as error:
        path: Path = (part, "command")
        block = path in document.blocks and isinstance(workload.command, str)
        below = str(workload.command).count("\n", 0, error.position) if block else 0
        yield YamlProblem(path, f"{part}.command: {error}", schema.SPLIT_NEXT, below=below)


def _server(server: ServerSettings | None, keys: Container[Path]) -> Iterator[YamlProblem]:
    """Yield what cannot be meant of a server; `keys` are the places of all keys of the file."""
    for part in ("workload", "reference"):
        if (part, "server") in keys:
            message = f"{part}.server: server is a setting of its own"
            move = "write server: at the beginning of a line"
            yield YamlProblem((part, "server"), message, move, key=True)
    if server is None or server.port is not None or server.ready.keys() & {"port", "log"}:
        return
    texts = [str(server.command), *server.env.values()]
    if not any(runners.PORT in text or runners.PORT_VARIABLE in text for text in texts):
        message = f"server: {runners.PORT} is in no word of its command, so it does not learn its port"
        yield YamlProblem(("server", "command"), message, "write --port={port}, or set server.port: 5555")


def _direction(config: Config, document: Document) -> Iterator[YamlProblem]:
    if config.metric.startswith("log:"):
        if "direction" not in document.value:
            message = f"direction is missing: set whether a higher or lower {config.metric} is better"
            yield YamlProblem(("metric",), message, "add direction: higher, or lower")
        return
    better = "lower" if _is_lower(config.metric) else "higher"
    if config.direction != better:
        message = f"direction: {config.metric} is better when {better}"
        yield YamlProblem(("direction",), message, f"write direction: {better}, or leave it out")


def _own_metric(config: Config, document: Document) -> Iterator[YamlProblem]:
    """`log:NAME` must be one of the patterns of `log`; loss and step are read for themselves."""
    if not config.metric.startswith("log:"):
        return
    name = config.metric.removeprefix("log:")
    if name in ("loss", "step"):
        message = f"metric: log:{name} does not measure speed"
        yield YamlProblem(("metric",), message, "name another pattern of log:, or use steps_per_s")
    elif name not in config.log:
        message = f"metric: log has no pattern {name}"
        example = f"add log: {{{name}: '{name}=(?P<value>[0-9.]+)'}}"
        yield YamlProblem(("metric",), message, example)


def _own_learning(config: Config) -> Iterator[YamlProblem]:
    metric = config.criteria.learning["metric"]
    name = metric.removeprefix("log:")
    if metric.startswith("log:") and name not in config.patterns:
        message = f"criteria.learning: log has no pattern {name}"
        example = f"add log: {{{name}: '{name}=(?P<value>[-0-9.e]+)'}}"
        yield YamlProblem(("criteria", "learning"), message, example)


def _own_phase(config: Config) -> Iterator[YamlProblem]:
    """`phases:`, where it is there, names all phases; without it the run's log does."""
    known = list(config.phases or ())
    wait = str(config.protocol.run_for or "")
    waits = parse_phase(wait).name if wait.startswith("phase ") else None
    for path, name in ((("phase",), config.phase), (("protocol", "run_for"), waits)):
        if known and name is not None and name not in known:
            message = f"{'.'.join(path)}: phases has no {name}"
            yield YamlProblem(path, message, f"write one of {', '.join(known)}, or add {name} to phases")


def _own_work(config: Config) -> Iterator[YamlProblem]:
    name = config.work.removeprefix("log:")
    if config.work.startswith("log:") and name not in config.log:
        message = f"work: log has no pattern {name}"
        yield YamlProblem(("work",), message, f"add log: {{{name}: '{name}=(?P<value>[0-9]+)'}}")


def _thresholds(config: Config, document: Document) -> Iterator[YamlProblem]:
    points = config.metric == "gpu_util"
    wanted = "percentage points such as 20" if points else "a ratio such as 1.2x"
    wrong = False
    if config.criteria.devices is not None and not points:
        message = f"criteria.devices: which GPUs gpu_util is judged by, and the metric is {config.metric}"
        yield YamlProblem(("criteria", "devices"), message, "leave it out, or write metric: gpu_util")
    for name in ("success", "failure"):
        if isinstance(getattr(config.criteria, name), values.Ratio) == points:
            wrong = True
            message = f"criteria.{name}: expected {wanted} for {config.metric}"
            example = _example(("criteria", name), document)
            yield YamlProblem(("criteria", name), message, f"write {example}")
    if not wrong and config.criteria.failure > config.criteria.success:
        unit = "" if points else "x"
        success, failure = (f"{v:g}{unit}" for v in (config.criteria.success, config.criteria.failure))
        message = f"criteria: failure ({failure}) is above success ({success})"
        at = "failure" if ("criteria", "failure") in document.keys else "success"
        both = "success: 20 and failure: 10" if points else "success: 1.2x and failure: 1.1x"
        yield YamlProblem(("criteria", at), message, f"write {both}")
