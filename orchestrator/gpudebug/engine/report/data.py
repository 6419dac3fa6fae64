"""Everything that a report shows, as one JSON value: page, picture and Markdown are made of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpudebug import __version__
from gpudebug.core.answers.answer import plain
from gpudebug.core.campaign import gains
from gpudebug.core.campaign.decide import goal
from gpudebug.core.config import Config
from gpudebug.core.diagnosis.model import Diagnosis
from gpudebug.core.errors import CatalogueError
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.progress.sanitise import without_controls
from gpudebug.core.redaction.records import scrubbed_record
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.words import Status, counted
from gpudebug.edges import store
from gpudebug.edges.host import now
from gpudebug.engine.campaign.campaign import Baselines, History, Loaded, Records, Setup
from gpudebug.engine.campaign.files import REPLAYED_NOTE
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.session import session_of
from gpudebug.engine.campaign.verdicts import played_back
from gpudebug.engine.diagnosis.case import case_of
from gpudebug.engine.diagnosis.differences import from_reference
from gpudebug.engine.report import hypotheses
from gpudebug.engine.report.runs import ReportedRun, ReportedRuns, brief, detail, log_size, surroundings
from gpudebug.engine.report.story import story
from gpudebug.engine.status.answer import status_of
from gpudebug.engine.trial.together import NOT_YET, together

FORMAT = 1
# A page stays below 10 MB, half of which is the script that draws it: so much is shown in full. With `_HALF`
# hypotheses, half of that goes to their own lines.
RUNS = 400
POINTS = 80_000
"""Points of all timelines, losses and step times together: about 1.5 MB of JSON."""
_HALF = 300
LOGS = 64 << 20
"""Bytes of all logs that are read: some ten seconds."""
_CAUSES = 3
_DIGITS = 7
_NAMED = 3

Doing = Callable[[str], None]


def gather(directory: Path, doing: Doing = lambda text: None) -> dict[str, Any]:
    """Return the report's data of the campaign at or above `directory`; `doing` gets what takes long.

    A run that cannot be shown is named in `skipped` with the reason. Nothing is written. Every text has
    passed the campaign's redactor, unknown is None.
    """
    loaded = load(directory, session_of())
    runs = ReportedRuns(loaded.setup.workspace, frozenset(loaded.setup.workspace.run_names()))
    status = status_of(loaded)
    share = _HALF / (_HALF + len(loaded.entries.document.hypotheses))
    room = hypotheses.Room(int(share * hypotheses.SIZE))
    entries = sorted(
        loaded.entries.document.hypotheses, key=lambda h: _rank(h.status, loaded.entries.order(h), h.number)
    )
    known = {h.number: h for h in status.hypotheses}
    shown = {h.number: hypotheses.shown(loaded, runs, h, known[h.number], room) for h in entries}
    records, notes = _records(loaded.setup, loaded.history, runs, shown.values(), share, doing)
    reference, causes, unread = _diagnosed(loaded)
    data = {
        "format": FORMAT,
        "gpudebug": __version__,
        "made": now(),
        # Each of its hypotheses is below, with more.
        "status": {key: value for key, value in status.as_json().items() if key != "hypotheses"},
        "story": story(loaded.setup, loaded.entries, loaded.history, runs),
        "settings": store.read_file(loaded.setup.workspace.config, follow=True).decode("utf-8", "replace"),
        "machine": _machine(loaded.setup.config, loaded.history, runs),
        "replayed": _replayed(loaded.setup, loaded.history.records),
        "reference": reference,
        "causes": causes,
        "gain": _gain(loaded),
        "hypotheses": [shown[h.number] for h in loaded.entries.document.hypotheses],
        "runs": records,
        "skipped": [{"run": name, "why": runs.skipped[name]} for name in sorted(runs.skipped)],
        "notes": [*_absent(loaded.entries.document, runs), *unread, *notes, *_shortened(room)],
    }
    found: dict[str, Any] = readable(scrubbed_record(data, loaded.setup.workspace.scrub))
    return found


def _replayed(setup: Setup, records: Records) -> str | None:
    """That figures of the report are those of recordings; None if no run was played back."""
    mine = {n: r for n, r in records.items() if r.get("campaign") == setup.config.campaign}
    return REPLAYED_NOTE if played_back([*mine], mine) else None


def _rank(status: Status, order: int | None, number: int) -> tuple[int, int]:
    """Return what is shown first if not everything fits in full: what was accepted, then what was validated,
    then the newest."""
    if status is not Status.VALIDATED:
        return 2, -number
    return (1, -number) if order is None else (0, -number)


def _records(
    setup: Setup,
    history: History,
    runs: ReportedRuns,
    shown: Iterable[Mapping[str, Any]],
    share: float,
    doing: Doing,
) -> tuple[dict[str, dict[str, object]], list[str]]:
    """Return the records of the campaign's runs by name, the most important of them with their series."""
    mine = [
        name
        for name in setup.workspace.run_names()
        if name not in history.records or history.records[name].get("campaign") == setup.config.campaign
    ]
    found = {name: run for name in mine if (run := runs.get(name)) is not None}
    first = [name for baseline in history.baselines.values() for name in baseline.runs]
    wanted = dict.fromkeys([*first, *_of_sides(shown), *reversed(found)])
    kept = [found[name] for name in wanted if name in found][: int(share * RUNS)]
    series, notes = _series(kept, int(share * POINTS), doing)
    names = {run.folder.name for run in kept}
    if len(kept) < len(found):
        notes.insert(0, f"{len(found) - len(kept)} of {len(found)} runs are not on the page: {_FIRST}")
    return {
        name: {**brief(run), **series.get(name, {})} for name, run in found.items() if name in names
    }, notes


_FIRST = "those of baselines, of accepted and validated hypotheses and the newest come first"


def _series(
    runs: Sequence[ReportedRun], points: int, doing: Doing
) -> tuple[dict[str, dict[str, object]], list[str]]:
    """The series of as many of these runs as there is room for, by name, and what is to be known of that."""
    series: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    logs, long = LOGS, 0
    for run in runs:
        if points <= 0:
            count = f"{len(runs) - len(series)} of {len(runs)} runs"
            notes.append(f"{count} are shown by 40 figures each, without their series: {_FIRST}")
            break
        doing(f"reading runs/{run.folder.name}")
        size = log_size(run)
        found = series[run.folder.name] = detail(run, notes, with_log=size <= logs)
        logs, long = (logs - size, long) if size <= logs else (logs, long + 1)
        points -= _points(found)
    if long:
        notes.append(
            f"the losses of {counted(long, 'run')} are shown by 40 points each: "
            "their logs are too long to read"
        )
    return series, notes


def _of_sides(shown: Iterable[Mapping[str, Any]]) -> list[str]:
    """The runs of hypotheses, the baseline's of each beside its own: their timelines are shown together."""
    return [name for h in shown for name in (*h["trial_runs"], *h["baseline_runs"])]


def _points(series: Mapping[str, Any]) -> int:
    timeline = sum(len(device["points"]) for device in series["timeline"])
    bars = len(series["step_times"]["bins"]) if series["step_times"] else 0
    return timeline + len(series["loss_points"]) + bars + 1


def _machine(config: Config, history: History, runs: ReportedRuns) -> dict[str, object] | None:
    """Return what the newest run of a baseline ran in."""
    names = [name for b in history.baselines.values() for name in b.runs]
    recorded = [n for n, r in history.records.items() if str(r.get("role")).startswith("baseline-")]
    for name in sorted({*names, *recorded}, key=store.run_number, reverse=True):
        run = runs.get(name)
        if run is not None and run.record.campaign == config.campaign:
            return surroundings(run)
    return None


def _diagnosed(loaded: Loaded) -> tuple[dict[str, object] | None, list[dict[str, object]], list[str]]:
    """(differences to the reference, the first causes, why they are not known)."""
    try:
        case = case_of(loaded)
    except CatalogueError as e:
        return None, [], [f"no causes are named: the catalogue cannot be read: {e}"]
    causes = _causes(case.diagnosis) if case.facts.runs else []
    return plain(from_reference(loaded.setup, case.facts)), causes, []


def _causes(diagnosis: Diagnosis) -> list[dict[str, object]]:
    """Return the first of those that something speaks for."""
    likely = [cause for cause in diagnosis.causes if cause.speaks_for]
    return [
        {
            "id": cause.id,
            "title": cause.title,
            "probability": cause.probability,
            "ceiling_pp": cause.ceiling_pp,
            "ceiling_ratio": cause.ceiling_ratio,
            "for": list(cause.speaks_for),
            "against": list(cause.speaks_against),
        }
        for cause in likely[:_CAUSES]
    ]


def _gain(loaded: Loaded) -> dict[str, object] | None:
    steps = [
        gains.AcceptedStep(
            h.number, h.title, h.intervention or "", judged.verdict if judged.verified else None
        )
        for h in loaded.entries.recorded
        if (judged := loaded.entries.trials[h.number])
    ]
    reference = loaded.history.baselines.get("reference")
    found = together(loaded, dict(steps[0].verdict)) if steps and steps[0].verdict else None
    return gains.gain(
        loaded.setup.metric,
        steps,
        now=_now(loaded.setup.metric, loaded.entries.recorded, loaded.history.baselines)
        if found is None or found.why != NOT_YET
        else None,
        reference=reference.figure(loaded.setup.metric) if reference else None,
        target=goal(loaded.campaign),
        together=plain(found) if found is not None else None,
    )


def _now(metric: Metric, recorded: Sequence[HypothesisEntry], baselines: Baselines) -> float | None:
    """Return the figure of the baseline; None if it was recorded before the last acceptance."""
    baseline = baselines["workload"]
    last = [store.run_number(name) for h in recorded for name in h.runs]
    if not baseline.runs or store.run_number(baseline.runs[0]) < max(last, default=0):
        return None
    return baseline.figure(metric)


def _absent(document: ProgressFile, runs: ReportedRuns) -> list[str]:
    """That no run is here, as in a clone: the progress file is all there is."""
    named = [name for h in document.hypotheses for name in h.runs]
    named += [name for b in document.baselines for name in b.runs]
    if runs.here or not named:
        return []
    some = ", ".join(f"runs/{name}" for name in list(dict.fromkeys(named))[:_NAMED])
    return [f"no run folder is here ({some}, …): the figures are those of the progress file"]


def _shortened(room: hypotheses.Room) -> list[str]:
    if not room.short:
        return []
    many = f"{room.short} hypotheses are" if room.short > 1 else "one hypothesis is"
    return [f"{many} shown without gates, sections and patch: `gpudebug show H` has them"]


def readable(value: Any) -> Any:
    """Return a value that every JSON reader takes: texts of whole characters, no NaN, no infinity, and no
    more digits than anybody measured."""
    if isinstance(value, str):
        return without_controls(str(value).encode("utf-8", "replace").decode())
    if isinstance(value, dict):
        return {readable(k): readable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [readable(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value
