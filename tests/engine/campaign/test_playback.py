"""Whether a run was played back, by what is known of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpudebug.edges import store
from gpudebug.engine.campaign.playback import replayed

NVML = {"uuid": "GPU-1", "name": "A100", "kind": "nvml"}


@pytest.mark.parametrize(
    ("record", "source", "expected"),
    [
        ({"replayed": True}, None, True),
        ({"replayed": False}, "replay", False),
        # What 0.1.0 recorded: devices as the recording named them, and the source of the samples.
        ({"devices": [NVML]}, "replay", True),
        ({"devices": [NVML]}, "nvml", False),
        ({"devices": [NVML]}, None, None),
        ({"devices": [{**NVML, "kind": "replay"}]}, None, True),
        ({"devices": []}, None, None),
        ({}, None, None),
        ({"devices": "torn"}, None, None),
    ],
)
def test_a_run_that_was_played_back_is_known(
    tmp_path: Path, record: dict[str, Any], source: str | None, expected: bool | None
) -> None:
    if source is not None:
        (tmp_path / "sampler.json").write_text(json.dumps({"source": source}))
    assert replayed(record, store.RunFolder(tmp_path, str)) is expected
