"""What is switched on, for all modules of the library: one place that imports none of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from typing import Any, Callable

    _ = deque


class ProfilingSettings:
    """The options of `enable_profiling`, and hooks that the profiler fills in."""

    def __init__(self) -> None:
        self.on = False
        self.sync: Callable[[], Any] | None = None
        self.track_memory = False
        self.events: deque[tuple[str, int, int, int]] | None = None
        # Nanoseconds: what an empty section takes itself for, by the short way and by the long one, and what
        # it takes besides, for whatever encloses it.
        self.calibrated = False
        self.bias = self.long_bias = self.cost = 0
        self.completed: Callable[[Any], None] = _nothing
        self.noticed: Callable[[], None] = lambda: None
        self.running: Callable[[], Any] = lambda: None
        self.notes: list[str] = []

    @property
    def thorough(self) -> bool:
        """Whether every call takes the long way, which can do more than measure time."""
        return self.track_memory or self.sync is not None or self.events is not None

    def note(self, text: str) -> None:
        """Keep a line for the report, once, and a bounded number of them."""
        if text not in self.notes and len(self.notes) < 20:
            self.notes.append(text)


def _nothing(_: object) -> None:
    pass


settings = ProfilingSettings()
