"""Operators by the id that their launches and kernels carry."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudebug.core.trace.spans import Ints

# Operators whose link to their kernels is kept.
LIMIT = 2_000_000


class Links:
    """`add` while the trace is read, `finish`, then ask for `names`; 6 bytes a link."""

    def __init__(self) -> None:
        self._external, self._name = array("I"), array("H")

    def add(self, external: int, name: int) -> None:
        if len(self._name) < LIMIT:
            self._external.append(external)
            self._name.append(name)

    def finish(self) -> None:
        """Sort by id; of operators with the same id the first stays in front."""
        external, name = np.frombuffer(self._external, np.uint32), np.frombuffer(self._name, np.uint16)
        if not (external[1:] >= external[:-1]).all():
            order = np.argsort(external, kind="stable")
            external[:] = external[order]
            name[:] = name[order]

    def names(self, external: NDArray[Any]) -> Ints:
        """Return the operator's name for each id, 0 if unknown."""
        known_ids = np.frombuffer(self._external, np.uint32)
        if not len(known_ids):
            return np.zeros(len(external), np.int64)
        at = np.minimum(np.searchsorted(known_ids, external), len(known_ids) - 1)
        known = (known_ids[at] == external) & (external != 0)
        return np.where(known, np.frombuffer(self._name, np.uint16)[at], 0).astype(np.int64)
