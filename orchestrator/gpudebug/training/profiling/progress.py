"""The profiler's state: its options, the iterations that it counted, how long it was on."""

from __future__ import annotations

from time import perf_counter_ns as clock

from gpudebug.training.profiling.settings import settings
from gpudebug.training.profiling.tree import registry

CATEGORIES = {
    "env_": "Environment",
    "env_rgb_": "Rendering",
    "convlstm_": "Model",
    "recurrent_policy_": "Policy",
    "training_": "Training",
    "simulated_": "Training",
}
"""Category by the longest prefix of a section's name."""


class ProfilerState:
    """What the report, the summary and the exits read of the profiler."""

    def __init__(self, summary_every: int = 0) -> None:
        self.categories: dict[str, str] = dict(CATEGORIES)
        self.title = "Timing Profile"
        self.step_label = "step"
        self.summary_every = summary_every
        self.warmup = 0
        # What enabled it: the environment, as a launcher does, or the code itself.
        self.asked_by_code = False
        self.report_path: str | None = None
        self.iterations = 0
        self.left_out = 0
        self.ever_enabled = False
        # Calls and nanoseconds by place, as the last periodic summary saw them.
        self.shown: dict[tuple[str, ...], tuple[int, int]] = {}
        self.explicit = False
        self.began: int | None = None
        self.on_since = 0
        self.on_for = 0

    @property
    def warming_up(self) -> bool:
        """Whether iterations are still left out."""
        return self.left_out < self.warmup

    def completed(self) -> int:
        """Iterations that the figures hold."""
        if self.warming_up:
            return 0
        return self.iterations if self.explicit else max(self.iterations, registry.completed())

    def seconds(self) -> dict[str, float]:
        """`wall_s` since enabling (or the reset, or the end of the warm-up), `enabled_s` of it enabled."""
        now = clock()
        on_for = self.on_for + (now - self.on_since if settings.on else 0)
        return {"wall_s": (now - self.began) / 1e9 if self.began else 0.0, "enabled_s": on_for / 1e9}
