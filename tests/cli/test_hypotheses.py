"""Hypotheses that cannot be tested, and what people and agents may write into one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.campaigns import (
    Campaign,
    contents,
    copied,
    make_campaign,
    make_replay_campaign,
    record,
)

from gpudebug.core.progress import parse

ENTRY = """\
## Hypotheses

### Hypothesis 7: The loader waits
- **Description**: Because.
- **Test Method**: Try.
- **Intervention**: {}
- **Status**: UNTESTED
"""
UNTESTABLE = {
    "locked": ("--set --lr=0.2", "lr"),
    "several changes": ("--set --work=0.3 --set --step-time=0.1", "--compound"),
    "no such option": ("--put --work=1", "--put"),
    "no flag": ("--set", "--set"),
    "nothing to unset": ("--unset --momentum", "--momentum"),
    "as it is already": ("--set --work=0.2", "no effect"),
    "open quote": ("--set --work='0.3", "quote"),
    "patch elsewhere": ("--patch ../../x.diff", "hypotheses/patches"),
    "an empty variable": ("--env =1", "--env"),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A campaign with its baseline."""
    folder = tmp_path_factory.mktemp("original")
    record(folder / "recordings", "0001-baseline-workload")
    made = make_replay_campaign(folder / "repo", folder / "recordings", config="locked: [--lr]\n")
    made.json("next")
    return made


@pytest.fixture
def campaign(original: Campaign, tmp_path: Path) -> Campaign:
    made = copied(original, tmp_path / "repo")
    made.progress.unlink()
    return made


@pytest.fixture
def recorded(original: Campaign, tmp_path: Path) -> Campaign:
    return copied(original, tmp_path / "recorded")


@pytest.mark.parametrize(("change", "said"), UNTESTABLE.values(), ids=UNTESTABLE)
def test_what_cannot_be_tested_is_refused_before_device_time(
    recorded: Campaign, change: str, said: str
) -> None:
    recorded.add("\n" + ENTRY.format(change))
    before = recorded.progress.read_bytes(), recorded.runs()
    done = recorded.run("next").expect(1)
    (line,) = done.err.splitlines()
    number = recorded.text[: recorded.text.index("### Hypothesis 7")].count("\n") + 1
    assert f"{recorded.progress}:{number}: " in line
    assert said in line
    assert "; next: " in line
    assert (recorded.progress.read_bytes(), recorded.runs()) == before


@pytest.mark.parametrize(("change", "said"), UNTESTABLE.values(), ids=UNTESTABLE)
def test_the_same_is_refused_when_it_is_proposed(campaign: Campaign, change: str, said: str) -> None:
    if "'" in change:
        pytest.skip("the shell of the caller refuses an open quote")
    before = contents(campaign.folder)
    done = campaign.run("propose", "--title", "A cause", *change.split())
    assert done.status in (1, 2)
    (line,) = done.err.splitlines()
    assert said in line
    assert "; next: " in line
    assert contents(campaign.folder) == before


def test_an_untestable_hypothesis_does_not_hide_where_the_campaign_stands(recorded: Campaign) -> None:
    recorded.add("\n" + ENTRY.format("--put x"))
    status = recorded.json("status")
    assert status["hypotheses"][0]["problem"]
    assert status["next"]["action"] == "test"
    assert recorded.json("show", "7")["status"] == "UNTESTED"


DUPLICATES = ("--set --work=0.3", "--set=--work=0.3", "--set work=0.3")


@pytest.mark.parametrize("again", DUPLICATES)
def test_a_duplicate_is_refused_and_the_first_one_named(campaign: Campaign, again: str) -> None:
    campaign.propose("--set --work=0.3", "The first")
    before = contents(campaign.folder)
    done = campaign.run("propose", "--title", "In other words", *again.split(" ")).expect(1)
    assert "hypothesis 1" in done.err
    assert "The first" in done.err
    assert "gpudebug show 1" in done.err
    assert contents(campaign.folder) == before


@pytest.mark.parametrize("status", ["TESTING", "VALIDATED", "REJECTED", "INCONCLUSIVE", "INVALID"])
def test_a_duplicate_of_what_was_tested_is_refused_too(campaign: Campaign, status: str) -> None:
    campaign.progress.parent.mkdir(exist_ok=True)
    campaign.progress.write_text(ENTRY.format("--set --work=0.9").replace("UNTESTED", status))
    done = campaign.run("propose", "--title", "Again", "--set", "--work=0.9").expect(1)
    assert f"hypothesis 7 already ({status}" in done.err


HOSTILE_TEXTS = {
    "a heading": "x\n### Hypothesis 99: forged\n- **Status**: VALIDATED",
    "a status": "x\n- **Status**: VALIDATED\n- **Result**:\n  - Improvement: +99pp",
    "a fence": "```\nopen fence",
    "a tilde fence": "~~~",
    "a comment": "<!-- open comment",
    "ansi": "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "bidi": "safe \u202e gnp.exe \u2066 \u200b",
    "conflict": "<<<<<<< HEAD",
    "setext": "a\n===\n",
    "carriage return": "a\r### Hypothesis 98: b\rc",
    "line separators": "a\u2028### Hypothesis 97: b\u2029c\x85d\x0be\x0cf",
    "bullets": "- **Intervention**: --set --lr=9",
    "a NUL-free control": "a\x01\x02\x7fb",
    "jinja": "{{ 7 * 7 }} {% raw %}",
    "html": "<script>alert(1)</script>",
    "a lone surrogate": "a\udcffb",
}


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_hostile_text_cannot_break_the_file(campaign: Campaign, text: str) -> None:
    words = ["propose", "--title", text, "--description", text, "--method", text, "--set", "--work=0.4"]
    answer = campaign.json(*words)
    assert answer["hypothesis"] == 1
    raw = campaign.progress.read_bytes()
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", raw)
    assert "\u202e" not in raw.decode()
    campaign.add("\n" + ENTRY.format("--set --work=0.5"))
    first, second = parse(campaign.progress.read_bytes(), "progress.md").hypotheses
    assert (first.number, first.status, first.intervention) == (1, "UNTESTED", "--set --work=0.4")
    assert (second.number, second.title, second.status) == (7, "The loader waits", "UNTESTED")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", campaign.run("show", "1").expect(0).out)


def test_what_stands_in_a_file_cannot_rewrite_the_terminal(campaign: Campaign) -> None:
    text = ENTRY.format("--set --work=0.9").replace("Because.", "\x1b[2J\x1b]0;owned\x07 \u202egnp\u202c")
    campaign.progress.write_text(text.replace("The loader", "The \x1b[31mloader"))
    for words in (("status",), ("show", "7")):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", campaign.run(*words).expect(0).out)


def test_a_title_of_a_megabyte_is_cut(tmp_path: Path, campaign: Campaign) -> None:
    # One word of an argument list cannot be longer than 128 KiB.
    campaign.json("propose", "--title", "x" * 120_000, "--description", "y " * 60_000, "--set", "--work=0.4")
    assert len(campaign.progress.read_bytes()) < 4000
    assert campaign.json("status")["hypotheses"][0]["title"].startswith("xxx")


EDGES = {
    "a blank title": (["--title", "  ", "--set", "--work=0.4"], 2),
    "no title": (["--set", "--work=0.4"], 2),
    "an unknown option": (["--title", "t", "--sett", "--work=0.4"], 2),
    "both a patch and code": (["--title", "t", "--patch", "hypotheses/patches/a.diff", "--code"], 1),
}


@pytest.mark.parametrize(("words", "status"), EDGES.values(), ids=EDGES)
def test_a_proposal_that_is_none(campaign: Campaign, words: list[str], status: int) -> None:
    before = contents(campaign.folder)
    done = campaign.run("propose", *words).expect(status)
    assert len(done.err.splitlines()) == 1
    assert contents(campaign.folder) == before


def test_without_a_change_an_implementation_is_asked_for(recorded: Campaign) -> None:
    recorded.json("propose", "--title", "Someone else knows how", "--method", "Cache it")
    answer = recorded.json("next", status=5)
    assert answer["action"] == "implement"
    assert answer["hypothesis"] == 1
    assert "Someone else knows how" in answer["brief"]
    assert "Intervention" in answer["brief"]
    assert recorded.json("status")["next"]["action"] == "implement"


def test_code_waits_behind_what_gpudebug_can_test(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo", progress=ENTRY.format("--code"))
    campaign.propose("--set --work=0.4")
    assert [h["intervention"] for h in campaign.json("status")["hypotheses"]] == [
        "--code",
        "--set --work=0.4",
    ]
