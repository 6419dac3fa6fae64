"""What a baseline says of its runs: what disturbed, ended or spoilt them."""

from __future__ import annotations

from gpudebug.core.verdict.unlike import fills_cache
from gpudebug.engine.run.job import MeasuredRun


def disturbed(runs: list[MeasuredRun]) -> list[str]:
    """Return what makes every trial against these runs INVALID."""
    shared = [m.folder.name for m in runs if m.evidence.conditions.foreign_procs]
    if not shared:
        return []
    return [
        f"another process computed on the device in {', '.join(shared)}: every trial against this baseline "
        "will be INVALID; `gpudebug baseline` records it again, once the device is free"
    ]


def ended(runs: list[MeasuredRun]) -> list[str]:
    """That gpudebug ended runs, and which setting keeps it from that."""
    found = [m.record.planned for m in runs if m.record.planned is not None]
    if not found:
        return []
    count = f"{len(found)} of {len(runs)} runs" if len(found) < len(runs) else "each run"
    return [
        f"gpudebug ended {count} once it had {found[0].window_s:g} s of steady training and enough of the "
        "loss; protocol: {run_for: end} in gpudebug.yaml lets runs end by themselves"
    ]


def left_out(runs: list[MeasuredRun]) -> tuple[str, str]:
    """Return the first run, which is not among those of the baseline, and why."""
    filled = fills_cache([m.evidence for m in runs])
    if filled is not None:
        why = f"{filled}; trials find that cache, too: {{run}} in its path gives each run its own"
        return runs[0].folder.name, why
    first, later = (m.evidence.conditions.read_mb_s or 0.0 for m in runs[:2])
    why = f"it met a cold page cache and read {first:.0f} MB/s from disk, the next one {later:.0f} MB/s"
    return runs[0].folder.name, why
