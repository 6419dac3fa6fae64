"""What `propose` asks for and warns of, and under which names it knows a locked flag and a duplicate."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_campaign

from gpudebug.core.change.intervention import from_options
from gpudebug.core.errors import InterventionError, UsageError
from gpudebug.engine.hypotheses.propose import Duplicate, propose, propose_sweep

WHOLE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--work", type=float)
parser.add_argument("-j", "--num-workers", type=int, default=0)
parser.add_argument("--ims-per-batch", type=int, default=8)
args = parser.parse_args()
"""
OPEN = WHOLE.replace("parse_args()", "parse_known_args()")
WORDS = {
    "title": "Loading is slow",
    "description": "Workers read one by one.",
    "method": "Waits should fall.",
}


@pytest.fixture
def made(tmp_path: Path) -> Campaign:
    return make_campaign(tmp_path / "r", files={"train.py": OPEN}, config="locked: [--batch_size, --lr]\n")


def notes(campaign: Campaign, *set_: str, code: bool = False, **more: object) -> tuple[str, ...]:
    given = {**WORDS, **more}
    return propose(campaign.folder, change=from_options(set_, code=code), **given).notes  # type: ignore[arg-type]


def test_words_are_asked_for(made: Campaign) -> None:
    assert notes(made, "--num-workers=4") == ()
    [note] = notes(made, "--num-workers=8", title="Other", description=" ", method="")[:1]
    assert note.startswith(
        "the hypothesis has no description and no method: say so with --description '…' --me"
    )
    before = made.text
    with pytest.raises(UsageError, match="has no method"):
        notes(made, "--num-workers=9", method="", strict=True)
    with pytest.raises(UsageError, match="has no description and no method"):
        propose_sweep(made.folder, "--num-workers=5,6", strict=True)
    assert made.text == before


def test_the_catalogue_lends_its_words_marked_as_general(made: Campaign) -> None:
    given = {"description": "", "method": "", "cause": "dl-no-workers", "strict": True}
    assert notes(made, "--num-workers=4", **given) == ()
    assert "- **Description**: In general: The DataLoader has no workers" in made.text
    assert "- **Test Method**: What should move: " in made.text


def test_a_flag_that_nothing_knows_is_named_with_the_nearest(made: Campaign) -> None:
    [note] = notes(made, "--num_wrkers=4")
    assert note.startswith("--num_wrkers is on no command line, in no source and in no configuration")
    assert note.endswith("; the nearest is --num-workers")
    [other] = notes(made, "--prefetch_factor=4", title="Another", description="It is.", method="It does.")
    assert "nearest" not in other


def test_a_locked_flag_is_known_under_its_other_names(made: Campaign) -> None:
    with pytest.raises(
        InterventionError, match=r"changes --batch_size, which .*, here called --ims-per-batch"
    ):
        notes(made, "--ims-per-batch=64")
    with pytest.raises(InterventionError, match=r"changes --lr, which .*, here called --learning_rate"):
        notes(made, "--learning_rate=1")
    with pytest.raises(InterventionError, match=r"changes --lr, which gpudebug.yaml locks;"):
        notes(made, "--lr=1")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-j=4", "--num-workers=4"),
        ("--num-workers=4", "--num_workers=4.0"),
        ("--work=0.5", "work=5e-1"),
        ("--compile", "--compile=True"),
    ],
)
def test_the_same_in_other_words_is_a_duplicate(made: Campaign, one: str, other: str) -> None:
    made.progress.parent.mkdir(exist_ok=True)
    written = f"- **Intervention**: --set {one}\n- **Status**: REJECTED\n"
    made.add(f"## Hypotheses\n\n### Hypothesis 1: By hand\n{written}")
    with pytest.raises(Duplicate, match="the same change is hypothesis 1 already"):
        notes(made, other)


def test_what_may_mean_the_same_is_named(made: Campaign) -> None:
    notes(made, "--num-workers=4", cause="dl-no-workers")
    other = {"title": "Etwas ganz anderes", "method": "Anders."}
    [note] = notes(made, "-j=8", description="Not the same words at all here.", **other)
    assert note == "it changes --num-workers, as does hypothesis 1 (UNTESTED): Loading is slow"
    [note, *_] = notes(
        made, code=True, title="x", description="Something else entirely.", cause="dl-no-workers"
    )
    assert note.startswith("it tests the cause of hypothesis 1")
    [note, *_] = notes(made, code=True, title="Quite new", description=WORDS["description"])
    assert note.startswith("its description is like that of hypothesis 1")
