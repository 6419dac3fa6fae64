"""Memory in use, of the process and of its GPU; None if it cannot be read."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, Tuple

    Reading = Tuple[Optional[int], Optional[int], Optional[int]]


def read() -> Reading:
    """Bytes: resident; allocated by PyTorch on its current GPU; and the most so far that it had allocated."""
    return (_resident(), *_allocated())


def grown(before: Reading, after: Reading) -> tuple[int | None, int | None]:
    """Return what a call used above its beginning: resident at its end, and the peak on the GPU; bytes.

    The GPU's is exact where the call raised the process's peak, as the first calls do; else it is what the
    call left allocated, for the counter is never reset: the training may read it too.
    """
    resident = gpu = None
    if before[0] is not None and after[0] is not None:
        resident = max(after[0] - before[0], 0)
    if before[1] is not None and after[1] is not None and before[2] is not None and after[2] is not None:
        highest = after[2] if after[2] > before[2] else after[1]
        gpu = max(highest - before[1], 0)
    return resident, gpu


def _allocated() -> tuple[int | None, int | None]:
    torch: Any = sys.modules.get("torch")
    try:
        if torch is None:
            return None, None
        if torch.cuda.is_initialized():
            return torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
        if not torch.backends.mps.is_available():
            return None, None
        # Apple's keeps no highest.
        return (torch.mps.current_allocated_memory(),) * 2
    except Exception:  # noqa: BLE001 - a half-imported or broken PyTorch is the training's affair
        return None, None


def _resident() -> int | None:
    global _reader  # noqa: PLW0603 - looked for once
    if _reader is None:
        _reader = _found_reader()
    return _reader()


_reader: Callable[[], int | None] | None = None


def _found_reader() -> Callable[[], int | None]:
    # A fifteenth of what psutil takes, and there without it.
    if _statm() is not None:
        return _statm
    from importlib import import_module

    try:
        psutil = import_module("psutil")
    except (ImportError, NotImplementedError):  # missing; unknown to it is this platform
        return lambda: None
    process: Any = psutil.Process()

    def resident() -> int | None:
        try:
            return int(process.memory_info().rss)
        except psutil.Error:
            return None

    return resident


def _statm() -> int | None:
    try:
        import os

        with open("/proc/self/statm", "rb", 0) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError, IndexError):
        return None
