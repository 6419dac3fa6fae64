"""What is written of a campaign is read without its runs, its code or git."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.errors import ConfigError, GpudebugError
from gpudebug.engine.campaign.files import read

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
