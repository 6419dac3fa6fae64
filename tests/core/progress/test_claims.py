"""A claim written behind TESTING, and read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core import progress
from gpudebug.core.progress import claims
from gpudebug.core.progress.claims import Claim
from gpudebug.core.words import Status

SINCE = "2026-11-21T10:00:00.000001+00:00"
SESSIONS = st.none() | st.from_regex(r"[A-Za-z0-9._:@-]{1,64}", fullmatch=True)
STYLES = [
    "### Hypothesis 1: x\n- **Status**: UNTESTED\n",
    "### Hypothesis 1: x\n* Status: UNTESTED (waiting)\n",
    "## Hypothesis 1 - x\r\n**Status:** **UNTESTED**\r\n",
    "### Hypothesis 1: x\n- **Description**: y\n",
]


@given(SESSIONS, st.sampled_from(STYLES))
def test_a_claim_in_a_status_line_is_read_back(session: str | None, text: str) -> None:
    document = progress.parse(text.encode(), "p.md")
    claim = Claim(session, SINCE)
    claimed = progress.parse(progress.set_testing(document, 1, claim.note), "p.md")
    assert claimed.hypothesis(1).status is Status.TESTING
    assert claims.on(claimed.hypothesis(1)) == claim
    freed = progress.parse(progress.set_status(claimed, 1, Status.UNTESTED), "p.md")
    assert (freed.hypothesis(1).status, claims.on(freed.hypothesis(1))) == (Status.UNTESTED, None)


@pytest.mark.parametrize(
    "note", ["", "by hand", "since yesterday", "session a b, since 2026-11-21", "session a1"]
)
def test_what_others_wrote_is_no_claim(note: str) -> None:
    assert claims.read(note) is None
