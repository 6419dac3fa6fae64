"""Which settings of gpudebug.yaml bind a campaign, and how a value of each compares with the pinned one.

`ordered`: a value is weaker or stricter than the pinned one. `different`: another value measures something
else, and asks for a new baseline. `free`: no run and no verdict depends on it; it is not pinned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from gpudebug.core.config.schema import Config
from gpudebug.core.text.values import short_digest
from gpudebug.core.words import Word

UNSET = "not set"
RESOLVED = "resolved."
_LONGEST = 160


class Class(Word):
    """What a change of a setting means."""

    ORDERED = "ordered"
    DIFFERENT = "different"
    FREE = "free"


Weaker = Callable[[Any, Any], bool | None]
"""Whether the first value is weaker than the second; None if they cannot be compared."""


class Rule(NamedTuple):
    """The class of one setting, in words and, if it is ordered, as a comparison."""

    kind: Class
    text: str
    weaker: Weaker | None = None


def _lower(value: Any, pinned: Any) -> bool | None:
    return None if None in (value, pinned) else value < pinned


def _higher(value: Any, pinned: Any) -> bool | None:
    return None if None in (value, pinned) else value > pinned


def _fewer(value: Any, pinned: Any) -> bool | None:
    return bool(set(pinned or ()) - set(value or ()))


def _more(value: Any, pinned: Any) -> bool | None:
    return bool(set(value or ()) - set(pinned or ()))


def _more_of_each(value: Any, pinned: Any) -> bool | None:
    value, pinned = value or {}, pinned or {}
    return any(_more(words, pinned.get(name)) for name, words in value.items())


def _fewer_figures(value: Any, pinned: Any) -> bool | None:
    value, pinned = value or {}, pinned or {}
    return any(
        name not in value
        or value[name]["direction"] != term["direction"]
        or value[name]["not_worse"] > term["not_worse"]
        for name, term in pinned.items()
    )


def _any_other(_value: Any, _pinned: Any) -> bool | None:
    return True


def _later_in(*words: Any) -> Weaker:
    def compare(value: Any, pinned: Any) -> bool | None:
        if value not in words or pinned not in words:
            return None
        return words.index(value) > words.index(pinned)

    return compare


def _ordered(text: str, weaker: Weaker) -> Rule:
    return Rule(Class.ORDERED, text, weaker)


_DIFFERENT = Rule(Class.DIFFERENT, "another value asks for a new baseline")
_FREE = Rule(Class.FREE, "read by people and agents only")
_OTHER_FIGURE = Rule(Class.DIFFERENT, "another figure: a verdict on one does not hold for the other")
_LONGER = _ordered("longer is weaker: a slower run still counts", _higher)

_WORKLOAD = {
    "command": _DIFFERENT,
    "shell": _DIFFERENT,
    "cwd": _DIFFERENT,
    "env": _DIFFERENT,
    "timeout": _LONGER,
    "stall_timeout": _LONGER,
    "max_output": _ordered("larger is weaker", _higher),
}

_SERVER = {
    **dict.fromkeys(("command", "ready", "port", "shell", "cwd", "env"), _DIFFERENT),
    "timeout": _LONGER,
}

_ELSEWHERE = Rule(Class.DIFFERENT, "runs on other nodes, or after other commands")
_MORE_TIME = _ordered("more is weaker: it holds more of the cluster", _higher)

_SLURM = {
    **dict.fromkeys(
        (
            *("partition", "account", "qos", "nodes", "gpus_per_node", "cpus_per_task"),
            *("constraint", "exclusive", "shared", "setup", "srun", "extra"),
        ),
        _ELSEWHERE,
    ),
    **dict.fromkeys(("time", "idle", "parallel"), _MORE_TIME),
}

TABLE: Mapping[str, Rule] = {
    "campaign": Rule(Class.DIFFERENT, "another name is another campaign"),
    "progress": Rule(Class.DIFFERENT, "another file has other baselines"),
    "goal": _FREE,
    **{f"{role}.{key}": rule for role in ("workload", "reference") for key, rule in _WORKLOAD.items()},
    **{f"server.{key}": rule for key, rule in _SERVER.items()},
    "metric": _OTHER_FIGURE,
    "direction": _OTHER_FIGURE,
    "work": _OTHER_FIGURE,
    "criteria.success": _ordered("lower is weaker", _lower),
    "criteria.failure": _ordered("lower is weaker: less is rejected", _lower),
    "criteria.loss": _ordered("any is weaker than converging", _later_in("converging", "any")),
    "criteria.throughput": _ordered(
        "weaker in the order better, not_worse, any", _later_in("better", "not_worse", "any")
    ),
    "criteria.learning": _OTHER_FIGURE,
    "criteria.also": _ordered("fewer figures, or more room to get worse, are weaker", _fewer_figures),
    "criteria.devices": _ordered("another figure: any change is weaker", _any_other),
    "target": _ordered("easier to reach is weaker", _lower),
    "log": _DIFFERENT,
    "locked": _ordered("fewer locked flags are weaker", _fewer),
    "protocol.interval": _DIFFERENT,
    "protocol.warmup": _DIFFERENT,
    "protocol.max_runs": _ordered("more are weaker: more looks at the same question", _higher),
    "protocol.run_for": Rule(Class.DIFFERENT, "runs of another length"),
    "budget.hypotheses": _ordered("more is weaker", _higher),
    "budget.device_time": _ordered("more is weaker", _higher),
    **{f"runner.slurm.{key}": rule for key, rule in _SLURM.items()},
    "device": _DIFFERENT,
    "probe": _ordered("false is weaker: throughput is then the program's own claim", _later_in(True, False)),
    "auto_propose": Rule(Class.FREE, "who proposes changes no measurement"),
    "worktree.link": Rule(Class.DIFFERENT, "trials find other files"),
    "expected": Rule(Class.FREE, "figures to compare with; no verdict uses them"),
    "context": _FREE,
    "guidelines": _FREE,
    "allow_env": _ordered("more allowed variables are weaker", _more),
    "allow_flags": _ordered("more allowed flags are weaker", _more_of_each),
    "resolved.device": Rule(Class.DIFFERENT, "the kind of device that was found, of a replay its folder"),
    "resolved.workload.program": Rule(Class.DIFFERENT, "the file that the command starts"),
    "resolved.workload.interpreter": Rule(Class.DIFFERENT, "the Python that runs it"),
    "resolved.reference.program": Rule(Class.DIFFERENT, "as for the workload"),
    "resolved.reference.interpreter": Rule(Class.DIFFERENT, "as for the workload"),
}


GONE = {
    "protocol.min_window": "each run counts by its own window; run_for: 60s makes them longer",
    "protocol.baseline_runs": "a baseline begins with two runs, and trials make further ones",
    "protocol.early_stop": "a change that is clearly no help ends after its first run",
}
"""Settings of earlier versions, and what does their work now."""


class PinDifference(NamedTuple):
    """A setting with another value than the pinned one; `weaker` is None if the two have no order."""

    key: str
    value: Any
    pinned: Any
    weaker: bool | None = None

    @property
    def text(self) -> str:
        """`criteria.success is 1, pinned is 20 (weaker)`."""
        mark = " (weaker)" if self.weaker else ""
        if isinstance(self.value, dict) and isinstance(self.pinned, dict):
            names = sorted(
                name
                for name in self.value.keys() | self.pinned.keys()
                if self.value.get(name) != self.pinned.get(name)
            )
            parts = (
                f"{self.key}.{n} is {_shown(self.value.get(n))}, pinned is {_shown(self.pinned.get(n))}"
                for n in names
            )
            return "; ".join(parts) + mark
        return f"{self.key} is {_shown(self.value)}, pinned is {_shown(self.pinned)}{mark}"


def fields(model: type[BaseModel] = Config, prefix: str = "") -> Iterator[str]:
    """Yield every key of gpudebug.yaml as the table names it."""
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        group = next((t for t in _types(field.annotation) if issubclass(t, BaseModel)), None)
        if group is None:
            yield prefix + name
        else:
            yield from fields(group, f"{prefix}{name}.")


def _types(annotation: Any) -> list[type]:
    parts = getattr(annotation, "__args__", None) or (annotation,)
    return [part for part in parts if isinstance(part, type)]


def pinnable(config: Config) -> dict[str, object]:
    """The settings of a configuration that bind a campaign, as JSON values by key; free ones are left out."""
    return {key: value for key, value in _flat(config, "") if rule_of(key).kind is not Class.FREE}


def _flat(model: BaseModel, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, field in type(model).model_fields.items():
        value = None if field.exclude else getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name, _json(value)


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _json(v) for k, v in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [_json(v) for v in value]
    return float(value) if isinstance(value, float) else value


def rule_of(key: str) -> Rule:
    """Return the rule of a setting. One that this version does not know is compared, and never free."""
    return TABLE.get(key, _DIFFERENT)


def differences(value: Mapping[str, Any], pinned: Mapping[str, Any]) -> tuple[PinDifference, ...]:
    """Return every setting that differs, in the table's order.

    What was resolved is compared if both sides know it: unknown is no difference. A pinned setting that is
    gone binds nothing: gpudebug.yaml may not have it any more.
    """
    order = {key: place for place, key in enumerate(TABLE)}
    value, pinned = ({k: v for k, v in side.items() if k not in GONE} for side in (value, pinned))
    keys = sorted(value.keys() | pinned.keys(), key=lambda key: (order.get(key, len(order)), key))
    found = []
    for key in keys:
        one, other = value.get(key), pinned.get(key)
        if one == other or (key.startswith(RESOLVED) and None in (one, other)):
            continue
        found.append(PinDifference(key, one, other, _is_weaker(key, one, other, pinned)))
    return tuple(found)


def _is_weaker(key: str, value: Any, pinned: Any, bar: Mapping[str, Any]) -> bool | None:
    rule = rule_of(key)
    if rule.weaker is None:
        return None
    less_is_better = key == "target" and bar.get("direction") == "lower"
    try:
        return (_higher if less_is_better else rule.weaker)(value, pinned)
    except TypeError:  # No value that gpudebug writes: nothing is judged strictly by it.
        return True


_OF_TERMS = ("metric", "direction", "locked", "criteria.", "protocol.")


def weaker_terms(terms: Mapping[str, Any], bar: Mapping[str, Any]) -> tuple[PinDifference, ...]:
    """What makes the terms of a verdict weaker than the settings `bar`; those that it keeps are compared.

    Another metric cannot be compared with the bar at all, which counts as weaker.
    """
    kept = {key: value for key, value in _spread(terms) if key.startswith(_OF_TERMS)}
    asked = {key: bar.get(key) for key in kept}
    found = differences({k: v for k, v in kept.items() if v is not None}, _known(asked))
    return tuple(d for d in found if d.weaker or d.key in ("metric", "direction"))


def _known(values: Mapping[str, Any]) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def _spread(terms: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in terms.items():
        if name in ("criteria", "protocol") and isinstance(value, Mapping):
            yield from ((f"{name}.{key}", _json(inner)) for key, inner in value.items())
        else:
            yield name, _json(value)


def digest(settings: Mapping[str, Any]) -> str:
    """Return the digest of pinned settings, as run records name them."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
    return short_digest(text.encode("utf-8", "surrogateescape"))


def _shown(value: Any) -> str:
    if value is None:
        return UNSET
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split()) or "empty"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def shown(settings: Mapping[str, Any]) -> Sequence[str]:
    """Return a line for each pinned setting, in the table's order."""
    keys = [*TABLE, *sorted(settings.keys() - TABLE.keys())]
    return [f"{key}: {_shown(settings[key])}" for key in keys if key in settings]
