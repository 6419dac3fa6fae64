"""Whether the first of several runs had to make, or to fetch from disk, what the later ones found ready."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from gpudebug.core.records import Evidence

# Below this, in MB a second, nothing waits for a disk: logs and modules that are imported late.
LEAST_MB_S = 5.0
# A loader that reads all its data from disk in every run reads alike.
TIMES = 4.0
# A run that fills a cache in its steps makes fewer of them a second: less than this of the later ones.
SLOWER = 0.8


def is_cold(runs: Sequence[Evidence]) -> bool:
    """Tell whether the first run read far more from disk in its steady window than the usual later one.

    Page caches are filled by the first run that reads, and serve those after it. False if unknown,
    and for a single run.
    """
    return _far_more([e.conditions.read_mb_s for e in runs])


def fills_cache(runs: Sequence[Evidence]) -> str | None:
    """Return how the first run shows that it made what each later one found; None if it does not.

    Either the later ones say so, or it wrote far more to disk beside fewer steps a second.
    """
    first, later = runs[0] if runs else None, runs[1:]
    if first is None or not later:
        return None
    if first.cached is None and all(e.cached is not None for e in later):
        return f"the next one found a cache that it made ({later[0].cached})"
    own, usual = first.progress_per_s, [e.progress_per_s for e in later if e.progress_per_s is not None]
    slower = own is not None and bool(usual) and own < SLOWER * median(usual)
    if slower and _far_more([e.conditions.write_mb_s for e in runs]):
        wrote, then = (e.conditions.write_mb_s or 0.0 for e in runs[:2])
        return f"it filled a cache: it wrote {wrote:.0f} MB/s, the next one {then:.0f} MB/s"
    return None


def finds_cache(run: Evidence, recorded: Sequence[Evidence]) -> str | None:
    """The line by which a run says that it found a cache, if none of the recorded ones did; None else."""
    return run.cached if recorded and all(e.cached is None for e in recorded) else None


def _far_more(rates: Sequence[float | None]) -> bool:
    """Tell whether the first is far above the usual later one."""
    later = [rate for rate in rates[1:] if rate is not None]
    if not rates or rates[0] is None or not later:
        return False
    return rates[0] > max(LEAST_MB_S, TIMES * median(later))
