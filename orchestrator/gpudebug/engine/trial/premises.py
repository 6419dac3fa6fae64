"""What a trial must find before its first run: a baseline of its surroundings, and a change that applies."""

from __future__ import annotations

from gpudebug.core.campaign import accepted_changes
from gpudebug.core.change.commands import of_server
from gpudebug.core.change.intervention import Applied, Intervention
from gpudebug.core.errors import GpudebugError, InterventionError
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.run.environment import Surroundings, differences, recorded
from gpudebug.engine.run.job import MeasuredRun, PreparedRun, PreparedServer
from gpudebug.engine.run.prepare import Cycle
from gpudebug.engine.run.server import with_change
from gpudebug.engine.run.smaller import refuse_unexplained
from gpudebug.engine.trial import baseline
from gpudebug.engine.trial.baseline_entry import metric_text
from gpudebug.engine.trial.judge import evidence_of
from gpudebug.engine.trial.unmodified import BaselineFailed


class BaselineOutdated(GpudebugError):
    """The surroundings are no longer the baseline's: it has to be recorded again before a trial counts."""

    code = "baseline"


class Unready(Exception):
    """A trial that cannot begin with its hypothesis as it is; `error` says why."""

    def __init__(self, error: GpudebugError) -> None:
        super().__init__(str(error))
        self.error = error


def refuse_outdated(before: list[MeasuredRun], around: Surroundings) -> None:
    outdated = list(dict.fromkeys(d for m in before for d in differences(recorded(m.record), around)))
    if any(not m.record.devices for m in before) and any(d.can.shares_cores for d in around.devices):
        outdated.append("an imported run's device and the CPU used here")
    if outdated:
        raise BaselineOutdated(f"recorded elsewhere: {'; '.join(outdated)}", next="gpudebug baseline")


def refuse_without_figure(cycle: Cycle, before: list[MeasuredRun]) -> None:
    """A trial has nothing to be compared with if no run of the baseline has the campaign's metric."""
    metric = cycle.setup.metric
    if any(metric.value(m.evidence) is not None for m in before):
        return
    lines = baseline.advice(cycle.setup, cycle.loaded.campaign, "workload", before)
    figure = metric_text(metric, list(evidence_of(before)))
    raise BaselineFailed(
        f"the baseline has no figure to compare with: {figure}",
        file=str(cycle.setup.progress_path),
        next="; ".join([*lines, "then gpudebug baseline"]),
    )


def apply_change(
    loaded: Loaded, number: int, intervention: Intervention, job: PreparedRun
) -> tuple[Applied, PreparedServer | None]:
    """Return the change applied to the command and its server; one that cannot be, or of which it has to be
    asked first whether it is the same work, is refused with its place."""
    refuse_unexplained(loaded.setup, loaded.entries.document, loaded.history.baselines, number, intervention)
    allowed = loaded.setup.config.allowed
    try:
        change = accepted_changes.located(intervention, loaded.setup.config.workload).spelled(
            job.argv, job.synonyms
        )
        applied = change.apply(job.argv, dict(job.env), allowed)
        return applied, with_change(job.server, of_server(change), allowed)
    except InterventionError as e:
        line = loaded.entries.document.hypothesis(number).line
        raise InterventionError(
            f"hypothesis {number}: {e.message}", file=str(loaded.setup.progress_path), line=line, next=e.next
        ) from None
