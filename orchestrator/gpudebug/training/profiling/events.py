"""The calls that were kept, in the Trace Event Format that Perfetto and chrome://tracing read."""

from __future__ import annotations

import os
import threading

from gpudebug.training.profiling.report import category
from gpudebug.training.profiling.settings import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping


def trace(categories: Mapping[str, str]) -> dict[str, Any]:
    """Complete events in microseconds of the monotonic clock. RuntimeError if no events were kept."""
    if settings.events is None:
        raise RuntimeError("no calls were kept for a trace: call enable_profiling(trace=True) first")
    pid = os.getpid()
    kept = list(settings.events)
    events = [
        {
            # Half a surrogate pair would make the whole file unreadable to some.
            "name": name.encode("utf-8", "replace").decode(),
            "cat": category(name, categories) or "section",
            "ph": "X",
            "ts": start / 1000,
            "dur": duration / 1000,
            "pid": pid,
            "tid": ident,
        }
        for name, start, duration, ident in kept
    ]
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    named = [
        {
            "name": "thread_name",
            "ph": "M",
            "pid": pid,
            "tid": ident,
            "args": {"name": names.get(ident, "ended")},
        }
        for ident in dict.fromkeys(kept_event[3] for kept_event in kept)
    ]
    return {"displayTimeUnit": "ms", "traceEvents": named + events}
