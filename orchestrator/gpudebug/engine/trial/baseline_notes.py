"""What a baseline says of its runs: what disturbed, ended or spoilt them."""

from __future__ import annotations

from gpudebug.core.config import Config
from gpudebug.core.evidence.phases import never
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


def of_phases(config: Config, runs: list[MeasuredRun]) -> list[str]:
    """Return what is missing of the phases that are named, and that the figures are of several of them."""
    evidence = [m.evidence for m in runs]
    wait = config.protocol.run_for
    awaited = parse_phase(wait).name if isinstance(wait, str) and wait != "end" else None
    without = next((e for e in evidence if awaited and not any(p.is_named(awaited) for p in e.phases)), None)
    found = [f"run {e.run}: {e.phases_reason}" for e in evidence if e.phases_reason]
    if without is not None and awaited is not None and without.phases_reason is None:
        found.append(f"run {without.run}: {never(awaited, {}, without.phases)}")
    known = names(*(e.phases for e in evidence))
    if config.phase is None and len(known) > 1:
        found.append(
            f"its figures are of {len(known)} phases together; phase: {known[-1]} in gpudebug.yaml judges one"
        )
    elif config.phase is not None:
        found.append(f"its figures are those of phase {config.phase}")
    return list(dict.fromkeys(found))


def left_out(runs: list[MeasuredRun]) -> tuple[str, str]:
    """Return the first run, which is not among those of the baseline, and why."""
    filled = fills_cache([m.evidence for m in runs])
    if filled is not None:
        why = f"{filled}; trials find that cache, too: {{run}} in its path gives each run its own"
        return runs[0].folder.name, why
    first, later = (m.evidence.conditions.read_mb_s or 0.0 for m in runs[:2])
    why = f"it met a cold page cache and read {first:.0f} MB/s from disk, the next one {later:.0f} MB/s"
    return runs[0].folder.name, why
