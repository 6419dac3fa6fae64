"""A root cause as a user writes one, and its parts replaced."""

from __future__ import annotations

from gpudebug.core.catalogue import Cause, read_cause
from gpudebug.engine.run import adapters

FILE = "hypotheses/catalogue/sync/slow-thing.yaml"
TEXT = """\
id: slow-thing
title: A thing is slow
explanation: |
  It is slow.
  So the device waits.
prior: {vision: 2, default: 1}
requires:
  - {signal: loader_workers, below: 1}
signature:
  - {signal: data_wait_share, above: 0.2, weight: 8}
  - {stack: thing/, phase: data, above: 0.1, weight: 3, otherwise: 0.5}
exposed:
  - {signal: data_wait_share}
interventions:
  lerobot: {set: {num_workers: 4}}
  any: {code: Make it fast.}
knobs:
  - {names: [(num_)?workers], direction: up, value: 4}
words: [slow thing]
fix: Make it fast.
own_signal:
  - {signal: data_wait_share, direction: falls}
"""


def cause(text: str = TEXT, file: str = FILE, group: str | None = "sync") -> Cause:
    """What the text says, checked in full."""
    return read_cause(text, file, group=group, frameworks=adapters.known())


def having(old: str, new: str) -> str:
    """The text with one part of it replaced."""
    assert TEXT.count(old) == 1
    return TEXT.replace(old, new)
