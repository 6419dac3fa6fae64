"""Ranks for tests: imaginary ones, and what the probe wrote in real jobs of the zoo's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from gpudebug.core.inside import probe, stacks
from gpudebug.core.inside.ranks import rank_evidence
from gpudebug.core.records import RankEvidence, Window

RECORDED = Path(__file__).resolve().parent.parent / "data" / "ranks"
"""Of each program one look: `gpudebug why --to-the-end`, without places of reads and names of hosts."""


def rank(number: int, **more: Any) -> RankEvidence:
    """One of two ranks on a CPU that waits 0.3 of the time for the other, and computes."""
    known: dict[str, Any] = {
        "pid": 100 + number,
        "rank": number,
        "local_rank": number,
        "world_size": 2,
        "node": "node1",
        "device": "cpu",
        "torch": "2.13.0",
        "steps": 500,
        "start_s": 5.0,
        "met_s": 1.5,
        "last_step_s": 60.0,
        "last_step_by_s": 60.0,
        "steps_per_s": 20.0,
        "watched_s": 40.0,
        "samples": 800,
        "wait_share": 0.3,
        "data_share": 0.1,
        "evaluation_share": 0.0,
        "save_share": 0.0,
        "log_share": 0.0,
        "forward_share": 0.3,
        "backward_share": 0.2,
        "optimizer_share": 0.1,
        "other_share": 0.0,
        "starved_share": 0.0,
        "inputs_per_step": 1000.0,
        "cores": 4.0,
        "sharded": False,
    }
    return RankEvidence.model_validate({**known, **more})


def recorded_text(name: str) -> str:
    """The lines of probe.jsonl of a real job."""
    return gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).decode()


def recorded(name: str) -> tuple[RankEvidence, ...]:
    """The ranks of a real job of the zoo's program, over the window that the run had."""
    text = recorded_text(name)
    bounds = json.loads((RECORDED / "windows.json").read_text())[name]
    window = Window(**bounds, samples=100, rule="steps")
    return rank_evidence(probe.read_probe(text), stacks.read_stacks(text), window)
