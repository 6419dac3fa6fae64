"""A verdict follows from the run folders and the terms in verdict.json alone."""

from __future__ import annotations

from tests.support.campaigns import Campaign

from gpudebug.core.records import Verdict
from gpudebug.edges import store
from gpudebug.engine.run.prepare import stored_run
from gpudebug.engine.trial.judge import judge_runs


def test_the_stored_verdict_comes_out_again_whatever_the_config_says_now(told: Campaign) -> None:
    told.config.write_text(told.config.read_text() + "criteria: {success: 99, failure: 98}\n")
    workspace = store.Workspace(told.folder)
    name = next(n for n in workspace.run_names() if workspace.run(n).has("verdict.json"))
    stored = Verdict.model_validate(workspace.run(name).read("verdict.json"))
    assert stored.terms is not None
    before, after = (
        [stored_run(workspace, r.name) for r in stored.runs if r.part == part]
        for part in ("baseline", "trial")
    )
    assert judge_runs(1, stored.terms, before, after, stored.remarks) == stored
