"""Whatever a campaign is and whatever is done with it, what `next` wrote follows from its evidence: `verify`
is clean after each command, and what is VALIDATED can be accepted."""

from __future__ import annotations

import importlib.util
import pprint
from pathlib import Path

import pytest
from tests.support.drawn import Story, draw

IN_CI, IN_ALL = 5, 200


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "seed",
    [pytest.param(n, marks=[] if n < IN_CI else pytest.mark.heavy) for n in range(IN_ALL)],
)
def test_what_next_writes_follows_from_its_evidence(tmp_path: Path, seed: int) -> None:
    drawn = draw(seed, torch=seed >= IN_CI and importlib.util.find_spec("torch") is not None)
    story = Story(tmp_path / "repo", drawn)
    try:
        story.tell()
    except BaseException:
        print(f"seed {seed}:", pprint.pformat(drawn), *story.said, sep="\n")
        raise
