"""The reports of the training processes of baseline and trial, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpudebug.core.answers.show import ProbeSide, SectionRow
from gpudebug.core.errors import GpudebugError
from gpudebug.core.evidence import sound
from gpudebug.core.inside.probe import figures
from gpudebug.core.inside.sections import beside
from gpudebug.core.records import Evidence
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Baselines


def of_runs(part: str, runs: Sequence[Evidence]) -> ProbeSide:
    """One side, of evidence that is at hand."""
    return figures.side(part, _dumped(runs))


def _dumped(runs: Iterable[Evidence]) -> list[dict[str, object]]:
    """Evidence as its files have it."""
    return [e.model_dump(mode="json") for e in runs]


def of_trial(
    workspace: store.Workspace,
    baselines: Baselines,
    number: int,
    names: Iterable[str],
    verdict: Mapping[str, Any] | None,
) -> tuple[tuple[ProbeSide, ...], tuple[SectionRow, ...]]:
    """Return the baseline that hypothesis `number` was judged against, else the one of now, and its own runs.

    Both sides, and the sections that their code named, `a` and `b` of each. `names` are the runs of its
    entry. Nothing before it has run.
    """
    return of_sides(*_sides(workspace, baselines, number, names, verdict))


def of_sides(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> tuple[tuple[ProbeSide, ...], tuple[SectionRow, ...]]:
    """Return the same of evidence that is at hand."""
    if not after:
        return (), ()
    probe = (figures.side("baseline", before), figures.side("trial", after))
    return probe, beside(before, after)


def _sides(
    workspace: store.Workspace,
    baselines: Baselines,
    number: int,
    names: Iterable[str],
    verdict: Mapping[str, Any] | None,
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    used = [r["name"] for r in verdict["runs"] if r["part"] == "baseline"] if verdict else []
    (before, _), (own, _) = readable(workspace, used), readable(workspace, names)
    after = [e for e in own if e["role"] == f"h{number}"]
    return before or list(baselines["workload"].evidence), after


def readable(
    workspace: store.Workspace, names: Iterable[str]
) -> tuple[list[dict[str, object]], dict[str, str]]:
    """evidence.json of these runs, and of those that have none that can be read, why, by name."""
    found, lacking = [], {}
    for name in names:
        folder = workspace.run(name)
        if not folder.has("evidence.json"):
            lacking[name] = "there is none here"
            continue
        try:
            facts = folder.read("evidence.json")
            if not sound.evidence(facts):
                raise ValueError
            found += _dumped([Evidence.model_validate(facts)])
        except GpudebugError as e:
            lacking[name] = e.message
        except ValueError:
            lacking[name] = "it is not what gpudebug writes"
    return found, lacking
