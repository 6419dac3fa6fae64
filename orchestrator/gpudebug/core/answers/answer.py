"""What all answers are: frozen records of the standard library, and JSON by their fields.

An answer is made here and read by others, so nothing in it has to be validated; `status` is asked too often
to load pydantic for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from keyword import iskeyword
from typing import Any, TypeVar

A = TypeVar("A")

_OMITTED = "omitted"
_PLAIN = frozenset((type(None), bool, int, float, str))


class Answer:
    """What a command answers, a record. The order of the fields is that of the keys in its JSON.

    A field `for_` has the key `for`, which is a word of Python.
    """

    def as_json(self) -> dict[str, Any]:
        """Return the document that `--json` prints: new dictionaries, lists, texts and numbers."""
        document: dict[str, Any] = plain(self)
        return document


def omitted() -> Any:
    """The default of a field that is None if it does not apply; then its key is left out of the JSON."""
    return field(default=None, metadata={_OMITTED: True})


def may_be_left_out(about: Field[Any]) -> bool:
    """Tell whether the key of a field is left out of the JSON if its value is None."""
    return _OMITTED in about.metadata


def key_of(name: str) -> str:
    """Return the key of a field."""
    return name.rstrip("_")


def read(kind: type[A], document: Mapping[str, Any]) -> A:
    """An answer, or a record of one, from its JSON. ValueError if a key is missing, or of another type."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_python(_named(document))


def _named(value: Any) -> Any:
    """Return a document with its keys as Python names fields."""
    if isinstance(value, Mapping):
        return {f"{key}_" if iskeyword(key) else key: _named(v) for key, v in value.items()}
    return [_named(v) for v in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """Return a value as JSON has it: records as objects, tuples as lists, words as texts."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (list, tuple)):
        return [v if type(v) in _PLAIN else plain(v) for v in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(v) for key, v in value.items()}
    if is_dataclass(value):
        model: Any = type(value)
        names, left = _entries(model)
        # Most values of most records are of a kind that needs no call.
        made = {key: v if type(v := getattr(value, n)) in _PLAIN else plain(v) for n, key in names}
        return {k: v for k, v in made.items() if v is not None or k not in left} if left else made
    return value.model_dump(mode="json")


@cache
def _entries(model: Any) -> tuple[tuple[tuple[str, str], ...], frozenset[str]]:
    """Name and key of each field of a record, and the keys that are left out if the value is None."""
    left = (key_of(f.name) for f in fields(model) if may_be_left_out(f))
    return tuple((f.name, key_of(f.name)) for f in fields(model)), frozenset(left)


def with_texts(value: Any, document: Any) -> Any:
    """Return the same record with the texts that `document` has in their places.

    `document` is what `plain` made of it, with other texts. What is told by a word of ours stays.
    """
    if isinstance(value, Enum):
        return value
    if isinstance(value, Mapping):
        pairs = zip(value.values(), document.items(), strict=True)
        return {key: with_texts(v, changed) for v, (key, changed) in pairs}
    if isinstance(value, (list, tuple)):
        made = (with_texts(v, changed) for v, changed in zip(value, document, strict=True))
        return type(value)(made) if type(value) in (list, tuple) else type(value)(*made)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value,
            **{
                f.name: with_texts(getattr(value, f.name), document[key_of(f.name)])
                for f in fields(value)
                if key_of(f.name) in document
            },
        )
    return type(value).model_validate(document) if hasattr(value, "model_validate") else document


@dataclass(frozen=True, kw_only=True)
class PhaseFigures:
    """A phase of runs: from how many seconds after launch and for how long, the mean over the `runs` that
    show it; of several `stretches` in a run the figures are the longest one's.

    `by` says what cut the runs: the log, or optimizers. `gpu_util` is in %, `rate` is how many of `rate_unit`
    a second; None is unknown, and `reason` says why if both are.
    """

    name: str
    by: str
    runs: int
    start_s: float
    seconds: float
    stretches: int
    gpu_util: float | None
    rate: float | None
    rate_unit: str
    reason: str | None = None
