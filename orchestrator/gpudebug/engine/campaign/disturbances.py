"""What shakes a verdict afterwards: another baseline, and neighbours that its runs met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.records import Evidence
from gpudebug.core.statistics.contrast import contrast
from gpudebug.core.statistics.intervals import RATE_PRIOR, UTILISATION_PRIOR
from gpudebug.core.verdict import load
from gpudebug.core.verdict.gates.devices import on_devices
from gpudebug.core.words import AS_PLANNED
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.files import stored_record

_NAMED = 3


def shaken(loaded: Loaded, entry: HypothesisEntry) -> str | None:
    """Why a REJECTED may be tested again though its premises hold; None if nothing shakes it."""
    judged = loaded.trials[entry.number]
    verdict = judged.verdict if judged.verified else None
    if not verdict:
        return None
    return _moved(loaded, verdict) or _drifted(loaded, verdict) or _disturbed(loaded, verdict)


def _moved(loaded: Loaded, verdict: Mapping[str, Any]) -> str | None:
    """Whether the baseline was recorded again after the verdict."""
    baseline = loaded.baselines["workload"]
    if baseline.why is not None or not baseline.runs:
        return None
    last = max(store.run_number(r["name"]) for r in verdict["runs"])
    newer = min(map(store.run_number, baseline.runs)) > last
    return "the baseline was recorded again since it was measured" if newer else None


def _drifted(loaded: Loaded, verdict: Mapping[str, Any]) -> str | None:
    """Whether runs of the baseline since the verdict contradict those that it was recorded by; those of
    another length are none of them."""
    recorded = [r["name"] for r in verdict["runs"] if r["part"] == "baseline" and not r["fresh"]]
    last = max(store.run_number(r["name"]) for r in verdict["runs"])
    identity = loaded.identities["workload"]
    lengths = [loaded.records.get(name, {}).get("lengthened") for name in recorded]
    later = [
        name
        for name, record in loaded.records.items()
        if record.get("role") == "baseline-workload"
        and record.get("identity") == identity
        and record.get("outcome") in AS_PLANNED
        and record.get("lengthened") in lengths
        and not record.get("set_aside")
        and store.run_number(name) > last
    ]
    sides = (list(_evidence(loaded, names)) for names in (recorded, later))
    old, new = (_values(loaded, side) for side in on_devices(loaded.config.criteria.devices, *sides))
    if not old or not new:
        return None
    prior = UTILISATION_PRIOR if loaded.metric.points else RATE_PRIOR
    if contrast(old, new, fresh=new, prior=prior).drift <= 0:
        return None
    return f"the baseline drifted since: {', '.join(later[:_NAMED])} contradict its recorded runs"


def _values(loaded: Loaded, runs: Sequence[Evidence]) -> list[float]:
    """The campaign's metric of these runs, on the scale that is compared."""
    found = (loaded.metric.value(e) for e in runs)
    return [loaded.metric.scale(v) for v in found if v is not None]


def _disturbed(loaded: Loaded, verdict: Mapping[str, Any]) -> str | None:
    """Whether a run that the verdict rests on shared its device, or waited for others on its cores."""
    names = [r["name"] for r in verdict["runs"] if r["part"] in ("baseline", "trial")]
    met = [e.run for e in _evidence(loaded, names) if e.conditions.foreign_procs or load.disturbed(e)]
    return f"others disturbed {', '.join(met[:_NAMED])}" if met else None


def _evidence(loaded: Loaded, names: Sequence[str]) -> Iterator[Evidence]:
    for name in names:
        data = stored_record(loaded.workspace.run(name), "evidence.json")
        try:
            yield Evidence.model_validate(data)
        except ValueError:
            continue
