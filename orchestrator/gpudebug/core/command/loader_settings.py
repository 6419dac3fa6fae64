"""Which settings of its loader a training process reported, and which of them a flag sets."""

from __future__ import annotations

from collections.abc import Mapping

from gpudebug.core.command import command_line
from gpudebug.core.command.batch import names_batch
from gpudebug.core.lazy import regex

# Names that mean the training's loader in whatever program; `workers` alone may be an environment's.
_OF_A_LOADER = r"(?:train_)?(?:(?:data_?)?loader_|data_|dl_)?"
_NAMES = {
    "workers": regex(rf"{_OF_A_LOADER}num_workers|(?:train_)?(?:data_?)?loader_workers"),
    "prefetch_factor": regex(rf"{_OF_A_LOADER}prefetch_factor"),
    "persistent_workers": regex(rf"{_OF_A_LOADER}persistent_workers"),
    "pin_memory": regex(rf"{_OF_A_LOADER}pin_memory"),
}
BATCH = "batch_size"
NAMES = (*_NAMES, BATCH)
"""The settings of a loader that a flag may set."""


def meant(flag: str) -> str | None:
    """Return the setting of a loader that a flag or variable of this name sets; None of another."""
    name = command_line.bare_name(flag).replace("-", "_").lower().rsplit(".", 1)[-1]
    found = next((setting for setting, names in _NAMES.items() if names.fullmatch(name)), None)
    return found or (BATCH if "accum" not in name and names_batch(flag) else None)


def reported(facts: Mapping[str, object], setting: str) -> tuple[str, ...]:
    """Return the values that the loaders which feed the training have, that of the most fetches first.

    `facts` are `ProbeEvidence.facts`; empty if they have none.
    """
    loaders = facts.get("loaders")
    known = [one for one in loaders if isinstance(one, dict)] if isinstance(loaders, list) else []
    feeding = [one for one in known if one.get("training") is not False]
    feeding.sort(key=_fetched, reverse=True)
    return tuple(dict.fromkeys(str(one[setting]) for one in feeding if one.get(setting) is not None))


def _fetched(loader: Mapping[str, object]) -> float:
    """0 if the training wrote no number."""
    count = loader.get("fetched")
    return count if isinstance(count, (int, float)) else 0.0
