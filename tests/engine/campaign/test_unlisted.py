"""A test whose answer no entry lists: named, counted, and no way to another answer."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, copied, make_replay_campaign, record
from tests.support.verifying import answer, problems

from gpudebug.core.errors import GpudebugError
from gpudebug.engine.campaign.load import load
from gpudebug.engine.hypotheses.accept import accept
from gpudebug.engine.hypotheses.reopen import reopen

FIRST = "0003-h1"
UNTESTED = "- **Status**: UNTESTED\n"


def as_session(number: int) -> dict[str, str]:
    return {"GPUDEBUG_SESSION": f"agent-{number}"}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, str]:
    """Crashed, set back by hand, and VALIDATED in the second test: with the entry as it was before both."""
    folder = tmp_path_factory.mktemp("repeated")
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0002-h1", log="ValueError: bad shape\n", seconds=3, exit_status=1)
    record(recordings, "0003-h1", util=62, rate=30)
    record(recordings, "0004-baseline-workload", util=20, rate=10)
    config = "target: 60\nbudget: {hypotheses: 3}\n"
    made = make_replay_campaign(folder / "repo", recordings, config=config)
    made.json("baseline")
    made.propose("--set --lr=0.2")
    text = made.text
    assert made.json("next", env=as_session(1))["verdict"] == "REJECTED"
    return made, text


@pytest.fixture(scope="module")
def original_repeated(original: tuple[Campaign, str], tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    made = copied(original[0], tmp_path_factory.mktemp("again") / "repo")
    made.progress.write_text(original[1])
    assert made.json("next", env=as_session(2))["verdict"] == "VALIDATED"
    return made


@pytest.fixture
def rejected(original: tuple[Campaign, str], tmp_path: Path) -> Campaign:
    return copied(original[0], tmp_path / "rejected")


@pytest.fixture
def repeated(original_repeated: Campaign, tmp_path: Path) -> Campaign:
    return copied(original_repeated, tmp_path / "repeated")


def test_a_test_that_was_repeated_without_a_trace_is_named_and_counts_for_nothing(repeated: Campaign) -> None:
    [problem] = problems(repeated)
    assert (problem.field, problem.expected) == ("unlisted", f"runs/{FIRST}")
    status = repeated.json("status")
    assert status["budget"]["hypotheses_used"] == 2
    assert status["unlisted"] == [{"run": FIRST, "hypothesis": 1, "status": "REJECTED"}]
    assert "solved" not in status["next"]["why"]
    assert f"runs/{FIRST} has a verdict (REJECTED, hypothesis 1)" in " ".join(
        repeated.run("status").out.split()
    )
    for session in ("agent-9", None):
        with pytest.raises(GpudebugError, match=f"tested before: runs/{FIRST}") as caught:
            accept(repeated.folder, 1, session)
        assert "gpudebug accept 1 --terms-differ" in (caught.value.next or "")
    assert accept(repeated.folder, 1, terms_differ=True).already is False


def test_the_line_that_verify_says_makes_it_told(repeated: Campaign) -> None:
    [problem] = problems(repeated)
    lines = re.findall(r"`(.*?)`", problem.why or "")
    text = repeated.text.replace("- **Result**:", f"{lines[0]}\n{lines[1]}\n- **Result**:")
    repeated.progress.write_text(text)
    assert answer(repeated).ok is True
    assert "solved" in repeated.json("status")["next"]["why"]
    assert accept(repeated.folder, 1, "agent-9").already is False


def test_an_entry_that_is_gone_is_still_counted_and_nobody_is_accused(rejected: Campaign) -> None:
    rejected.progress.write_text(rejected.text.partition("### Hypothesis 1")[0])
    told = answer(rejected)
    assert (told.ok, told.problems) == (None, ())
    assert (
        f"runs/{FIRST} has a verdict (REJECTED, hypothesis 1) that the progress file does not mention"
        in told.unchecked
    )
    assert rejected.json("status")["budget"]["hypotheses_used"] == 1
    said = " ".join(rejected.run("status").out.split())
    assert f"runs/{FIRST} (hypothesis 1, REJECTED) is not in the progress file" in said
    # The same change under another number, spelled otherwise, is the same test.
    rejected.add("\n### Hypothesis 2: Anew\n- **Intervention**: --set lr=0.2\n" + UNTESTED)
    assert [p.field for p in problems(rejected)] == ["unlisted"]


def test_a_run_that_was_deleted_is_asked_for_by_nobody(rejected: Campaign) -> None:
    rejected.progress.write_text(rejected.text.partition("### Hypothesis 1")[0])
    shutil.rmtree(rejected.folder / "runs" / FIRST)
    assert answer(rejected).ok is True
    assert rejected.json("status")["budget"]["hypotheses_used"] == 0


def test_another_campaign_in_the_same_runs_is_its_own_business(repeated: Campaign) -> None:
    config = repeated.config.read_text().replace("campaign: test", "campaign: other")
    repeated.config.write_text(
        config.replace("campaign: other", "campaign: other\nprogress: progress/other.md")
    )
    assert answer(repeated).ok is True
    assert repeated.json("status")["budget"]["hypotheses_used"] == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- **Status**: REJECTED\n", "- **Status**: INCONCLUSIVE\n"),
        (f"  - Runs: runs/{FIRST}\n", ""),
    ],
    ids=["another status", "no runs"],
)
def test_what_stands_in_the_entry_reopens_nothing_for_a_session(
    rejected: Campaign, old: str, new: str
) -> None:
    assert old in rejected.text
    rejected.progress.write_text(rejected.text.replace(old, new))
    with pytest.raises(GpudebugError, match="nothing has changed since it was measured"):
        reopen(rejected.folder, 1, "agent-3")
    assert reopen(rejected.folder, 1).already is False


def test_other_code_reopens_it_whatever_stands_there(rejected: Campaign) -> None:
    rejected.progress.write_text(rejected.text.replace("REJECTED\n", "REJECTED\n- **Speedup**: 9x\n"))
    config = rejected.config.read_text().replace("--lr=0.1", "--lr=0.3")
    rejected.config.write_text(config)
    assert "command changed" in reopen(rejected.folder, 1, "agent-3").why
    assert load(rejected.folder).history.unlisted == ()
