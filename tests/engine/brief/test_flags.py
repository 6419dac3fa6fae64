"""The command of a page: whole flags, those that may be changed before those that may not."""

from __future__ import annotations

import pytest

from gpudebug.core.progress import harmless
from gpudebug.engine.brief import flags

LONG = "lerobot-train --a=1 " + " ".join(f"--policy.name_{n}={n}" for n in range(60)) + " --seed 7"


def say(text: str) -> str:
    return harmless(text, limit=10000)


@pytest.mark.parametrize(
    ("command", "locked", "lines"),
    [
        (
            "python train.py --lr 0.1 --batch-size=8 -v",
            ["--batch_size", "--seed"],
            [
                "- Program: `python train.py`",
                "- May be changed: `--lr 0.1 -v`",
                "- Locked, never to be changed: `--batch-size=8 --seed`",
            ],
        ),
        (
            "python train.py epochs=3 model.a=b",
            [],
            ["- Program: `python train.py`", "- May be changed: `epochs=3 model.a=b`"],
        ),
        (
            "lerobot-train --x='{\"a\": 1}' b",
            [],
            ["- Program: `lerobot-train`", "- May be changed: `'--x={\"a\": 1}' b`"],
        ),
        ("sh -c 'cd x && python train.py --a=1'", [], ["- Program: `sh -c 'cd x && python train.py --a=1'`"]),
        ("python 'open --a=1", [], ["- Program: `python 'open`", "- May be changed: `--a=1`"]),
    ],
)
def test_flags_are_listed_by_what_may_be_done_with_them(
    command: str, locked: list[str], lines: list[str]
) -> None:
    assert flags.section(command, locked, say, 1000).splitlines()[2:] == lines


def test_a_long_command_keeps_whole_flags_and_counts_the_rest() -> None:
    text = flags.section(LONG, ["--seed"], say, 400)
    assert len(text) <= 400
    program, free, fixed = text.splitlines()[2:]
    assert program == "- Program: `lerobot-train`" and fixed.endswith("`--seed 7`")
    words = free.removeprefix("- May be changed: `").partition(" … and ")[0].split()
    assert len(words) > 5 and set(words) <= set(LONG.split())
    assert free.endswith(f" … and {61 - len(words)} more in gpudebug.yaml`")
    assert flags.section(LONG, ["--seed"], say, 40) == ""
