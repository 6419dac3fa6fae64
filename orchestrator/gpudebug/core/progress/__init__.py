"""The progress file: parse with spans, splice, make text harmless. Bytes in, bytes out.

The format is CommonMark that people and agents write by hand. gpudebug reads the entries in it and
replaces only the lines of the entry that changes; every other byte stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudebug.core.lazy import loader
from gpudebug.core.progress.entries import BaselineEntry, HypothesisEntry, ProgressFile
from gpudebug.core.progress.parser import parse

if TYPE_CHECKING:
    from gpudebug.core.progress.sanitise import harmless
    from gpudebug.core.progress.splice import (
        add_hypothesis,
        next_number,
        set_baseline,
        set_result,
        set_status,
        with_heading,
    )
    from gpudebug.core.progress.stages import next_acceptance, reopen, set_accepted, set_testing

# `status` only reads.
__getattr__ = loader(
    __name__,
    {
        "sanitise": "harmless",
        "splice": "add_hypothesis next_number set_baseline set_result set_status with_heading",
        "stages": "next_acceptance reopen set_accepted set_testing",
    },
)
