"""What is written of a campaign is read without its runs, its code or git."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpudebug.core.errors import ConfigError, GpudebugError
from gpudebug.edges import store
from gpudebug.engine.campaign.files import find, read, replayed

CONFIG = """\
campaign: c
workload:
  command: python train.py --hub_token=abcdef123456
  env: {API_KEY: qwertz98765}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gpudebug.yaml").write_text(CONFIG)
    (tmp_path / "src" / "deep").mkdir(parents=True)
    return tmp_path


def test_a_campaign_is_found_from_a_folder_below(folder: Path) -> None:
    written = read(folder / "src" / "deep")
    assert (written.workspace.root, written.config.campaign) == (folder, "c")
    assert written.progress_path == folder / "progress" / "c.md"
    assert written.document.hypotheses == ()


def test_the_folder_of_an_element_is_the_campaigns_but_for_its_worker(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elements = store.Elements(store.Workspace(folder))
    made = elements.make("c", (1, 2), "2026-11-26T08:00:00.000000+00:00")
    for note in made:
        elements.put(replace(note, array="88"))
    mine = elements.path(made[1])
    assert (find(mine).element, find(mine).root) == (None, folder)
    for name, value in (("JOB_ID", "90"), ("ARRAY_JOB_ID", "88"), ("ARRAY_TASK_ID", "2")):
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("SLURMD_NODENAME", "n0")
    assert [find(elements.path(note)).element for note in made] == [None, "0200"]
    # Its worker goes on in it, and not in the campaign, whoever removes its note.
    (elements.folder / made[1].name / "element.json").unlink()
    assert find(mine).element == "0200"


def test_secrets_of_the_command_and_of_its_variables_are_taken_out(folder: Path) -> None:
    scrub = read(folder).workspace.scrub
    assert scrub("got abcdef123456 and qwertz98765") == "got [redacted] and [redacted]"


def test_no_campaign_is_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no gpudebug\.yaml here .*next: gpudebug init"):
        read(tmp_path)


def test_a_config_that_is_not_utf_8_is_named_with_its_line(folder: Path) -> None:
    (folder / "gpudebug.yaml").write_bytes(CONFIG.encode() + b"goal: \xff\n")
    with pytest.raises(ConfigError) as caught:
        read(folder)
    assert caught.value.line == 5


def test_a_progress_file_that_leads_out_is_refused(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (folder / "progress").mkdir()
    (folder / "progress" / "c.md").symlink_to(tmp_path_factory.mktemp("other") / "c.md")
    with pytest.raises(GpudebugError, match="leads out of the repository"):
        read(folder)


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
