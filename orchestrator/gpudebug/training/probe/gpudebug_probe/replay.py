"""Loaders that hand one batch over again and again: how fast a training is that waits for no data.

GPUDEBUG_LAYER=cached_batch asks for it; behind a colon may stand how many batches an epoch of each loader
has, in the order in which the loaders begin (`cached_batch:40,5+`), as a run without it reported in the facts
`epochs` and `epochs_ended`: `+` says that it was not seen to end. What such a training learns is worth
nothing.

A training that changes its batch in place finds it as it came each time; what it changes past PyTorch's count
of changes (`x.numpy()[0] = 1`, `x.data`) stays changed.
"""

from __future__ import annotations

import copy
import functools
import os
import time
import weakref
from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple

from .epochs import Epochs, LoaderGroup
from .recorder import Recorder

VARIABLE = "GPUDEBUG_LAYER"
CACHED = "cached_batch"
FACT = "replay"
# As many fetches of a loader are real, and more until an iteration has ended between two of them.
FETCHES = 3
# A batch is copied at most so deep.
DEEPEST = 16
# An epoch without an end has that many times the batches that a training took of it.
ENDLESS = 2
# Bytes of a tensor that is worth being on the device before it is asked for. A smaller one is copied there in
# no time, and may be one whose numbers are used on the CPU: lengths, labels, indices.
LARGE = 64 << 10
# What torch calls a data set that is only iterated.
ITERATED = 1


class Length(NamedTuple):
    """Batches that a run without us took of an epoch at most, and whether that was all of it."""

    taken: int
    whole: bool

    @property
    def most(self) -> int:
        return self.taken if self.whole else ENDLESS * self.taken


def asked(environ: Any = os.environ) -> list[Length | None] | None:
    """Parse the variable's lengths of epochs; None if nothing is to be replayed."""
    layer, _, lengths = environ.get(VARIABLE, "").partition(":")
    if layer != CACHED:
        return None
    return [_told(text) for text in lengths.split(",")]


def _told(text: str) -> Length | None:
    count = text[:-1] if text.endswith("+") else text
    return Length(int(count), count == text) if count.isdigit() and int(count) else None


def install(
    module: Any, torch: Any, recorder: Recorder, epochs: Epochs, entered: Callable[[Any, Any], Any]
) -> None:
    """Replay batches where it is asked for; `module` is torch's of loaders, to be watched only after this.

    `entered` is called with an iterator that is made here and its loader.
    """
    lengths = asked()
    if lengths is not None:
        replay = Replay(torch, recorder, epochs, lengths)
        base, kind = module._BaseDataLoaderIter, module._SingleProcessDataLoaderIter
        base.__next__ = replay.next(base.__next__)
        module.DataLoader.__iter__ = replay.iter(module.DataLoader.__iter__, entered, kind)


class KeptTensor:
    """A tensor of the batch as it came, which the training never gets, and what it gets in its place.

    That is the same one each time until the training has changed it, and a new one each time from then on.
    """

    def __init__(self, tensor: Any) -> None:
        self.tensor = _copy(tensor)
        # One whose gradient would add up; where it was computed from others, there is none to be had.
        self._leaf = tensor.requires_grad and tensor.grad_fn is None
        self._anew = self._leaf
        self._given: Any = None
        self._version = 0
        self._device: str | None = None

    def place(self, device: str | None) -> None:
        """Have it where the training computes, so that copying it there is left out as well."""
        if self.tensor.numel() * self.tensor.element_size() >= LARGE:
            self._device = device
        self._given = self._made()
        self._version = self._given._version

    def give(self) -> Any:
        if not self._anew and (self._given._version != self._version or self._given.requires_grad):
            self._anew = True
            self._given = self._made()
        return _copy(self._given).requires_grad_(self._leaf) if self._anew else self._given

    def _made(self) -> Any:
        if self._device is not None:
            try:
                return _copy(self.tensor, self._device)
            except Exception:  # noqa: BLE001 - no room for it: it is copied each time, as before
                self._device = None
        return _copy(self.tensor)


def _copy(tensor: Any, device: str | None = None) -> Any:
    """Return the same numbers in memory of its own, without a graph, and what the user hung on the tensor."""
    source = tensor.detach()
    made = source.clone() if device is None else source.to(device, copy=True)
    vars(made).update(vars(tensor))
    return made


class Cache:
    """The batch of one loader. `length` is how many of them an epoch has, None while unknown."""

    def __init__(self) -> None:
        self.length: int | None = None
        self.batch: Any = None
        self.elements = -1
        # The loader whose length it is.
        self.loader: Any = lambda: None
        self._kept: dict[int, KeptTensor] = {}
        self._placed = False

    def keep(self, torch: Any, batch: Any) -> None:
        self._placed = False
        self._kept.clear()
        self.batch = copied(torch, batch, self._own)

    def place(self, device: str | None) -> None:
        """Once, where gradients are recorded: what is made in inference mode cannot be trained on."""
        if not self._placed:
            self._placed = True
            for one in self._kept.values():
                one.place(device)

    def give(self, torch: Any) -> Any:
        return copied(torch, self.batch, self._given)

    def _own(self, tensor: Any) -> Any:
        one = KeptTensor(tensor)
        self._kept[id(one.tensor)] = one
        return one.tensor

    def _given(self, tensor: Any) -> Any:
        # It is another one where a container that cannot be copied holds it.
        one = self._kept.get(id(tensor))
        return tensor if one is None else one.give()


class StandIn:
    """Mixed into torch's class of iterators without workers: an epoch that is only replayed."""

    def __init__(self, loader: Any, cache: Cache) -> None:
        self._index_sampler = loader._index_sampler
        self._num_yielded = 0
        self.gpudebug_cache = cache
        self.gpudebug_handed = 0


class Replay:
    """Replays a batch of each loader that feeds the training once three of its batches were fetched."""

    def __init__(self, torch: Any, recorder: Recorder, epochs: Epochs, told: list[Length | None]) -> None:
        self._torch = torch
        self._recorder = recorder
        self._epochs = epochs
        self._told = told
        self._anew()
        recorder.on_begin(self._anew)
        recorder.before_beat(self._tell)

    def _anew(self) -> None:
        self._count = 0
        # Iterations and time at the first batch that was replayed, and at the last one.
        self._first = self._last = (0, 0.0)
        self._caches: dict[int, Cache] = {}

    def _tell(self) -> None:
        steps, seconds = (last - first for first, last in zip(self._first, self._last))
        self._recorder.facts[FACT] = {
            "layer": CACHED,
            "batches": self._count,
            "steps": steps,
            "seconds": round(seconds, 6),
        }

    def next(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Around `__next__` of iterators."""

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:
            if isinstance(iterator, StandIn):
                handed, iterator.gpudebug_handed = iterator.gpudebug_handed, iterator.gpudebug_handed + 1
                return self._again(iterator.gpudebug_cache, handed)
            epoch = self._epochs.of(iterator)
            if epoch is None or not self._recorder.on or not self._torch.is_grad_enabled():
                return original(iterator)
            source = epoch.source
            source.fetch(self._recorder.steps)
            cache = self._ready(source)
            if cache is not None:
                cache.place(self._device())
                return self._again(cache, epoch.handed)
            try:
                batch = original(iterator)
            except StopIteration:
                source.ended()
                self._cache(source).length = epoch.handed
                raise
            source.fetched += 1
            self._keep(self._cache(source), batch)
            return batch

        return __next__

    def iter(self, original: Callable[[Any], Any], entered: Callable[[Any, Any], Any], kind: type) -> Any:
        """Around `__iter__` of loaders: a replayed epoch starts no workers, which would take cores."""
        stand_in = type("StandIn", (StandIn, kind), {})

        @functools.wraps(original)
        def __iter__(loader: Any) -> Any:
            if self._recorder.on:
                try:
                    cache = self._begun(loader)
                    if cache is not None and self._torch.is_grad_enabled():
                        cache.place(self._device())
                        iterator = stand_in(loader, cache)
                        entered(iterator, loader)
                        return iterator
                except Exception as error:  # noqa: BLE001 - the training goes on without us
                    self._recorder.failed(error, "replaying a batch")
            return original(loader)

        return __iter__

    def _cache(self, source: LoaderGroup) -> Cache:
        return self._caches.setdefault(source.place, Cache())

    def _begun(self, loader: Any) -> Cache | None:
        """What an epoch of the loader replays; its length is asked for here, where the loader is there."""
        source = self._epochs.source(loader)
        if source is None:
            return None
        cache = self._cache(source)
        if cache.loader() is not loader:
            cache.loader = weakref.ref(loader)
            cache.length = self._length(source, length(loader), cache.length)
        return self._ready(source)

    def _length(self, source: LoaderGroup, known: int | None, before: int | None) -> int | None:
        """Return how many batches an epoch has: by the loader, else by an earlier run or an epoch.

        One that was not seen to end has more than was taken: a training that ends after a time takes more of
        it now. Yet one that ends with its data must not go on for ever.
        """
        earlier = self._told[source.place] if source.place < len(self._told) else None
        if earlier is None:
            return before if known is None else known
        if known is None:
            return earlier.taken if earlier.whole else before or earlier.most
        return earlier.most if before is None and earlier.taken > known else known

    def _ready(self, source: LoaderGroup) -> Cache | None:
        """Its batch, if that is replayed from now on."""
        cache = self._cache(source)
        ready = source.feeds and source.fetched >= FETCHES and cache.length is not None
        return cache if ready else None

    def _again(self, cache: Cache, handed: int) -> Any:
        """Return the batch once more; StopIteration where the epoch has had its batches."""
        if handed >= (cache.length or 0):
            raise StopIteration
        self._last = self._recorder.steps, time.monotonic()
        if not self._count:
            self._first = self._last
        self._count += 1
        return cache.give(self._torch)

    def _device(self) -> str | None:
        """Return where the training computes; None for the CPU."""
        device = str(self._recorder.facts.get("device") or "cpu")
        return None if device == "cpu" else device

    def _keep(self, cache: Cache, batch: Any) -> None:
        """Of the first batches the one with the most elements: the last one of an epoch may be smaller."""
        sizes: list[int] = []

        def measured(tensor: Any) -> Any:
            sizes.append(tensor.numel())
            return tensor

        try:
            copied(self._torch, batch, measured)
            if sum(sizes) > cache.elements:
                cache.elements = sum(sizes)
                cache.keep(self._torch, batch)
        except Exception as error:  # noqa: BLE001 - the training goes on without us
            self._recorder.failed(error, "keeping a batch")


def length(loader: Any) -> int | None:
    """Return how many batches an epoch has by what the loader says; None if it does not.

    What a data set that is only iterated says of it is a guess, and being asked it takes for a promise.
    """
    if getattr(loader, "_dataset_kind", None) == ITERATED:
        return None
    try:
        return len(loader)
    except Exception:  # noqa: BLE001 - a sampler of the user's, without a length
        return None


def copied(torch: Any, value: Any, each: Callable[[Any], Any] | None = None, depth: int = DEEPEST) -> Any:
    """`value` with new containers all the way down and the same tensors, or what `each` makes of them.

    Lists, tuples, named ones and mappings are containers; everything else stays as it is.
    """
    if isinstance(value, torch.Tensor):
        return value if each is None else each(value)
    if depth == 0:
        return value
    kind = type(value)
    if kind is dict:
        return {key: copied(torch, part, each, depth - 1) for key, part in value.items()}
    if kind in (list, tuple):
        return kind(copied(torch, part, each, depth - 1) for part in value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return kind._make(copied(torch, part, each, depth - 1) for part in value)
    if isinstance(value, (dict, MutableMapping)):
        return _mapping(torch, value, each, depth)
    return value


def _mapping(torch: Any, value: Any, each: Callable[[Any], Any] | None, depth: int) -> Any:
    """One of another class than dict; as it is, where it cannot be copied."""
    try:
        clone = copy.copy(value)
        for key in list(clone):
            clone[key] = copied(torch, clone[key], each, depth - 1)
    except Exception:  # noqa: BLE001 - code of the user's
        return value
    return clone
