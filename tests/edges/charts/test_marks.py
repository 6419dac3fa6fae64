"""What is told by colour is told by shape, too."""

from __future__ import annotations

from gpudebug.core.words import VERDICTS, Result
from gpudebug.edges.charts import marks


def test_every_verdict_has_a_colour_and_a_shape_of_its_own() -> None:
    assert set(marks.statuses()) == {status.value for status in VERDICTS}
    found = [marks.of_status(status) for status in (*marks.statuses(), "UNTESTED")]
    assert len({m.colour for m in found}) == len({m.shape for m in found}) == len(found)
    assert marks.of_status("TESTING") == marks.of_status("anything else")


def test_a_gate_that_passes_looks_like_a_verdict_that_does() -> None:
    assert marks.of_result(Result.PASS) == marks.of_status("VALIDATED").colour
    assert len({marks.of_result(r.value) for r in Result}) == 4
