"""What became of each hypothesis: figures of verified verdicts, claims of all others marked as such."""

from __future__ import annotations

import re

import pytest
from tests.support.briefs import grown
from tests.support.campaigns import Campaign

from gpudebug.core.progress import harmless
from gpudebug.engine.brief import history
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.load import load


@pytest.fixture(scope="module")
def known(original_told: Campaign) -> Loaded:
    return load(original_told.folder)


def say(text: str) -> str:
    return harmless(text, limit=1000)


def test_a_verified_verdict_is_one_line_with_its_figures_change_and_reason(known: Loaded) -> None:
    (entry,) = history.judged(known.entries.document)
    told = history.tried(known.entries, entry, say)
    assert (told.number, told.mark) == (1, "VALIDATED")
    assert re.fullmatch(
        r'h1 VALIDATED \+\d+\.\dpp, throughput (2\.9|3\.0)\dx: "The loader waits", `--set --lr=0\.2`: '
        r'"delta \(\+\d+\.\d to \+\d+\.\d\), all gates pass"',
        told.write(250),
    )
    short = told.write(110)
    assert len(short) <= 118 and "`--set --lr=0.2`" in short and "The loader" in short


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("--set --policy.n_decoder_layers=4", "`--set --policy.n_decoder_layers=4`"),
        (f'--set --a=\'{{"x": "{"y " * 100}"}}\'', "`--set --a=…`"),
        (f"--set --a=1 --compound --set --{'b' * 50}=2", "`--set --a=1 --compound --set … and 1 more`"),
        ("--set 'open", "`--set 'open`"),
    ],
)
def test_a_change_is_never_cut_inside_a_flag(known: Loaded, change: str, shown: str) -> None:
    (entry,) = history.judged(known.entries.document)
    told = history.tried(
        known.entries, entry, lambda text: change if text == entry.intervention else say(text)
    )
    assert shown in told.write(160)


def test_the_newest_stands_first(known: Loaded) -> None:
    assert [h.number for h in history.judged(grown(known, 3).entries.document)] == [5, 4, 3, 1]


def test_a_claim_by_hand_is_marked_and_quoted(known: Loaded) -> None:
    loaded = grown(known, 1, lambda n: f'"done" {"x" * 300}', by_hand=lambda n: True)
    told = history.tried(loaded.entries, loaded.entries.document.hypothesis(3), say)
    assert told.mark == "REJECTED UNVERIFIED"
    line = told.write(150)
    assert line.startswith('h3 REJECTED UNVERIFIED, by hand, claimed "+1.0pp" "\'done\' xxx')
    assert len(line) <= 152


def test_training_output_in_a_verdict_is_quoted(known: Loaded) -> None:
    loaded = grown(known, 1)
    verdict = loaded.entries.trials[3].verdict
    assert verdict is not None
    verdict |= {"why": "outcome: do `as` \x1b[1mI\x1b[0m say\n# now"}
    told = history.tried(loaded.entries, loaded.entries.document.hypothesis(3), say)
    assert told.write(300).endswith(': "outcome: do `as` I say # now"')


@pytest.mark.parametrize(
    ("status", "accepted", "is_"),
    [("VALIDATED", "1", False), ("VALIDATED", "soon", False), ("REJECTED", "1", False)],
)
def test_a_line_by_hand_accepts_nothing(told: Campaign, status: str, accepted: str, is_: bool) -> None:
    told.add(
        f"\n### Hypothesis 9: x\n- Change: --set --a=1\n- **Status**: {status}\n- **Accepted**: {accepted}\n"
    )
    loaded = load(told.folder)
    entry = loaded.entries.document.hypothesis(9)
    assert history.accepted(loaded.entries, entry) is is_
    assert history.mark(loaded.entries, entry) == f"{status} UNVERIFIED"
