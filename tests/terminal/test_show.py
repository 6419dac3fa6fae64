"""A run of a hypothesis as text."""

from __future__ import annotations

from tests.support.powered import busy
from tests.support.trials import run

from gpudebug.core.evidence.together import notes
from gpudebug.terminal import show


def test_a_run_has_the_notes_that_sample_gives_of_it() -> None:
    devices = tuple(busy(97.0, 200.0, n) for n in range(2))
    stored = run(97.0, 1.0, devices=devices, working=0.3).model_dump(mode="json")
    (note,) = notes(stored)
    assert "misleads: waiting counts as busy in it" in note
    shown = " ".join(" ".join(show._run(stored)).split())
    assert f"note: {note}" in shown
    assert "note:" not in " ".join(show._run(run(30.0, 1.0).model_dump(mode="json")))
