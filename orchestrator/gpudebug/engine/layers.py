"""Layer tests: one run of the workload with a layer of it taken away; to diagnose, never a fix."""

from __future__ import annotations

from gpudebug.core.layers import PREFIX, LayerResult, judge
from gpudebug.core.models import Evidence
from gpudebug.core.words import Outcome
from gpudebug.engine.bench import stored_run
from gpudebug.engine.loaded import Loaded
from gpudebug.engine.measure import Measured
from gpudebug.engine.surroundings import differences, recorded


def results(loaded: Loaded) -> dict[str, LayerResult]:
    """The layer tests that were run on what the campaign's baseline was recorded on, by layer.

    Empty where no baseline is valid: their ratios are over its runs.
    """
    found = loaded.baselines["workload"]
    if found.why is not None or not found.runs:
        return {}
    baseline = [stored_run(loaded.workspace, name) for name in found.runs]
    runs: dict[str, list[Measured]] = {}
    for name, record in loaded.records.items():
        role = str(record.get("role"))
        if role.startswith(PREFIX) and _counts(loaded, name):
            m = stored_run(loaded.workspace, name)
            if not differences(recorded(baseline[-1].record), recorded(m.record)):
                runs.setdefault(role.removeprefix(PREFIX), []).append(m)
    before = [m.evidence for m in baseline]
    return {layer: _result(layer, before, made) for layer, made in runs.items()}


def _counts(loaded: Loaded, name: str) -> bool:
    record = loaded.records[name]
    return (
        record.get("campaign") == loaded.config.campaign
        and record.get("identity") == loaded.identities["workload"]
        and record.get("outcome") == Outcome.COMPLETED.value
        and not record.get("set_aside")
        and loaded.workspace.run(name).sealed
    )


def _result(layer: str, before: list[Evidence], made: list[Measured]) -> LayerResult:
    """Of the newest run and those before it that had the same change."""
    change = made[-1].record.change
    alike = [m.evidence for m in made if m.record.change == change]
    return judge(layer, before, alike, change or "each loader's third batch again and again")
