"""The folders that `gpudebug why` leaves, made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.comparisons import record
from tests.support.trials import run as evidence

from gpudebug.core.records import Evidence, ProbeEvidence
from gpudebug.edges.store import LoneFolders, RunFolder

WAITING = ProbeEvidence(
    pid=1,
    steps=200,
    data_wait_share=0.7,
    forward_share=0.1,
    backward_share=0.15,
    steps_per_s=10.0,
    step_time_p50_s=0.1,
    facts={"loader_workers": 0, "batch_size": 16},
)
"""A training that loads its batches itself."""


def look(folder: Path, seen: Evidence | None = None, *, sealed: bool = True, **facts: Any) -> RunFolder:
    """A look at `python train.py` in `folder`/gpudebug-why-N, which waits for its batches unless `seen`."""
    workspace = LoneFolders(folder, "gpudebug-why")
    made = workspace.new_run("why")
    made.write("run.json", record(**{"name": made.name, "role": "why", **facts}))
    made.write("evidence.json", seen or evidence(25.0, 10.0, probe=WAITING, step_time_p50_s=0.1))
    made.log.write_text("step 1 loss 0.5\n")
    if sealed:
        workspace.seal(made)
    return made
