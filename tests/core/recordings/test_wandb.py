"""GPUs in the system metrics of a W&B run."""

from __future__ import annotations

import pytest
from tests.support import monitors

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.wandb import SOURCE, read_wandb_run


def test_each_gpu_has_its_rows() -> None:
    found = read_wandb_run(monitors.wandb_run(300, 2), "run.wandb")
    (run,) = found.runs
    assert (found.source, len(run.rows), found.notes) == (SOURCE, 60, ())
    last = run.rows[-1]
    assert (last.elapsed, last.gpu_index, last.gpu_util, last.power_w, last.mem_used_mb) == (
        290,
        1,
        90,
        500,
        20000,
    )


def test_keys_may_begin_with_system() -> None:
    records = [monitors.stats(1.7e9 + n, system__gpu__0__gpu=50.0) for n in range(3)]
    assert [r.gpu_util for r in read_wandb_run(monitors.wandb(records), "f").runs[0].rows] == [50, 50, 50]


def test_a_half_written_file_gives_what_comes_before() -> None:
    data = monitors.wandb_run(300, 1)
    found = read_wandb_run(data[: len(data) // 2], "f")
    assert 5 < len(found.runs[0].rows) < 20
    assert found.notes[0].startswith("the file is cut short at byte ")


def test_a_run_without_gpus_is_refused() -> None:
    with pytest.raises(GpudebugError, match="has no GPU in its system metrics"):
        read_wandb_run(monitors.wandb([monitors.stats(1.7e9, cpu=10.0), monitors.history(1, loss=2.0)]), "f")


def test_what_is_unknown_stays_so() -> None:
    records = [monitors.stats(1.7e9 + n, gpu__0__gpu=250.0 if n else 50.0, gpu__0__fan=3.0) for n in range(2)]
    rows = read_wandb_run(monitors.wandb(records), "f").runs[0].rows
    assert [(r.gpu_util, r.power_w) for r in rows] == [(50, None), (None, None)]


def test_a_key_with_a_number_that_no_gpu_has_is_none_of_a_gpu() -> None:
    with pytest.raises(GpudebugError, match="has no GPU in its system metrics"):
        read_wandb_run(monitors.wandb([monitors.stats(1.7e9, **{"gpu__" + "9" * 5000 + "__gpu": 5.0})]), "f")
