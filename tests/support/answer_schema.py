"""The JSON schema of an answer, by its types."""

from __future__ import annotations

from typing import Any

from gpudebug.core.answers.answer import Answer, key_of

_PROSE = frozenset({"title", "description", "default"})


def schema_of(kinds: tuple[type[Answer], ...]) -> dict[str, Any]:
    """The schema of an object that is one of `kinds`, without prose."""
    from pydantic import TypeAdapter

    definitions: dict[str, Any] = {}
    found = []
    for kind in kinds:
        schema = TypeAdapter(kind).json_schema(mode="serialization")
        definitions |= _plain(schema.pop("$defs", {}))
        found.append(_plain(schema))
    whole = found[0] if len(found) == 1 else {"type": "object", "anyOf": found}
    return {**whole, "$defs": definitions} if definitions else whole


def _plain(schema: Any) -> Any:
    """A schema with the keys of the JSON instead of the names of fields, and nothing to read."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _plain(value) for key, value in schema.items() if key not in _PROSE}
    if "properties" in schema:
        entries = schema["properties"].items()
        made["properties"] = {key_of(name): _plain(about) for name, about in entries}
        made["required"] = [key_of(name) for name in schema.get("required", ())]
    return made
