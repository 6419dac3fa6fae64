"""Loaders from epoch to epoch: how many batches each hands over, and which of them feed the training."""

from __future__ import annotations

import weakref
from typing import Any

from .recorder import Recorder

FACT, ENDED = "epochs", "epochs_ended"
# Loaders whose epochs are reported.
MOST_LOADERS = 8


class LoaderGroup:
    """One loader, or those that were made one after the other over one data set with one batch size.

    `place` is its place among all. `fetched` counts batches that were fetched with gradients on, `feeds` says
    that an iteration ended between two of these.
    """

    def __init__(self, loader: Any, place: int) -> None:
        self.place = place
        self.size = getattr(loader, "batch_size", None)
        self.data = _weak(getattr(loader, "dataset", None))
        self.fetched = 0
        self.feeds = False
        # The count of iterations at the last fetch, None behind the end of an epoch.
        self._steps: int | None = None
        self.belongs(loader)

    def belongs(self, loader: Any) -> None:
        """It is this loader's from now on."""
        self.loader = weakref.ref(loader)

    def continues(self, loader: Any) -> bool:
        """Tell whether the loader is one that is gone."""
        data = self.data() if self.data is not None else None
        gone = self.loader() is None and data is not None
        return (
            gone
            and data is getattr(loader, "dataset", None)
            and self.size == getattr(loader, "batch_size", None)
        )

    def fetch(self, steps: int) -> None:
        """A batch is asked for after so many iterations."""
        self.feeds = self.feeds or (self._steps is not None and steps > self._steps)
        self._steps = steps

    def ended(self) -> None:
        """An epoch has come to its end."""
        self._steps = None


class Epoch:
    """What an iterator has handed over since it began."""

    def __init__(self, source: LoaderGroup, iterator: Any, forget: Any) -> None:
        self.source = source
        self.iterator = weakref.ref(iterator, forget)
        self.handed = 0


class Epochs:
    """The loaders in the order in which they began, and their iterators. Keeps none of them alive."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._anew()
        recorder.on_begin(self._anew)
        recorder.before_beat(self._tell)

    def _anew(self) -> None:
        self._sources: list[LoaderGroup] = []
        self._epochs: dict[int, Epoch] = {}
        # How many batches were fetched behind an epoch's first one, and the seconds that it took.
        self._usual = 0, 0.0
        self._longest: list[int] = []
        # Whether the longest of each was seen to end: else it may be longer than what was taken of it.
        self._ended: list[bool] = []

    def source(self, loader: Any) -> LoaderGroup | None:
        """Return what is known of a loader; None if there are too many of them."""
        for source in self._sources:
            if source.loader() is loader:
                return source
        for source in self._sources:
            if source.continues(loader):
                source.belongs(loader)
                return source
        if len(self._sources) == MOST_LOADERS:
            return None
        self._sources.append(LoaderGroup(loader, len(self._sources)))
        self._longest.append(0)
        self._ended.append(False)
        return self._sources[-1]

    def opened(self, iterator: Any, loader: Any) -> None:
        """An epoch begins; its iterator may have served the one before."""
        source, epochs, key = self.source(loader), self._epochs, id(iterator)
        if source is not None:
            epochs[key] = Epoch(source, iterator, lambda _: epochs.pop(key, None))

    def of(self, iterator: Any) -> Epoch | None:
        """Return the epoch that an iterator is in, None if its beginning was not seen."""
        return self._epochs.get(id(iterator))

    def took(self, iterator: Any, count: int, ended: bool, seconds: float | None) -> None:
        """It has handed so many batches over, or come to its end; for the training that took `seconds`.

        What an epoch's first batch takes beyond the usual one is what its workers' start costs beside itself.
        """
        epoch = self.of(iterator)
        if epoch is not None:
            known, total = self._usual
            if count and seconds is not None and epoch.handed:
                self._usual = known + 1, total + seconds
            elif count and seconds is not None and known:
                self._recorder.add("loader_first_s", max(0.0, seconds - total / known))
            epoch.handed += count
            place = epoch.source.place
            if epoch.handed >= self._longest[place]:
                # One that is as long and goes on is not over because another one was.
                self._ended[place] = ended or (self._ended[place] and epoch.handed == self._longest[place])
                self._longest[place] = epoch.handed

    def _tell(self) -> None:
        if self._longest:
            self._recorder.facts[FACT] = list(self._longest)
            self._recorder.facts[ENDED] = list(self._ended)


def _weak(value: Any) -> Any:
    try:
        return None if value is None else weakref.ref(value)
    except TypeError:
        return None
