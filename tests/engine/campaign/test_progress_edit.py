"""The splice: what another session saves at the same moment is never lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.campaigns import make_campaign

from gpudebug.core import progress
from gpudebug.core.words import Status
from gpudebug.edges import store
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.progress_edit import splice

ENTRY = "# Mine\n\n### Hypothesis 1: The loader waits\n- **Status**: UNTESTED\n"


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    return load(make_campaign(tmp_path / "repo", progress=ENTRY).folder)


def under_test(document: progress.ProgressFile) -> bytes:
    return progress.set_status(document, 1, Status.TESTING)


def test_the_file_is_read_anew_for_every_splice(loaded: Loaded) -> None:
    loaded.setup.progress_path.write_text("Saved since.\n\n" + ENTRY)
    splice(loaded.setup, under_test)
    text = loaded.setup.progress_path.read_text()
    assert text == "Saved since.\n\n" + ENTRY.replace("UNTESTED", "TESTING")


def test_a_save_between_reading_and_writing_is_kept_and_spliced_again(loaded: Loaded) -> None:
    saves = iter(["First.\n\n", "Second.\n\n"])

    def edit(document: progress.ProgressFile) -> bytes:
        said = next(saves, None)
        if said is not None:
            loaded.setup.progress_path.write_text(said + ENTRY)
        return under_test(document)

    splice(loaded.setup, edit)
    assert loaded.setup.progress_path.read_text() == "Second.\n\n" + ENTRY.replace("UNTESTED", "TESTING")


def test_a_file_that_is_saved_all_the_time_is_left_alone_in_the_end(loaded: Loaded) -> None:
    count = 0

    def edit(document: progress.ProgressFile) -> bytes:
        nonlocal count
        count += 1
        loaded.setup.progress_path.write_text(f"Save {count}.\n\n{ENTRY}")
        return under_test(document)

    with pytest.raises(store.SavedInBetween):
        splice(loaded.setup, edit)
    assert loaded.setup.progress_path.read_text() == f"Save {count}.\n\n{ENTRY}"


def test_an_edit_without_a_change_writes_nothing(loaded: Loaded) -> None:
    before = os.stat(loaded.setup.progress_path)
    splice(loaded.setup, lambda document: document.data)
    after = os.stat(loaded.setup.progress_path)
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_blank_file_gets_its_head(loaded: Loaded) -> None:
    loaded.setup.progress_path.write_text("\n")
    splice(loaded.setup, lambda d: progress.add_hypothesis(d, ENTRY.partition("\n\n")[2]))
    assert loaded.setup.progress_path.read_text().startswith("# GPU utilization debugging: test\n")
