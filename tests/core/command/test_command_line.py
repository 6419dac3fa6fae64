"""Which words of a command are options, with which values, and where the program's own begin."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.command import command_line


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("t --a=b", [("--a", "b", "equals")]),
        ("t --a b", [("--a", "b", "separate")]),
        ("t --a", [("--a", None, "bare")]),
        ("t --a --b 1", [("--a", None, "bare"), ("--b", "1", "separate")]),
        (
            "t --lr -0.5 --eps -1e-8 --x -inf",
            [("--lr", "-0.5", "separate"), ("--eps", "-1e-8", "separate"), ("--x", "-inf", "separate")],
        ),
        ("t --episodes 0 1 2 --b", [("--episodes", "0 1 2", "separate"), ("--b", None, "bare")]),
        ("t --lr 1 data/", [("--lr", "1", "separate")]),
        ("t -b 8 -v", [("-b", "8", "separate"), ("-v", None, "bare")]),
        (
            "t a.b=c +d.e=f ++g=h",
            [("a.b", "c", "override"), ("+d.e", "f", "override"), ("++g", "h", "override")],
        ),
        ("t --flag a.b=c", [("--flag", None, "bare"), ("a.b", "c", "override")]),
        ("t --m lr=1", [("--m", "lr=1", "separate"), ("lr", "1", "override")]),
        ("t --a=x=y", [("--a", "x=y", "equals")]),
        ("t - -- -5", []),
        ("t --a --", [("--a", None, "bare")]),
        ("t", []),
    ],
)
def test_options(command: str, expected: list[tuple[str, str | None, str]]) -> None:
    found = command_line.options(command.split(" "))
    assert [(option.name, option.value, option.style) for option in found] == expected


@pytest.mark.parametrize(
    ("command", "first_own_word"),
    [
        ("lerobot-train --a", "--a"),
        ("./train.sh --cfg x.py --a", "--cfg"),
        ("python -u train.py --a", "--a"),
        ("/opt/v/bin/python3.11 -m pkg.train --a", "--a"),
        ("python -c code --a", "--a"),
        ("torchrun --nproc_per_node 2 src/train.py --a", "--a"),
        ("torchrun --standalone -m pkg.train --a", "--a"),
        ("python -m torch.distributed.run --nproc_per_node 2 train.py --a", "--a"),
        ("accelerate launch --num_processes=2 train.py --a", "--a"),
        ("accelerate launch --num_processes=2 bin/lerobot-train --a", "--a"),
        ("uv run --frozen -- lerobot-train --a", "--a"),
        ("env A=1 nice -n 5 lerobot-train --a", "--a"),
        ("srun -n 4 python train.py --a", "--a"),
    ],
)
def test_where_the_program_begins(command: str, first_own_word: str) -> None:
    argv = command.split(" ")
    assert argv[command_line.program_start(argv)] == first_own_word


def test_the_programs_flag_comes_before_the_launchers() -> None:
    argv = shlex.split("accelerate launch --mixed_precision bf16 train.py --mixed_precision fp16")
    assert command_line.value_of(argv, "--mixed_precision") == "fp16"
    assert command_line.value_of(argv[:5], "--mixed_precision") == "bf16"


@pytest.mark.parametrize(
    ("name", "found"),
    [("--lr", "--lr"), ("lr", "--lr"), ("--batch_size", "--batch-size"), ("a.b", "+a.b"), ("--a.b", "+a.b")],
)
def test_a_flag_is_found_however_it_is_spelled(name: str, found: str) -> None:
    argv = ["t", "--lr=1", "--batch-size=2", "+a.b=3"]
    assert [option.name for option in command_line.find(argv, name)] == [found]


def test_the_exact_spelling_wins_over_a_similar_one() -> None:
    argv = ["t", "--batch-size=2", "--batch_size=3"]
    assert [option.value for option in command_line.find(argv, "--batch_size")] == ["3"]


@pytest.mark.parametrize(
    ("command", "style"),
    [
        ("t --a=1 --b=2 --c 3", "equals"),
        ("t --a 1 --b 2 --c=3", "separate"),
        ("t a=1 b=2 --c=3", "override"),
        ("t x y", "equals"),
        ("yolo train", "override"),
        ("tune run lora --config llama", "override"),
        ("llamafactory-cli train cfg.yaml", "override"),
        ("llamafactory-cli train --stage sft", "separate"),
        ("torchrun --nnodes 1 --n 2 t.py --a=1", "equals"),
    ],
)
def test_the_prevailing_style(command: str, style: str) -> None:
    assert command_line.prevailing_style(command.split()) == style


@pytest.mark.parametrize(
    ("argv", "shell"),
    [
        (["/bin/sh", "-c", "x"], True),
        (["bash", "-lc", "x"], True),
        (["bash", "x.sh"], False),
        (["python", "-c", "x"], False),
    ],
)
def test_a_shell_hides_its_flags(argv: list[str], shell: bool) -> None:
    assert command_line.is_shell(argv) is shell


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("t --a 1 --b=2", "t --b 2 --a=1", ()),
        ("t --a 1", "t --a 2", ("--a",)),
        ("t --a 1", "t --a 1 --b", ("--b",)),
        ("t --a 1 x", "t --a 1 y", ("",)),
        ("t --a", "t --a=", ("--a",)),
        ("t --a 1 --a 2", "t --a 2 --a 1", ()),
    ],
)
def test_what_differs_between_two_commands(before: str, after: str, changed: tuple[str, ...]) -> None:
    assert command_line.changed_names(before.split(), after.split()) == changed


@given(st.lists(st.text(max_size=12)))
def test_any_words_can_be_read(argv: list[str]) -> None:
    for option in command_line.options(argv):
        assert 0 < option.start < option.stop <= len(argv)
        assert argv[option.start].startswith(option.name)
    assert 0 <= command_line.program_start(argv) <= len(argv)
    assert command_line.changed_names(argv, argv) == ()
