"""Sealed runs that serve again: of a recording or trial that was cut off, of the baseline beside trials."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from gpudebug.core.campaign.allocation import afresh
from gpudebug.core.config import Config
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.verdict.gates.figures import has_metric
from gpudebug.core.verdict.gates.outcome import is_infrastructure
from gpudebug.core.words import AS_PLANNED, Status
from gpudebug.edges import clusters, store
from gpudebug.edges.store import run_number
from gpudebug.engine.campaign.allocations import allocation_of_run
from gpudebug.engine.campaign.campaign import History, Records, Setup
from gpudebug.engine.campaign.files import stored_verdict
from gpudebug.engine.run.environment import Surroundings, differences, recorded
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import stored_run


def reusable(
    setup: Setup,
    records: Records,
    role: str,
    *,
    newer_than: int,
    surroundings: Surroundings,
    identity: Mapping[str, str],
) -> list[MeasuredRun]:
    """Runs of the unchanged `role` with a number above `newer_than`, of this code and command, in these
    surroundings. Older ones belong to a recording that has ended."""
    names = [
        name
        for name, record in alike(setup, records, role, identity, newer_than)
        if record.get("hypothesis") is None and record.get("change_digest") is None
    ]
    return _read(setup.workspace, names, surroundings)


def shared(setup: Setup, history: History, surroundings: Surroundings) -> list[MeasuredRun]:
    """Runs of the workload's baseline that trials have made beside their own since it was recorded.

    They serve every later trial as well. One that was not alone on its device, or whose figures cannot be
    read, serves none: if its trial ended without an answer, the later ones need not.
    """
    found = _read(setup.workspace, baseline_beside(setup, history), surroundings)
    return [m for m in found if void(setup.metric, m) is None]


def void(metric: Metric, run: MeasuredRun) -> str | None:
    """Return why a run of the baseline says nothing of the level; None if it does."""
    if run.evidence.conditions.foreign_procs:
        return "another process computed on the device"
    return None if has_metric(metric, run.evidence) else f"it has no {metric.name}"


def baseline_beside(setup: Setup, history: History) -> list[str]:
    """Return the names of the baseline's sealed runs that were made beside trials since it was recorded."""
    newer_than = newest(history.baselines["workload"].runs)
    found = alike(setup, history.records, "baseline-workload", history.identities["workload"], newer_than)
    return [name for name, record in found if record.get("hypothesis") is not None]


def of_change(
    setup: Setup, history: History, digest: str | None, surroundings: Surroundings
) -> tuple[list[MeasuredRun], int]:
    """Runs with this very change in the record of the baseline, and how often trials of it ended open.

    Whoever proposed it, and whatever its verdict was: a change has one record, so that testing it again is no
    new throw of the dice. Runs that did not complete, shared their device or were of an INVALID trial are no
    part of it.
    """
    newer_than, identity = newest(history.baselines["workload"].runs), history.identities["workload"]
    roles = dict.fromkeys(
        str(r["role"])
        for r in history.records.values()
        if r.get("change_digest") == digest and r.get("change")
    )
    names = [
        name
        for role in roles
        for name, record in alike(setup, history.records, role, identity, newer_than)
        if record.get("change_digest") == digest and record.get("settings") in (None, setup.compared.digest)
    ]
    kept: list[str] = []
    own = sorted(names, key=run_number)
    ended = 0
    for judged in sorted(history.judged, key=run_number):
        verdict = stored_verdict(setup.workspace.run(judged)) or {}
        if not any(used["name"] in own for used in verdict.get("runs") or ()):
            continue
        closed = [name for name in own if run_number(name) <= run_number(judged)]
        ended += verdict["status"] == Status.INCONCLUSIVE
        kept += closed if verdict["status"] != Status.INVALID else ()
        own = own[len(closed) :]
    found = _read(setup.workspace, [*kept, *own], surroundings)
    runs = [m for m in found if m.evidence.outcome in AS_PLANNED and not m.evidence.conditions.foreign_procs]
    return runs, ended if runs else 0


def alike(
    setup: Setup, records: Records, role: str, identity: Mapping[str, str], newer_than: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Sealed runs of `role`, of this campaign, code and command, with what run.json says of each."""
    for name, record in records.items():
        if (
            (record.get("role"), record.get("campaign")) == (role, setup.config.campaign)
            and record.get("identity") == dict(identity)
            and run_number(name) > newer_than
            and not record.get("set_aside")
            and setup.workspace.run(name).sealed
        ):
            yield name, record


def left_out_of(setup: Setup, records: Records, number: int, newer_than: int) -> list[str]:
    """The runs of a trial that was cut off which were set aside, with why, as its verdict names them."""
    return [
        setup.workspace.scrub(left_out_text(name, str(record["set_aside"])))
        for name, record in records.items()
        if (record.get("campaign"), record.get("hypothesis")) == (setup.config.campaign, number)
        and record.get("set_aside")
        and run_number(name) > newer_than
    ]


def set_aside_in(config: Config, records: Records, roles: Collection[str], newer_than: int) -> dict[str, str]:
    """Return why runs of a baseline's recording that was cut off were set aside, by their names; in a job of
    a cluster of one that was made in it."""
    around = clusters.inside()
    places = (None, around.allocation if around is not None else None)
    return {
        name: str(record["set_aside"])
        for name, record in records.items()
        if record.get("campaign") == config.campaign
        and record.get("role") in roles
        and record.get("hypothesis") is None
        and record.get("set_aside")
        and allocation_of_run(record) in places
        and run_number(name) > newer_than
    }


def left_out_text(name: str, why: str) -> str:
    return f"run {name} is set aside: {why}"


def _read(workspace: store.Workspace, names: Iterable[str], surroundings: Surroundings) -> list[MeasuredRun]:
    """Return those of the runs that count, in these surroundings."""
    found = (stored_run(workspace, name) for name in names)
    return [m for m in found if _counts(m) and _made_here(m, surroundings)]


def _made_here(m: MeasuredRun, surroundings: Surroundings) -> bool:
    then = recorded(m.record)
    return not afresh([then.allocation], surroundings.allocation) and not differences(then, surroundings)


def _counts(m: MeasuredRun) -> bool:
    if m.record.role.startswith("baseline-"):
        return m.evidence.outcome in AS_PLANNED
    return not is_infrastructure(m.evidence)


def newest(names: Iterable[str]) -> int:
    """Return the highest number among run folders' names, 0 for none."""
    return max((run_number(name) for name in names), default=0)
