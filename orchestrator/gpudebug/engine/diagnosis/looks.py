"""Short looks at hypotheses that wait, as a campaign's runs record them. Reads only; `screen` makes them."""

from __future__ import annotations

import math

from gpudebug.core.campaign.screening import seen_gain
from gpudebug.core.records import Evidence
from gpudebug.core.verdict.judge import is_infrastructure
from gpudebug.core.words import Status, ended_as_planned
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import stored_record
from gpudebug.engine.campaign.judged import judged, mean_of
from gpudebug.engine.diagnosis.layers import like_baseline

PREFIX = "look-h"


def gains(loaded: Loaded) -> dict[int, float]:
    """What each hypothesis's newest look showed, by number: minus infinity where it failed.

    In points of utilisation if the campaign is judged by it, else relative. Left out are hypotheses without a
    look at their present change, and those whose look, or baseline, has no figure of the metric.
    """
    found, baseline = dict[int, float](), loaded.baselines["workload"]
    for number, name in newest(loaded).items():
        if not ended_as_planned(loaded.records[name].get("outcome")):
            found[number] = -math.inf
            continue
        look = stored_record(loaded.workspace.run(name), "evidence.json")
        # Beside each other: working shares are read on one scale.
        *before, after = judged(baseline.devices, [*baseline.evidence, look])
        gain = seen_gain(loaded.metric, mean_of(loaded.metric, before), mean_of(loaded.metric, [after]))
        if gain is not None:
            found[number] = gain
    return found


def newest(loaded: Loaded) -> dict[int, str]:
    """The newest run that looked at each waiting hypothesis with the change it has now, by number.

    One that was interrupted, or lost its device, looked at nothing.
    """
    roles = {str(r.get("role")) for r in loaded.records.values()}
    changes = {
        f"{PREFIX}{h.number}": (h.number, change.text)
        for h in loaded.document.hypotheses
        if h.status is Status.UNTESTED
        and f"{PREFIX}{h.number}" in roles
        and (change := loaded.change_of(h)) is not None
    }
    if not changes:
        return {}
    found = dict[int, str]()
    for name in like_baseline(loaded, changes, failed=True):
        number, text = changes[loaded.records[name]["role"]]
        same = loaded.records[name].get("change") == loaded.workspace.scrub(text)
        if same and not is_infrastructure(_evidence(loaded, name)):
            found[number] = name
    return found


def _evidence(loaded: Loaded, name: str) -> Evidence:
    return Evidence.model_validate(stored_record(loaded.workspace.run(name), "evidence.json"))
