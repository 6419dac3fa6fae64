"""What a loader is set to, and how many samples a batch of it holds."""

from __future__ import annotations

import multiprocessing
from collections import UserDict
from collections.abc import Iterator
from itertools import islice
from typing import Any

# A batch is looked into at most so deep, and at so many entries of each part.
DEEPEST = 4
WIDEST = 8


class Loader:
    """Settings of a DataLoader. `plain`: the first dimension of a batch was seen to be its batch size."""

    SETTINGS = ("workers", "method", "batch_size", "pin_memory", "persistent_workers", "prefetch_factor")

    def __init__(self, settings: tuple[Any, ...]) -> None:
        self.settings = settings
        self.batch_size: int | None = settings[self.SETTINGS.index("batch_size")]
        self.plain = False


def described_loader(loader: Any) -> Loader:
    """Of a DataLoader, or of an iterator whose DataLoader is not known; None if unknown."""
    workers = _setting(loader, "num_workers")
    size = _setting(loader, "batch_size")
    if size is None:
        size = _setting(getattr(loader, "batch_sampler", None), "batch_size")
    settings = (
        workers,
        _start_method(loader) if workers else None,
        size if isinstance(size, int) else None,
        _setting(loader, "pin_memory"),
        _setting(loader, "persistent_workers"),
        _setting(loader, "prefetch_factor") if workers else None,
    )
    return Loader(settings)


def _setting(owner: Any, name: str) -> Any:
    for spelled in (name, "_" + name):
        try:
            value = getattr(owner, spelled, None)
        except Exception:  # noqa: BLE001 - a property of the user's
            value = None
        if isinstance(value, (bool, int)):
            return value
    return None


def _start_method(loader: Any) -> str:
    context = getattr(loader, "multiprocessing_context", None)
    if context is not None:
        return str(context.get_start_method())
    # Asked for without settling it: the first of those that there are is the default.
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def batch_size(torch: Any, batch: Any, loader: Loader) -> int | None:
    """Samples in a batch; None if neither the batch nor its loader shows it.

    A loader with a batch size makes batches of that many samples, whatever its collate_fn makes of them; only
    the last one of an epoch is smaller, and shows where the first dimension is known to be the samples'.
    """
    try:
        seen = next((int(one.shape[0]) for one in _tensors(torch, batch, DEEPEST) if one.dim()), None)
    except Exception:  # noqa: BLE001 - a tensor without such a dimension: nested, a subclass, …
        seen = None
    expected = loader.batch_size
    if expected is None:
        return seen
    if seen == expected:
        loader.plain = True
    return seen if loader.plain and seen is not None and seen < expected else expected


def largest(torch: Any, values: Any) -> int:
    """Elements of the largest tensor in there; 0 of none, or if one does not say."""
    try:
        return max((int(one.numel()) for one in _tensors(torch, values, DEEPEST)), default=0)
    except Exception:  # noqa: BLE001 - a subclass of the user's
        return 0


def elements(torch: Any, values: Any) -> int:
    """Elements of all tensors in there that no gradient leads to; 0 if one does not say."""
    try:
        known = _tensors(torch, values, DEEPEST)
        return sum(int(one.numel()) for one in known if not one.requires_grad)
    except Exception:  # noqa: BLE001 - a subclass of the user's
        return 0


def rows_of(torch: Any, args: Any, kwargs: Any) -> int:
    """The first dimension of the first tensor, or dictionary of tensors, of a call; 0 if it has none."""
    try:
        first: Any = args[0] if args else next(iter(kwargs.values()), None)
        if type(first).__module__.startswith("tensordict."):
            return int(first.batch_size[0])
        return next((int(one.shape[0]) for one in _tensors(torch, (args, kwargs), DEEPEST) if one.dim()), 0)
    except Exception:  # noqa: BLE001 - a subclass of the user's
        return 0


def _tensors(torch: Any, value: Any, depth: int) -> Iterator[Any]:
    """Yield the tensors in there. Runs no code of the user's: subclasses are read as what they are."""
    if isinstance(value, torch.Tensor):
        yield value
        return
    if isinstance(value, UserDict):
        value = value.data
    parts: Any
    if isinstance(value, dict):
        parts = dict.values(value)
    elif isinstance(value, (list, tuple)):
        parts = value[:WIDEST] if type(value) in (list, tuple) else ()
    else:
        return
    if depth:
        for part in islice(parts, WIDEST):
            yield from _tensors(torch, part, depth - 1)
