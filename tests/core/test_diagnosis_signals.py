from __future__ import annotations

import pytest

from gpudebug.core.diagnosis.sentences import value
from gpudebug.core.diagnosis.signals import SIGNALS


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_is_said_in_one_sentence_with_its_value(name: str) -> None:
    signal = SIGNALS[name]
    assert signal.said.count("{}") == 1
    assert signal.unit in ("share", "%", "s", "MB", "1/s", "count", "yes", "word")
    assert signal.source in (
        *("samples", "probe", "stacks", "log", "trace", "command", "host", "reference", "layer"),
    )
    assert value(0.5, signal.unit)
