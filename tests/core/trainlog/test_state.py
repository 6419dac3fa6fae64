"""Readings of one line put together."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

from gpudebug.core.trainlog.reader import LogReader


def read(text: str) -> LogReader:
    reader = LogReader()
    reader.feed(text.encode())
    return reader


def test_a_loss_has_the_step_of_its_line() -> None:
    points = read("loss 3.0 step 10\nloss 2.0 step 20\nstep 30\nloss 1.0\n").summary().loss
    assert [(point.step, point.value) for point in points] == [(10, 3.0), (20, 2.0), (30, 1.0)]


def test_fractional_epochs_are_no_counter() -> None:
    summary = read("epoch 0.5 loss 2\nepoch 1 loss 1.5\nepoch 1.5 loss 1\n").summary()
    assert (summary.steps, summary.step_unit) == (None, None)


def test_whole_epochs_are_a_counter_of_epochs() -> None:
    summary = read("epoch 1 loss 2\nepoch 2 loss 1.5\nepoch 3 loss 1\n").summary()
    assert (summary.steps, summary.step_unit) == (None, "epoch")


def test_a_part_longer_than_the_whole_says_that_it_is_none() -> None:
    line = "step {} iter_time=0.001, forward_time=0.1, loss=0.5\n"
    assert read("".join(line.format(i) for i in range(5))).summary().steps_per_s is None


def test_the_durations_of_validation_are_left_out() -> None:
    text = "Epoch(train) [1][10/20] time: 0.5 data_time: 0.1 loss: 1\nEpoch(val) [1][5/5] time: 9.0 data_time: 8.0\n"
    summary = read(text).summary()
    assert (summary.data_s, summary.update_s) == (0.1, 0.4)
