"""What was accepted stays in the base whatever is written beside it, and a session cannot alter it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign
from tests.support.tampering import substitute
from tests.support.verifying import answer

from gpudebug.engine.campaign.acceptance import settle
from gpudebug.engine.campaign.load import load

SESSION = {"GPUDEBUG_SESSION": "agent-2"}
VALIDATED = "- **Status**: VALIDATED\n"


@pytest.mark.parametrize(
    "own", ["- **GPU**: 2x A100\n", "- **Dataset**: 10% of ImageNet\n", "- **Speedup**: 9x\n"]
)
def test_a_bullet_of_ones_own_takes_no_acceptance_back(adopted: Campaign, own: str) -> None:
    before = [
        (load(adopted.folder, s).code.digest, load(adopted.folder, s).setup.config.workload)
        for s in (None, "a")
    ]
    substitute(adopted.progress, VALIDATED, VALIDATED + own)
    after = [
        (load(adopted.folder, s).code.digest, load(adopted.folder, s).setup.config.workload)
        for s in (None, "a")
    ]
    assert after == before
    loaded = load(adopted.folder)
    assert settle(loaded.setup, loaded.entries) is None
    assert adopted.json("status", env=SESSION)["next"]["action"] == "propose"
    assert answer(adopted).ok is True


def judged_in(campaign: Campaign) -> Path:
    """The run that holds the verdict on hypothesis 1."""
    return campaign.folder / "runs" / (load(campaign.folder).entries.acceptances.entries or {})[1].run


def without_its_entry(campaign: Campaign) -> None:
    text = re.sub(r"### Hypothesis 1:.*?(?=### Hypothesis 2:)", "", campaign.text, flags=re.DOTALL)
    campaign.progress.write_text(text)


def with_another_status(campaign: Campaign) -> None:
    substitute(campaign.progress, VALIDATED + "- **Accepted**: 2\n", "- **Status**: REJECTED\n")


def with_another_flag(campaign: Campaign) -> None:
    substitute(campaign.progress, "--set --lr=0.2", "--set --lr=0.3")


def without_its_run(campaign: Campaign) -> None:
    shutil.rmtree(judged_in(campaign))


def with_another_verdict(campaign: Campaign) -> None:
    substitute(judged_in(campaign) / "verdict.json", "VALIDATED", "REJECTED")


@pytest.mark.parametrize(
    "alter",
    [without_its_entry, with_another_status, with_another_flag, without_its_run, with_another_verdict],
)
def test_a_session_measures_nothing_where_an_acceptance_was_altered(
    adopted: Campaign, alter: Callable[[Campaign], None]
) -> None:
    alter(adopted)
    before = adopted.runs()
    [line] = adopted.run("next", env=SESSION).expect(1).err.splitlines()
    assert "hypothesis 1 was accepted" in line
    assert line.endswith("next: put it back as it was; a person who means it runs: gpudebug next")
    assert adopted.runs() == before
    assert 1 in {p.hypothesis for p in answer(adopted).problems}
    loaded = load(adopted.folder)
    assert settle(loaded.setup, loaded.entries) == (
        "hypothesis 1: no longer accepted, as its Accepted line is gone"
        if alter in (without_its_entry, with_another_status)
        else "hypothesis 1: no longer accepted, as it is not what was accepted any more"
    )
    assert [step.hypothesis for step in load(adopted.folder, "agent-2").code.stack] == [2]
