"""What all answers are: frozen records of the standard library, and JSON by their fields.

An answer is made here and read by others, so nothing in it has to be validated; `status` is asked too often
to load pydantic for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from keyword import iskeyword
from typing import Any, TypeVar

_OMITTED = "omitted"
A = TypeVar("A")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command answers. The order of the fields is that of the keys in its JSON.

    A field `for_` has the key `for`, which is a word of Python.
    """

    def as_json(self) -> dict[str, Any]:
        """The document that `--json` prints: new dictionaries, lists, texts and numbers."""
        document: dict[str, Any] = plain(self)
        return document


def omitted() -> Any:
    """The default of a field that is None if it does not apply; then its key is left out of the JSON."""
    return field(default=None, metadata={_OMITTED: True})


def may_be_left_out(about: Field[Any]) -> bool:
    """Whether the key of a field is left out of the JSON if its value is None."""
    return _OMITTED in about.metadata


def key_of(name: str) -> str:
    """The key of a field."""
    return name.rstrip("_")


def read(kind: type[A], document: Mapping[str, Any]) -> A:
    """An answer, or a record of one, from its JSON. ValueError if a key is missing, or of another type."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_python(_named(document))


def _named(value: Any) -> Any:
    """A document with its keys as Python names fields."""
    if isinstance(value, Mapping):
        return {f"{key}_" if iskeyword(key) else key: _named(v) for key, v in value.items()}
    return [_named(v) for v in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """A value as JSON has it: records as objects, tuples as lists, words as texts."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if is_dataclass(value):
        entries = ((f, getattr(value, f.name)) for f in fields(value))
        return {key_of(f.name): plain(v) for f, v in entries if not (v is None and may_be_left_out(f))}
    return value.model_dump(mode="json")


def with_texts(value: Any, document: Any) -> Any:
    """The same record with the texts that `document` has in their places.

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
