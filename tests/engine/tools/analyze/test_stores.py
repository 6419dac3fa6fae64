"""`gpudebug analyze` of experiment trackers' stores."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from math import isnan, nan
from pathlib import Path

import pytest
from tests.support import monitors
from tests.support.campaigns import gpudebug
from tests.support.places import DATA

from gpudebug.core.answers.analyze import SamplesAnswer
from gpudebug.core.answers.log import LogAnswer
from gpudebug.core.errors import GpudebugError
from gpudebug.engine.tools.analyze.stores import database, events, wandb


def test_gpus_and_losses(tmp_path: Path) -> None:
    (tmp_path / "run-1.wandb").write_bytes(monitors.wandb_run())
    gpus, learned = (one.answer for one in wandb(tmp_path / "run-1.wandb"))
    assert isinstance(gpus, SamplesAnswer)
    assert isinstance(learned, LogAnswer)
    assert gpus.source == "W&B system metrics"
    assert [d.gpu_util.mean for d in gpus.devices if d.gpu_util] == [20, 90]
    assert (learned.framework, learned.loss.name, learned.loss.trend) == ("W&B", "train/loss", "CONVERGING")
    assert (learned.steps, learned.loss.points) == (299, 300)
    assert learned.notes == ()


def test_a_half_written_file_is_read_up_to_there(tmp_path: Path) -> None:
    data = monitors.wandb_run()
    (tmp_path / "run-1.wandb").write_bytes(data[: len(data) // 2])
    gpus, learned = (one.answer for one in wandb(tmp_path / "run-1.wandb"))
    assert isinstance(gpus, SamplesAnswer)
    assert isinstance(learned, LogAnswer)
    for notes in (gpus.notes, learned.notes):
        assert notes
        assert notes[0].startswith("the file is cut short at byte ")
    assert learned.steps is not None
    assert 100 < learned.steps < 200


def test_losses_alone(tmp_path: Path) -> None:
    records = [monitors.history(n, loss=1 / (n + 1)) for n in range(30)]
    (tmp_path / "run-1.wandb").write_bytes(monitors.wandb(records))
    (learned,) = (one.answer for one in wandb(tmp_path / "run-1.wandb"))
    assert isinstance(learned, LogAnswer)
    assert learned.loss.trend == "CONVERGING"


def test_neither_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run-1.wandb").write_bytes(monitors.wandb([monitors.stats(1.7e9, cpu=3.0)]))
    with pytest.raises(GpudebugError, match="has no GPU"):
        wandb(tmp_path / "run-1.wandb")


@pytest.mark.parametrize(
    ("name", "steps", "says"),
    [
        ("latency_s", [*range(30)], "no training loss or reward in its history; it holds latency_s"),
        (
            "loss",
            [*range(30), *range(20)],
            "W&B: the steps of loss begin again at 0 after 29: it is not used",
        ),
    ],
    ids=["of other names", "whose steps begin again"],
)
def test_a_history_without_a_loss_says_why(tmp_path: Path, name: str, steps: list[int], says: str) -> None:
    records = [monitors.history(n, **{name: 0.5}) for n in steps]
    (tmp_path / "run-1.wandb").write_bytes(monitors.wandb(records))
    (learned,) = (one.answer for one in wandb(tmp_path / "run-1.wandb"))
    assert isinstance(learned, LogAnswer)
    assert learned.loss.trend == "UNKNOWN"
    assert learned.notes == (says,)


MLFLOW = (
    "CREATE TABLE metrics "
    "(key TEXT, value REAL, timestamp BIGINT, run_uuid TEXT, step BIGINT, is_nan BOOLEAN)"
)
TRACKIO = (
    "CREATE TABLE metrics (id INTEGER, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)",
    "CREATE TABLE system_metrics (id INTEGER, timestamp TEXT, run_name TEXT, metrics TEXT)",
)
Rows = list[tuple[str, Sequence[object]]]


def made(path: Path, *statements: str, rows: Rows | None = None) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)
        for statement, values in rows or ():
            db.execute(statement, values)
    return path


def mlflow(path: Path, runs: int = 1, loss: Callable[[int], float] = lambda n: 1 / (n + 1)) -> Path:
    insert = "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)"
    rows: Rows = []
    for run in range(runs):
        for n in range(30):
            at, value = 1_773_065_107_000 + 10_000 * n, loss(n)
            figures = {"train_loss": 0.0 if isnan(value) else value}
            for gpu in range(2):
                figures[f"system/gpu_{gpu}_utilization_percentage"] = 50 * gpu + 10
                figures[f"system/gpu_{gpu}_memory_usage_megabytes"] = 7
            rows += [
                (insert, (k, v, at, f"r{run}", n, isnan(value) and k == "train_loss"))
                for k, v in figures.items()
            ]
    return made(path, MLFLOW, rows=rows)


def test_a_database_of_mlflow(tmp_path: Path) -> None:
    gpus, learned = (one.answer for one in database(mlflow(tmp_path / "mlflow.db"), None) or ())
    assert isinstance(gpus, SamplesAnswer)
    assert isinstance(learned, LogAnswer)
    assert gpus.recorded is not None
    assert [(d.gpu_util, d.mem_used_mb) for d in gpus.recorded.devices] == [(10, 7), (60, 7)]
    assert (gpus.source, gpus.recorded.period_s) == ("MLflow system metrics", 10)
    assert (learned.framework, learned.loss.name, learned.loss.trend) == (
        "MLflow",
        "train_loss",
        "CONVERGING",
    )
    both = [one.answer.kind for one in database(mlflow(tmp_path / "two.db", 2), None) or ()]
    assert both == ["samples", "samples", "training_log", "training_log"]


@pytest.mark.parametrize("value", [nan, 1.7976931348623157e308])
def test_what_mlflow_writes_for_no_number_is_none(tmp_path: Path, value: float) -> None:
    found = database(mlflow(tmp_path / "mlflow.db", loss=lambda n: value if n > 15 else 1.0), None) or []
    learned = found[-1].answer
    assert isinstance(learned, LogAnswer)
    assert (learned.loss.trend, learned.loss.last) == ("NAN", 1.0)


def test_a_database_of_trackio(tmp_path: Path) -> None:
    rows: Rows = []
    figures = {"gpu/0/utilization": 10, "gpu/0/allocated_memory": 2.0, "gpu/0/memory_usage": 0.1}
    system = json.dumps({**figures, "gpu/mean_utilization": 99})
    for n in range(30):
        at, loss = f"2026-03-09T14:05:{n:02d}.5+00:00", json.dumps({"loss": 1 / (n + 1)})
        rows.append(("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", (n, at, "r", n, loss)))
        rows.append(("INSERT INTO system_metrics VALUES (?, ?, ?, ?)", (n, at, "r", system)))
    path = made(tmp_path / "p.db", *TRACKIO, rows=rows)
    gpus, learned = (one.answer for one in database(path, None) or ())
    assert isinstance(gpus, SamplesAnswer)
    assert gpus.recorded is not None
    assert [(d.gpu_util, d.mem_used_mb) for d in gpus.recorded.devices] == [(10, 2048)]
    assert isinstance(learned, LogAnswer)
    assert learned.framework == "trackio"


def test_a_store_of_a_run_that_has_only_begun_has_no_rows_yet(tmp_path: Path) -> None:
    for statements in ((MLFLOW,), TRACKIO):
        path = made(tmp_path / f"{len(statements)}.db", *statements)
        with pytest.raises(GpudebugError, match="has no rows yet"):
            database(path, None)
    (learned,) = (one.answer for one in events(next((DATA / "learning").glob("events*"))))
    assert isinstance(learned, LogAnswer)
    assert (learned.framework, learned.reward is not None) == ("TensorBoard", True)
    (tmp_path / "events").write_bytes(b"")
    with pytest.raises(GpudebugError, match="has no rows yet"):
        events(tmp_path / "events")
    assert database(made(tmp_path / "other.db", "CREATE TABLE a (b)"), None) is None


def test_stores_are_recognised_by_their_content(tmp_path: Path) -> None:
    answer = gpudebug(tmp_path, "analyze", mlflow(tmp_path / "data").name, "--json").expect(0).json
    assert [one["kind"] for one in answer["files"]] == ["samples", "training_log"]
    assert answer["recorded"]["source"] == "MLflow system metrics"
