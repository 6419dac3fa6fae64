"""All that was seen of a run whose samples are named alone: in its folder, or kept of `sample -o F.csv`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudebug.core.errors import GpudebugError
from gpudebug.core.records import Evidence
from gpudebug.core.redaction.records import scrubbed_record
from gpudebug.edges import host, store
from gpudebug.engine.run import server
from gpudebug.engine.run.environment import knobs_in
from gpudebug.engine.run.job import Bench, PreparedRun


@dataclass(frozen=True)
class SeenRun:
    """A run's evidence, and what run.json says of its command, as far as that was kept."""

    evidence: Evidence
    record: Mapping[str, Any]


def keep_seen(samples: Path, evidence: Evidence, bench: Bench, job: PreparedRun) -> None:
    """Keep what was seen of a run of which only samples and log have files."""
    redactor = server.redactor_of(job)
    record = {
        "argv": list(redactor.redact_argv(job.argv)),
        "cwd": str(job.cwd),
        "knobs": knobs_in(job.env),
        "cpu_quota": host.cpu_quota(),
        "devices": [d.model_dump(mode="json") for d in bench.devices],
        "replayed": bench.replays,
    }
    document = {"evidence": evidence.model_dump(mode="json"), "record": record}
    store.put_seen(samples, {k: scrubbed_record(v, redactor.redact) for k, v in document.items()})


def seen_of(samples: Path) -> SeenRun | None:
    """Return what was seen of the run of these samples; None if no more than they and their log is known."""
    try:
        found = _of_folder(samples) or store.get_seen(samples)
        return SeenRun(Evidence.model_validate(found["evidence"]), dict(found["record"])) if found else None
    except (GpudebugError, KeyError, TypeError, ValueError):
        return None


def _of_folder(samples: Path) -> dict[str, Any] | None:
    """Return the records of a run folder whose samples these are, as they were sealed."""
    folder = store.RunFolder(samples.parent, lambda text: text)
    if samples != folder.samples or not folder.intact("samples.csv", "evidence.json", "run.json"):
        return None
    return {"evidence": folder.read("evidence.json"), "record": folder.read("run.json")}
