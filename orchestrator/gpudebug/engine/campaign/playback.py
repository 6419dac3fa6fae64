"""Whether a run was played back from a recording: then its figures are those of the recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudebug.edges import store
from gpudebug.engine.campaign.files import stored_record

WORD = "replayed"
_KIND = "replay"
NOTE = f"{WORD}: recordings were played back, nothing was measured here"


def replayed(record: Mapping[str, Any], run: store.RunFolder) -> bool | None:
    """Tell whether the run with this run.json was played back; None if unknown.

    gpudebug 0.1.0 did not record it: the kind of its devices and the source of its samples do.
    """
    recorded = record.get("replayed")
    if isinstance(recorded, bool):
        return recorded
    devices = record.get("devices")
    kinds = [d.get("kind") for d in devices if isinstance(d, dict)] if isinstance(devices, list) else []
    if _KIND in kinds:
        return True
    source = sampled_from(run)
    return None if source is None or not kinds else source == _KIND


def sampled_from(run: store.RunFolder) -> str | None:
    """Return the source that the sampler names; None if it left no word."""
    source = stored_record(run, "sampler.json").get("source")
    return source if isinstance(source, str) else None
