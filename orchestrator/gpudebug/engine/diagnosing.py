"""A campaign's facts, its diagnosis, and what testing each hypothesis is worth. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core import expected, frameworks
from gpudebug.core.catalogue.model import Cause
from gpudebug.core.diagnosis import worth as worths
from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.diagnosis.matching import Said, causes_of
from gpudebug.core.diagnosis.model import Diagnosis, Facts, Tested
from gpudebug.core.diagnosis.ranking import diagnose
from gpudebug.core.errors import InterventionError
from gpudebug.core.intervention import Intervention
from gpudebug.core.intervention import parse as parse_intervention
from gpudebug.core.layers import signals as layer_signals
from gpudebug.core.words import Status
from gpudebug.engine import catalogue, layers
from gpudebug.engine.loaded import Loaded
from gpudebug.engine.traces import newest_profile
from gpudebug.engine.written import workload_of


def causes(loaded: Loaded) -> tuple[Cause, ...]:
    """The catalogue's causes and the user's own. Raises CatalogueError for a broken file."""
    return catalogue.load(loaded.workspace.root).causes


def facts(loaded: Loaded) -> Facts:
    """What the valid baselines of workload and reference tell; empty where the workload has none."""
    baseline = loaded.baselines["workload"]
    if baseline.why is not None or baseline.unverified or not baseline.evidence:
        return Facts()
    devices = [str(d["name"]) for record in baseline.records for d in record.get("devices", ())]
    profile = newest_profile(loaded)
    return _facts(
        loaded,
        "workload",
        reference=_reference(loaded),
        layers=layer_signals(layers.results(loaded)),
        trace=profile,
        expected=expected.told(loaded.config.expected, devices, baseline.evidence),
    )


def _reference(loaded: Loaded) -> Facts | None:
    found = loaded.baselines.get("reference")
    if found is None or found.why is not None or found.unverified or not found.evidence:
        return None
    return _facts(loaded, "reference")


def _facts(loaded: Loaded, role: str, **more: Any) -> Facts:
    baseline, workload = loaded.baselines[role], workload_of(loaded.config, role)
    assert workload is not None
    argv = workload.argv()
    known = frameworks.recognise(argv)
    return facts_of(
        baseline.evidence, baseline.records, argv, framework=known.name if known else None, **more
    )


def diagnosis_of(loaded: Loaded, tested: Sequence[Tested] = ()) -> Diagnosis:
    """The ranked causes of what the campaign's baseline shows. `tested` says what judged trials tell."""
    return diagnose(causes(loaded), facts(loaded), tested)


def matches_of(loaded: Loaded, known: Facts, found: Sequence[Cause]) -> dict[int, dict[str, float]]:
    """The causes that each hypothesis of the progress file tests, by number, with how well (0 to 1)."""
    return {h.number: causes_of(_said(loaded, h), found, known) for h in loaded.document.hypotheses}


def _said(loaded: Loaded, entry: Any) -> Said:
    return Said(
        entry.title,
        f"{entry.description}\n{entry.test_method}",
        _change(loaded, entry),
        getattr(entry, "cause", None),
    )


def _change(loaded: Loaded, entry: Any) -> Intervention | None:
    """An entry's change; None where it has none or none that can be read."""
    if entry.number in loaded.interventions:
        return loaded.interventions[entry.number]
    try:
        return parse_intervention(entry.intervention) if entry.intervention else None
    except InterventionError:
        return None


def cost_of(loaded: Loaded, known: Facts) -> float | None:
    """What one trial takes of the device, in seconds: as many runs as the baseline has."""
    runs = len(loaded.baselines["workload"].runs) or loaded.config.protocol.baseline_runs
    return None if known.run_s is None else known.run_s * runs


def worth_of(loaded: Loaded, diagnosis: Diagnosis) -> dict[int, float]:
    """Expected gain a device-second of each UNTESTED hypothesis, by number; {} without a baseline."""
    known = facts(loaded)
    cost = cost_of(loaded, known)
    if cost is None:
        return {}
    untested = {h.number for h in loaded.document.hypotheses if h.status is Status.UNTESTED}
    matches: Mapping[int, Mapping[str, float]] = {
        number: tested
        for number, tested in matches_of(loaded, known, causes(loaded)).items()
        if number in untested
    }
    return worths.worth(diagnosis, matches, cost_s=cost, points=loaded.metric.points)
