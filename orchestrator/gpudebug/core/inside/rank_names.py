"""How ranks and the devices that they train on are named."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpudebug.core.records import RankEvidence

_NAMED = 8
_KIND_OF_UUID = re.compile("^(?:GPU|MIG)-", re.I)


def named(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0, 1`; of many the first ones."""
    more = f" and {len(ranks) - _NAMED} more" if len(ranks) > _NAMED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks[:_NAMED]))}{more}"


def bare_uuid(uuid: str) -> str:
    """PyTorch reports a UUID without the `GPU-` or `MIG-` that NVML begins it with."""
    return _KIND_OF_UUID.sub("", uuid).lower()


def place_of(one: RankEvidence) -> str | None:
    """The GPU's UUID, else the GPU that CUDA_VISIBLE_DEVICES makes of a number; None if unknown, or a CPU."""
    if one.device is None or not one.device.startswith("cuda"):
        return None
    if one.uuid is not None:
        return one.uuid
    number = one.device.partition(":")[2] or "0"
    if one.visible is None:
        return f"GPU {number}"
    entries = dict(enumerate(entry.strip() for entry in one.visible.split(",")))
    entry = entries.get(int(number)) if number.isdecimal() else None
    return f"GPU {entry}" if entry else None
