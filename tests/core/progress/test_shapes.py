"""The shapes of a claim in single texts."""

from __future__ import annotations

import time

import pytest

from gpudebug.core.progress import shapes


@pytest.mark.parametrize(
    "text",
    [
        "\u0421ONFIRMED and VALI\u200bD\u0410TED",
        "VALI**DATED**",
        "gives &#43;95pp",
        "95 percentage points",
        "<b>GPU util</b> \u2192 99.9%",
        "GPU util 20.0 to 99.9%",
        "99,9 % Auslastung",
        "speedup of 9x",
        "throughput: 10 to 900 steps/s",
        "as expected, +95pp",
    ],
)
def test_these_claim(text: str) -> None:
    assert shapes.claimed(shapes.fold(text))


@pytest.mark.parametrize(
    "text",
    [
        "The loader wastes about 40% of each step",
        "nice, 3x faster for us too?",
        "VALIDATED / REJECTED",
        "we expect +20pp",
        "CUDA_ERROR_INVALID_VALUE",
        "see https://example.org/VALIDATED/+95pp",
        "2x A100, 8 workers, PR #12, 2026-11-20",
        "GPU util before: we saw 20% on Monday",
    ],
)
def test_these_do_not(text: str) -> None:
    assert not shapes.claimed(shapes.fold(text))


@pytest.mark.parametrize(
    "part",
    [
        "1,",
        "a.",
        "<a",
        "[x](",
        "util ",
        "1-",
        "+1",
        "`",
        "(",
        "_ ",
        "&#4",
        "-+",
        "util: ",
        "improvement: 1 to ",
    ],
)
def test_no_text_takes_long(part: str) -> None:
    text = part * 30_000
    begun = time.process_time()
    folded = shapes.fold(text)
    for ask in (shapes.claimed, shapes.figured, shapes.titled, shapes.begins, shapes.choice, shapes.measured):
        ask(folded)
    shapes.says("improvement", folded), shapes.starts("gpu util", folded), shapes.starts("status", folded)
    assert time.process_time() - begun < 5


def test_an_unfilled_choice_may_offer_nan() -> None:
    assert shapes.choice("[CONVERGING/NaN/DIVERGING]")
    assert not shapes.choice("CONVERGING, then NaN")
