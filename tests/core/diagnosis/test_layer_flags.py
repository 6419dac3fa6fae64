"""The flags that silence a command, and those that double its batch."""

from __future__ import annotations

import shlex

import pytest

from gpudebug.core.catalogue.offers import KnownCommand
from gpudebug.core.diagnosis.layer_flags import NEVER, doubled, quiet
from gpudebug.core.diagnosis.layers import LayerError


def known(command: str) -> KnownCommand:
    return KnownCommand(shlex.split(command))


def test_logs_evaluation_and_saving_are_made_rarer_than_any_run_is_long() -> None:
    command = known("python train.py --eval_every=10 --save_freq=5 --log_interval=1 --lr=1")
    text = quiet(command, told=True).text
    for name in ("eval_every", "save_freq", "log_interval"):
        assert f"--{name}={NEVER}" in text
    assert "--lr" not in text
    # A training that only its log tells of keeps its log.
    assert "log_interval" not in quiet(command, told=False).text


def test_the_batch_is_doubled_by_the_one_flag_that_sets_it() -> None:
    assert doubled(known("python train.py --batch_size=16")).text == "--set --batch_size=32"
    with pytest.raises(LayerError, match="several flags set the batch size: --batch_size, --micro"):
        doubled(known("python train.py --batch_size=16 --micro_batch_size=4"))


@pytest.mark.parametrize("command", ["python train.py --lr=1", "sh -c 'python train.py --batch_size=2'"])
def test_what_no_flag_does_is_one_line(command: str) -> None:
    for make in (doubled, lambda found: quiet(found, told=True)):
        with pytest.raises(LayerError) as e:
            make(known(command))
        assert e.value.next
