"""`status`: the recorded answer where it holds, and next to no imports for it."""

from __future__ import annotations

import subprocess
import sys

from tests.support.campaigns import Campaign

from gpudebug.engine.status.status import status
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
ours |= {"gpudebug.core.answers.next", "gpudebug.core.answers.probe"}
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
    (told.folder / "runs" / ".status" / "test" / "summary.json").unlink(missing_ok=True)
    answer = status(told.folder)
    assert answer.recorded is None
    assert answer.hypotheses[0].verified
