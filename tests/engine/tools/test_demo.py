"""`gpudebug demo`, for real: both baselines, one hypothesis VALIDATED, the others judged by measurement."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.support.campaigns import gpudebug
from tests.support.documents import ROOT, masked, page
from tests.support.statuses import ageless

from gpudebug.core.change.intervention import parse
from gpudebug.demo import HYPOTHESES
from gpudebug.engine.hypotheses.propose import propose
from gpudebug.engine.status.status import status
from gpudebug.engine.tools.demo import prepare


def test_its_files_make_a_campaign_that_is_ready(tmp_path: Path) -> None:
    prepare(tmp_path)
    for h in HYPOTHESES:
        propose(
            tmp_path, title=h.title, description=h.description, method=h.method, change=parse(h.intervention)
        )
    answer = status(tmp_path)
    assert answer.next.action == "record_baseline"
    assert [h.problem for h in answer.hypotheses] == [None] * len(HYPOTHESES)
    assert len(answer.hypotheses) >= 4


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_whole_demo(tmp_path: Path) -> None:
    # Beside busy neighbours a trial is INVALID or INCONCLUSIVE, as it should be; then it is shown again.
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        done = gpudebug(folder, "demo", "--json", env={"TMPDIR": str(folder)}, timeout=280).expect(0)
        answer = done.json
        verdicts = {h["number"]: h["status"] for h in answer["status"]["hypotheses"]}
        if not {"INVALID", "INCONCLUSIVE"} & set(verdicts.values()):
            break
    assert "VALIDATED" in verdicts.values()
    assert set(verdicts.values()) <= {"VALIDATED", "REJECTED", "UNTESTED"}
    assert all(answer["status"]["baselines"][role]["verified"] for role in ("workload", "reference"))
    assert all(Path(f).exists() for f in answer["files"])
    told = masked(done.err).splitlines()
    assert [line for line in shown_in_readme() if line not in told] == []
    words = shlex.split(answer["next_command"])
    again = gpudebug(tmp_path, *words[words.index("-C") :], "--json").expect(0)
    assert ageless(again.json["hypotheses"]) == ageless(answer["status"]["hypotheses"])


def shown_in_readme() -> list[str]:
    """What the README shows of the baselines and of the VALIDATED hypothesis."""
    shown = next(b.text for b in page(ROOT / "README.md").blocks if b.text.startswith("Baseline workload"))
    lines = masked(shown.partition("Target ")[0]).splitlines()
    return [line for line in lines if line != "…" and "REJECTED" not in line]
