"""What a baseline or a trial is about to spend, for the lines before it starts and beside it."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.config import Protocol
from gpudebug.core.verdict import spending
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import window_of


def seconds_of(runs: Sequence[MeasuredRun]) -> list[float]:
    return [m.record.duration_s for m in runs if m.record.duration_s]


def of_baseline(loaded: Loaded, role: str, made: Sequence[MeasuredRun]) -> str:
    """What is left of a baseline of which these runs are made; by earlier ones if none is."""
    known = seconds_of(made)
    if not known:
        known = [s for r in loaded.baselines[role].records if isinstance(s := r.get("duration_s"), float)]
    return spending.of_baseline(loaded.config.protocol.baseline_runs, known, made=len(made))


def of_trial(protocol: Protocol, before: Sequence[MeasuredRun]) -> str:
    """What a trial beside these runs of the baseline takes."""
    windows = [window_of(m) for m in before]
    mean = sum(windows) / len(windows) if windows else 0.0
    return spending.of_trial(seconds_of(before), mean, protocol.min_window, protocol.max_runs)
