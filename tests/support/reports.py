"""The data of reports, as a campaign's report gathers it, small and by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BASELINE = ("0001-baseline-workload", "0002-baseline-workload")
REFERENCE = ("0003-baseline-reference",)
HOSTILE = (
    '<script>alert(1)</script> "it\'s" \u202eright to left\u202c <b>&amp;</b> <img src=x onerror=alert(2)>'
)


def run(name: str, folder: Path, *, level: float = 30.0, **changed: Any) -> dict[str, Any]:
    """A run of 60 s whose utilisation swings about `level`, its window from 12 s to 55 s."""
    seconds = [i * 0.5 for i in range(120)]
    waves = [level + 8 * math.sin(t / 2) if t > 8 else level / 2 for t in seconds]
    number = int(name.partition("-h")[2] or 0) or None
    return {
        "name": name,
        "role": f"h{number}" if number else name[5:],
        "hypothesis": number,
        "outcome": "COMPLETED",
        "reason": None,
        "start": "2026-11-21T10:00:00+00:00",
        "duration_s": 60.0,
        "window": {"start_s": 12.0, "end_s": 55.0, "rule": "steps"},
        "window_reason": None,
        "utilisation": level,
        "devices": [],
        "across": [],
        "joules_per_step": None,
        "spark": waves[::3],
        "steps_per_s": level / 4,
        "progress_per_s": level / 4,
        "step_unit": None,
        "loss": {"name": "l1_loss", "trend": "CONVERGING", "first": 2.0, "last": 0.4, "points": 50},
        "timeline": [
            {
                "index": 0,
                "uuid": "GPU-1",
                "name": "NVIDIA A100",
                "points": [[t, round(v, 1), 9000.0] for t, v in zip(seconds, waves, strict=True)],
            }
        ],
        "loss_points": [[step, 0.4 + 1.6 * math.exp(-step / 20)] for step in range(0, 100, 2)],
        "loss_by": "step",
        "step_times": {"by": "probe", "bins": [[0.1, 0.12, 40], [0.12, 0.15, 50], [0.15, 0.2, 10]]},
        "outline": [
            {"depth": 0, "name": "step", "calls": 9, "total_s": 10.0, "own_s": 4.0},
            {"depth": 1, "name": "load", "calls": 9, "total_s": 6.0, "own_s": 6.0},
        ],
        "failure": None,
        "folder": str(folder / name),
        "files": ["run.json", "samples.csv", "train.log"],
        **changed,
    }


def hypothesis(number: int, **changed: Any) -> dict[str, Any]:
    """One that was tested and VALIDATED."""
    return {
        "number": number,
        "title": f"The loader has no workers, part {number}",
        "status": "VALIDATED",
        "verified": True,
        "intervention": "--set --num_workers=4",
        "cause": "dl-no-workers",
        "claim": None,
        "accepted": None,
        "why": "delta: +33.6pp (95% CI +31.2 to +36.0)",
        "delta_pp": 33.6,
        "delta_ci": [31.2, 36.0],
        "metric": "gpu_util",
        "improvement": None,
        "improvement_ci": None,
        "throughput_ratio": 2.1,
        "claimed": None,
        "runs": [f"{number + 3:04}-h{number}"],
        "problem": None,
        "description": "Batches are loaded between the steps.",
        "test_method": "Set four workers.",
        "notes": ["the loss is the baseline's at equal steps"],
        "before": 30.0,
        "hollow": False,
        "gates": [
            {
                "name": "outcome",
                "value": "COMPLETED",
                "threshold": "COMPLETED",
                "result": "pass",
                "note": None,
            },
            {"name": "delta", "value": "+33.6pp", "threshold": "20pp", "result": "pass", "note": None},
            {
                "name": "work conserved",
                "value": None,
                "threshold": "1.15x",
                "result": "unknown",
                "note": "few",
            },
        ],
        "course": course(f"{number + 3:04}-h{number}"),
        "figures": {"gpu util before": "30.0%", "gpu util after": "63.6%"},
        "probe": [
            {"part": part, "runs": [], "figures": {"data_wait_share": share}, "reason": None}
            for part, share in (("baseline", 0.6), ("trial", 0.05))
        ],
        "sections": [
            {"name": "step", "a": _section(0.9, 0.2), "b": _section(0.9, 0.1), "ratio": 2.0},
            {"name": "load", "a": _section(0.6, 0.1), "b": None, "ratio": None},
        ],
        "diff": "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-workers = 0\n+workers = 4\n",
        "command": {"before": "train --num_workers=0 --steps=9", "after": "train --num_workers=4 --steps=9"},
        "differences": [{"name": "package numpy", "before": "2.0", "after": "2.1"}],
        "baseline_runs": list(BASELINE),
        "trial_runs": [f"{number + 3:04}-h{number}"],
        **changed,
    }


def course(trial: str, **changed: Any) -> dict[str, Any]:
    """The picture of its verdict: a run of the change between two of the baseline."""
    runs = [(BASELINE[0], "baseline", 29.0), (trial, "trial", 63.6), (BASELINE[1], "baseline", 31.0)]
    bars = {"failure": 40.0, "success": 50.0}
    level = {"level": 30.0, "low": 25.0, "high": 35.0, **bars}
    return {
        "metric": "gpu_util",
        "unit": "%",
        "lower": False,
        "failure": 10.0,
        "success": 20.0,
        "points": [
            {"run": run, "part": part, "place": place, "value": value, **level}
            for place, (run, part, value) in enumerate(runs)
        ],
        "effect": {"text": "+33.6pp", "before": 30.0, "after": 63.6, "low": 61.2, "high": 66.0, **bars},
        "text": "Level 30.0% during the trial, 63.6% with the change (95% CI 61.2 to 66).",
        **changed,
    }


def _section(share: float, mean_s: float) -> dict[str, float]:
    return {"share": share, "mean_s": mean_s}


def untested(number: int, **changed: Any) -> dict[str, Any]:
    """One that stands in the progress file and no more."""
    nothing = {
        "status": "UNTESTED",
        "verified": None,
        **dict.fromkeys(("why", "delta_pp", "delta_ci", "throughput_ratio", "diff", "command", "course")),
        **{key: [] for key in ("runs", "notes", "gates", "probe", "sections", "differences", "trial_runs")},
        "baseline_runs": [],
        "figures": {},
    }
    return hypothesis(number, **{**nothing, **changed})


def data(folder: Path, hypotheses: Sequence[dict[str, Any]] = (), **changed: Any) -> dict[str, Any]:
    """A campaign on one GPU with both baselines; the runs of `hypotheses` lie in `folder` too."""
    runs = {name: run(name, folder) for name in BASELINE}
    runs |= {name: run(name, folder, level=88.0) for name in REFERENCE}
    runs |= {name: run(name, folder, level=63.6) for h in hypotheses for name in h["trial_runs"]}
    return {
        "format": 1,
        "gpudebug": "0.2.0",
        "made": "2026-11-21T12:00:00+00:00",
        "status": status(hypotheses),
        "story": [
            {
                "at": "2026-11-21T10:00:00+00:00",
                "what": "baseline",
                "role": "workload",
                "hypothesis": None,
                "text": "The baseline of the workload was recorded: GPU util 30.0%",
                "runs": list(BASELINE),
            }
        ],
        "settings": "campaign: act\nworkload: {command: train}\n",
        "machine": {
            "host": "node1",
            "cpu_quota": 8.0,
            "devices": [_device()],
            "interpreter": "python3.11",
            "packages": {"torch": "2.13.0"},
            "knobs": {"OMP_NUM_THREADS": "1"},
            "commit": "0123abc",
        },
        "reference": {"program": None, "flags": [], "figures": [], "lines": ["flag workers: 0, reference 4"]},
        "causes": [
            {
                "id": "dl-no-workers",
                "title": "Batches are loaded between the steps",
                "probability": 0.6,
                "ceiling_pp": 47.1,
                "for": ["67% of a step waits for data"],
                "against": [],
            }
        ],
        "gain": gain(),
        "hypotheses": list(hypotheses),
        "runs": runs,
        "skipped": [],
        "notes": [],
        **changed,
    }


def _device() -> dict[str, Any]:
    return {
        "index": 0,
        "uuid": "GPU-1",
        "name": "NVIDIA A100",
        "kind": "nvml",
        "memory_total_mb": 81920.0,
        "driver": "550.54",
        "cores": None,
        "clocks_mhz": None,
        "power_limit_w": 400.0,
        "processes": [],
        "missing": {},
    }


def gain(**changed: Any) -> dict[str, Any]:
    """Nothing accepted yet."""
    return {
        "metric": "gpu_util",
        "unit": "%",
        "lower": False,
        "start": 30.0,
        "accepted": [],
        "now": 30.0,
        "reference": 88.0,
        "target": 78.0,
        "gap": 58.0,
        "gap_to": "reference",
        "gap_text": "58.0pp below the reference",
        "gained_why": None,
        "gained_notes": [],
        **changed,
    }


def accepted(number: int, after: float) -> dict[str, Any]:
    return {
        "hypothesis": number,
        "title": f"The loader has no workers, part {number}",
        "intervention": "--set --num_workers=4",
        "before": 30.0,
        "after": after,
        "change_text": "+33.6pp (95% CI +31.2 to +36.0)",
    }


def status(hypotheses: Sequence[dict[str, Any]] = (), **changed: Any) -> dict[str, Any]:
    """What `status` says of it."""
    return {
        "campaign": "act",
        "goal": "Fix the poor GPU utilisation.",
        "device": {"setting": "auto", "devices": [_device()]},
        "running": False,
        "progress": None,
        "metric": "gpu_util",
        "target": 78.0,
        "target_text": "78.0%",
        "baselines": {"workload": _baseline(30.0, BASELINE), "reference": _baseline(88.0, REFERENCE)},
        "hypotheses": list(hypotheses),
        "sweeps": [],
        "resolution": None,
        "expected": [],
        "next": {"action": "propose", "hypothesis": None, "role": None, "why": "nothing is left to test"},
        "budget": {
            "hypotheses": 20,
            "hypotheses_used": 1,
            "device_time_s": 7200.0,
            "device_time_used_s": 240.0,
        },
        **changed,
    }


def _baseline(level: float, runs: Sequence[str]) -> dict[str, Any]:
    return {
        "valid": True,
        "why": None,
        "verified": True,
        "gpu_util": level,
        "gpu_util_text": f"{level}% (95% CI, {len(runs)} runs)",
        "steps_per_s": level / 4,
        "metric_text": None,
        "throughput_text": f"{level / 4:.1f} steps/s",
        "loss": "CONVERGING",
        "advice": [],
        "runs": list(runs),
    }


def nothing(folder: Path) -> dict[str, Any]:
    """A campaign before its first run."""
    empty = {"story": [], "machine": None, "reference": None, "causes": [], "gain": None, "runs": {}}
    wanted = {"action": "record_baseline", "hypothesis": None, "role": "workload", "why": "no baseline yet"}
    baselines = {"workload": None, "reference": None}
    return data(folder, **empty, status=status(next=wanted, baselines=baselines))


def many(folder: Path, count: int) -> dict[str, Any]:
    """A campaign of `count` hypotheses: the first four tested with runs, the others not."""
    few = [hypothesis(n) for n in range(1, 5)]
    return data(folder, [*few, *(untested(n, title=f"Idea {n}") for n in range(5, count + 1))])
