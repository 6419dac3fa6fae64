from __future__ import annotations

import pytest

from gpudebug.core.change.intervention import parse
from gpudebug.core.change.known_flags import KnownFlags, unknown

KNOWN = KnownFlags(("--num-workers", "-j", "optim.lr", "--amp"))


@pytest.mark.parametrize(
    "name", ["--num_workers", "num-workers", "--num-w", "-j", "--optim.lr", "lr", "--no-amp", "+optim.lr"]
)
def test_what_is_known_in_any_spelling(name: str) -> None:
    assert KNOWN.has(name)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("--set --num_wrkers=4", [("--num_wrkers", "--num-workers")]),
        ("--set --prefetch=4", [("--prefetch", None)]),
        ("--unset --anp", [("--anp", "--amp")]),
        ("--set --num_workers=4", []),
        ("--env OMP_NUM_THREADS=1", []),
        ("--patch hypotheses/patches/a.patch", []),
        ("--code", []),
        ("--set server:--x=1", []),
    ],
)
def test_flags_that_nothing_has_with_the_nearest(change: str, found: list[tuple[str, str | None]]) -> None:
    assert list(unknown(parse(change), KNOWN)) == found


def test_a_short_name_is_no_beginning_of_another() -> None:
    assert not KnownFlags(("--amp",)).has("-a")
