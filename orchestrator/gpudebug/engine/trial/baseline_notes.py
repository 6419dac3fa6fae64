"""What a baseline says of its runs: what disturbed, ended or spoilt them."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.config import Config
from gpudebug.core.evidence.phases import never
from gpudebug.core.records import Evidence
from gpudebug.core.statistics.phases import names
from gpudebug.core.text.values import parse_phase
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


def ended(config: Config, runs: list[MeasuredRun]) -> list[str]:
    """That gpudebug ended runs, and which setting keeps it from that; what is to be said of their phases."""
    found = [m.record.planned for m in runs if m.record.planned is not None]
    wait = config.protocol.run_for
    awaited = parse_phase(wait).name if isinstance(wait, str) and wait != "end" else config.phase
    phases = _phases(config.phase, awaited, [m.evidence for m in runs])
    if not found:
        return phases
    count = f"{len(found)} of {len(runs)} runs" if len(found) < len(runs) else "each run"
    shown = f"{found[0].window_s:g} s of {f'phase {awaited}' if awaited else 'steady training'}"
    return [
        f"gpudebug ended {count} once it had {shown} and enough of the loss; "
        "protocol: {run_for: end} in gpudebug.yaml lets runs end by themselves",
        *phases,
    ]


def _phases(judged: str | None, awaited: str | None, runs: Sequence[Evidence]) -> list[str]:
    """Return which phases are missing, and of which ones the figures are."""
    found = [f"run {e.run}: {e.phases_reason}" for e in runs if e.phases_reason]
    found += [
        f"run {e.run}: {never(awaited, {}, e.phases)}"
        for e in runs
        if awaited and not e.phases_reason and not any(one.is_named(awaited) for one in e.phases)
    ]
    known = names(*(e.phases for e in runs))
    if judged is not None:
        return [*found, f"its figures are those of phase {judged}"]
    if len(known) < 2:
        return found
    which = f"phase: {known[-1]} in gpudebug.yaml judges one"
    return [*found, f"its figures are of {len(known)} phases together; {which}"]


def left_out(runs: list[MeasuredRun]) -> tuple[str, str]:
    """Return the first run, which is not among those of the baseline, and why."""
    filled = fills_cache([m.evidence for m in runs])
    if filled is not None:
        why = f"{filled}; trials find that cache, too: {{run}} in its path gives each run its own"
        return runs[0].folder.name, why
    first, later = (m.evidence.conditions.read_mb_s or 0.0 for m in runs[:2])
    why = f"it met a cold page cache and read {first:.0f} MB/s from disk, the next one {later:.0f} MB/s"
    return runs[0].folder.name, why
