"""Kineto and Chrome traces: where the device idles, what the host did meanwhile, what ran."""

from gpudebug.core.trace.summary import NO_DEVICE, TraceSummary, busy_shares, summarise

__all__ = ["NO_DEVICE", "TraceSummary", "busy_shares", "summarise"]
