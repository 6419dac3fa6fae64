"""The label."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog import LogReader
from gpudebug.core.trainlog.frameworks import recognise


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("`Trainer.fit` stopped: `max_epochs=0` reached.", "lightning"),
        ("[0]\ttrain-logloss:0.00000\teval-logloss:0.00000", "xgboost"),
        ("iter 00: loss 0.0000, time 00.00ms, mfu 0.00%", "nanogpt"),
        ("SPS: 0000", "cleanrl"),
        ("step 0 loss 0.0", None),
        ("", None),
    ],
)
def test_marks(line: str, label: str | None) -> None:
    assert recognise(line) == label


def test_the_label_changes_nothing_that_is_read() -> None:
    plain, marked = LogReader(), LogReader()
    body = b"step 1 loss 2.0\nstep 2 loss 1.0\n"
    plain.feed(body)
    marked.feed(b"lightning\n" + body)
    one, other = plain.summary(), marked.summary()
    assert (one.framework, other.framework) == (None, "lightning")
    assert (one.loss, one.steps, one.trend) == (other.loss, other.steps, other.trend)
