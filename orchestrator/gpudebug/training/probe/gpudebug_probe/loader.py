"""Waiting for batches: the time in `next()` of a DataLoader's iterator, in the process that trains.

Who waits for what is known only later. A fetch while gradients are off is evaluation's. Any other is kept
apart until an iteration ends: then it was training's, unless its iterator came to its end without ever
feeding an iteration while another one did, as a loader for evaluation does. Fetches of other threads than
the one that steps are counted apart: no step waits for them.
"""

from __future__ import annotations

import functools
import multiprocessing
import threading
import time
import weakref
from _thread import get_ident
from collections import UserDict
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from . import replay
from .epochs import Epochs
from .recorder import Recorder

# Kinds of loaders that are reported; iterators that are known at the same time.
MOST_LOADERS = 8
MOST_ITERATORS = 256
# A batch is looked into at most so deep, and at so many entries of each part.
DEEPEST = 4
WIDEST = 8


def install(torch: Any, recorder: Recorder) -> None:
    """Time every fetch and every start of a DataLoader's iterator."""
    module = import_module("torch.utils.data.dataloader")
    waits = _LoaderWaits(recorder, torch)
    replay.install(module, torch, recorder, waits.epochs, waits.enter)
    iterator = module._BaseDataLoaderIter
    iterator.__init__ = _wrapped_init(iterator.__init__, recorder, waits)
    iterator.__next__ = _wrapped_next(iterator.__next__, recorder, waits)
    module.DataLoader.__iter__ = _wrapped_iter(module.DataLoader.__iter__, recorder, waits)


class _Inside(threading.local):
    """Whether this thread is in a fetch: what that fetches in turn is part of it."""

    fetch = False
    start = False


class _Iterator:
    """What was fetched from one iterator and is not counted yet; `trained` says that it feeds iterations."""

    def __init__(self, loader: Loader, gone: Any) -> None:
        self.loader = loader
        self.gone = gone
        self.trained = self.ended = False
        self.clear()

    def clear(self) -> None:
        self.fetched = 0
        self.seconds = 0.0
        self.samples: int | None = 0
        self.largest: int | None = None
        # When and where it was fetched from last: after how many iterations, in which thread.
        self.steps = 0
        self.thread = 0


class _LoaderWaits:
    """All iterators of this process, and the counters that their fetches go to."""

    def __init__(self, recorder: Recorder, torch: Any) -> None:
        self.inside = _Inside()
        self.epochs = Epochs(recorder)
        self._recorder = recorder
        self._torch = torch
        self._grad_enabled = torch.is_grad_enabled
        self._anew()
        recorder.on_begin(self._begin)
        recorder.on_step(self._stepped)
        recorder.on_end(self._ended)
        recorder.before_beat(self._tell)

    def _anew(self) -> None:
        self._iterators: dict[int, _Iterator] = {}
        # Those of which the next step will show what they are for, and those that feed iterations.
        self._waiting: dict[int, _Iterator] = {}
        self._feeding: dict[int, _Iterator] = {}
        self._loaders: dict[tuple[Any, ...], int] = {}
        self._samples_known = True
        self._largest: int | None = None

    def _begin(self) -> None:
        # The iterator whose first fetch begins the training is known by now; a fork has it from its parent.
        iterators = {key: entry for key, entry in self._iterators.items() if entry.gone() is not None}
        self._anew()
        for entry in iterators.values():
            entry.clear()
            entry.trained = False
        self._iterators.update(iterators)

    def enter(self, iterator: Any, loader: Any) -> _Iterator:
        """Know an iterator from its beginning, or from its first fetch where that was not seen."""
        iterators, key = self._iterators, id(iterator)
        if len(iterators) >= MOST_ITERATORS:
            # Where it is still there, its next fetch makes it known again.
            del iterators[next(iter(iterators))]
        entry = _Iterator(described_loader(loader), weakref.ref(iterator, lambda _: iterators.pop(key, None)))
        iterators[key] = entry
        return entry

    def took(self, iterator: Any, seconds: float, batches: list[Any], ended: bool) -> None:
        """One fetch has returned a batch, come to the end of the iterator, or failed."""
        fetched = len(batches)
        trains = self._grad_enabled()
        self.epochs.took(iterator, fetched, ended, seconds if trains else None)
        entry = self._iterators.get(id(iterator)) or self.enter(iterator, iterator)
        entry.ended = ended
        if not trains:
            self._count("eval_data", fetched, seconds)
            self._told_of(entry.loader, fetched, training=False)
            return
        entry.seconds += seconds
        entry.steps, entry.thread = self._recorder.steps, get_ident()
        (self._feeding if entry.trained else self._waiting)[id(entry)] = entry
        for batch in batches:
            entry.fetched += 1
            size = batch_size(self._torch, batch, entry.loader)
            if size is None or entry.samples is None:
                entry.samples = None
            else:
                entry.samples += size
                entry.largest = max(size, entry.largest or 0)
            self._recorder.fetched()

    def started(self, iterator: Any, loader: Any, seconds: float) -> None:
        """An iterator was made, its workers included, or an existing one begun again."""
        self.epochs.opened(iterator, loader)
        self._recorder.add("loader_starts_n")
        self._recorder.add("loader_starts_s", seconds)

    def _stepped(self, steps: int) -> None:
        if not self._waiting:
            return
        others = any(not entry.ended for entry in self._waiting.values()) or any(
            entry.steps == steps - 1 for entry in self._feeding.values()
        )
        for entry in self._waiting.values():
            self._settle(entry, training=not entry.ended or not others)
        self._waiting.clear()

    def _ended(self) -> None:
        for entry in self._waiting.values():
            self._settle(entry, training=False)
        self._waiting.clear()

    def _settle(self, entry: _Iterator, training: bool) -> None:
        """It is known now what the fetches were for."""
        if not training:
            self._count("eval_data", entry.fetched, entry.seconds)
        else:
            entry.trained = True
            own = entry.thread == self._recorder.thread
            self._count("data" if own else "background_data", entry.fetched, entry.seconds)
            self._count_samples(entry.samples)
            if entry.largest is not None:
                self._largest = max(entry.largest, self._largest or 0)
        self._told_of(entry.loader, entry.fetched, training)
        entry.clear()

    def _count(self, name: str, fetched: int, seconds: float) -> None:
        self._recorder.add(name + "_n", fetched)
        self._recorder.add(name + "_s", seconds)

    def _count_samples(self, samples: int | None) -> None:
        if samples is None:
            # A sum with an unknown part is unknown.
            self._samples_known = False
            self._recorder.counters.pop("samples_n", None)
        elif self._samples_known:
            self._recorder.add("samples_n", samples)

    def _told_of(self, loader: Loader, fetched: int, training: bool) -> None:
        key = (*loader.settings, training)
        if key in self._loaders or len(self._loaders) < MOST_LOADERS:
            self._loaders[key] = self._loaders.get(key, 0) + fetched

    def _tell(self) -> None:
        for entry in self._feeding.values():
            self._settle(entry, training=True)
        self._feeding.clear()
        if self._loaders:
            names = (*Loader.SETTINGS, "training")
            self._recorder.facts["loaders"] = [
                {**dict(zip(names, settings)), "fetched": fetched}
                for settings, fetched in self._loaders.items()
            ]
        if self._largest is not None:
            self._recorder.facts["batch_size"] = self._largest


def _wrapped_next(
    original: Callable[[Any], Any], recorder: Recorder, waits: _LoaderWaits
) -> Callable[[Any], Any]:
    inside = waits.inside

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        if inside.fetch or not (recorder.on or recorder.begin()):
            return original(self)
        loading = recorder.thread is None or recorder.thread == get_ident()
        inside.fetch = True
        recorder.in_loader += loading
        batches, ended = [], False
        began = time.monotonic()
        try:
            batch = original(self)
            batches.append(batch)
            return batch
        except StopIteration:
            ended = True
            raise
        finally:
            seconds = time.monotonic() - began
            inside.fetch = False
            recorder.in_loader -= loading
            if recorder.on:
                try:
                    waits.took(self, seconds, batches, ended)
                except Exception as error:  # noqa: BLE001 - the training goes on without us
                    recorder.failed(error, "timing a fetch")

    return __next__


def _wrapped_init(
    original: Callable[..., None], recorder: Recorder, waits: _LoaderWaits
) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        original(self, loader, *args, **kwargs)
        if not recorder.refused:
            try:
                waits.enter(self, loader)
            except Exception as error:  # noqa: BLE001
                recorder.failed(error, "looking at a loader")

    return __init__


def _wrapped_iter(
    original: Callable[[Any], Any], recorder: Recorder, waits: _LoaderWaits
) -> Callable[[Any], Any]:
    inside = waits.inside

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        if inside.fetch or inside.start or not (recorder.on or recorder.begin()):
            return original(self)
        inside.start = True
        began = time.monotonic()
        try:
            iterator = original(self)
        finally:
            seconds = time.monotonic() - began
            inside.start = False
        if recorder.on:
            try:
                waits.started(iterator, self, seconds)
            except Exception as error:  # noqa: BLE001 - the training goes on without us
                recorder.failed(error, "beginning an epoch")
        return iterator

    return __iter__


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
