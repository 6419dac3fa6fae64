"""What a campaign's workload does otherwise than its reference, for JSON. Costs no run."""

from __future__ import annotations

from typing import Any

from gpudebug.core.diagnosis.model import Facts
from gpudebug.core.diagnosis.reference import difference
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import workload_of


def from_reference(loaded: Loaded, facts: Facts) -> dict[str, Any] | None:
    """`core.difference` of both commands and of their valid baselines, each difference in `lines`
    too; None if the campaign has no reference. No secret of either command is in it."""
    reference = workload_of(loaded.config, "reference")
    if reference is None:
        return None
    found = difference(loaded.config.workload.argv(), reference.argv(), facts, facts.reference)
    scrub = loaded.workspace.scrub
    answer = found.as_json()
    for flag in answer["flags"]:
        flag.update({k: scrub(v) for k, v in flag.items() if isinstance(v, str)})
    if answer["program"]:
        answer["program"] = {side: scrub(text) for side, text in answer["program"].items()}
    return {**answer, "lines": [scrub(line) for line in found.lines()]}
