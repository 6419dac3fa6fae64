"""Answers made from the JSON that a command prints of them."""

from __future__ import annotations

from dataclasses import fields
from keyword import iskeyword
from typing import Any, TypeVar

from pydantic import TypeAdapter

R = TypeVar("R")


def read(model: type[R], document: dict[str, Any]) -> R:
    """The answer, or a record of one, whose JSON is `document`; each of its keys is a field."""
    named = _named(document)
    assert named.keys() <= {f.name for f in fields(model)}  # type: ignore[arg-type]
    return TypeAdapter(model).validate_python(named)


def _named(value: Any) -> Any:
    """A document with its keys as Python names fields: `for_` instead of `for`."""
    if isinstance(value, dict):
        return {f"{key}_" if iskeyword(key) else key: _named(v) for key, v in value.items()}
    return [_named(v) for v in value] if isinstance(value, list) else value
