"""What docs/security.md promises of sessions is what they are told."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_replay_campaign, record
from tests.support.documents import pages

SESSION = {"GPUDEBUG_SESSION": "agent-9"}


def rows() -> list[tuple[str, str]]:
    """The example and the words of each row of the table."""
    (page,) = (page for page in pages() if page.path.name == "security.md")
    lines = page.path.read_text("utf-8").partition("## What a session may not do")[2].partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines.splitlines()
        if "`gpudebug" in line
    ]
    return [(example.strip("`"), words) for _, example, words in cells]


SAYS_WHAT_DOES_NOT = (
    "What does not hold",
    "Agents under another account or in a container",
    "Report a problem",
)


def test_each_promise_names_the_tests_that_hold_it() -> None:
    (page,) = (page for page in pages() if page.path.name == "security.md")
    sections = page.path.read_text("utf-8").split("\n## ")
    unheld = [
        title
        for title, _, body in (section.partition("\n") for section in sections)
        if "](../tests/" not in body and title not in SAYS_WHAT_DOES_NOT
    ]
    assert unheld == []


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A VALIDATED hypothesis and an INCONCLUSIVE one, a person's both."""
    folder = tmp_path_factory.mktemp("sessions")
    record(folder / "recordings", "0001-baseline-workload", util=20, rate=10)
    record(folder / "recordings", "0002-h1", util=90, rate=45)
    record(folder / "recordings", "0003-h2", util=33, rate=15)
    made = make_replay_campaign(folder / "repo", folder / "recordings", config="target: 99\n")
    made.json("next")
    for change, verdict in (("--set --lr=0.2", "VALIDATED"), ("--set --lr=0.3", "INCONCLUSIVE")):
        made.propose(change)
        assert made.json("next")["verdict"] == verdict
    return made


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "index"}


@pytest.mark.parametrize(("example", "words"), rows())
def test_a_session_is_refused_and_nothing_changes(tested: Campaign, example: str, words: str) -> None:
    before = files(tested.folder)
    done = tested.run(*shlex.split(example)[1:], env=SESSION)
    assert done.status not in (0, 3)
    assert words in done.err and "agent-9" in done.err, done.err
    assert files(tested.folder) == before
