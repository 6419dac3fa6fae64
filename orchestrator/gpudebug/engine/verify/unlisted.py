"""Verdicts in runs/ that no entry lists: a test that was repeated, or an entry that is gone."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.progress import HypothesisEntry
from gpudebug.engine.campaign.files import Written, stored_record, stored_verdict
from gpudebug.engine.campaign.measured_code import tested_change
from gpudebug.engine.campaign.verdicts import judged_runs, tested_before, unlisted
from gpudebug.engine.trial.result import runs_of
from gpudebug.engine.verify.entries import CheckedEntry
from gpudebug.engine.verify.findings import Findings


def check_unlisted(written: Written, entries: Sequence[HypothesisEntry], findings: Findings) -> None:
    """A problem if an entry has the change of such a verdict; else its reason is unknown."""
    workspace, campaign = written.workspace, written.config.campaign
    records = {name: stored_record(workspace.run(name), "run.json") for name in workspace.run_names()}
    judged = judged_runs(workspace, campaign, records)
    found = unlisted(workspace, written.document, judged, records)
    workload, placed = written.config.workload, set[str]()
    for entry in written.document.hypotheses if found else ():
        for one in tested_before(tested_change(workspace, entry.intervention), entry, found, workload):
            placed.add(one.run)
            if entry in entries:
                made = runs_of(stored_verdict(workspace.run(one.run)) or {"runs": ()})
                why = (
                    f"{one.text}: add `- **Earlier result ({one.status})**:` to hypothesis {one.hypothesis} "
                    f"and below it `  - Runs: {', '.join(f'runs/{name}' for name in made)}`"
                )
                CheckedEntry(written, entry, findings).differs(
                    "unlisted", expected=f"runs/{one.run}", why=why
                )
    if len(entries) == len(written.document.hypotheses):
        findings.unchecked += [one.text for one in found if one.run not in placed]
