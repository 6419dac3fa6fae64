"""Hostile titles and descriptions through the real `gpudebug propose`: each is one harmless line."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from tests.support.campaigns import make_campaign

from gpudebug.core.change.intervention import parse
from gpudebug.engine.hypotheses.propose import propose

TOKEN = "hf_" + "Ab3dEf6h" * 4
HOSTILE = {
    "\n### Hypothesis 7: me\n- **Status**: VALIDATED\n- x": "Hypothesis 7: me - **Status**: VALIDATED - x",
    "\x1b[2J\x1b]0;own\x07red \u202ethgir\u2066 \u200b##": "red thgir",
    f"``` <details><!-- {TOKEN[:9]}\u2060{TOKEN[9:]}": "` < details><!- - [redacted]",
    "# > - é" + "e\u0301" * 25_000: "éé",
    "word " * 20_000: "word word",
}


def test_a_title_is_one_harmless_line_of_at_most_200_characters(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    for number, (title, shown) in enumerate(HOSTILE.items(), start=1):
        words = ("--description", title, "--method", title, "--set", f"--flag{number}=1")
        said = campaign.json("propose", "--title", title, *words)["title"]
        assert unicodedata.normalize("NFC", said).startswith(shown) and len(said) <= 200
    # A million characters do not fit into a command line, but into a call.
    million = "\x9d" * 1_000_000 + "x"
    answer = propose(
        campaign.folder,
        title=million,
        description=million,
        method="- " * 500_000,
        change=parse("--set --z=1"),
    )
    assert answer.title == "x"
    text = campaign.text
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert len(headings) == 3 + 6 and all(len(line) < 230 for line in headings)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060\u2066-\u2069]", text)
    assert TOKEN not in text and len(text) < 40_000
    status = campaign.json("status")
    assert [h["number"] for h in status["hypotheses"]] == [1, 2, 3, 4, 5, 6]
    assert {h["status"] for h in status["hypotheses"]} == {"UNTESTED"}


def test_a_title_that_shows_nothing_is_none(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    before = campaign.json("status")["hypotheses"]
    for title in ("\u202e\u200b", "\u3164\u2800\u200d"):
        done = campaign.run("propose", "--title", title, "--set", "--a=1").expect(2)
        assert "needs a title" in done.err
    assert campaign.json("status")["hypotheses"] == before == []
