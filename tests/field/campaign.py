"""A campaign as a user runs it, by the commands alone, and what it came to."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from tests.field.cases import SETTINGS, Case, Change
from tests.field.programs import Place, patch_of, set_up
from tests.support.campaigns import commit_all

from gpudebug.core.records import Evidence
from gpudebug.core.verdict import machine

_MOST_CYCLES = 6
_LIMIT_S = 3600.0
# What a change that does nothing is rejected for is that it gains nothing; these say that it did harm.
_HARM = ("outcome", "loss", "loss_parity", "throughput", "work_conserved")


class Commands:
    """`gpudebug` in one folder; what it answered is kept beside it in commands.jsonl."""

    def __init__(self, folder: Path, place: Place) -> None:
        self._folder = folder
        self._place = place
        self._record = folder.with_suffix(".commands.jsonl")
        self.learning: str | None = None

    def __call__(self, *words: str) -> Mapping[str, Any]:
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "gpudebug", *words, "--json"],
            cwd=self._folder,
            env=self._place.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = {"error": (done.stderr or done.stdout).strip()}
        self.learning = answer.get("learning") or self.learning
        row = {"words": words, "status": done.returncode, "wall_s": round(time.monotonic() - started, 1)}
        with self._record.open("a") as file:
            file.write(json.dumps({**row, "answer": answer}) + "\n")
        return {**answer, "exit_status": done.returncode}


def begin(case: Case, place: Place, folder: Path, more: Mapping[str, object] | None = None) -> Commands:
    """Everything up to the baseline: the program, `init`, the user's settings, `baseline`."""
    length = case.lengths[1]
    set_up(case, place, folder, length)
    folder.with_suffix(".commands.jsonl").unlink(missing_ok=True)
    gpudebug = Commands(folder, place)
    _expect(gpudebug("init", "--command", case.command_of(length)), "init")
    config = folder / "gpudebug.yaml"
    settings = yaml.safe_load(config.read_text())
    config.write_text(
        yaml.safe_dump({**settings, **SETTINGS, **case.settings, **(more or {})}, sort_keys=False)
    )
    _expect(gpudebug("settings", "--accept"), "settings")
    commit_all(folder, "Settings")
    _expect(gpudebug("baseline"), "baseline")
    return gpudebug


def judged(gpudebug: Commands, case: Case, folder: Path, change: Change) -> dict[str, Any]:
    """One change, proposed and tested until it has a verdict."""
    words = list(change.words)
    if change.edits:
        words = ["--patch", str(patch_of(change, folder, case.lengths[1]).relative_to(folder))]
        commit_all(folder, "A patch")
    if len(words) > 2:
        words.append("--compound")
    started = time.monotonic()
    title = ("--title", change.title, "--method", "As the title says.")
    proposed = gpudebug("propose", *title, *words)
    _expect(proposed, "propose")
    answer: Mapping[str, Any] = {}
    for _ in range(_MOST_CYCLES):
        answer = gpudebug("next")
        # Code that crashes is asked for once more; nobody mends it here, and the second crash is a verdict.
        if answer.get("action") not in ("recorded_baseline", "recovered", "implement"):
            break
    wall = round(time.monotonic() - started)
    if answer.get("action") != "tested":
        why = answer.get("why") or answer.get("error")
        return {
            "change": change.title,
            "verdict": f"none: {answer.get('action')}",
            "why": why,
            "wall_s": wall,
        }
    return {"change": change.title, "wall_s": wall, **_verdict_of(folder, int(answer["hypothesis"]))}


def _verdict_of(folder: Path, hypothesis: int) -> dict[str, Any]:
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/verdict.json"))]
    verdict = next(v for v in reversed(records) if v["hypothesis"] == hypothesis)
    failed = [gate["name"] for gate in verdict["gates"] if gate["result"] == "fail"]
    delta = verdict["delta"] or {}
    kept = (
        "why",
        "hollow",
        "metric",
        "metric_before",
        "metric_after",
        "throughput_unit",
        "throughput_ratio",
        "loss",
    )
    return {
        "verdict": verdict["status"],
        "delta": [delta.get(key) for key in ("value", "low", "high")],
        "failed": failed,
        "harm": verdict["status"] == "REJECTED" and _harmed(failed, verdict),
        "gates": {g["name"]: f"{g['result']}: {g['value']}" for g in verdict["gates"]},
        "work": verdict.get("work"),
        **{key: verdict[key] for key in kept},
        "runs": [run["name"] for run in verdict["runs"]],
        "course": [{**point, **_met(folder, point["run"])} for point in verdict["course"]],
    }


def _met(folder: Path, run: str) -> dict[str, Any]:
    """What others took of a run, in two ways: of the time that it wanted, and of the cores."""
    evidence = Evidence.model_validate_json((folder / "runs" / run / "evidence.json").read_text())
    window = evidence.window
    return {
        "kept_from": machine.share(evidence),
        "foreign_cpu": evidence.conditions.foreign_cpu,
        "foreign_demand": evidence.conditions.foreign_demand,
        "window_s": round(window.duration_s, 1) if window else None,
        "duration_s": evidence.duration_s,
    }


def _harmed(failed: Sequence[str], verdict: Mapping[str, Any]) -> bool:
    high = (verdict["delta"] or {}).get("high")
    nothing = 0.0 if verdict["metric"] == "gpu_util" else 1.0
    return any(name in _HARM for name in failed) or (high is not None and high < nothing)


def end(gpudebug: Commands, folder: Path) -> dict[str, Any]:
    """What the whole campaign came to: `status`, `verify`, and what its runs took."""
    status, verified = gpudebug("status"), gpudebug("verify")
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/run.json"))]
    baseline = (status.get("baselines") or {}).get("workload") or {}
    return {
        "verified": verified["exit_status"] == 0,
        "runs": len(runs),
        "device_s": round(sum(run.get("duration_s") or 0 for run in runs)),
        "baseline": {key: value for key, value in baseline.items() if not isinstance(value, (dict, list))},
        "learning": gpudebug.learning,
    }


def _expect(answer: Mapping[str, Any], what: str) -> None:
    if answer["exit_status"]:
        error = answer.get("error") or answer.get("why") or answer
        raise SystemExit(f"gpudebug {what}: exit status {answer['exit_status']}: {error}")
