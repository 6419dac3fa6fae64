"""A run as it goes on: the live line, stalls, and how little following its log costs."""

from __future__ import annotations

from pathlib import Path
from time import thread_time

import pytest
from tests.support.probe_lines import beat, start

from gpudebug.core.trainlog.reader import LogReader
from gpudebug.edges.launcher import Tick
from gpudebug.engine.run.files import Files
from gpudebug.engine.run.live_line import Live, Watch, last_utilisation


def watch(folder: Path, told: list[Live], **more: object) -> Watch:
    files = Files(
        folder / "samples.csv", folder / "train.log", folder / "sampler.json", reports=folder, records=folder
    )
    stall = more.pop("stall_timeout", None)
    return Watch(files, "0001-x", LogReader({}), told.append, stall, **more)  # type: ignore[arg-type]


def test_the_live_line_tells_step_loss_and_what_is_left(tmp_path: Path) -> None:
    told: list[Live] = []
    seen = watch(tmp_path, told)
    log = tmp_path / "train.log"
    log.write_text("step 10/100 loss 2.0\nstep 20/100 loss 1.5\n")
    assert seen.observe(Tick(4.0, log.stat().st_size, None)) is None
    assert (told[-1].step, told[-1].total_steps, told[-1].loss) == (20, 100, 1.5)
    assert told[-1].left == pytest.approx(16)
    assert told[-1].gpu_util is None


def test_a_bar_that_is_full_and_stands_is_no_count_of_what_goes_on(tmp_path: Path) -> None:
    """A pass over the data before the training; its own bar prints nothing into a pipe."""
    told: list[Live] = []
    seen = watch(tmp_path, told)
    log = tmp_path / "train.log"
    log.write_text("100%|##########| 75/75 [00:07<00:00,  9.64it/s]\n")
    size = log.stat().st_size
    seen.observe(Tick(8.0, size, None))
    assert (told[-1].step, told[-1].total_steps, told[-1].unit, told[-1].left) == (75, 75, "step", None)
    seen.observe(Tick(20.0, size, None))
    assert (told[-1].step, told[-1].total_steps, told[-1].unit, told[-1].left) == (None, None, "", None)
    (tmp_path / "probe.jsonl").write_text(start() + beat(1, 3, 5))
    seen.observe(Tick(22.0, size, None))
    assert (told[-1].step, told[-1].total_steps, told[-1].unit) == (5, None, "optimizer step")
    log.write_text(log.read_text() + "  4%|#         | 3/75 [00:02<00:50,  1.4it/s]\n")
    seen.observe(Tick(24.0, log.stat().st_size, None))
    assert (told[-1].step, told[-1].total_steps, told[-1].unit) == (78, None, "step")


def test_a_time_that_is_over_is_none_that_is_left(tmp_path: Path) -> None:
    told: list[Live] = []
    seen = watch(tmp_path, told)
    log = tmp_path / "train.log"
    log.write_text("step 90/100 loss 2.0\n")
    for elapsed, left in ((9.0, 1.0), (9.5, 0.5), (10.5, None), (60.0, None)):
        seen.observe(Tick(elapsed, log.stat().st_size, None))
        assert told[-1].left == left


def test_a_run_without_a_new_step_is_stalled_once_it_has_made_one(tmp_path: Path) -> None:
    seen = watch(tmp_path, [], stall_timeout=30.0)
    log = tmp_path / "train.log"
    log.write_text("loading\n")
    assert seen.observe(Tick(100.0, log.stat().st_size, None)) is None
    log.write_text("loading\nstep 10/100 loss 2.0\n")
    size = log.stat().st_size
    assert seen.observe(Tick(101.0, size, None)) is None
    assert seen.observe(Tick(130.0, size, None)) is None
    assert seen.observe(Tick(132.0, size, None)) == "STALLED"
    assert seen.observe(Tick(133.0, size, "STALLED")) is None


def test_steps_that_the_training_tells_itself_are_progress(tmp_path: Path) -> None:
    told: list[Live] = []
    seen = watch(tmp_path, told, stall_timeout=30.0)
    probe = tmp_path / "probe.jsonl"
    assert seen.observe(Tick(100.0, 0, None)) is None
    probe.write_text(start() + beat(1, 3, 5))
    assert seen.observe(Tick(101.0, 0, None)) is None
    assert (told[-1].step, told[-1].total_steps, told[-1].left) == (5, None, None)
    with probe.open("a") as f:
        f.write(beat(1, 5, 6))
    assert seen.observe(Tick(125.0, 0, None)) is None
    assert seen.observe(Tick(150.0, 0, None)) is None
    assert seen.observe(Tick(156.0, 0, None)) == "STALLED"


def test_a_training_that_tells_its_steps_rarely_is_waited_for(tmp_path: Path) -> None:
    seen = watch(tmp_path, [], stall_timeout=30.0)
    (tmp_path / "probe.jsonl").write_text(start() + beat(1, 100, 500) + beat(1, 140, 700))
    assert seen.observe(Tick(140.0, 0, None)) is None
    assert seen.observe(Tick(259.0, 0, None)) is None
    assert seen.observe(Tick(261.0, 0, None)) == "STALLED"


def test_a_log_that_tells_steps_rarely_is_no_stall_while_the_training_goes_on(tmp_path: Path) -> None:
    told: list[Live] = []
    seen = watch(tmp_path, told, stall_timeout=30.0)
    log = tmp_path / "train.log"
    log.write_text("step 1000/4000 loss 2.0\n")
    for minute in range(1, 5):
        with (tmp_path / "probe.jsonl").open("a") as f:
            f.write(beat(1, 60 * minute, 500 * minute))
        assert seen.observe(Tick(20.0 * minute, log.stat().st_size, None)) is None
    assert told[-1].step == 1000


def test_the_last_rows_of_the_samples_tell_the_utilisation(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    assert last_utilisation(path) is None
    path.write_text("elapsed,gpu_util,gpu_index\n0.2,40,0\n0.2,60,1\n0.4,50,0\n0.4,70,1\n0.6,9")
    assert last_utilisation(path) == 60.0


def test_following_a_flood_of_bars_costs_the_training_next_to_nothing(tmp_path: Path) -> None:
    """200 MB of them in 100 s: reading all of it would take a core for as long."""
    told: list[Live] = []
    seen = watch(tmp_path, told)
    bars = b"".join(
        b"\r Training:  3%%|#     | %07d/9999999 [00:12<10:00, 33.1it/s, loss=1.25]" % n
        for n in range(26_000)
    )
    log, ticks = tmp_path / "train.log", 100
    begun = thread_time()
    with log.open("ab") as file:
        for tick in range(1, ticks + 1):
            file.truncate(0)
            file.seek((tick - 1) * len(bars))
            file.write(bars)
            file.flush()
            seen.observe(Tick(float(tick), tick * len(bars), None))
    assert thread_time() - begun < 0.2 * ticks
    assert told[-1].step is not None
    assert told[-1].step > 25_000
