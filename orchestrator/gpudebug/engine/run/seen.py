"""All that was seen of a run whose samples are named alone: in its folder, or kept of `sample -o F.csv`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Evidence
from gpudebug.edges import store


@dataclass(frozen=True)
class SeenRun:
    """A run's evidence, and what run.json says of its command, as far as that was kept."""

    evidence: Evidence
    record: Mapping[str, Any]


def seen_of(samples: Path) -> SeenRun | None:
    """Return what was seen of the run of these samples; None if no more than they and their log is known."""
    try:
        found = _of_folder(samples) or store.get_seen(samples)
        return SeenRun(Evidence.model_validate(found["evidence"]), dict(found["record"])) if found else None
    except (GpudebugError, KeyError, TypeError, ValueError):
        return None


def _of_folder(samples: Path) -> dict[str, Any] | None:
    """Return the records of a run folder whose samples these are, as they were sealed."""
    folder = store.RunFolder(samples.parent, lambda text: text)
    if samples != folder.samples or not folder.intact("samples.csv", "evidence.json", "run.json"):
        return None
    return {"evidence": folder.read("evidence.json"), "record": folder.read("run.json")}
