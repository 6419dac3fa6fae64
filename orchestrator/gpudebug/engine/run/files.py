"""Where the files of one run are, in a campaign and outside of one."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpudebug.core.records import DeviceInfo, RunNode
from gpudebug.core.samples.table import name_on
from gpudebug.edges import removal, store

SERVER_LOG = "server.log"
# No regular file, so that nothing is read.
_NOTHING = Path(os.devnull)


@dataclass(frozen=True)
class Files:
    """Where a run's samples, log and the sampler's notes go; `folder` is the run folder, None without one.

    `job` is the folder that GPUDEBUG_RUN_DIR names, `records` the one where its processes report themselves
    (probe.jsonl, sections.json, …), and `reports` the one that these records are copied to once the run has
    ended: the run folder, and outside a campaign a temporary one that `sample` removes; None until made.
    `made` is the identity of `reports` as it was made. `ours` is what gpudebug wrote into `folder` before
    the launch, by its name there; with `served` a server of the job writes a log beside the job's. `nodes`
    are the other nodes that were sampled.
    """

    samples: Path
    log: Path
    notes: Path
    folder: Path | None = None
    reports: Path | None = None
    job: Path | None = None
    records: Path | None = None
    made: removal.Identity | None = None
    ours: Mapping[str, bytes] = field(default_factory=dict)
    served: bool = False
    nodes: tuple[str, ...] = ()

    @property
    def beside(self) -> dict[str, Path]:
        """Where the samples of other nodes go, by node."""
        return {node: self.samples.with_name(name_on(node, self.samples.name)) for node in self.nodes}

    @property
    def server_log(self) -> Path:
        """Where the output of a server of the job goes."""
        return self.folder / SERVER_LOG if self.folder is not None else self.log.with_suffix(".server.log")

    @property
    def collected(self) -> Path | None:
        """Where gpudebug keeps what it collected of the program's own files; None while the run goes on, when
        only the program can have written there."""
        return self.folder if self.reports is None or self.reports != self.records else None

    @property
    def lost(self) -> bool:
        """Whether another thing is in the place of the folder `reports` that was made."""
        if self.reports is None or self.made is None:
            return self.reports is None
        try:
            return removal.identity_of(self.reports.lstat()) != self.made
        except OSError:
            return True

    def underway(self) -> Files:
        """Return the same while the run goes on: its processes' reports are where they write them."""
        return replace(self, reports=self.records)

    def without(self, names: Collection[str]) -> Files:
        """Return the same, but nothing is read of the files `names`."""
        samples = _NOTHING if self.samples.name in names or "samples.csv" in names else self.samples
        log = _NOTHING if "train.log" in names else self.log
        nodes = tuple(node for node, path in self.beside.items() if path.name not in names)
        return replace(self, samples=samples, log=log, nodes=nodes)


def files_of(folder: store.RunFolder) -> Files:
    path, records = folder.path, folder.records
    return Files(folder.samples, folder.log, folder.notes, path, path, folder.job, records, folder.made)


def files_with(files: Files, devices: Sequence[DeviceInfo], node: RunNode | None) -> Files:
    """Return the files of a run whose devices are on several nodes."""
    first = node.name if node is not None else None
    return replace(files, nodes=tuple(dict.fromkeys(d.node for d in devices if d.node not in (None, first))))
