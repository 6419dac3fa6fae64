"""The record of who has nothing to propose: read back, and what of it counts for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import make_campaign

from gpudebug.core.progress.nothing import NothingToPropose
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.said import SaidRecord, keep, said_of

SAID = NothingToPropose("a", "2026-11-25T22:36:38.123456+00:00", "0123456789abcdef", "all was tested")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_campaign(tmp_path / "r").folder


def kept(root: Path) -> SaidRecord:
    loaded = load(root)
    return said_of(loaded.setup.workspace.root, loaded.setup.config.campaign, loaded.setup.checkout)


def test_only_the_very_line_that_was_kept_counts(root: Path) -> None:
    assert kept(root) == kept(root)._replace(lines=(), problem=None)
    keep(load(root).setup, SAID)
    keep(load(root).setup, SAID._replace(session="b"))
    assert kept(root).has(SAID)
    assert kept(root).has(SAID._replace(session="b"))
    for other in ({"session": None}, {"session": "c"}, {"standing": "f" * 16}, {"why": "x"}):
        assert not kept(root).has(SAID._replace(**other))


def test_it_makes_no_record_of_acceptances(root: Path) -> None:
    # A campaign of 0.1.0 is known by having none.
    keep(load(root).setup, SAID)
    assert load(root).entries.acceptances.entries is None


@pytest.mark.parametrize(
    "data", ["", "[]", "{}", '{"format": 2, "lines": []}', '{"format": 1, "lines": [1]}']
)
def test_one_that_cannot_be_read_counts_for_nothing_until_it_is_made_anew(root: Path, data: str) -> None:
    keep(load(root).setup, SAID)
    kept(root).file.write_text(data)
    assert (kept(root).lines, kept(root).problem) == ((), "is not what gpudebug writes")
    keep(load(root).setup, SAID)
    assert kept(root).has(SAID)
    assert kept(root).problem is None


def test_a_link_in_its_place_is_not_followed(root: Path, tmp_path: Path) -> None:
    keep(load(root).setup, SAID)
    file = kept(root).file
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert not kept(root).has(SAID)
    assert kept(root).problem
