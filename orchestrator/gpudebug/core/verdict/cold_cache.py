"""Whether the first of several runs found its data on disk, where the later ones found it in memory."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from gpudebug.core.records import Evidence

# Below this, in MB a second, nothing waits for a disk: logs and modules that are imported late.
LEAST_MB_S = 5.0
# A loader that reads all its data from disk in every run reads alike.
TIMES = 4.0


def is_cold(runs: Sequence[Evidence]) -> bool:
    """Whether the first run read far more from disk in its steady window than the usual later one.

    Page caches are filled by the first run that reads, and serve those after it. False if unknown,
    and for a single run.
    """
    rates = [e.conditions.read_mb_s for e in runs]
    later = [rate for rate in rates[1:] if rate is not None]
    if not rates or rates[0] is None or not later:
        return False
    return rates[0] > max(LEAST_MB_S, TIMES * median(later))
