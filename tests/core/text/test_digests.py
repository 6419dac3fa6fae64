"""Short digests: the same text, the same digits, in every process and on every Python."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.text.digests import short_digest


def test_known_digests() -> None:
    """Written into run folders, so they may never change."""
    assert short_digest(b"") == "e4a6a0577479b2b4"
    assert short_digest(b"gpudebug") == short_digest(b"gpudebug")
    assert short_digest(b"--set --lr=1") != short_digest(b"--set --lr=2")


@given(st.binary(), st.binary())
def test_different_bytes_have_different_digests(a: bytes, b: bytes) -> None:
    assert (short_digest(a) == short_digest(b)) == (a == b)
    assert len(short_digest(a)) == 16 and int(short_digest(a), 16) >= 0
