"""A campaign whose log says that training waits for its data: the catalogue has something to propose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.campaigns import Campaign, make_replay_campaign, record

COMMAND = "python3 train.py --lr=0.1 --num_workers=0 --work=0.2"
CAUSE = """\
id: too-little-work
group: launch
title: The training has too little to do
explanation: |
  Its flag says so. The device idles.
prior: {default: 0.5}
signature:
  - {flag: work, equals: 0.2, weight: 20}
exposed:
  - {signal: device_idle_share}
interventions:
  any:
    code: |
      Make the training do more where it says how much it does.
knobs:
  - {names: [work], direction: up, value: 0.9}
words: ['too little work']
fix: Give it more to do.
own_signal:
  - {signal: gpu_util, direction: rises}
"""
"""A root cause of a user's own, with a knob that is called `work`."""


def waits(share: float) -> str:
    """A loss that falls, and a step that is mostly waiting for data."""
    return f"{2 - 1.5 * share:.4f} data_s:0.080 updt_s:0.020"


def make_waiting_campaign(folder: Path, **more: Any) -> Campaign:
    """Not recorded yet. Its first hypothesis will be found to help, the others to do nothing."""
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10, losses=waits)
    record(recordings, "0002-h1", util=70, rate=35, losses=waits)
    for number in (2, 3, 4):
        record(recordings, f"{number + 1:04}-h{number}", util=20, rate=10, losses=waits)
    return make_replay_campaign(folder / "repo", recordings, command=COMMAND, **more)


def add_cause(campaign: Campaign, text: str = CAUSE, name: str = "too-little-work") -> None:
    """A root cause of the user's own; the folder of hypotheses is no part of the code that is measured."""
    folder = campaign.folder / "hypotheses"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)
