"""Answers made from the JSON that a command prints of them."""

from __future__ import annotations

from dataclasses import fields
from keyword import iskeyword
from typing import Any, TypeVar

from gpudebug.core.answers import answer

R = TypeVar("R")


def read(model: type[R], document: dict[str, Any]) -> R:
    """The answer, or a record of one, whose JSON is `document`; each of its keys is a field."""
    names = {f"{key}_" if iskeyword(key) else key for key in document}
    assert names <= {f.name for f in fields(model)}  # type: ignore[arg-type]
    return answer.read(model, document)
