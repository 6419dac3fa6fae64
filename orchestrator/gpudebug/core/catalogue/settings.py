"""Values of catalogue files as a command line has them."""

from __future__ import annotations

from typing import Any

from gpudebug.core.catalogue.model import CatalogueIntervention
from gpudebug.core.change import intervention as interventions


def written(value: str | float | bool) -> str:
    """`true`, `4`, `0.5`: a value as written on a command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(float(value))
    return str(value)


def words_of(intervention: CatalogueIntervention) -> dict[str, Any]:
    """Return the arguments of `core.intervention.from_options` for a mechanical intervention."""
    return {
        "set": [f"{name}={written(value)}" for name, value in intervention.set.items()],
        "unset": list(intervention.unset),
        "env": [f"{name}={value}" for name, value in intervention.env.items()],
        "compound": len(intervention.set) + len(intervention.unset) + len(intervention.env) > 1,
    }


def text_of(intervention: CatalogueIntervention) -> str | None:
    """Return a mechanical intervention in `propose`'s syntax, None if it needs code."""
    if not (intervention.set or intervention.unset or intervention.env):
        return None
    return interventions.from_options(**words_of(intervention)).text
