"""What is in a commit, and in the one that it came from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import commit_all, git, make_repository

from gpudebug.edges import git as snapshot


def test_it_is_what_a_checkout_of_it_would_be(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "1\n", "b c/d.txt": "x", "run.sh": "#!/bin/sh\n"})
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("a.py")
    commit_all(top)
    before = snapshot.identify(top)
    (top / "a.py").write_text("2\n")
    commit_all(top)
    head = git(top, "rev-parse", "HEAD").strip()
    assert snapshot.base_of(top, head, patched=True) == before.entries
    assert snapshot.base_of(top, head, patched=False) == snapshot.identify(top).entries


@pytest.mark.parametrize("commit", ["", "0" * 40, "HEAD", "--help", "main"])
def test_what_is_no_commit_or_not_there_is_unknown(tmp_path: Path, commit: str) -> None:
    top = make_repository(tmp_path / "repo", {"a.py": "1\n"})
    assert snapshot.base_of(top, commit, patched=True) is None
    assert snapshot.base_of(top, commit, patched=False) is None
    assert snapshot.base_of(top, git(top, "rev-parse", "HEAD").strip(), patched=True) is None
