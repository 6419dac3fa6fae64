"""The layer tests that a campaign's runs record. Reads only; `layer_run` makes the runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from gpudebug.core.answers.diagnosis import LayerResult
from gpudebug.core.diagnosis.layers import LAYERS, PREFIX, judge, shown
from gpudebug.core.records import Evidence, RunRecord
from gpudebug.core.words import ended_as_planned
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import History, Records, Setup
from gpudebug.engine.campaign.files import stored_record
from gpudebug.engine.run.environment import differences, recorded

BY_PROBE = "each loader's batch again and again, by the probe"
"""What a run does whose command is as it was."""


def results(setup: Setup, history: History) -> dict[str, LayerResult]:
    """Return the layer tests that were run on what the campaign's baseline was recorded on, by layer.

    Empty if no baseline is valid: their ratios are over its runs.
    """
    roles = {PREFIX + layer: layer for layer in LAYERS}
    runs: dict[str, list[str]] = {}
    for name in like_baseline(setup, history, roles):
        runs.setdefault(roles[history.records[name]["role"]], []).append(name)
    if not runs:
        return {}
    before = [Evidence.model_validate(e) for e in history.baselines["workload"].evidence]
    return {
        layer: _result(setup.workspace, history.records, layer, before, names)
        for layer, names in runs.items()
    }


def like_baseline(setup: Setup, history: History, roles: Collection[str]) -> list[str]:
    """Return the runs of these roles of the command and code, and where, the valid baseline was recorded, in
    order. None if no baseline is valid.
    """
    made = [
        name
        for name, r in history.records.items()
        if r.get("role") in roles and _counts(setup, history, name)
    ]
    baseline = history.baselines["workload"]
    if not made or baseline.why is not None or not baseline.runs:
        return []
    around = recorded(RunRecord.model_validate(baseline.records[-1]))
    return [
        name
        for name in made
        if not differences(around, recorded(RunRecord.model_validate(history.records[name])))
    ]


def shown_results(setup: Setup, history: History) -> dict[str, LayerResult]:
    """Return the same without secrets, by the layer as a command line names it."""
    return {
        shown(layer): replace(found, layer=shown(layer), changed=setup.workspace.scrub(found.changed))
        for layer, found in results(setup, history).items()
    }


def changed(record: dict[str, object]) -> str:
    """Return what a run's record says was done to the workload."""
    return str(record.get("change") or BY_PROBE)


def _counts(setup: Setup, history: History, name: str) -> bool:
    record, run = history.records[name], setup.workspace.run(name)
    return (
        record.get("campaign") == setup.config.campaign
        and record.get("identity") == history.identities["workload"]
        and ended_as_planned(record.get("outcome"))
        and not record.get("set_aside")
        and run.sealed
        and run.intact("run.json", "evidence.json")
    )


def _result(
    workspace: store.Workspace, records: Records, layer: str, before: Sequence[Evidence], names: Sequence[str]
) -> LayerResult:
    """Of the newest run and those before it that had the same change."""
    change = changed(records[names[-1]])
    alike = [name for name in names if changed(records[name]) == change]
    evidence = [stored_record(workspace.run(name), "evidence.json") for name in alike]
    return judge(layer, before, [Evidence.model_validate(e) for e in evidence], change)
