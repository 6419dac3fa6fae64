"""When a command that is compared is ended, as the runs of a campaign are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpudebug.core.records import Evidence, RunRecord
from gpudebug.core.verdict.run_plan import LEAST_WINDOW_S, RunPlan, as_recorded


def plan(run_for: float | str | None, first: Sequence[Evidence] = ()) -> RunPlan | None:
    """Return the plan of a run; None: it ends by itself. `run_for` as `protocol.run_for`, None for `auto`.

    With `auto` the `first` run of A decides for all, once it is made, and none is ended that counts nothing.
    """
    made = [e.model_dump(mode="json", include={"outcome", "window"}) for e in first]
    found = as_recorded(run_for, made, learns=False)
    return replace(found, counted=True) if found is not None and run_for is None else found


def announced(run_for: float | str | None) -> str | None:
    """Return what is said before the first run; None if nothing is ended."""
    if run_for == "end":
        return None
    if run_for is not None:
        return f"each run is ended after {run_for:g} s of steady work"
    return (
        f"a run that goes on is ended after {LEAST_WINDOW_S:g} s of steady work, if it counts steps or "
        "latencies; --run-for end lets each end by itself"
    )


def ended(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Return a note of which runs were ended."""
    found = [one.planned for one in records if one.planned is not None]
    if not found:
        return ()
    count = f"{len(found)} of {len(records)} runs" if len(found) < len(records) else "each run"
    return (f"gpudebug ended {count} after {found[0].window_s:g} s of steady work (--run-for)",)
