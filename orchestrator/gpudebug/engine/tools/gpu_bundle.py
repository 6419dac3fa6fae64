"""The bundle of `doctor --gpu`: its recording, table and machine, without what names host, person or card."""

from __future__ import annotations

import getpass
import io
import json
import os
import platform
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gpudebug import __version__
from gpudebug.core.answers.setup import DoctorCheck
from gpudebug.core.errors import StoreError
from gpudebug.core.hardware.recording import (
    GpuRecording,
    Machine,
    parse_recording,
    pseudonyms,
    records_alone,
    renamed,
    scrubbed,
    scrubbed_value,
    without_paths,
    written_machine,
)
from gpudebug.core.redaction.hosts import host_names
from gpudebug.edges import store
from gpudebug.edges.store.root import RUNS, find_root

NAME = "gpudebug-gpu.tar.gz"
RUN = "0001-sample"
FILES = ("samples.csv", "train.log", "sampler.json")
"""The files of a run that its checks are derived from, in the order of `RunTexts`."""
_TOP = "gpudebug-gpu"
_MACHINE, _CHECKS = "machine.json", "checks.json"
_KEPT = (
    "format",
    "source",
    "interval",
    "ticks",
    "missed",
    "missing",
    "restarts",
    "lost",
    "complete",
    "energy_j",
)


@dataclass(frozen=True)
class RunTexts:
    """The files of one run as text: samples.csv, the loading process's output, sampler.json."""

    samples: str = ""
    log: str = ""
    notes: str = "{}"

    def parsed(self) -> GpuRecording:
        return parse_recording(self.samples, self.log.encode(), self.notes)


def place_in(directory: Path) -> Path:
    """Where the bundle of a folder lies: in runs/ of a campaign, whose base an untracked file would be in."""
    root = find_root(directory)
    return (root / RUNS if root is not None else directory) / NAME


def refuse_existing(path: Path) -> None:
    """StoreError if there is a file of that name already."""
    if os.path.lexists(path):
        raise StoreError(
            "is there already; it is unchanged",
            file=str(path),
            next="move it away, then gpudebug doctor --gpu",
        )


def write_bundle(path: Path, machine: Machine, recorded: RunTexts, checks: Sequence[DoctorCheck]) -> None:
    """Write everything into one archive, in a folder that is made. StoreError if there is that file."""
    uuids, names = pseudonyms(machine), _names()
    notes = {k: v for k, v in json.loads(recorded.notes or "{}").items() if k in _KEPT}
    notes = {k: scrubbed_value(v, names) for k, v in notes.items()}
    machine = machine._replace(reason=scrubbed(machine.reason, names) if machine.reason else None)
    checks = [
        replace(c, found=scrubbed(c.found, names), next=scrubbed(c.next, names) if c.next else None)
        for c in checks
    ]
    versions = {"gpudebug": __version__, "python": platform.python_version(), "system": platform.system()}
    files = {
        _MACHINE: written_machine(machine, versions),
        _CHECKS: json.dumps([asdict(check) for check in checks], indent=1) + "\n",
        f"{RUN}/samples.csv": recorded.samples,
        f"{RUN}/train.log": records_alone(recorded.log, names),
        f"{RUN}/sampler.json": without_paths(json.dumps(notes, indent=1)) + "\n",
        f"{RUN}/run.json": json.dumps(_run(machine), indent=1) + "\n",
    }
    data = _packed({name: renamed(text, uuids).encode() for name, text in files.items()})
    store.make_folder(path.parent)
    store.put_file(path, data, check=lambda: refuse_existing(path))


def _names() -> tuple[str, ...]:
    """Return what this host, its domain, this user and the job's other hosts are called."""
    user = ""
    with suppress(OSError, KeyError, ImportError):
        user = getpass.getuser()
    return host_names(os.environ, (platform.node(), user))


def _run(machine: Machine) -> dict[str, object]:
    """run.json as a replay reads it."""
    devices = [
        {"index": g.index, "uuid": g.uuid, "name": g.name, "kind": "nvml", "driver": g.driver}
        for g in machine.gpus
    ]
    return {"devices": devices, "exit_status": 0 if machine.outcome == "COMPLETED" else 1}


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in files.items():
            # No owner, and no time: neither is anybody's business.
            member = tarfile.TarInfo(f"{_TOP}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()
