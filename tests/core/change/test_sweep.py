"""What `--sweep` takes, and which hypotheses make a sweep."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.change import intervention as interventions
from gpudebug.core.change.intervention import SingleChange
from gpudebug.core.change.sweep import Standing, parse, sweeps
from gpudebug.core.errors import InterventionError


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("--denoising_steps=4,2,1", [f"--set --denoising_steps={v}" for v in (4, 2, 1)]),
        ("denoising.steps=4, 2", ["--set denoising.steps=4", "--set denoising.steps=2"]),
        ("env:OMP_NUM_THREADS=1,2", ["--env OMP_NUM_THREADS=1", "--env OMP_NUM_THREADS=2"]),
        ("--size=\"1,2\",'3,4'", ["--set --size=1,2", "--set --size=3,4"]),
        ("--mode='',fast", ["--set --mode=", "--set --mode=fast"]),
        ("--size=[1],[2]", ["--set '--size=[1]'", "--set '--size=[2]'"]),
        ("--a=b=1,b=2", ["--set --a=b=1", "--set --a=b=2"]),
    ],
)
def test_a_text_is_one_change_a_value(text: str, changes: list[str]) -> None:
    assert [change.text for _, change in parse(text).changes] == changes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--steps", "names no values"),
        ("=4,2", "names no values"),
        ("env:=4,2", "names no values"),
        ("--steps=", "empty value"),
        ("--steps=4", "one value only"),
        ("--steps=4,", "empty value"),
        ("--steps=4,,2", "empty value"),
        ("--steps=4,2,4", "twice"),
        ("--size=[1,2],[3,4]", "half a value"),
        ('--size="1,2', "half a value"),
        ("--steps=4\n4,2", "control character"),
        ("env:1K=4,2", "sets no variable"),
        ("--st eps=4,2", "names no flag"),
    ],
)
def test_what_is_no_sweep_is_said_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(InterventionError, match=said) as caught:
        parse(text)
    assert caught.value.next


PLAIN = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)


@given(st.lists(PLAIN | PLAIN.map(lambda v: f"{v},{v}"), min_size=2, max_size=6, unique=True))
def test_quoted_values_come_back_whatever_they_hold(values: list[str]) -> None:
    sweep = parse("--flag=" + ",".join(f'"{v}"' for v in values))
    assert [value for value, _ in sweep.changes] == values
    assert [shlex.split(change.text)[1] for _, change in sweep.changes] == [f"--flag={v}" for v in values]


@pytest.mark.parametrize(
    ("kind", "name", "now"),
    [
        ("set", "--steps", "4"),
        ("set", "--fast", None),
        ("set", "--absent", None),
        ("env", "K", "1"),
        ("env", "L", None),
        ("set", "server:--steps", "8"),
        ("set", "server:--fast", None),
        ("env", "server:L", "2"),
        ("env", "server:K", None),
    ],
)
def test_a_value_stands_already_in_the_command_that_has_it(kind: str, name: str, now: str | None) -> None:
    argv = ("python", "train.py", "--steps=4", "--fast")
    standing = Standing(argv, {"K": "1"}, ("python", "serve.py", "--steps=8"), {"L": "2"})
    change = SingleChange(kind, name, "1" if now is None else now)  # type: ignore[arg-type]
    assert standing.value(change) == now and standing.has(change) is (now is not None)
    assert Standing(argv, {}).value(SingleChange("set", "server:--steps", "8")) is None


def test_single_changes_of_one_knob_to_several_values_are_a_sweep() -> None:
    written = {
        1: "--set --num_workers=8",
        2: "--set --num-workers=16",
        3: "--set --num_workers=0.5",
        4: "--env num_workers=1",
        5: "--set --pin_memory",
        6: "--compound --set --num_workers=2 --set --lr=1",
        7: "--set --lr=2",
        8: "--set --mode=slow",
        9: "--set --mode=fast",
        10: "--code",
    }
    found = sweeps([(number, interventions.parse(text)) for number, text in written.items()])
    assert found == [
        ("--num_workers", [("0.5", 3), ("8", 1), ("16", 2)]),
        ("--mode", [("slow", 8), ("fast", 9)]),
    ]


def test_one_value_tested_twice_is_none() -> None:
    change = interventions.parse("--set --lr=2")
    assert sweeps([(1, change), (2, change)]) == []


@pytest.mark.parametrize(
    ("change", "value"),
    [("--set --lr=0.2", "0.1"), ("--set --seed=1", None), ("--env A=2", "1"), ("--env B=2", None)],
)
def test_the_standing_value_is_the_commands_or_the_environments(change: str, value: str | None) -> None:
    argv = ["python", "train.py", "--lr=0.1"]
    assert Standing(argv, {"A": "1"}).value(interventions.parse(change).changes[0]) == value
