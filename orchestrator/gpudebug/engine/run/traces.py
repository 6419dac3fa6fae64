"""What a run's folder holds of PyTorch's profiler: the training's report of it, and its trace."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpudebug.core.errors import GpudebugError, StoreError
from gpudebug.core.inside.torch_profile import headline, read_profiles
from gpudebug.core.records import Evidence
from gpudebug.core.words import ended_as_planned
from gpudebug.edges import launcher, store
from gpudebug.engine.campaign.campaign import Records, Setup
from gpudebug.engine.campaign.files import stored_record

PREFIX = "profile-"
"""What the roles of profiled runs begin with."""
_LONGEST = 8 << 20  # Twice what the processes of a run may write of themselves.


def trace_of(folder: Path) -> dict[str, object] | None:
    """`Evidence.trace` of the run that reported in `folder`; None if nothing was profiled.

    It is what `read_profiles` found, with the `headline` of what the trace says as `analysis`,
    None if it cannot be read. A trace that is named but missing is none.
    """
    path = folder / launcher.PROBE
    if not path.is_file():
        return None
    record = read_profiles(store.read_head(path, _LONGEST).decode("utf-8", "replace"))
    if record is None or "file" not in record:
        return record
    if not (folder / record["file"]).is_file():
        return {"why": f"{record['file']} is not there"}
    # Arithmetic that a run without a trace need not load.
    from gpudebug.engine.run.trace_file import trace

    try:
        return {**record, "analysis": headline(trace(folder / record["file"]).as_json())}
    except GpudebugError as e:
        return {**record, "analysis": None, "why": "; ".join(filter(None, (record.get("why"), e.message)))}


def located(trace: dict[str, Any] | None, folder: Path) -> dict[str, object] | None:
    """Return a run's trace for JSON, with the `path` of its file; None if there is none."""
    return None if trace is None or "file" not in trace else {**trace, "path": str(folder / trace["file"])}


def newest_profile(setup: Setup, records: Records) -> dict[str, object] | None:
    """Return the trace of the campaign's newest profiled run of its workload, with the run's name as `run`.

    For people: its command or code may be older than the baseline's.
    """
    for name, record in reversed(records.items()):
        identity = record.get("role"), record.get("campaign")
        whole = ended_as_planned(record.get("outcome"))
        if whole and identity == (f"{PREFIX}workload", setup.config.campaign):
            run = setup.workspace.run(name)
            if run.sealed and (found := located(stored_record(run, "evidence.json").get("trace"), run.path)):
                return {"run": name, **found}
    return None


def slowed(runs: Iterable[Evidence]) -> list[str]:
    """Return a remark on the runs that PyTorch's profiler was in."""
    names = [e.run for e in runs if e.trace is not None]
    return [f"PyTorch's profiler was in {', '.join(names)}: it takes time of its own"] if names else []


def keep_beside(evidence: Evidence, folder: int, samples: Path) -> Evidence:
    """Move the traces of a run out of an open folder, beside its samples: `trace.json.gz` becomes
    `F.trace.json.gz`.

    The evidence names them as they are then. StoreError if they cannot go there.
    """
    trace = evidence.trace
    if trace is None or "file" not in trace:
        return evidence
    names = {name: f"{samples.stem}.{name}" for name in map(str, trace["files"])}  # type: ignore[call-overload]
    for name, new in names.items():
        try:
            os.replace(name, samples.with_name(new), src_dir_fd=folder)
        except OSError as e:
            raise StoreError(
                f"cannot be written: {e.strerror}", file=str(samples.with_name(new)), next="name another -o"
            ) from None
    kept = {**trace, "file": names[str(trace["file"])], "files": list(names.values())}
    return evidence.model_copy(update={"trace": kept})
