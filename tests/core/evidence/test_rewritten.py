"""Which of the files that were written under a run spoil it."""

from __future__ import annotations

from gpudebug.core.evidence.rewritten import MOST_FILES, recorded, spoiling


def test_what_every_run_of_the_baseline_rewrites_is_excused_but_no_code() -> None:
    written = ("train.py", "metrics.json")
    assert spoiling(written, [written, written]) == ["train.py"]
    assert spoiling(written, [written, ("metrics.json",)]) == ["train.py"]
    assert spoiling(written, [written, ()]) == ["train.py", "metrics.json"]
    # A record of 0.1.0 does not know; a baseline's own run is held against nothing.
    assert spoiling(written, [None, ("metrics.json",)]) == ["train.py"]
    assert spoiling(("metrics.json",)) == []


def test_of_many_files_code_comes_first() -> None:
    kept = recorded([*(f"a{n}.csv" for n in range(3000)), "z.py", "y.so"])
    assert len(kept) == MOST_FILES and kept[:2] == ("y.so", "z.py")
