"""What excludes each other on the command lines that explain: one line, before anything is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import gpudebug


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("why", "--for", "5s", "--to-the-end", "--", "true"), "--for and --to-the-end exclude each other"),
        (("why", "--pid", "1", "--gpu", "0"), "--pid, --gpu and a command exclude each other"),
        (("why", "--pid", "1", "--", "true"), "--pid, --gpu and a command exclude each other"),
        (("diagnose", "0001-x", "--layer", "quiet"), "--layer runs the workload itself"),
        (("catalogue", "dl-no-workers", "--signals"), "an id, --group and --signals exclude each other"),
    ],
)
def test_words_that_exclude_each_other_are_refused(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    done = gpudebug(tmp_path, *words).expect(2)
    assert message in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
