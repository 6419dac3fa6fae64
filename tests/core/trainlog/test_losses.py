"""Which series is the training loss."""

from __future__ import annotations

from math import inf, nan

from gpudebug.core.records import Trend
from gpudebug.core.trainlog import LogReader
from gpudebug.core.trainlog.losses import MAX_SERIES, Losses


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
