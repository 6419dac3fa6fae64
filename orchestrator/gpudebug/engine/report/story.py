"""What happened in a campaign, in the order of its runs: baselines, trials and acceptances."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.progress.entries import LEFT_OUT
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.words import VERDICTS, counted
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Entries, History, Records, Setup, Trials
from gpudebug.engine.report.runs import ReportedRuns

_BASELINE = "baseline-"
_NEVER = math.inf
Event = tuple[float, dict[str, Any]]
"""A place in the order of the run numbers, and an entry of the story."""


def story(setup: Setup, entries: Entries, history: History, runs: ReportedRuns) -> list[dict[str, object]]:
    """`at` (None: not recorded), `what`, `role`, `hypothesis`, `text` and `runs` of each event.

    An acceptance leaves no time: it comes before the baseline that was recorded after it.
    """
    baselines = list(_baselines(setup, entries.document, history, runs))
    trials = [
        (h.number, _trial(entries.trials, history.records, runs, h))
        for h in entries.document.hypotheses
        if h.status in VERDICTS
    ]
    recorded = [
        place for place, event in baselines if (event["what"], event["role"]) == ("baseline", "workload")
    ]
    judged = dict(trials)
    events = [*baselines, *judged.values(), *_acceptances(entries.recorded, judged, recorded)]
    return [event for _, event in sorted(events, key=lambda e: e[0])]


def _baselines(setup: Setup, document: ProgressFile, history: History, runs: ReportedRuns) -> Iterator[Event]:
    """Runs of a baseline that follow each other on the same premises, and baselines whose runs are gone."""
    groups: list[tuple[str, list[str]]] = []
    current = {name for b in history.baselines.values() for name in b.runs}
    texts = "\n".join(b.fields.get(LEFT_OUT, "") for b in document.baselines)
    left = set(re.findall(r"(?:\A|; |\n)run ([\w.-]+)", texts))
    before, copies = "", set()
    for name, record in history.records.items():
        role = str(record.get("role"))
        mine = record.get("campaign") == setup.config.campaign and record.get("hypothesis") is None
        if not mine or not role.startswith(_BASELINE) or runs.get(name) is None:
            continue
        if record.get("measured_as"):
            copies.add(name)
            continue
        why = str(record.get("set_aside") or "")
        if why or name in left:
            text = f"Run {name} is left out of the baseline" + (f": {why}" if why else "")
            part = role.removeprefix(_BASELINE)
            yield (
                _place([name]),
                _event("left_out", text, [name], at=_start(history.records, [name]), role=part),
            )
            continue
        identity = json.dumps([role, record.get("identity"), name in current], sort_keys=True)
        if identity != before:
            groups.append((role.removeprefix(_BASELINE), []))
        groups[-1][1].append(name)
        before = identity
    listed = copies.union(name for _, names in groups for name in names)
    gone = [(b.role, list(b.runs)) for b in history.baselines.values() if b.runs and not listed & set(b.runs)]
    for role, names in (*groups, *gone):
        found = runs.read(names)
        figure = _baseline_text(setup.metric, document, role, [r.facts for r in found])
        text = f"The baseline of the {role} was recorded: {figure}"
        yield (
            _place(names),
            _event("baseline", text, names, at=_start(history.records, names), role=role),
        )


def _baseline_text(
    metric: Metric, document: ProgressFile, role: str, facts: Sequence[Mapping[str, Any]]
) -> str:
    """Of the runs, else of the progress file."""
    if not facts:
        entry = document.baseline(role)
        return entry.fields.get("gpu util", numbers.UNKNOWN) if entry else numbers.UNKNOWN
    count = counted(len(facts), "run")
    return f"{', '.join(_figures(metric, facts))} ({count})"


def _figures(metric: Metric, facts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in dict.fromkeys((Metric(), metric)):
        value = one.mean([v for e in facts if (v := one.recorded(e)) is not None])
        name = "GPU util" if one.points else one.name
        yield f"{name} {numbers.figure(one, value)}"
    rates = [e["progress_per_s"] for e in facts if e.get("progress_per_s")]
    if rates and not metric.throughput:
        yield numbers.rate(sum(rates) / len(rates), facts[0].get("step_unit"))


def _trial(trials: Trials, records: Records, runs: ReportedRuns, entry: HypothesisEntry) -> Event:
    judged = trials[entry.number]
    line = f"Hypothesis {entry.number}, {entry.title}: {entry.status}"
    if judged.verified and judged.verdict:
        change = numbers.improvement(judged.verdict)
        why = str(judged.verdict["why"])
        text = f"{line}, {change}" + ("" if change in why else f" ({why})")
    else:
        claimed = entry.result.get("improvement")
        text = f"{line}, UNVERIFIED" + (f": {claimed}" if claimed else "")
    names = list(entry.runs)
    runs.read(names)
    return _place(names), _event("trial", text, names, at=_start(records, names), hypothesis=entry.number)


def _acceptances(
    recorded: Sequence[HypothesisEntry], trials: Mapping[int, Event], places: Sequence[float]
) -> Iterator[Event]:
    latest = -_NEVER
    for entry in recorded:
        names = entry.runs
        last = max((store.run_number(name) for name in names), default=_NEVER)
        after = min((place for place in places if place > last), default=_NEVER)
        latest = max(latest, after - 0.5)
        text = f"Hypothesis {entry.number}, {entry.title}: accepted into the baseline"
        yield latest, _event("accepted", text, [], hypothesis=entry.number)


def _event(
    what: str,
    text: str,
    runs: list[str],
    *,
    at: str | None = None,
    role: str | None = None,
    hypothesis: int | None = None,
) -> dict[str, object]:
    return {"at": at, "what": what, "role": role, "hypothesis": hypothesis, "text": text, "runs": runs}


def _place(names: Sequence[str]) -> float:
    """Return the number of the first run; at the end if there is none."""
    return min((store.run_number(name) for name in names), default=_NEVER)


def _start(records: Records, names: Sequence[str]) -> str | None:
    found = [str(start) for name in names if (start := records.get(name, {}).get("start"))]
    return min(found, default=None)
