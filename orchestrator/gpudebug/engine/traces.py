"""What a run's folder holds of PyTorch's profiler: what the training told of it, and what its trace says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudebug.core.errors import StoreError
from gpudebug.core.models import Evidence
from gpudebug.core.torchprofile import read_told
from gpudebug.edges import launcher, store

_LONGEST = 8 << 20  # Twice what the processes of a run may write of themselves.


def trace_of(folder: Path) -> dict[str, Any] | None:
    """`Evidence.trace` of the run that told of itself in `folder`; None where nothing was profiled.

    It is what `core.torchprofile.read_told` found. A trace that is named and not there is none.
    """
    path = folder / launcher.PROBE
    if not path.is_file():
        return None
    told = read_told(store.read_head(path, _LONGEST).decode("utf-8", "replace"))
    if told is None or "file" not in told or (folder / told["file"]).is_file():
        return told
    return {"why": f"{told['file']} is not there"}


def located(trace: dict[str, Any] | None, folder: Path) -> dict[str, Any] | None:
    """A run's trace for JSON, with the `path` of its file; None where there is none."""
    return None if trace is None or "file" not in trace else {**trace, "path": str(folder / trace["file"])}


def keep_beside(evidence: Evidence, folder: Path, samples: Path) -> Evidence:
    """Move the traces of a run beside its samples: `trace.json.gz` becomes `F.trace.json.gz`.

    The evidence names them as they are then. StoreError where they cannot go there.
    """
    trace = evidence.trace
    if trace is None or "file" not in trace:
        return evidence
    names = {name: f"{samples.stem}.{name}" for name in map(str, trace["files"])}  # type: ignore[call-overload]
    for name, new in names.items():
        try:
            (folder / name).replace(samples.with_name(new))
        except OSError as e:
            raise StoreError(
                f"cannot be written: {e.strerror}", file=str(samples.with_name(new)), next="name another -o"
            ) from None
    kept = {**trace, "file": names[str(trace["file"])], "files": list(names.values())}
    return evidence.model_copy(update={"trace": kept})
