"""Every hypothesis of a campaign as a report shows it: what was changed, on what, and the result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpudebug.core.answers.answer import plain
from gpudebug.core.answers.status import HypothesisRow
from gpudebug.core.campaign import gains
from gpudebug.core.compare.checklist import command_of, surroundings
from gpudebug.core.errors import GpudebugError
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.samples import conditions
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.level import course, sentence
from gpudebug.core.verdict.machine import devices_apart
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Baselines, Entries, Loaded, Trials
from gpudebug.engine.campaign.measured_code import patch_of
from gpudebug.engine.report.runs import ReportedRun, ReportedRuns
from gpudebug.engine.trial.sides import of_sides

PATCH = 200_000
"""Characters of a patch that are shown."""
SIZE = 500_000
"""Characters of JSON for the details of all hypotheses."""


@dataclass
class Room:
    """How much may still be shown; `short` counts the hypotheses for which it did not suffice."""

    left: int = SIZE
    short: int = 0


def shown(
    loaded: Loaded, runs: ReportedRuns, entry: HypothesisEntry, known: HypothesisRow, room: Room
) -> dict[str, object]:
    """`known`, the entry of `status`, with everything else that a report says of it.

    Without `room` for it, it says which runs the trial made and has no details.
    """
    verdict = loaded.entries.trials[entry.number].verdict
    names = sides_of(loaded.entries.trials, loaded.history.baselines, entry)
    more = _NO_DETAILS
    if room.left > 0:
        more = _details(loaded, runs, entry, names)
        room.left -= len(json.dumps(more))
    else:
        room.short += 1
    return {
        **plain(known),
        "description": entry.description,
        "test_method": entry.test_method,
        "before": gains.figure_of(loaded.setup.metric, verdict, "before"),
        "hollow": bool(verdict and verdict.get("hollow")),
        "trial_runs": list(names[1]),
        **more,
    }


_NO_DETAILS: Mapping[str, Any] = {
    "notes": [],
    "gates": [],
    "course": None,
    "figures": {},
    "probe": [],
    "sections": [],
    "diff": None,
    "command": None,
    "differences": [],
    "baseline_runs": [],
}


def _details(
    loaded: Loaded, runs: ReportedRuns, entry: HypothesisEntry, names: tuple[Sequence[str], Sequence[str]]
) -> dict[str, object]:
    verdict = loaded.entries.trials[entry.number].verdict
    before, after = (runs.read(side) for side in names)
    notes = [str(note) for note in verdict["notes"]] if verdict else []
    diff, cut = _diff(loaded.setup.workspace, loaded.entries, entry, after)
    return {
        "notes": [*notes, *cut],
        "gates": plain(numbers.gates(verdict["gates"])) if verdict else [],
        "course": _course(verdict if loaded.entries.trials[entry.number].verified else None),
        "figures": dict(entry.result),
        **_inside(loaded.history.baselines, entry, before, after),
        "diff": diff,
        "command": _command(before, after),
        "differences": _differences(loaded.entries, entry, before, after),
        "baseline_runs": list(names[0]),
    }


def _course(verdict: Mapping[str, Any] | None) -> dict[str, object] | None:
    """Return the picture of a verdict, with its figures as a sentence."""
    found = course(verdict)
    return {**plain(found), "text": sentence(found)} if found is not None else None


def sides_of(
    trials: Trials, baselines: Baselines, entry: HypothesisEntry
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the runs of baseline and trial by name, as its verdict used them; without one the baseline of
    now and the runs that its entry names."""
    verdict = trials[entry.number].verdict
    if verdict:
        used = [(r["part"], r["name"]) for r in verdict["runs"]]
        return [n for part, n in used if part == "baseline"], [n for part, n in used if part == "trial"]
    baseline = baselines["workload"].runs
    trial = [name for name in entry.runs if name not in baseline]
    return (baseline if trial else ()), trial


def _inside(
    baselines: Baselines, entry: HypothesisEntry, before: Sequence[ReportedRun], after: Sequence[ReportedRun]
) -> dict[str, object]:
    base = [run.facts for run in before] or list(baselines["workload"].evidence)
    own = [r.facts for r in after if r.record.role == f"h{entry.number}"]
    probe, sections = of_sides(base, own)
    return {"probe": plain(probe), "sections": plain(sections)}


def _diff(
    workspace: store.Workspace, entries: Entries, entry: HypothesisEntry, after: Sequence[ReportedRun]
) -> tuple[str | None, list[str]]:
    """Return the patch that was tested, else the one that the entry names; a note if it is cut or gone."""
    try:
        data = _tested(after) or _named(workspace, entries, entry)
    except (GpudebugError, OSError) as e:
        return None, [
            f"its patch cannot be read: {e.message if isinstance(e, GpudebugError) else e.strerror}"
        ]
    if data is None:
        return None, []
    text = data.decode("utf-8", "replace")
    if len(text) <= PATCH:
        return text, []
    shown = text[:PATCH].rpartition("\n")[0]
    return shown, [f"the patch is shown up to {PATCH // 1000} of its {len(text) // 1000} thousand characters"]


def _tested(after: Sequence[ReportedRun]) -> bytes | None:
    kept = next((run.folder for run in after if run.folder.has("change.patch")), None)
    return store.read_file(kept.path / "change.patch") if kept is not None else None


def _named(workspace: store.Workspace, entries: Entries, entry: HypothesisEntry) -> bytes | None:
    change = entries.change_of(entry)
    return patch_of(workspace, change) if change is not None else None


def _command(before: Sequence[ReportedRun], after: Sequence[ReportedRun]) -> dict[str, str] | None:
    if not before or not after:
        return None
    return {"before": command_of(before[0].record), "after": command_of(after[-1].record)}


def _differences(
    entries: Entries, entry: HypothesisEntry, before: Sequence[ReportedRun], after: Sequence[ReportedRun]
) -> list[dict[str, str]]:
    """What differs in the surroundings of any two runs of both sides, but for what the change itself sets."""
    change = entries.change_of(entry)
    meant = [c.name for c in change.changes if c.kind == "env"] if change else []
    found = {
        (d.name, str(d.a), str(d.b)): None
        for one in before
        for other in after
        for d in surroundings(one.record, other.record, meant)
    }
    rows = [*found, *_clocks(before, after)]
    return [{"name": name, "before": a, "after": b} for name, a, b in rows]


def _clocks(before: Sequence[ReportedRun], after: Sequence[ReportedRun]) -> list[tuple[str, str, str]]:
    """Clocks and throttling of each device whose sides are far apart; of runs without figures of each the
    worst device's mean clock."""
    found = devices_apart(*([run.evidence for run in side] for side in (before, after)))
    if found is not None:
        return [
            (one.what.removesuffix(" of"), f"{one.before}{one.unit}", f"{one.after}{one.unit}")
            for one in found
        ]
    sides = [[run.evidence.conditions for run in side] for side in (before, after)]
    if not conditions.apart(*sides):
        return []
    clocks = [[c.sm_clock_mhz for c in side if c.sm_clock_mhz is not None] for side in sides]
    shown = [f"{sum(side) / len(side):.0f} MHz" if side else numbers.UNKNOWN for side in clocks]
    return [("mean clock", shown[0], shown[1])] if shown[0] != shown[1] else []
