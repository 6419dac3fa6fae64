"""A training program's output, read without configuration: losses, steps, rates, failure."""

from __future__ import annotations

from gpudebug.core.trainlog.failure import classify_failure
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.trainlog.series import Point as LossPoint
from gpudebug.core.trainlog.summary import LogSummary
from gpudebug.core.trainlog.trend import trend

__all__ = ["LogReader", "LogSummary", "LossPoint", "classify_failure", "trend"]
