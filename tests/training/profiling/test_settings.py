"""What is switched on, and the notes for the report."""

from __future__ import annotations

from collections import deque

from gpudebug.training.profiling.settings import ProfilingSettings


def test_what_needs_the_long_way() -> None:
    assert not ProfilingSettings().thorough
    for option, value in (("track_memory", True), ("sync", print), ("events", deque())):
        settings = ProfilingSettings()
        setattr(settings, option, value)
        assert settings.thorough


def test_notes_are_kept_once_and_few() -> None:
    settings = ProfilingSettings()
    for i in range(100):
        settings.note("the same")
        settings.note(f"number {i}")
    assert settings.notes[:2] == ["the same", "number 0"]
    assert len(settings.notes) == 20
