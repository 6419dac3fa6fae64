"""Reads everything that a decision depends on, once: config, progress file, run folders, checkout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpudebug.core import progress
from gpudebug.core.campaign.accepted_changes import changes, effective
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.intervention import parse as parse_intervention
from gpudebug.core.change.permits import Allowed
from gpudebug.core.config import Config
from gpudebug.core.errors import InterventionError
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.accepted import acceptances_of, as_submitted, recorded
from gpudebug.engine.campaign.baselines import baselines_of, identities_of
from gpudebug.engine.campaign.campaign import (
    Entries,
    History,
    Loaded,
    Setup,
    in_force,
)
from gpudebug.engine.campaign.claims import living
from gpudebug.engine.campaign.facts import decidable
from gpudebug.engine.campaign.files import (
    progress_path,
    read,
    recorded_run,
)
from gpudebug.engine.campaign.measured_code import (
    apart,
    code_of,
    look,
    measured_tree,
    refuse_lost_patches,
    tested_change,
)
from gpudebug.engine.campaign.pin_record import settings_of
from gpudebug.engine.campaign.verdicts import (
    brought,
    doubted,
    judged,
    judged_runs,
    tested_before,
    unlisted,
)


def load(directory: Path, session: str | None = None) -> Loaded:
    """Read the campaign at or above `directory`. Expected errors only; nothing is written."""
    workspace, config, path, document = read(directory)
    home = progress_path(workspace, config)
    checkout = look(workspace, home)
    settings = settings_of(workspace, config, checkout)
    acceptances = acceptances_of(workspace.root, config.campaign, checkout)
    if workspace.element is not None:
        acceptances = as_submitted(acceptances, workspace.element)
    accepted = recorded(document, acceptances, session)
    refuse_lost_patches(workspace, accepted)
    foreign = brought(workspace, checkout)
    # One that a clone brings is no run that was cut off here.
    runs = [run for run in map(workspace.run, workspace.run_names()) if run.sealed or run.name not in foreign]
    records = {run.name: r for run in runs if (r := recorded_run(run))}
    verdicts = judged_runs(workspace, config.campaign, records)
    untold = unlisted(workspace, document, verdicts, records)
    trials = {
        h.number: judged(workspace, document, h, acceptances, tested_change(workspace, h.intervention))
        for h in document.hypotheses
    }
    before = {
        h.number: tested_before(trials[h.number].change, h, untold, config.workload)
        for h in document.hypotheses
    }
    trials = doubted(trials, settings, records, foreign, before)
    stack = changes(document, in_force(accepted, trials, acceptances))
    measured = measured_tree(document, records)
    code = code_of(workspace, config, checkout, stack, session, measured, apart(workspace, home))
    if stack:
        config = config.model_copy(update={"workload": effective(config.workload, stack, config.allowed)})
    identities = identities_of(workspace, config, document, records, code.digest)
    baselines = baselines_of(
        workspace, config, document, records, identities, foreign=foreign, plays=settings.plays
    )
    interventions, problems = _interventions(document, config)
    setup = Setup(workspace, config, path, checkout, settings, session)
    leases = {} if store.LEASES in foreign else living(workspace, document)
    entries = Entries(document, trials, acceptances, interventions, problems, leases, session)
    history = History(records, baselines, identities, verdicts, untold)
    return Loaded(setup, entries, history, code, decidable(setup, entries, history, code))


def _interventions(
    document: progress.ProgressFile, config: Config
) -> tuple[dict[int, Intervention], dict[int, InterventionError]]:
    """The changes of hypotheses still to be judged, and what is wrong with those that cannot be tested."""
    argv, allowed = config.workload.argv(), config.allowed
    parsed = {}
    problems = {}
    for h in document.hypotheses:
        if h.status not in (Status.UNTESTED, Status.TESTING) or not h.intervention:
            continue
        try:
            change = parse_intervention(h.intervention, file=document.file, line=h.line)
            if h.status is Status.UNTESTED:
                _refuse_forbidden(change, argv, allowed, document.file, h.line)
            parsed[h.number] = change
        except InterventionError as e:
            problems[h.number] = e
    return parsed, problems


def _refuse_forbidden(
    change: Intervention, argv: Sequence[str], allowed: Allowed, file: str, line: int
) -> None:
    """InterventionError, at its place, for a change that no hypothesis may make."""
    try:
        change.refuse_forbidden(argv, allowed)
    except InterventionError as e:
        raise InterventionError(e.message, file=file, line=line, next=e.next) from None
