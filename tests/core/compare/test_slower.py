"""What is seen of the slower of two commands: what usually makes it so, and its largest section."""

from __future__ import annotations

import pytest
from tests.support.comparisons import run

from gpudebug.core.answers.show import SectionMean, SectionRow
from gpudebug.core.compare import faster, slower
from gpudebug.core.compare.compared_run import ComparedRun

ROWS = (
    SectionRow(
        name="policy_inference",
        a=SectionMean(mean_s=0.04, share=0.8),
        b=SectionMean(mean_s=0.09, share=0.9),
        ratio=0.44,
    ),
    SectionRow(name="action_queue_merge", a=None, b=SectionMean(mean_s=0.002, share=0.1), ratio=None),
)
PLAIN = "python eval.py --rtc.enabled=false"
RTC = "python eval.py --rtc.enabled=true --rtc.execution_horizon=5 '--cameras={fps: 30}'"
COMPILE, HORIZON, DELAY, LARGEST = "torch.compile", "execution horizon", "inference delay", "the largest of"


def side(command: str, latency: float) -> list[ComparedRun]:
    return [run(command, rate=None, latency=latency) for _ in range(3)]


OFF = ("not set in both: switch it on in both", True)
OF_A = "'policy_inference': 80% of its time, 40 ms a call instead of 90 ms"
OF_B = "'policy_inference': 90% of its time, 90 ms a call instead of 40 ms"
GUIDED = f"{OF_B}; with RTC on it holds the guidance and the copies of prev_actions: time each of them"
SHORT = "--rtc.execution_horizon 5 in B; try --rtc.execution_horizon=30"
LATE = "an inference takes 100 ms in B, 3 steps at 30 a second; no flag gives a delay"
PLAIN_C, RTC_C = f"{PLAIN} --use_torch_compile", f"{RTC} --use_torch_compile"
OTHER = "python t.py --chunk_size=20 --inference_delay=4 --compile"


@pytest.mark.parametrize(
    ("a", "b", "seen"),
    [
        (
            (PLAIN, 0.05),
            (RTC, 0.1),
            {COMPILE: OFF, HORIZON: (SHORT, True), DELAY: (LATE, True), LARGEST: (GUIDED, False)},
        ),
        (
            (RTC_C, 0.1),
            (PLAIN_C, 0.3),
            {COMPILE: ("yes", False), HORIZON: (None, False), DELAY: (None, False), LARGEST: (OF_B, False)},
        ),
        (
            ("python t.py --chunk_size=50", 0.1),
            (OTHER, 0.3),
            {
                COMPILE: ("no: not set in A, on in B; switch it on in both", True),
                HORIZON: ("--chunk_size 20 in B, 50 in the other", False),
                DELAY: ("an inference takes 300 ms in B; --inference_delay 4", False),
                LARGEST: (OF_B, False),
            },
        ),
        # Of a training, and of a side that is hardly slower, nothing is asked that no one can answer.
        (("python t.py", 0.1), ("python t.py", 0.2), {LARGEST: (OF_B, False)}),
        (("python t.py --chunk_size=5", 0.2), ("python t.py --chunk_size=9", 0.1), {LARGEST: (OF_A, False)}),
        ((PLAIN, 0.1), (RTC, 0.14), {LARGEST: (GUIDED, False)}),
        ((PLAIN, 0.1), (RTC, 0.1), {}),
    ],
)
def test_what_was_seen_of_the_slower_side(
    a: tuple[str, float], b: tuple[str, float], seen: dict[str, tuple[str | None, bool]]
) -> None:
    sides = side(*a), side(*b)
    found = slower.look(faster.compare(*sides), *sides, ROWS)
    assert len(found) == len(seen)
    for check, (words, said) in zip(found, seen.items(), strict=True):
        assert words in check.question
        assert (check.answer, check.concern) == said
