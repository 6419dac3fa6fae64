"""A base is believed by what gpudebug recorded and what the commit holds; its label is only a claim."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git, make_repository
from tests.support.repositories import REF, stored

from gpudebug.edges import git as snapshot
from gpudebug.edges.git import repository as module
from gpudebug.edges.git.kept import MeasuredTree, trusted, vouch

ALL = MeasuredTree(())


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = make_repository(tmp_path / "repo", {"train.py": "1\n", "data/keep.txt": "x\n"})
    (top / "train.py").write_text("2\n")
    return top


def kept(top: Path) -> tuple[snapshot.Checkout, snapshot.Base]:
    checkout = snapshot.identify(top)
    return checkout, snapshot.snapshot(top, ref=REF, label=checkout.tree)


def test_what_was_recorded_is_believed(top: Path) -> None:
    (top / "notes.txt").write_text("not counted\n")
    checkout, base = kept(top)
    vouch(checkout, REF, base.commit, ALL)
    assert trusted(checkout.at, REF, base.commit, base.tree, ALL) is True
    assert trusted(checkout.at, REF, base.commit, "0" * 16, ALL) is False
    assert trusted(checkout.at, REF, git(top, "rev-parse", "HEAD").strip(), base.tree, ALL) is False


@pytest.mark.parametrize("untracked", [None, "notes.txt", "own/tool.txt"])
def test_without_a_record_its_digest_proves_it(top: Path, untracked: str | None) -> None:
    if untracked:
        (top / untracked).parent.mkdir(exist_ok=True)
        (top / untracked).write_text("x\n")
    checkout, base = kept(top)
    assert trusted(checkout.at, REF, base.commit, base.tree, ALL) is True
    commit_all(top)
    (top / "train.py").write_text("3\n")
    assert trusted(checkout.at, REF, base.commit, base.tree, ALL) is True
    assert trusted(checkout.at, REF, base.commit, snapshot.identify(top).tree, ALL) is None


def test_a_python_file_more_is_another_tree(top: Path) -> None:
    checkout, base = kept(top)
    (top / "torch.py").write_text("evil\n")
    other = snapshot.snapshot(top, ref=f"{REF}-1", label=base.tree)
    assert trusted(checkout.at, REF, other.commit, base.tree, ALL) is None


def test_a_record_that_was_edited_is_no_proof(top: Path) -> None:
    checkout, base = kept(top)
    vouch(checkout, REF, base.commit, ALL)
    (top / "train.py").write_text("evil\n")
    other = snapshot.snapshot(top, ref=f"{REF}-1", label=base.tree).commit
    for file in (top / ".git" / "gpudebug" / "bases").iterdir():
        file.write_text(file.read_text().replace(base.commit, other))
    assert trusted(checkout.at, REF, other, base.tree, ALL) is False


def test_a_base_made_anew_or_forgotten_has_no_old_record(top: Path) -> None:
    checkout, base = kept(top)
    vouch(checkout, REF, base.commit, ALL)
    place = top / ".git" / "gpudebug" / "bases"
    assert len(os.listdir(place)) == 1
    kept(top)
    assert os.listdir(place) == []
    vouch(checkout, REF, base.commit, ALL)
    snapshot.forget(top, REF)
    assert os.listdir(place) == []
    assert stored(top, REF) is None


def test_an_index_is_gone_afterwards(top: Path) -> None:
    with module._temporary_index(top / ".git") as path:
        path.write_text("x")
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(top / ".git" / "gpudebug" / "indexes") == []
