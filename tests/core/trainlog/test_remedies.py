"""What to try against a failure."""

from __future__ import annotations

from gpudebug.core.trainlog.remedies import remedy


def test_out_of_memory_is_answered_and_an_exception_speaks_for_itself() -> None:
    assert "smaller batch" in (remedy("oom_gpu") or "")
    assert remedy("exception") is None
