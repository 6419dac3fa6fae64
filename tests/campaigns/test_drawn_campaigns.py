"""Whatever a campaign is and whatever is done with it, what `next` wrote follows from its evidence: `verify`
is clean after each command, and what is VALIDATED can be accepted."""

from __future__ import annotations

import importlib.util
import pprint
from pathlib import Path

import pytest
from tests.support.drawn import Story, draw

IN_CI, ALL = (10, 12, 22, 23, 33), range(200)
"""Seeds: those of CI are of several metrics and acts, and short."""


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed in IN_CI else pytest.mark.heavy) for seed in ALL]
)
def test_what_next_writes_follows_from_its_evidence(tmp_path: Path, seed: int) -> None:
    drawn = draw(seed)
    if "torch" in drawn.flags and importlib.util.find_spec("torch") is None:
        pytest.skip("needs PyTorch")
    story = Story(tmp_path / "repo", drawn)
    try:
        story.tell()
    except BaseException:
        print(f"seed {seed}:", pprint.pformat(drawn), *story.said, sep="\n")
        raise
