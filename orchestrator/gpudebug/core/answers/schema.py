"""The JSON schema of an answer, by its types."""

from __future__ import annotations

from typing import Any

from gpudebug.core.answers.answer import Answer, key_of

_PROSE = frozenset({"title", "description", "default"})


def schema_of(kinds: tuple[type[Answer], ...], *, nested: bool = True) -> dict[str, Any]:
    """The schema of an object that is one of `kinds`, in the form in which MCP wants it, without prose.

    Without `nested` it has the keys of the answer and no more: a client may show it to a model each time.
    """
    from pydantic import TypeAdapter

    definitions: dict[str, Any] = {}
    found = []
    for kind in kinds:
        schema = TypeAdapter(kind).json_schema(mode="serialization")
        definitions |= _plain(schema.pop("$defs", {}), nested=nested)
        found.append(_plain(schema, nested=nested))
    whole = found[0] if len(found) == 1 else {"type": "object", "anyOf": found}
    return {**whole, "$defs": definitions} if definitions and nested else whole


def _plain(schema: Any, *, nested: bool) -> Any:
    """A schema with the keys of the JSON instead of the names of fields, and nothing to read."""
    if isinstance(schema, list):
        return [_plain(part, nested=nested) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema and not nested:
        return {"type": "object"}
    made = {key: _plain(value, nested=nested) for key, value in schema.items() if key not in _PROSE}
    if "properties" in schema:
        entries = schema["properties"].items()
        made["properties"] = {key_of(name): _plain(about, nested=nested) for name, about in entries}
        made["required"] = [key_of(name) for name in schema.get("required", ())]
    return made
