"""A campaign of recordings: one hypothesis helps, one does nothing, one crashes, one makes the loss NaN."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_replay_campaign, record

CRASH = """\
step 1/100 loss 2.0
Traceback (most recent call last):
  File 'train.py', line 1
ValueError: bad shape
"""


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    record(folder, "0001-baseline-workload", util=20, rate=10)
    record(folder, "0002-baseline-workload", util=20, rate=10)
    record(folder, "0003-baseline-reference", util=90, rate=45)
    record(folder, "0004-h1", util=60, rate=30)
    record(folder, "0005-h2", util=20, rate=10)
    record(folder, "0006-h3", log=CRASH, seconds=3, exit_status=1)
    record(folder, "0007-h4", util=60, rate=30, losses=lambda share: 2.0 - share if share < 0.5 else "nan")
    return folder


@pytest.fixture
def campaign(tmp_path: Path, recordings: Path) -> Campaign:
    return make_replay_campaign(tmp_path / "repo", recordings, runs=1)
