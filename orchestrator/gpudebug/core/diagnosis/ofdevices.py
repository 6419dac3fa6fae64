"""What the devices of a run show beside each other -> signals: work, waiting, and who is waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from gpudebug.core.diagnosis.ofprobe import mean
from gpudebug.core.evidence.together import awaited_text
from gpudebug.core.records import AwaitedDevice
from gpudebug.core.words import SignalValue

Record = Mapping[str, Any]


def signals(evidence: Sequence[Record]) -> dict[str, SignalValue | None]:
    """Of several runs the means. A device is waited for if it is the same one in every run that shows one.

    That none is waited for is a share of 0; where power does not tell, it is unknown.
    """
    share = mean([e.get("working") for e in evidence])
    busy = mean([e.get("utilisation") for e in evidence if e.get("working") is not None])
    found = [_awaited(e) for e in evidence if _shows(e)]
    last = next((one for one in reversed(found) if one is not None), None)
    same = len({one.uuid or one.index for one in found if one is not None}) == 1
    return {
        "working_share": share,
        "busy_waiting_share": None if share is None or busy is None else max(0.0, busy / 100 - share),
        "awaited_share": mean([one.share if one and same else 0.0 for one in found]),
        "awaited_device": awaited_text(last) if last is not None and same else None,
    }


def _shows(e: Record) -> bool:
    """Whether power tells of every one of several devices, and what it tells can be read."""
    told = e.get("working") is not None and len(e.get("devices") or ()) > 1
    return told and (not e.get("awaited") or _awaited(e) is not None)


def _awaited(e: Record) -> AwaitedDevice | None:
    """None also of a record that another hand wrote, and that is none."""
    with suppress(ValidationError):
        return AwaitedDevice.model_validate(e.get("awaited"))
    return None
