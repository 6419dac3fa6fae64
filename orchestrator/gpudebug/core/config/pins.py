"""Which settings of gpudebug.yaml bind a campaign, and how a value of each compares with the pinned one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, NamedTuple

from pydantic import BaseModel

from gpudebug.core.config import rules, schema
from gpudebug.core.config.rules import Class, Rule
from gpudebug.core.config.schema import Config
from gpudebug.core.text.values import short_digest

UNSET = "not set"
RESOLVED = "resolved."
_WITHOUT = "the same without"
_LONGEST = 160
_WORDS = 1000
_CONTEXT = 20
"""Characters that are shown before the first one that differs."""

TABLE: Mapping[str, Rule] = {
    **{
        ".".join(map(str, path)): schema.rule_of(field)
        for path, field in schema.all_keys()
        if not schema.group_of(field)
    },
    "resolved.device": rules.different("the kind of device that was found, of a replay its folder"),
    "resolved.workload.program": rules.different("the file that the command starts"),
    "resolved.workload.interpreter": rules.different("the Python that runs it"),
    "resolved.reference.program": rules.different("as for the workload"),
    "resolved.reference.interpreter": rules.different("as for the workload"),
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
            parts = (_is(f"{self.key}.{n}", self.value.get(n), self.pinned.get(n)) for n in names)
            return "; ".join(parts) + mark
        return _is(self.key, self.value, self.pinned) + mark


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
    return TABLE.get(key, rules.OTHER_BASELINE)


_OF_METRIC = ("target", "criteria.success", "criteria.failure")
"""Figures of the metric: points and a ratio, or figures of two units, have no order."""


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
        comparable = key not in _OF_METRIC or value.get("metric") == pinned.get("metric")
        weaker = _is_weaker(key, one, other, pinned) if comparable else None
        found.append(PinDifference(key, one, other, weaker))
    return tuple(found)


def _is_weaker(key: str, value: Any, pinned: Any, bar: Mapping[str, Any]) -> bool | None:
    rule = rule_of(key)
    if rule.weaker is None:
        return None
    less_is_better = key == "target" and bar.get("direction") == "lower"
    try:
        return (rules.higher if less_is_better else rule.weaker)(value, pinned)
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


def _is(key: str, value: Any, pinned: Any) -> str:
    """Return what differs: of two long texts the words that are in one of them alone."""
    one, other = _whole(value), _whole(pinned)
    if max(len(one), len(other)) > _LONGEST:
        one, other = (_WITHOUT if set(side.split()) == {"…"} else side for side in _apart(one, other))
    return f"{key} is {_cut(one)}, pinned is {_cut(other)}"


def _apart(one: str, other: str) -> tuple[str, str]:
    """Both texts with `…` for the words that they share; of two long words, from where they part."""
    words = (one.split(" ", _WORDS), other.split(" ", _WORDS))
    sides: tuple[list[str], list[str]] = ([], [])
    for tag, start, stop, from_, to in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        sides[0].extend(["…"] if tag == "equal" else words[0][start:stop])
        sides[1].extend(["…"] if tag == "equal" else words[1][from_:to])
    left, right = (" ".join(side) for side in sides)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    if same <= _LONGEST - _CONTEXT:
        return left, right
    return f"…{left[same - _CONTEXT :]}", f"…{right[same - _CONTEXT :]}"


def _shown(value: Any) -> str:
    return _cut(_whole(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _whole(value: Any) -> str:
    if value is None:
        return UNSET
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split()) or "empty"


def shown(settings: Mapping[str, Any]) -> Sequence[str]:
    """Return a line for each pinned setting, in the table's order."""
    keys = [*TABLE, *sorted(settings.keys() - TABLE.keys())]
    return [f"{key}: {_shown(settings[key])}" for key in keys if key in settings]
