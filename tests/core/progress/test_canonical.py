"""Values as gpudebug writes them, whatever a formatter made of them."""

from __future__ import annotations

import pytest

from gpudebug.core.progress.canonical import options, plain


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("\\+40.0pp \\(95% CI \\+20.6 to \\+59.4\\)", "+40.0pp (95% CI +20.6 to +59.4)"),
        ("10 \u2013 30 steps/s", "10 to 30 steps/s"),
        ("\u22121.1pp", "-1.1pp"),
        ("C:\\Users", "C:\\Users"),
        ("slow \u2013 by far", "slow \u2013 by far"),
    ],
)
def test_a_figure_is_read_as_it_was_written(written: str, meant: str) -> None:
    assert plain(written) == meant


@pytest.mark.parametrize("written", ["--set --lr=a-b", "\u2013set \u2014lr=a-b", "\\--set \\-\\-lr=a-b"])
def test_an_option_begins_with_two_hyphens(written: str) -> None:
    assert options(written) == "--set --lr=a-b"


def test_a_dash_that_is_no_option_stays() -> None:
    assert options("--set --note=a\u2013b") == "--set --note=a\u2013b"
