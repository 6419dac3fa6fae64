"""A flag is put in or taken out behind the program's start, in the style that the command has."""

from __future__ import annotations

import shlex

import pytest

from gpudebug.core.change.flag_edits import refuse_unreachable, set_flag, unset_flag
from gpudebug.core.change.permits import NOTHING_MORE, Allowed
from gpudebug.core.errors import InterventionError, NoEffect


@pytest.mark.parametrize(
    ("command", "name", "value", "after"),
    [
        ("python train.py --lr=1", "--lr", "2", "python train.py --lr=2"),
        ("python train.py --lr 1", "lr", "2", "python train.py --lr 2"),
        ("python train.py --lr 1", "--batch", "8", "python train.py --lr 1 --batch 8"),
        ("python train.py --lr=1", "batch", "8", "python train.py --lr=1 --batch=8"),
        ("python train.py lr=1", "batch", "8", "python train.py lr=1 batch=8"),
        ("python train.py --lr=1 --lr=3", "--lr", "2", "python train.py --lr=2"),
        ("python train.py --lr=1 -- rest", "--batch", "8", "python train.py --lr=1 --batch=8 -- rest"),
        ("python train.py --lr=1", "--amp", None, "python train.py --lr=1 --amp"),
    ],
)
def test_a_flag_is_set_as_the_command_writes_its_flags(
    command: str, name: str, value: str | None, after: str
) -> None:
    words = shlex.split(command)
    set_flag(words, name, value, NOTHING_MORE)
    assert shlex.join(words) == after


def test_a_flag_is_taken_out_with_its_value_and_that_is_noted() -> None:
    words = shlex.split("python train.py --lr 1 --amp")
    assert unset_flag(words, "--lr", NOTHING_MORE) == ["--lr is removed with 1"]
    assert words == ["python", "train.py", "--amp"]


def test_what_changes_nothing_is_refused() -> None:
    words = shlex.split("python train.py --lr=1")
    with pytest.raises(NoEffect, match="has --lr=1 already"):
        set_flag(words, "--lr", "1", NOTHING_MORE)
    with pytest.raises(NoEffect, match="has no --batch"):
        unset_flag(words, "--batch", NOTHING_MORE)
    assert words == shlex.split("python train.py --lr=1")


def test_a_launchers_flag_is_changed_only_where_a_person_opened_it() -> None:
    words = shlex.split("torchrun --nproc_per_node=2 train.py")
    with pytest.raises(InterventionError, match="before the program") as e:
        refuse_unreachable(words, "--nproc_per_node", NOTHING_MORE)
    assert e.value.next and "allow_flags" in e.value.next
    allowed = Allowed(flags={"torchrun": ("--nproc_per_node",)})
    assert set_flag(words, "--nproc_per_node", "4", allowed) == ["--nproc_per_node is the launcher's"]
    assert words == ["torchrun", "--nproc_per_node=4", "train.py"]
