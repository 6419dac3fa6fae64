"""Kineto and Chrome traces: where the device idles, what the host did meanwhile, what ran."""

from gpudebug.core.trace.nsys import NsysExport, ProcessEvents, pid_of
from gpudebug.core.trace.ranks import RankTrace, compare_ranks
from gpudebug.core.trace.summary import NO_DEVICE, TraceSummary, summarise, summarise_events

__all__ = [
    "NO_DEVICE",
    "NsysExport",
    "ProcessEvents",
    "RankTrace",
    "TraceSummary",
    "compare_ranks",
    "pid_of",
    "summarise",
    "summarise_events",
]
