"""A person's word on counts is kept out of the work tree, for one change alone, and beside no link."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import make_campaign

from gpudebug.core.errors import StoreError
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.confirmation import FILE, confirm, confirmed_of
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.private import campaign_folder


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    return load(make_campaign(tmp_path / "repo", progress="## Hypotheses\n").folder)


def path_of(loaded: Loaded) -> Path:
    setup = loaded.setup
    return campaign_folder(setup.workspace.root, setup.config.campaign, setup.checkout).path / FILE


def test_it_is_kept_for_this_change_and_the_newest_counts(loaded: Loaded) -> None:
    assert confirmed_of(loaded.setup, 1, "a") is None
    confirm(loaded.setup, 1, {"change_digest": "a"}, "micro-batches", "4 steps of the log")
    confirm(loaded.setup, 1, {"change_digest": "a"}, "micro-batches, I looked", "4 steps of the log")
    assert confirmed_of(loaded.setup, 1, "a") == "micro-batches, I looked"
    assert (confirmed_of(loaded.setup, 1, "b"), confirmed_of(loaded.setup, 2, "a")) == (None, None)
    path = path_of(loaded)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.is_relative_to(loaded.setup.workspace.root / ".git" / "gpudebug" / "campaigns")


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"hypothesis": 1}]', "[" * 100_000])
def test_a_file_that_is_none_is_named(loaded: Loaded, text: str) -> None:
    confirm(loaded.setup, 1, {"change_digest": "a"}, "why", "counts")
    path_of(loaded).write_text(text)
    with pytest.raises(StoreError, match="is not what gpudebug writes") as caught:
        confirmed_of(loaded.setup, 1, "a")
    assert (caught.value.file, caught.value.next) == (str(path_of(loaded)), "move it away, and confirm again")


def test_no_link_is_followed(loaded: Loaded, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = path_of(loaded)
    path.parent.parent.mkdir(parents=True)
    path.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        confirm(loaded.setup, 1, {"change_digest": "a"}, "why", "counts")
    assert list((tmp_path / "elsewhere").iterdir()) == []
