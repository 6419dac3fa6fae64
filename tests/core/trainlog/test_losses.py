"""Which series is the training loss."""

from __future__ import annotations

from math import inf, nan

import pytest

from gpudebug.core.trainlog.losses import MAX_SERIES, NAME, Losses, find_unnamed
from gpudebug.core.trainlog.reader import LogReader, LogSummary
from gpudebug.core.words import Trend

FALLING = (2.31, 1.84, 1.22, 0.93, 0.71, 0.55, 0.43)


def read(text: str) -> LogSummary:
    reader = LogReader()
    reader.feed(text.encode())
    return reader.summary()


def lines(template: str, values: tuple[float, ...] = FALLING) -> str:
    return "".join(template.format(step=10 * i, loss=v) + "\n" for i, v in enumerate(values))


@pytest.mark.parametrize(
    "template",
    [
        "{step} {loss:.4f}",
        "{step}: {loss:.4f}",
        "{step}\t{loss:.6e}",
        "{step},{loss}",
        "({step}, {loss})",
        "[{step}] {loss}",
        "{step}/100 {loss}",
        "step {step}: {loss}",
        "Epoch {step} - {loss}",
        "{step} train {loss:.6f}",
        "iter {step} | {loss} | 31.2 ms",
    ],
)
def test_is_the_loss_if_no_other_is_printed(template: str) -> None:
    found = read(f"number of parameters: 10.65M\n{lines(template)}")
    assert (found.loss_name, found.points, found.first, found.last) == (NAME, 7, 2.31, 0.43)
    assert str(found.trend) == "CONVERGING"


@pytest.mark.parametrize("template", ["{step}: {loss:.4f}", "[{step}] {loss}", "{step} train {loss}"])
def test_a_named_loss_is_more(template: str) -> None:
    found = read(lines(template) + "step 70 loss 5.5\nstep 80 loss 5.0\n")
    assert (found.loss_name, found.last) == ("loss", 5.0)


def test_validation_beside_it_is_less() -> None:
    found = read("0 val 10.95\n0 hella 0.24\n" + lines("{step} train {loss}") + "60 val_loss 0.44\n")
    assert (found.loss_name, found.last) == (NAME, 0.43)


def test_what_rises_may_be_an_accuracy() -> None:
    assert str(read(lines("{step}: {loss}", tuple(reversed(FALLING)))).trend) == "UNKNOWN"
    fell = (2.0, 1.0, 0.9, 0.8, 40.0, 60.0, 90.0)
    assert str(read(lines("{step}: {loss}", fell)).trend) == "DIVERGING"


def test_a_listing_of_classes_is_no_course() -> None:
    table = "".join(f"{i} {0.5 + i / 100:.3f}\n" for i in range(3))
    assert read(table * 5).loss_name is None
    assert read(lines("{step} {loss}", FALLING[:4])).loss_name is None


@pytest.mark.parametrize("line", ["000 step(s) 0.0", "0.0 0.0", "0 0", "acc 0: 0.0", "0:00:00.0", "v0 0.0"])
def test_what_says_more_is_left(line: str) -> None:
    assert find_unnamed(line) is None


def test_its_lines_count_as_steps_once_they_are_a_course() -> None:
    assert read(lines("{step}: {loss}")).steps == 60


def fill(
    losses: Losses, name: str, values: list[float], phase: str = "", tier: int = 0, style: str = "="
) -> None:
    for step, value in enumerate(values):
        losses.add((style, phase, name), tier, value, step, None, False)


def chosen(losses: Losses) -> str:
    best = losses.best()
    assert best is not None
    return best.name


def test_train_before_validation_however_often_it_is_printed() -> None:
    losses = Losses()
    fill(losses, "val_loss", [1.0, 2.0, 3.0], phase="val")
    fill(losses, "loss", [1.0])
    assert chosen(losses) == "loss"


def test_the_most_points_win() -> None:
    losses = Losses()
    fill(losses, "train loss", [4.0, 3.0])
    fill(losses, "loss", [4.0, 3.5, 3.0], style=" ")
    assert chosen(losses) == "loss"


def test_the_whole_before_its_parts_unless_it_is_rare() -> None:
    losses = Losses()
    fill(losses, "loss_cls", [float(i) for i in range(20)], tier=1)
    fill(losses, "loss", [1.0])
    assert chosen(losses) == "loss_cls"
    fill(losses, "loss", [2.0, 3.0, 4.0, 5.0])
    assert chosen(losses) == "loss"


def test_a_part_that_goes_below_zero_is_not_preferred() -> None:
    losses = Losses()
    fill(losses, "policy", [0.1, -0.1], tier=1)
    fill(losses, "critic", [3.0, 2.0], tier=1)
    assert chosen(losses) == "critic"


def test_equal_neighbours_count_once_also_nan() -> None:
    losses = Losses()
    fill(losses, "loss", [1.0, 1.0, 2.0, 1.0, nan, nan, inf, inf])
    best = losses.best()
    assert best is not None
    assert (best.count, best.printed, best.finite) == (5, 8, False)


def test_a_loss_of_zero_beside_a_lost_gradient_hides_nan() -> None:
    losses = Losses()
    losses.add(("q", "", "loss"), 0, 3.0, 1, None, True)
    assert losses.best().hidden_nan is False  # type: ignore[union-attr]
    losses.add(("q", "", "loss"), 0, 0.0, 2, None, True)
    assert losses.best().hidden_nan is True  # type: ignore[union-attr]


def test_lost_under_another_name() -> None:
    losses = Losses()
    fill(losses, "loss", [2.0, 1.0])
    assert not losses.lost()
    fill(losses, "loss is", [nan], style=" ")
    assert losses.lost()


def test_the_number_of_series_is_bounded() -> None:
    losses = Losses()
    for index in range(10 * MAX_SERIES):
        fill(losses, f"loss_{index}", [1.0])
    assert len(losses._series) == MAX_SERIES


def test_none() -> None:
    assert Losses().best() is None


def test_a_critics_loss_has_no_course() -> None:
    reader = LogReader()
    for n in range(1, 20):
        reader.feed(f"step {n}: value_loss {9 / n} entropy_loss -1.{n}\n".encode(), float(n))
    found = reader.summary(0)
    assert (found.loss_name, found.of_learner, found.trend) == ("value_loss", True, Trend.UNKNOWN)
    reader.feed(b"step 20: value_loss nan entropy_loss -1.4\n", 20.0)
    assert reader.summary(0).trend is Trend.NAN
