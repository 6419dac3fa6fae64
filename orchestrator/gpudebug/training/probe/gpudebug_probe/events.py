"""How long the device was at the iterations, by events in its own queue.

An event is recorded when an iteration ends and when its batch is there. Whether the device has come to it is
asked later, without waiting. Between the two events of an iteration the device had work to do or waited for
the host to queue more; what it waited for the batch is left out.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from .recorder import Recorder

# As many iterations as the host may be ahead of the device, twice over; of further ones nothing is known.
SPANS = 64


def install(torch: Any, recorder: Recorder) -> None:
    """Time iterations on the device, once the training uses CUDA; until then nothing is touched."""
    events = Events(torch, recorder)
    recorder.on_begin(events.anew)
    recorder.on_step(events.stepped)
    recorder.on_fetch(events.fetched)
    recorder.before_beat(events.known)


class Events:
    """A pool of CUDA events and the spans between them that the device has not come to yet."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._cuda = torch.cuda
        self._recorder = recorder
        self._abandoned: list[Any] = []
        self._free: list[Any] = []
        self._spans: deque[tuple[Any, Any]] = deque()
        self._start: Any = None
        self._fetched = False
        self._made = 0
        self._broken = False

    def anew(self) -> None:
        """A forked child cannot use its parent's events, nor give them back."""
        self._abandoned += self._free + [event for span in self._spans for event in span]
        self._abandoned.append(self._start)
        self._free, self._start, self._fetched, self._made = [], None, False, 0
        self._spans.clear()

    def stepped(self, steps: int) -> None:
        """An iteration has ended: its span is closed, the next one begins unless a fetch does it."""
        try:
            if not self._usable():
                return
            self._read()
            start, self._start = self._start, None
            if start is not None:
                self._close(start)
            self._start = self._event()
            self._fetched = False
            if self._start is not None:
                self._start.record()
        except Exception as error:  # noqa: BLE001 - the rest of the probe goes on without events
            self._break(error)

    def fetched(self) -> None:
        """The first batch of the iteration is there: what the device did before was waiting for it."""
        if self._start is None or self._fetched:
            return
        self._fetched = True
        try:
            if self._usable():
                self._start.record()
        except Exception as error:  # noqa: BLE001
            self._break(error)

    def known(self) -> None:
        """Known to be 0 so far, if there are events."""
        if self._made and not self._broken:
            self._recorder.counters.setdefault("gpu_n", 0)
            self._recorder.counters.setdefault("gpu_s", 0.0)

    def _usable(self) -> bool:
        """Asks nothing of CUDA before the training has, nor while a graph is captured: it would spoil it."""
        if self._broken or not self._recorder.on or not self._cuda.is_initialized():
            return False
        capturing = getattr(self._cuda, "is_current_stream_capturing", None)
        return capturing is None or not capturing()

    def _close(self, start: Any) -> None:
        end = self._event()
        if end is None:
            self._free.append(start)
            return
        end.record()
        self._spans.append((start, end))

    def _event(self) -> Any:
        if self._free:
            return self._free.pop()
        if self._made >= 2 * SPANS:
            return None
        self._made += 1
        return self._cuda.Event(enable_timing=True)

    def _read(self) -> None:
        while self._spans:
            start, end = self._spans[0]
            if not (start.query() and end.query()):
                return
            self._spans.popleft()
            self._recorder.add("gpu_n")
            self._recorder.add("gpu_s", start.elapsed_time(end) / 1000)
            self._free += [start, end]

    def _break(self, error: Exception) -> None:
        self._broken = True
        self._recorder.facts["events"] = "off: " + type(error).__name__ + ": " + str(error)[:200]
