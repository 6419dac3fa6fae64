"""How well the log reader reads training logs: `python -m tests.bench.trainlog_score DIR` or `FILE.yaml`.

DIR holds index.yaml, the logs it names and, under arrival/, when each chunk of bytes arrived; FILE.yaml
excerpts (`tests/support/excerpts.py`). Prints the accuracy of each field, and with `-v` every miss.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from math import isclose, isnan
from pathlib import Path
from typing import Any

import yaml
from tests.support.excerpts import Excerpt, excerpts

from gpudebug.core.trainlog.reader import LogReader, LogSummary

CRASHES = {
    "none": {None},
    "oom": {"oom_gpu", "oom_host"},
    "killed": {"signal", "oom_host"},
    "interrupted": {"interrupted"},
    "exception": {
        "exception",
        "shape",
        "assertion",
        "import",
        "config",
        "model_load",
        "connection",
        "cuda",
        "nccl",
    },
}


def read(folder: Path, entry: dict[str, Any]) -> LogSummary:
    """One log fed as it arrived."""
    data = (folder / entry["file"]).read_bytes()
    reader = LogReader()
    at = 0
    arrival = entry.get("arrival_times")
    if arrival:
        for line in (folder / arrival).read_text().splitlines():
            time, count = json.loads(line)[:2]
            reader.feed(data[at : at + count], time)
            at += count
    reader.feed(data[at:])
    return reader.summary(exit_status=entry["exit_code"])


def same(found: float | None, truth: object) -> bool:
    if truth is None or found is None:
        return truth is None and found is None
    wanted = float(str(truth))
    return (isnan(wanted) and isnan(found)) or isclose(found, wanted, rel_tol=1e-9)


def near(found: float | None, truths: list[float], share: float) -> bool:
    known = [t for t in truths if t]
    return found is not None and bool(known) and min(known) * (1 - share) <= found <= max(known) * (1 + share)


def judge(entry: dict[str, Any], found: LogSummary) -> dict[str, tuple[bool, object, object]]:
    """field -> (right, found, truth) for each field that has a truth; of labelled ranks, that of rank 0."""
    entry = {**entry, **entry.get("of_rank_0", {})}
    out: dict[str, tuple[bool, object, object]] = {
        "trend": (
            str(found.trend) in entry["loss_trend_acceptable"],
            str(found.trend),
            entry["loss_trend_acceptable"],
        ),
        "first": (same(found.first, entry["first_loss_visible"]), found.first, entry["first_loss_visible"]),
        "last": (same(found.last, entry["last_loss_visible"]), found.last, entry["last_loss_visible"]),
        "points": (
            found.points == entry["loss_points_distinct"],
            found.points,
            entry["loss_points_distinct"],
        ),
        "crash": (
            (found.failure.kind if found.failure else None) in CRASHES[entry["crash"]],
            found.failure.kind if found.failure else None,
            entry["crash"],
        ),
        "framework": (found.framework is not None, found.framework, entry["framework"]),
    }
    if entry.get("true_optimizer_steps"):
        truth = entry["true_optimizer_steps"]
        out["steps"] = (
            found.steps is not None and -0.12 * truth - 1 <= found.steps - truth <= 0.05 * truth + 1,
            (found.steps, found.step_unit),
            truth,
        )
        rates = [entry["true_steps_per_s_overall"], entry["true_steps_per_s_median"]]
        out["steps_per_s"] = (
            near(found.steps_per_s, rates, 0.15),
            (found.steps_per_s, found.rate_source),
            rates,
        )
    if "data_wait_fraction" in entry:
        share = (
            found.data_s / (found.data_s + found.update_s)
            if found.data_s is not None and found.update_s is not None
            else None
        )
        out["data_share"] = (
            share is not None and abs(share - entry["data_wait_fraction"]) < 0.02,
            share,
            entry["data_wait_fraction"],
        )
    return out


def judge_excerpt(excerpt: Excerpt) -> dict[str, tuple[bool, object, object]]:
    """field -> (right, found, truth) for each field of an excerpt that has a truth."""
    reader = LogReader()
    reader.feed(excerpt.text.encode())
    found = reader.summary()
    failure = found.failure.kind if found.failure else None
    out: dict[str, tuple[bool, object, object]] = {
        "trend": (str(found.trend) in excerpt.trend, str(found.trend), excerpt.trend),
        "last": (
            any(same(found.last, truth) for truth in excerpt.last),
            (found.last, found.loss_name),
            excerpt.last,
        ),
        "failure": (failure in excerpt.failure, failure, excerpt.failure),
    }
    if excerpt.steps is not None:
        out["steps"] = (found.steps == excerpt.steps, (found.steps, found.step_unit), excerpt.steps)
    return out


def judged(place: Path) -> Iterator[tuple[str, dict[str, tuple[bool, object, object]]]]:
    """(name, verdicts) of each log of a folder, or of each excerpt of a file."""
    if place.is_file():
        for excerpt in excerpts(place):
            yield excerpt.name, judge_excerpt(excerpt)
        return
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for entry in yaml.load((place / "index.yaml").read_text(), Loader=loader)["logs"]:
        yield entry["file"][:-4], judge(entry, read(place, entry))


def main(argv: list[str]) -> int:
    right: Counter[str] = Counter()
    known: Counter[str] = Counter()
    for name, verdicts in judged(Path(argv[1])):
        for field, (ok, found, truth) in verdicts.items():
            known[field] += 1
            right[field] += ok
            if not ok and "-v" in argv:
                print(f"{name:48} {field:12} {found!s:40} truth {truth}")
    for field, count in known.items():
        print(f"{field:12} {right[field]:4} of {count:4}  {right[field] / count:6.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
