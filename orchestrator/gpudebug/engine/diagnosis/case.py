"""A campaign's facts, its diagnosis, and what each hypothesis is expected to bring. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from gpudebug.core.catalogue import Catalogue
from gpudebug.core.catalogue.program import Program
from gpudebug.core.config import criteria
from gpudebug.core.diagnosis.facts import facts_of
from gpudebug.core.diagnosis.model import Diagnosis, DiagnosisFacts
from gpudebug.core.diagnosis.odds import number
from gpudebug.core.diagnosis.rank import diagnose, shares, shown
from gpudebug.core.diagnosis.tested_causes import StatedHypothesis, causes_of
from gpudebug.core.progress import HypothesisEntry, ProgressFile
from gpudebug.core.verdict.turns import BASELINE_RUNS
from gpudebug.core.words import SignalValue, Status
from gpudebug.engine.campaign.campaign import Baselines, Entries, History, Loaded, Setup
from gpudebug.engine.campaign.files import stored_record, workload_of
from gpudebug.engine.diagnosis import layers, powers
from gpudebug.engine.diagnosis.room import is_full
from gpudebug.engine.run import adapters, catalogue
from gpudebug.engine.run.traces import PREFIX as PROFILE

_WEIGHED = 1000
"""Hypotheses that are weighed against each other: a file may hold ten thousand."""


@dataclass(frozen=True)
class DiagnosisCase:
    """A diagnosis with what it rests on. `matches` are the causes that each hypothesis tests, by number, with
    how well (0 to 1); `cost_s` is the device time of one trial, None if no run records it."""

    facts: DiagnosisFacts
    catalogue: Catalogue
    matches: Mapping[int, Mapping[str, float]]
    diagnosis: Diagnosis
    cost_s: float | None = None


class _Matches(Mapping[int, Mapping[str, float]]):
    """The causes that each hypothesis tests, found when they are asked for: most of a long campaign's are
    not."""

    def __init__(
        self,
        entries: Mapping[int, HypothesisEntry],
        match: Callable[[HypothesisEntry], Mapping[str, float]],
    ) -> None:
        self._entries, self._match = entries, match
        self._found: dict[int, Mapping[str, float]] = {}

    def __getitem__(self, number: int) -> Mapping[str, float]:
        if number not in self._found:
            self._found[number] = self._match(self._entries[number])
        return self._found[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


_made: WeakKeyDictionary[Loaded, DiagnosisCase] = WeakKeyDictionary()


def case_of(loaded: Loaded) -> DiagnosisCase:
    """What the campaign's valid baselines show, made once. Raises CatalogueError for a user's broken file."""
    if loaded not in _made:
        _made[loaded] = _case(loaded)
    return _made[loaded]


def _case(loaded: Loaded) -> DiagnosisCase:
    known = facts(loaded.setup, loaded.history)
    causes = catalogue.load(loaded.setup.workspace.root)
    program = adapters.program_of(loaded.setup.workspace.root, loaded.setup.config.workload)
    defaults = _defaults(program)
    entries = {h.number: h for h in loaded.entries.document.hypotheses}
    code = shown(causes.causes, known)
    matches = _Matches(
        entries, lambda h: causes_of(_said(loaded.entries, h), causes.causes, known, defaults, code)
    )
    tested = powers.tested(loaded, causes, lambda entry: matches.get(entry.number, {}))
    full = is_full(
        number(known.signals.get("gpu_util")), loaded.history.baselines["workload"].evidence, loaded
    )
    diagnosis = diagnose(causes.causes, known, tested, full=full)
    return DiagnosisCase(known, causes, matches, diagnosis, _cost(loaded.history.baselines, known))


def waiting(document: ProgressFile) -> list[HypothesisEntry]:
    """Return the UNTESTED hypotheses that are looked at, the first `_WEIGHED` in the file."""
    return [h for h in document.hypotheses if h.status is Status.UNTESTED][:_WEIGHED]


def shares_of(document: ProgressFile, case: DiagnosisCase) -> dict[int, float]:
    """The share of the time that each hypothesis that waits is expected to bring; {} without a baseline."""
    if case.cost_s is None:
        return {}
    return shares(case.diagnosis, {h.number: case.matches[h.number] for h in waiting(document)})


def facts(setup: Setup, history: History) -> DiagnosisFacts:
    """Read the facts of the valid baselines of workload and reference; empty if the workload has none."""
    baseline = history.baselines["workload"]
    if baseline.why is not None or baseline.unverified or not baseline.evidence:
        return DiagnosisFacts(absent={"baseline": baseline.why or "its figures do not match its run folders"})
    devices = [str(d["name"]) for record in baseline.records for d in record.get("devices", ())]
    return _facts(
        setup,
        history.baselines,
        "workload",
        reference=reference(setup, history.baselines),
        layers=layers.results(setup, history),
        trace=_profile(setup, history),
        expected=criteria.rows(
            setup.config.expected,
            devices,
            baseline.evidence,
            setup.config.workload.text,
            list(setup.config.phases or ()),
        ),
    )


def _profile(setup: Setup, history: History) -> dict[str, object] | None:
    """Return the newest trace that could be read of what the baseline was recorded on: what an older command
    or other code did says nothing of it."""
    for name in reversed(layers.like_baseline(setup, history, (f"{PROFILE}workload",))):
        trace = stored_record(setup.workspace.run(name), "evidence.json").get("trace") or {}
        if trace.get("analysis"):
            return dict(trace)
    return None


def reference(setup: Setup, baselines: Baselines) -> DiagnosisFacts | None:
    """Read the facts of the reference's valid baseline; None without one."""
    found = baselines.get("reference")
    if found is None or found.why is not None or found.unverified or not found.evidence:
        return None
    return _facts(setup, baselines, "reference")


def _facts(setup: Setup, baselines: Baselines, role: str, **more: Any) -> DiagnosisFacts:
    baseline, workload = baselines[role], workload_of(setup.config, role)
    assert workload is not None
    found = adapters.of(setup.workspace.root, workload)
    return facts_of(
        baseline.evidence,
        baseline.records,
        found.started(workload.argv()),
        judged_by=setup.config.criteria.devices if setup.metric.points else None,
        **more,
    )


def _defaults(program: Program | None) -> dict[str, SignalValue]:
    """Return the values of the program's own options that the command does not set."""
    options = program.options if program else {}
    return {name: flag.default for name, flag in options.items() if flag.default is not None}


def _said(entries: Entries, entry: HypothesisEntry) -> StatedHypothesis:
    text = f"{entry.description}\n{entry.test_method}"
    return StatedHypothesis(entry.title, text, entries.change_of(entry), entry.cause)


def _cost(baselines: Baselines, known: DiagnosisFacts) -> float | None:
    """As many runs as the baseline has."""
    runs = len(baselines["workload"].runs) or BASELINE_RUNS
    return None if known.run_s is None else known.run_s * runs
