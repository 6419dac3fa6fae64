"""What a report was measured on: the machine, PyTorch, and the options that decide how much a call does."""

from __future__ import annotations

import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

# Names that say how much work a call does, or how it is done; values are words, no paths and no secrets.
_NAME = re.compile(
    r"(?:^|[._-])(?:\w*horizon|chunk_size|n_action_steps|\w*batch_?size|\w*compile\w*|device|dtype|precision"
    r"|\w*denois\w*|num_envs|policy[._]type|n_obs_steps)$",
    re.I,
)
_VALUE = re.compile(r"[\w.+]{1,40}")
_OPTION = re.compile(r"-{0,2}([A-Za-z_][\w.-]{0,60})(?:=(.*))?$", re.S)
_MOST = 40


def surroundings() -> dict[str, Any]:
    """Everything that is known without loading anything; None is unknown."""
    torch = sys.modules.get("torch")
    return {
        "machine": os.uname().machine if hasattr(os, "uname") else None,
        "cpus": _cpus(),
        "device": _device(torch),
        "torch": getattr(torch, "__version__", None) and str(torch.__version__)[:40],  # type: ignore[union-attr]
        "compiled": _compiled(torch),
        "settings": dict(_settings(sys.argv[1:])),
    }


def _cpus() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count()


def _device(torch: Any) -> str | None:
    """Return the GPU in use; nothing is initialised for it."""
    try:
        return str(torch.cuda.get_device_name())[:80] if torch.cuda.is_initialized() else None
    except Exception:  # noqa: BLE001 - a program's own torch, or half of one
        return None


def _compiled(torch: Any) -> bool | None:
    """Tell whether torch.compile has compiled something in this process; None without PyTorch."""
    if torch is None or not hasattr(torch, "__version__"):
        return None
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    try:
        return bool(counters and counters["frames"].get("ok", 0))
    except Exception:  # noqa: BLE001 - private to PyTorch, and may change
        return None


def _settings(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    found = 0
    for word, after in zip(words, [*words[1:], ""]):
        option = _OPTION.match(word)
        name = option[1].replace("-", "_") if option else ""
        if option is None or not _NAME.search(name) or found >= _MOST:
            continue
        value = option[2]
        if value is None:
            if not word.startswith("-"):
                continue
            value = "true" if not after or after.startswith("-") else after
        if _VALUE.fullmatch(value):
            found += 1
            yield name, value
