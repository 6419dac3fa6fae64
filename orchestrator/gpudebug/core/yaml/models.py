"""A document held against a pydantic model: what the model refuses, in words and with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel, BeforeValidator, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import ErrorDetails

from gpudebug.core.yaml.document import Path, YamlProblem, named, nearest

_EXPECTED = {
    "string_type": "text",
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list such as [a, b]",
    "dict_type": "a mapping such as {a: b}",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}

Advice = Callable[[Path, str], str]
"""What to write at a path, for which the second argument would be valid."""


def shown(value: object) -> str:
    """Return a value as its writer would recognise it, on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, (bool, dict, list)):
        return {bool: str(value).lower(), dict: "a mapping", list: "a list"}[type(value)]
    text = getattr(value, "text", value)
    return f"{text!r}" if len(str(text)) <= 60 else f"{str(text)[:57]!r}…"


def unexpected(what: str, value: object) -> ValueError:
    return ValueError(f"expected {what}, found {shown(value)}")


def expected(what: str) -> WrapValidator:
    """Refuse all that the type before it refuses with these words."""

    def validate(value: Any, inner: ValidatorFunctionWrapHandler) -> Any:
        try:
            return inner(value)
        except ValidationError:
            raise unexpected(what, value) from None

    return WrapValidator(validate)


def shaped(kind: type | tuple[type, ...], what: str) -> BeforeValidator:
    """Refuse anything but a list, say, with these words; what is wrong inside keeps its own place."""

    def validate(value: Any) -> Any:
        if not isinstance(value, kind):
            raise unexpected(what, value)
        return value

    return BeforeValidator(validate)


def problems(
    error: ValidationError, model: type[BaseModel], advice: Advice, elsewhere: Iterable[Path] = ()
) -> list[YamlProblem]:
    """Return all that the model refuses; `elsewhere` are keys of other places that may have been meant."""
    known = list(elsewhere)
    return [_problem(detail, model, advice, known) for detail in error.errors(include_url=False)]


def _problem(
    detail: ErrorDetails, model: type[BaseModel], advice: Advice, elsewhere: list[Path]
) -> YamlProblem:
    path, kind, key = _within_union(detail["loc"], detail["type"]), detail["type"], False
    if kind == "extra_forbidden":
        return _unknown(path, model, elsewhere, detail["input"])
    name = named(path)
    if kind == "missing":
        message, next = f"{name} is missing", f"add {advice(path, '…')}"
        return YamlProblem(path[:-1], message, next, key=True, missing=True)
    if path[-1:] == ("[key]",):
        path, key = path[:-1], True
        name = named(path[:-1])
    valid, cause = _EXPECTED.get(kind, "another value"), detail.get("ctx", {}).get("error")
    if kind == "literal_error":
        words = str(detail["ctx"]["expected"]).replace("'", "")
        near = nearest(str(detail["input"]), words.replace(" or ", ", ").split(", "))
        cause, valid = unexpected(words, detail["input"]), near or "one of them"
    message = f"{name}: {cause or unexpected(valid, detail['input'])}"
    return YamlProblem(path, message, f"write {advice(path, valid)}", key=key)


def _unknown(path: Path, model: type[BaseModel], elsewhere: list[Path], value: object) -> YamlProblem:
    *around, key = path
    siblings = [name for name, field in _at(model, around).model_fields.items() if not field.exclude]
    near = nearest(str(key).replace("-", "_"), siblings)
    there = next((other for other in elsewhere if other[-1] == key), None)
    if near:
        whole = [] if any(isinstance(part, int) for part in around) else around
        advice = f"write {'.'.join((*map(str, whole), near))}"
    elif there:
        advice = f"write it as {named(there)}"
    elif value is None:
        # `{note: one, two}` has a key `two`.
        advice = "quote the text before it: a comma within braces begins a key"
    else:
        advice = f"valid here: {', '.join(siblings)}"
    return YamlProblem(path, f"unknown key {named(path)}", advice, key=True)


def _within_union(path: Path, kind: str) -> Path:
    """Without the member of a union that pydantic adds to a path."""
    if path and path[-1] in ("str", "float", "bool", "int") and kind.endswith(("_type", "_parsing")):
        return path[:-1]
    return path


def _at(model: type[BaseModel], path: Iterable[str | int]) -> type[BaseModel]:
    """Return the model at a path of a model."""
    for part in path:
        field = model.model_fields.get(str(part))
        if field is not None:
            model = next(models(field.annotation), model)
    return model


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in the annotation of a field."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models(part)
