"""The data that a report is made of, hand-made: a campaign of any size and with any texts."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

GPU = "NVIDIA A100-SXM4-80GB"


def a_run(
    name: str,
    *,
    util: float = 20.0,
    rate: float = 10.0,
    seconds: float = 40.0,
    devices: Sequence[str] = ("GPU-0",),
    **more: Any,
) -> dict[str, Any]:
    """A run whose devices are `util` % busy after a warm-up of a fifth, with a loss that falls."""
    noise = random.Random(name)

    def busy(t: float) -> float:
        share = 0.3 if t < seconds / 5 else 1.0
        return round(min(100.0, max(0.0, util * share + noise.gauss(0, 3))), 1)

    ticks = [0.2 * i for i in range(1, round(seconds / 0.2) + 1)]
    steps = round(rate * seconds)
    return {
        "name": name,
        "role": "baseline-workload",
        "hypothesis": None,
        "outcome": "COMPLETED",
        "reason": None,
        "start": "2026-03-01T10:00:00+00:00",
        "duration_s": seconds,
        "window": {"start_s": seconds / 5, "end_s": seconds - 1, "rule": "steps"},
        "utilisation": util,
        "spark": [util] * 40,
        "steps_per_s": rate,
        "step_unit": None,
        "loss": {"name": "loss", "trend": "CONVERGING", "first": 2.0, "last": 0.5, "points": 40},
        "timeline": [
            {"index": i, "uuid": uuid, "name": GPU, "points": [[t, busy(t), 1000.0] for t in ticks]}
            for i, uuid in enumerate(devices)
        ],
        "loss_points": [
            [steps * i // 40, 0.5 + 1.5 * math.exp(-i / 9) + noise.gauss(0, 0.02)] for i in range(40)
        ],
        "loss_by": "step",
        "step_times": {"by": "probe", "bins": bars(1 / rate, steps)},
        "failure": None,
        "folder": f"/somewhere/runs/{name}",
        "files": ["run.json", "samples.csv"],
        **more,
    }


def bars(middle: float, steps: int) -> list[list[float]]:
    """Times of steps around `middle` seconds, in bars of an eighth of an octave."""
    edges = [middle * 2 ** (i / 8) for i in range(-6, 11)]
    counts = [round(steps * math.exp(-(((i - 6) / 2.2) ** 2)) / 4) for i in range(16)]
    found = zip(edges[:-1], edges[1:], counts, strict=True)
    return [[low, high, count] for low, high, count in found if count]


def a_hypothesis(number: int, status: str = "VALIDATED", delta: float | None = 40.0, **more: Any) -> Any:
    tested = status not in ("UNTESTED", "TESTING")
    return {
        "number": number,
        "title": f"Cause number {number}",
        "status": status,
        "verified": True if tested else None,
        "intervention": f"--set --num_workers={number}",
        "cause": None,
        "accepted": None,
        "why": f"delta {delta}" if tested else None,
        "delta_pp": delta if tested else None,
        "delta_ci": [delta - 2, delta + 2] if tested and delta is not None else None,
        "metric": "gpu_util" if tested else None,
        "improvement": None,
        "improvement_ci": None,
        "throughput_ratio": 3.0 if tested else None,
        "claimed": None,
        "before": 20.0 if tested else None,
        "description": "",
        "test_method": "",
        "notes": [],
        "figures": {**FIGURES} if tested else {},
        "gates": GATES if tested else [],
        "probe": [],
        "sections": [],
        "diff": None,
        "command": None,
        "differences": [],
        "baseline_runs": ["0001-baseline-workload", "0002-baseline-workload"] if tested else [],
        "trial_runs": [f"{number + 2:04d}-h{number}"] if tested else [],
        **more,
    }


FIGURES = {"gpu util before": "20.0%", "gpu util after": "60.0%", "loss": "CONVERGING"}


def gate(name: str, result: str = "pass", value: str | None = "as it was", note: str | None = None) -> Any:
    return {"name": name, "value": value, "threshold": "as in the baseline", "result": result, "note": note}


GATES = [
    gate("outcome", value="COMPLETED"),
    gate("loss", "unknown", None, "12 points are too few: add --log_freq=1"),
    gate("delta", "fail", "+2.0pp (95% CI +0.1 to +3.9)"),
    gate("environment_parity"),
    gate("change_in_effect", "skipped", None, "not checkable yet"),
]


def a_step(number: int, before: float | None, after: float | None, title: str = "A cause") -> Any:
    return {
        "hypothesis": number,
        "title": title,
        "intervention": "--set --a=1",
        "before": before,
        "after": after,
        "change_text": "+40.0pp (95% CI +38.0 to +42.0)",
    }


def a_gain(start: float | None, now: float | None, *accepted: Any, **more: Any) -> dict[str, Any]:
    return {
        "metric": "gpu_util",
        "unit": "%",
        "lower": False,
        "start": start,
        "accepted": list(accepted),
        "now": now,
        "reference": 90.0,
        "target": 80.0,
        "gap": None if now is None else 90.0 - now,
        "gap_to": "reference",
        "gap_text": "unknown" if now is None else f"{90.0 - now:.1f}pp below the reference",
        "gained": None if start is None or now is None else now - start,
        "gained_why": None,
        "gained_text": f"{(now or 0) - (start or 0):+.1f}pp",
        "gained_notes": [],
        "start_text": f"{start}%",
        "now_text": f"{now}%",
        "reference_text": "90.0%",
        "target_text": "80.0%",
        **more,
    }


def campaign_data(
    *hypotheses: Any,
    runs: Sequence[Any] = (),
    gain: dict[str, Any] | None = None,
    devices: Sequence[str] = ("GPU-0",),
    **more: Any,
) -> dict[str, Any]:
    """All of it. Without `runs` there are two of the baseline and one of each tested hypothesis."""
    made = list(runs) or [
        *(a_run(f"000{i}-baseline-workload", util=20.0 + i / 10, devices=devices) for i in (1, 2)),
        *(_trial(h, devices) for h in hypotheses if h["trial_runs"]),
    ]
    seen = [{"index": i, "uuid": uuid, "name": GPU, "driver": "550.1"} for i, uuid in enumerate(devices)]
    baseline = {"runs": ["0001-baseline-workload"], "gpu_util": 20.0, "why": None, "valid": True}
    return {
        "format": 1,
        "gpudebug": "1.2.3",
        "made": "2026-03-01T12:00:00+00:00",
        "status": {
            "campaign": "act-relative-rtc",
            "goal": "",
            "running": False,
            "metric": "gpu_util",
            "device": {"setting": "auto", "devices": seen},
            "baselines": {"workload": baseline, "reference": None},
            "hypotheses": list(hypotheses),
            "next": {"action": "propose", "hypothesis": None, "why": "no hypothesis is left to test"},
            "budget": {"hypotheses": 20, "hypotheses_used": len(hypotheses)},
        },
        "story": [],
        "settings": "",
        "machine": {
            "command": "/home/someone/venv/bin/python train.py --num_workers=0 --data=/home/someone/set",
            "model": "ACTPolicy",
            "weights": 51616391,
            "rate": "2410 steps/s",
            "rewards": [{"name": "mean_reward", "first": -20.0, "last": 3.0}],
            "sections": [{"name": "policy_inference", "calls": 50, "mean_s": 0.0123, "share": 0.81}],
            "host": "secret-host",
            "cpu_quota": 8.0,
            "devices": seen,
            "interpreter": "/home/someone/venv/bin/python 1 2",
            "packages": {"torch": "2.9.0", "numpy": "2.3.0", "typer": "0.16"},
            "knobs": {},
            "commit": "0123456789abcdef0123456789abcdef01234567",
        },
        "reference": None,
        "causes": [],
        "gain": gain if gain is not None else a_gain(20.0, 20.0),
        "hypotheses": list(hypotheses),
        "runs": {run["name"]: run for run in made},
        "skipped": [],
        **more,
    }


def _trial(h: Any, devices: Sequence[str]) -> dict[str, Any]:
    name, util = h["trial_runs"][0], 20.0 + (h["delta_pp"] or 0.0)
    return a_run(name, util=util, rate=util / 2, role=f"h{h['number']}", devices=devices)


def empty_data() -> dict[str, Any]:
    """Of a campaign in which nothing was measured yet."""
    found = campaign_data()
    status = {**found["status"], "device": {"setting": "auto", "devices": []}}
    status["baselines"] = {"workload": None, "reference": None}
    return {**found, "status": status, "machine": None, "gain": None, "runs": {}}
