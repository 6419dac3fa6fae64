"""`status`: the recorded answer where it holds, and next to no imports for it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

from tests.support.campaigns import Campaign

from gpudebug.core.answers.status import NextAction
from gpudebug.edges import store
from gpudebug.engine.status.status import _next, status
from gpudebug.engine.status.summary import record

ASK = """
import sys
from pathlib import Path
from gpudebug.engine.status.status import status
from gpudebug.terminal.status import status as text
answer = status(Path("."), every=False)
text(answer)
print(answer.recorded is not None)
wanted = {"pydantic", "yaml", "rich", "typer", "git", "gpudebug.core.config"}
ours = {"gpudebug.core.progress", "gpudebug.engine.campaign.load", "gpudebug.core.catalogue"}
ours |= {"gpudebug.core.answers.next", "gpudebug.core.answers.show"}
print(sorted(sys.modules.keys() & (wanted | ours)))
"""


def test_a_recorded_answer_loads_no_configuration_and_no_evidence(told: Campaign) -> None:
    """In a process of its own: this one has loaded everything."""
    record(told.folder, None, "gpudebug next")
    done = subprocess.run(
        [sys.executable, "-c", ASK], cwd=told.folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["True", "[]"]


def test_without_one_the_evidence_is_read(told: Campaign) -> None:
    (told.private / "status" / "test" / "summary.json").unlink(missing_ok=True)
    answer = status(told.folder)
    assert answer.recorded is None
    assert answer.hypotheses[0].verified


def _over(campaign: Campaign) -> None:
    """Its baseline was measured in allocation 12, which is over."""
    for path in (campaign.folder / "runs").glob("*/run.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "node": {"allocation": "12"}}))
    files = store.Allocations(campaign.private)
    files.make()
    files.put_note(store.AllocationNote(job="12", since="2026-11-26T06:00:00+00:00", ended="idle for 10 min"))


def test_a_test_in_another_allocation_begins_with_its_baseline(told: Campaign) -> None:
    action = NextAction(action="test", hypothesis=9, role=None, why="hypothesis 9 is untested")
    answer = replace(status(told.folder), next=action)
    _over(told)
    assert _next(answer, told.folder) == action, "a campaign without a runner"
    told.config.write_text(told.config.read_text() + "runner: {slurm: {}}\n")
    why = "baseline workload: it was measured in allocation 12, and this is another"
    assert _next(answer, told.folder) == NextAction(
        action="record_baseline", hypothesis=None, role="workload", why=why
    )
    with store.Allocations(told.private).take({"allocation": "12"}):
        assert _next(answer, told.folder) == action
    with store.Allocations(told.private).take({"allocation": "12.1"}):
        assert _next(answer, told.folder).why.endswith("and this is 12.1")


NEXT = """
from dataclasses import replace
from gpudebug.engine.status.status import _next
with open("gpudebug.yaml", "a") as config:
    config.write("runner: {slurm: {}}\\n")
_next(replace(answer, next=replace(answer.next, action="test")), Path())
"""


def test_what_is_next_on_a_cluster_loads_no_more(told: Campaign) -> None:
    record(told.folder, None, "gpudebug next")
    asked = ASK.replace("text(answer)\n", f"text(answer)\n{NEXT}")
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=told.folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["True", "[]"]
