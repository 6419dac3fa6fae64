"""`gpudebug analyze` of a W&B run file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import monitors

from gpudebug.core.answers.analyze import LogAnswer, SamplesAnswer
from gpudebug.core.errors import GpudebugError
from gpudebug.engine.tools.analyze.wandb import wandb


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


def test_a_history_without_a_loss_says_what_it_holds(tmp_path: Path) -> None:
    records = [monitors.history(n, latency_s=0.5) for n in range(30)]
    (tmp_path / "run-1.wandb").write_bytes(monitors.wandb(records))
    (learned,) = (one.answer for one in wandb(tmp_path / "run-1.wandb"))
    assert isinstance(learned, LogAnswer)
    assert learned.loss.trend == "UNKNOWN"
    assert learned.notes == ("no training loss or reward in its history; it holds latency_s",)
