"""Runs that were made as something else become the baseline's: a look, the runs of an accepted trial.

They are copied, as the record of what they were is another's evidence. What they measured stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudebug.core.campaign import accepted_changes
from gpudebug.core.errors import BusyError
from gpudebug.core.progress import HypothesisEntry
from gpudebug.core.records import Manifest, RunRecord
from gpudebug.edges import store, templates
from gpudebug.engine.campaign.baselines import identity
from gpudebug.engine.campaign.campaign import Loaded, MeasuredCode
from gpudebug.engine.campaign.measured_code import patch_of
from gpudebug.engine.campaign.premises import changed
from gpudebug.engine.run import counts
from gpudebug.engine.run.evidence import evidence_again
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import claim_of, stored_run
from gpudebug.engine.trial.baseline_entry import entry_fields, learning_of

BASELINE = "baseline-workload"
_OURS = ("run.json", "evidence.json", "verdict.json", "manifest.json", counts.PATCH)
_LARGEST = 2 << 30


def copied(workspace: store.Workspace, run: store.RunFolder, now: Mapping[str, Any]) -> MeasuredRun:
    """Return a sealed copy of a sealed run as one of the workload's baseline; `now` is what its record says
    of that. StoreError if a file cannot be read or written."""
    folder = workspace.new_run(BASELINE)
    for name in Manifest.model_validate(run.read("manifest.json")).files:
        if name not in _OURS:
            target = folder.path / name
            store.make_folder(target.parent)
            store.copy_into(target, store.read_file(run.path / name, _LARGEST))
    known = RunRecord.model_validate(run.read("run.json"))
    written = {k: v for k, v in known.written.items() if k not in _OURS} if known.written else None
    record = known.model_copy(update={"written": written, **now, "name": folder.name, "role": BASELINE})
    evidence = evidence_again(folder, record)
    folder.write("evidence.json", evidence)
    folder.write("run.json", record)
    workspace.seal(folder)
    return MeasuredRun(folder, record, evidence)


def taken_over(loaded: Loaded, entry: HypothesisEntry) -> tuple[str | None, str]:
    """Return the baseline's entry by the runs of a trial whose change is about to be accepted, and a line on
    it; None with the reason if they are not what the baseline measures from then on."""
    since = changed(loaded.history, entry)
    if since:
        return None, (
            f"{' and '.join(since)} changed since it was measured: the combination is not measured yet, "
            "`gpudebug next` measures it"
        )
    setup = loaded.setup
    try:
        with claim_of(setup.workspace, "gpudebug accept", setup.session):
            runs = _runs(loaded, entry)
    except BusyError as e:
        return None, f"{e.message}: `gpudebug next` records the baseline again"
    learning = learning_of(setup.config, runs)
    fields = entry_fields("workload", runs, setup.metric, setup.config.work, learning)
    text = templates.render("baseline.md.j2", **fields)
    said = "run of its trial is" if len(runs) == 1 else f"{len(runs)} runs of its trial are"
    return text, f"the {said} the baseline now: nothing is measured again"


def _runs(loaded: Loaded, entry: HypothesisEntry) -> list[MeasuredRun]:
    """Return the copies of the trial's runs, those that an `accept` which was cut off has made included."""
    workspace, records = loaded.setup.workspace, loaded.history.records
    now = _identity(loaded, entry)
    there = {
        record.get("measured_as"): name
        for name, record in records.items()
        if record.get("identity") == now and workspace.run(name).sealed
    }
    plain = {"hypothesis": None, "change": None, "change_digest": None, "claim": None}
    made = []
    for source in trial_runs(loaded.entries.trials[entry.number].verdict or {}):
        if source in there:
            made.append(stored_run(workspace, there[source]))
            continue
        told = {**plain, "identity": now, "measured_as": source}
        made.append(copied(workspace, workspace.run(source), told))
    return made


def _identity(loaded: Loaded, entry: HypothesisEntry) -> dict[str, str]:
    """Return what the baseline is valid for once the change is accepted; a node's part as it was measured."""
    setup, code = loaded.setup, loaded.code
    (step,) = accepted_changes.changes(loaded.entries.document, [entry])
    patch = patch_of(setup.workspace, step.intervention)
    tree = MeasuredCode(code.tree, (*code.patches, *(() if patch is None else (patch,)))).digest
    workload = accepted_changes.effective(setup.config.workload, [step], setup.config.allowed)
    made = identity(setup.workspace, setup.config, workload, tree)
    return {**loaded.history.identities["workload"], "command": made["command"], "tree": tree}


def trial_runs(verdict: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the runs with the change that a verdict rests on."""
    return tuple(r["name"] for r in verdict.get("runs") or () if r["part"] == "trial")
