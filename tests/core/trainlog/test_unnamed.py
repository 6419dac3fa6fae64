"""Numbers without a name beside a step."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog import LogReader, LogSummary
from gpudebug.core.trainlog.unnamed import NAME, find_unnamed

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
