"""The profiler's options, and what it counted so far, for all modules of the library."""

from __future__ import annotations

from time import perf_counter_ns as clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from typing import Any, Callable

    _ = deque

# Durations of a place kept as they came; folding them together is cheaper than each alone.
PENDING = 255
CATEGORIES = {
    "env_": "Environment",
    "env_rgb_": "Rendering",
    "convlstm_": "Model",
    "recurrent_policy_": "Policy",
    "training_": "Training",
    "simulated_": "Training",
}
"""Category by the longest prefix of a section's name."""


class ProfilingState:
    """The options of `enable_profiling`, the iterations that were counted, how long it was on."""

    def __init__(self) -> None:
        self.on = False
        # Whether more is asked of a call than its time.
        self.thorough = False
        self.sync: Callable[[], Any] | None = None
        self.track_memory = False
        self.events: deque[tuple[str, int, int, int]] | None = None
        self.categories: dict[str, str] = dict(CATEGORIES)
        self.title = "Timing Profile"
        self.step_label = "step"
        self.summary_every = 0
        self.warmup = 0
        self.report_path: str | None = None
        # What enabled it: the environment, as a launcher does, or the code itself.
        self.asked_by_code = False
        self.ever_enabled = False
        # Nanoseconds that an empty section takes itself for, and that it takes besides.
        self.calibrated = False
        self.bias = self.cost = 0
        # The thread whose outermost sections are iterations, and what wants to know of each at once: the
        # calls of a place after which it is looked at are none then.
        self.stepper = 0
        self.completed: Callable[[int], None] | None = None
        self.limit = PENDING
        self.explicit = False
        self.iterations = 0
        self.left_out = 0
        # Calls and nanoseconds by place, as the last periodic summary saw them.
        self.shown: dict[tuple[str, ...], tuple[int, int]] = {}
        self.began: int | None = None
        self.on_since = 0
        self.on_for = 0
        self.notes: list[str] = []

    @property
    def warming_up(self) -> bool:
        """Whether iterations are still left out."""
        return self.left_out < self.warmup

    def seconds(self) -> dict[str, float]:
        """`wall_s` since enabling (or the reset, or the end of the warm-up), `enabled_s` of it enabled."""
        now = clock()
        on_for = self.on_for + (now - self.on_since if self.on else 0)
        return {"wall_s": (now - self.began) / 1e9 if self.began else 0.0, "enabled_s": on_for / 1e9}

    def note(self, text: str) -> None:
        """Keep a line for the report, once, and a bounded number of them."""
        if text not in self.notes and len(self.notes) < 20:
            self.notes.append(text)


state = ProfilingState()
