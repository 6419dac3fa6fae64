"""Run folders that grow as those of a trial do, written by hand: no process, no clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.probe_lines import beat, start

from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row

SINCE = "2026-11-21T10:00:00.500000+00:00"
START = "2026-11-21T10:00:00+00:00"
HOLDER = {"pid": 5, "command": "gpudebug next", "since": SINCE, "session": "a"}
GPUS = [
    {
        "index": n,
        "uuid": f"GPU-{n}",
        "name": "NVIDIA A100",
        "kind": "nvml",
        "memory_total_mb": 81920.0,
        "power_limit_w": 400.0,
    }
    for n in (0, 1)
]


class GrowingRun:
    """`runs/NAME` of a run that is under way, of hypothesis 3 on two GPUs."""

    def __init__(self, root: Path, name: str = "0001-h3", **facts: Any) -> None:
        self.path = root / "runs" / name
        self.path.mkdir(parents=True)
        self.facts = {"format": 1, "campaign": "test", "role": "h3", "hypothesis": 3, "start": START}
        self.tell(devices=GPUS, **facts)
        (self.path / "samples.csv").write_text(HEADER)
        (self.path / "train.log").write_text("")

    def tell(self, **facts: Any) -> None:
        """Write run.json with these facts, too."""
        self.facts |= facts
        (self.path / "run.json").write_text(json.dumps(self.facts))

    def print(self, text: str | bytes) -> int:
        """Append to train.log; its size."""
        with (self.path / "train.log").open("ab") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
            return f.tell()

    def grow(self, text: str, at: float, *utils: float | None, **cells: Any) -> None:
        """The training prints `text`, and at a tick the devices have these utilisations."""
        size = self.print(text)
        facts = {"new_samples": 1, "mem_used_mb": 40960.0, "mem_total_mb": 81920.0, "power_w": 212.0, **cells}
        rows = [
            DeviceReading(
                elapsed=at, gpu_util=util, gpu_index=n, gpu_uuid=f"GPU-{n}", log_bytes=size, **facts
            )
            for n, util in enumerate(utils or (50.0, 70.0))
        ]
        with (self.path / "samples.csv").open("a") as f:
            f.write("".join(map(csv_row, rows)))

    def beat(self, at: float, steps: int, **counters: float) -> None:
        """The training tells of itself."""
        path = self.path / "probe.jsonl"
        first = "" if path.exists() else start()
        with path.open("a") as f:
            f.write(first + beat(1, at, steps, **counters))

    def end(self, outcome: str = "COMPLETED", *, seal: bool = True, **facts: Any) -> None:
        self.tell(outcome=outcome, **facts)
        if seal:
            (self.path / "manifest.json").write_text("{}")
