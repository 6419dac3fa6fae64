"""Which runs a recording holds."""

from __future__ import annotations

import io
import random
from itertools import accumulate

import pytest
from tests.support import monitors
from tests.support.monitors import Shown

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.collect import rows_a_tick
from gpudebug.core.recordings.runs import MonitorRecording, read_recording
from gpudebug.core.recordings.stores import WANDB, read_wandb_run
from gpudebug.core.samples.table import read_samples
from gpudebug.core.trainlog.logger_files import read_wandb_system


def read(text: str) -> MonitorRecording:
    return read_recording(text.splitlines(keepends=True), "f.csv")


def wandb_run(data: bytes, file: str) -> MonitorRecording:
    return read_wandb_run(read_wandb_system(data), file)


def spans(found: MonitorRecording) -> list[tuple[float, float]]:
    return [(round(run.start_s), round(run.end_s)) for run in found.runs]


def test_one_run_becomes_rows_of_ours() -> None:
    found = read(monitors.query(60, 2))
    (run,) = found.runs
    table = read_samples(run.text().splitlines(keepends=True), "x")
    assert (table.unreadable, table.devices) == (0, [(0, ""), (1, "")])
    assert [r.gpu_util for r in table.rows[:2]] == [20, 90]
    assert table.rows[-1].elapsed == pytest.approx(59.001)
    assert (run.begins, found.notes) == (None, ())


def test_gpus_without_an_index_are_numbered_as_they_come() -> None:
    fields = ("timestamp", "pci.bus_id", "utilization.gpu")
    (run,) = read(monitors.query(10, 3, fields)).runs
    assert [(r.gpu_index, r.gpu_uuid) for r in run.rows[:3]] == [
        (i, f"00000000:0{i + 1}:00.0") for i in range(3)
    ]


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_rows_of_a_tick_without_an_identity_are_numbered_by_their_order(gpus: int) -> None:
    at = lambda _, gpu: Shown(10 * gpu)  # noqa: E731
    found = read(
        monitors.query(20, gpus, ("timestamp", "power.draw", "utilization.gpu"), interval=0.1, at=at)
    )
    assert [d.gpu_util for d in found.whole.devices] == [10 * gpu for gpu in range(gpus)]
    assert found.notes == (f"no column tells its {gpus} GPUs apart: they are numbered by their order",)


def test_rows_too_few_to_tell_how_many_gpus_they_are_of_are_refused() -> None:
    with pytest.raises(GpudebugError, match="has several rows at a time and no column"):
        read(monitors.query(2, 2, ("timestamp", "power.draw", "utilization.gpu")))


def test_a_monitor_that_stalls_in_some_ticks_still_has_several_rows_in_each() -> None:
    made = random.Random(3)
    gaps = [0.1 if n % 8 == 0 else 0.3 if made.random() < 0.04 else 0.001 for n in range(560)]
    assert rows_a_tick(list(accumulate(gaps))) == 8


def test_one_gpu_is_one_however_uneven_its_ticks() -> None:
    made = random.Random(5)
    for gaps in (
        [1.0] * 200,
        [made.uniform(0.05, 0.2) for _ in range(200)],
        [made.expovariate(1.0) for _ in range(400)],
        [5.0 if n % 10 == 0 else 0.1 for n in range(15)],
    ):
        assert rows_a_tick(list(accumulate(gaps))) == 1


def test_a_pause_is_the_end_of_a_run() -> None:
    found = read(monitors.query(60) + monitors.query(40, header=False, start=300))
    assert spans(found) == [(0, 59), (300, 339)]
    assert found.runs[1].begins == "a pause of 241 s"
    assert found.runs[1].rows[0].elapsed == 0


def test_a_slow_monitor_has_no_pauses() -> None:
    assert len(read(monitors.query(1200, interval=60)).runs) == 1


def test_a_header_in_the_middle_begins_a_run() -> None:
    found = read(monitors.query(60) + monitors.query(40, start=70))
    assert [run.begins for run in found.runs] == [None, "a header in the middle"]


def test_a_loop_that_calls_the_monitor_for_each_tick_repeats_its_header() -> None:
    head, *rows = monitors.query(60, 2).splitlines(keepends=True)
    ticks = [head + "".join(rows[at : at + 2]) for at in range(0, len(rows), 2)]
    (run,) = read("".join(ticks)).runs
    assert len(run.rows) == 120


def test_an_index_that_is_the_same_for_all_tells_nothing() -> None:
    rows = "".join(f"{n // 2},0,GPU-{n % 2},50\n" for n in range(20))
    (run,) = read("time_s,index,uuid,gpu_util\n" + rows).runs
    assert [(r.gpu_index, r.gpu_uuid) for r in run.rows[:2]] == [(0, "GPU-0"), (1, "GPU-1")]


def test_time_that_goes_back_begins_a_run() -> None:
    rows = "".join(f"{t},50\n" for t in [*range(60), *range(30)])
    found = read("elapsed_s,gpu_util\n" + rows)
    assert [(len(r.rows), r.begins) for r in found.runs] == [(60, None), (30, "the time goes back")]


HEAD, *ROWS = monitors.query(120, 3).splitlines(keepends=True)
BY_GPU = [ROWS[gpu::3] for gpu in range(3)]


@pytest.mark.parametrize("between", ["", HEAD], ids=["sorted", "one file after the other"])
def test_gpus_one_after_the_other_are_one_run(between: str) -> None:
    (run,) = read(HEAD + between.join("".join(rows) for rows in BY_GPU)).runs
    (usual,) = read(HEAD + "".join(ROWS)).runs
    assert run.rows == usual.rows
    assert (run.start_s, run.begins) == (0, None)


def test_a_pause_of_gpus_one_after_the_other_is_one_of_the_run() -> None:
    early, late = monitors.query(60, 2), monitors.query(40, 2, start=300)
    rows = [*early.splitlines(keepends=True)[1:], *late.splitlines(keepends=True)[1:]]
    found = read(HEAD + "".join([*rows[::2], *rows[1::2]]))
    assert spans(found) == [(0, 59), (300, 339)]
    assert [len(run.rows) for run in found.runs] == [120, 80]


def two_nodes(field: str, ticks: int) -> str:
    """Two nodes' rows in one file, their clocks 3 s apart."""
    rows = [
        f"{t + 3 * node},{'GPU-' + str(node) if field == 'uuid' else ''}{gpu},50\n"
        for t in range(ticks)
        for node in range(2)
        for gpu in range(2)
    ]
    return f"time_s,{field},gpu_util\n" + "".join(rows)


def test_two_nodes_that_write_into_one_file_are_one_run() -> None:
    (run,) = read(two_nodes("uuid", 400)).runs
    assert (len(run.rows), len({r.gpu_uuid for r in run.rows}), run.end_s) == (1600, 4, 402)
    elapsed = [r.elapsed for r in run.rows if r.elapsed is not None]
    assert elapsed == sorted(elapsed)


def test_more_runs_than_anyone_made_are_refused() -> None:
    with pytest.raises(
        GpudebugError, match=r"holds more than 200 runs \(the time goes back before 200 of"
    ) as told:
        read(two_nodes("index", 400))
    assert "record uuid" in str(told.value.next)


def test_each_of_several_runs_of_two_gpus_is_whole() -> None:
    rows = "".join(f"{t},{gpu},50\n" for length in (60, 30, 20) for t in range(length) for gpu in range(2))
    found = read("elapsed_s,index,gpu_util\n" + rows)
    assert [len(run.rows) for run in found.runs] == [120, 60, 40]
    assert {run.begins for run in found.runs[1:]} == {"the time goes back"}


def test_a_run_between_two_others_memory() -> None:
    """Sampling went on between two runs: GPUs idle but for a look at one, their memory free."""

    def at(time: float, gpu: int) -> Shown:
        if 100 <= time < 250:
            return Shown(3 if gpu == 0 and time % 20 == 0 else 0, 70, 14)
        # Loading: memory is held, nothing computes.
        return Shown(0 if time % 90 < 15 else 95, 500, 60_000)

    found = read(monitors.query(400, 2, at=at))
    assert len(found.runs) == 2
    assert 100 < found.runs[1].start_s < 250
    assert found.runs[1].begins == "every GPU idled with its memory free for 150 s"


def test_a_pause_with_memory_held_is_of_the_same_run() -> None:
    found = read(monitors.query(300, 2, at=lambda t, _: Shown(0 if 100 < t < 200 else 90, 300, 40_000)))
    assert len(found.runs) == 1


def test_a_gpu_that_no_run_used_tells_nothing() -> None:
    def at(time: float, gpu: int) -> Shown:
        return Shown(0, 70, 14) if gpu or 100 <= time < 250 else Shown(95, 500, 60_000)

    assert len(read(monitors.query(400, 2, at=at)).runs) == 2


def test_idle_time_before_and_after_is_no_run() -> None:
    at = lambda t, _: Shown(90, 300, 40_000) if 60 < t < 200 else Shown(0, 70, 14)  # noqa: E731
    assert len(read(monitors.query(300, 2, at=at)).runs) == 1


def test_dmons_repeated_headers_are_none_of_a_run() -> None:
    assert len(read(monitors.dmon(100, 2)).runs) == 1
    # Cut off after 15 of its 20 rows, then another.
    first = "\n".join(monitors.dmon(100, 1).splitlines()[: 22 * 2 + 17]) + "\n"
    found = read(first + monitors.dmon(60, 1))
    assert [len(run.rows) for run in found.runs] == [55, 60]


def test_a_gpu_that_is_gone_is_named() -> None:
    lines = monitors.query(120, 2).splitlines(keepends=True)
    kept = lines[:60] + [line for line in lines[60:] if ", 1, " not in line]
    found = read("".join(kept))
    assert found.notes == ("GPU 1 has no row after 28.0 s",)


def test_rows_out_of_order_are_sorted_and_a_clock_that_goes_back_begins_a_run() -> None:
    head, *rows = monitors.query(60, 1).splitlines(keepends=True)
    mixed = [*rows[:20], *rows[30:40], *rows[20:30], *rows[40:]]
    found = read(head + "".join(mixed))
    assert (len(found.runs), found.notes) == (
        1,
        ("its rows are out of order: they were sorted by their time",),
    )
    back = read(head + "".join([*rows, *rows[30:50]]))
    assert [run.begins for run in back.runs] == [None, "the time goes back"]
    assert (back.whole.rows, back.whole.span_s) == (80, None)


def test_a_header_that_a_writer_repeats_without_a_pause_begins_no_run() -> None:
    head, *rows = monitors.query(60, 1).splitlines(keepends=True)
    assert len(read(head + "".join(rows[:30]) + head + "".join(rows[30:])).runs) == 1


def test_random_idling_between_readings_far_apart_begins_no_run() -> None:
    made = random.Random(3)
    at = lambda _, __: Shown(u := made.choice((0, 0, 52, 99)), memory=90 * u)  # noqa: E731
    assert len(read(monitors.query(72_000, 1, interval=1800, at=at)).runs) == 1


def test_gaps_and_readings_that_lack() -> None:
    head, *rows = monitors.query(60, 2).splitlines(keepends=True)
    kept = rows[:40] + [row for row in rows[60:100] if ", 1, " not in row] + rows[100:]
    whole = read(head + "".join(kept)).whole
    assert (whole.period_s, whole.gap_count, whole.missing) == (1, 1, ())
    assert whole.gaps[0].after_s == pytest.approx(19.001)
    assert whole.gaps[0].seconds == pytest.approx(10.999)
    assert whole.remarks == ("GPU 1 has 30 of 50 readings",)


@pytest.mark.parametrize(
    ("fields", "util", "memory", "interval", "stuck"),
    [
        ("utilization.memory", 97, 0, 1, True),
        ("utilization.memory", 97, 3, 1, False),
        ("utilization.memory", 100, 3, 60, False),
        ("power.draw", 97, 300, 60, True),
        ("power.draw", 100, 300, 60, False),
        ("power.draw", 0, 300, 60, False),
    ],
)
def test_a_reading_that_never_changes_is_remarked(
    fields: str, util: int, memory: int, interval: int, stuck: bool
) -> None:
    text = f"timestamp, utilization.gpu [%], {fields}\n" + "".join(
        f"{monitors.date(interval * n)}, {util}, {memory}\n" for n in range(30)
    )
    assert any("the counter may be stuck" in remark for remark in read(text).whole.remarks) is stuck


def test_few_readings_are_called_so() -> None:
    assert read(monitors.query(1, 1)).whole.remarks == ("one reading of each GPU: a moment",)
    assert read(monitors.query(6, 1)).whole.remarks == ("short: 6 readings of each GPU",)


def test_each_gpu_has_its_rows() -> None:
    found = wandb_run(monitors.wandb_run(300, 2), "run.wandb")
    (run,) = found.runs
    assert (found.source, len(run.rows), found.notes) == (WANDB, 60, ())
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
    assert [r.gpu_util for r in wandb_run(monitors.wandb(records), "f").runs[0].rows] == [50, 50, 50]


def test_a_half_written_file_gives_what_comes_before() -> None:
    data = monitors.wandb_run(300, 1)
    found = wandb_run(data[: len(data) // 2], "f")
    assert 5 < len(found.runs[0].rows) < 20
    assert found.notes[0].startswith("the file is cut short at byte ")


def test_a_run_without_gpus_is_refused() -> None:
    with pytest.raises(GpudebugError, match="has no GPU in its system metrics"):
        wandb_run(monitors.wandb([monitors.stats(1.7e9, cpu=10.0), monitors.history(1, loss=2.0)]), "f")


def test_what_is_unknown_stays_so() -> None:
    records = [monitors.stats(1.7e9 + n, gpu__0__gpu=250.0 if n else 50.0, gpu__0__fan=3.0) for n in range(2)]
    rows = wandb_run(monitors.wandb(records), "f").runs[0].rows
    assert [(r.gpu_util, r.power_w) for r in rows] == [(50, None), (None, None)]


def test_figures_of_gpm_are_shares() -> None:
    records = [monitors.stats(1.7e9 + n, gpu__0__gpu=90.0, gpu__0__smActive=40.0 + n) for n in range(3)]
    (device,) = wandb_run(monitors.wandb(records), "f").whole.devices
    assert device.sm_active == pytest.approx(0.41)


def test_a_run_that_has_only_begun_has_no_rows_yet() -> None:
    with pytest.raises(
        GpudebugError, match="has no rows of system metrics yet: W&B writes the first after 15 s"
    ):
        wandb_run(monitors.wandb([monitors.history(1, loss=2.0)]), "f")


def test_a_key_with_a_number_that_no_gpu_has_is_none_of_a_gpu() -> None:
    with pytest.raises(GpudebugError, match="has no GPU in its system metrics"):
        wandb_run(monitors.wandb([monitors.stats(1.7e9, **{"gpu__" + "9" * 5000 + "__gpu": 5.0})]), "f")


def test_tables_printed_faster_than_their_clock_lie_within_its_seconds() -> None:
    """Polled once a minute, then seven times a second: one recording, without a pause."""
    parts = "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22
    table = (
        "Tue Oct 29 19:{:02}:{:02} 2024       \n"
        f"+{'-' * 89}+\n"
        "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n"
        f"|{parts}+\n"
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
        "|                                         |                        |               MIG M. |\n"
        f"|{parts.replace('-', '=')}|\n"
        "|   0  NVIDIA L40S                    On  |   00000000:4A:00.0 Off |                    0 |\n"
        "| N/A   53C    P0            305W /  350W |   11948MiB /  46068MiB |     {}%      Default |\n"
        "|                                         |                        |                  N/A |\n"
        f"+{parts}+\n"
    )
    slow = [table.format(minute, 0, 50) for minute in range(5)]
    fast = [table.format(5, second, 90) for second in range(20) for _ in range(7)]
    (run,) = read_recording(io.StringIO("".join(slow + fast)), "gpu.log").runs
    whole = run.whole
    assert (whole.rows, whole.gap_count) == (145, 5)
    assert whole.period_s == pytest.approx(1 / 7, rel=0.05)
    assert whole.gpu_util == pytest.approx((5 * 50 + 140 * 90) / 145)


def test_readings_without_a_utilisation_are_not_counted_into_its_mean() -> None:
    rows = (
        "# gpu     sm    mem\n# Idx      %      %\n" + "    0     40      1\n" + "    0      -      -\n" * 9
    )
    (run,) = read_recording(io.StringIO(rows), "dmon.txt").runs
    assert run.whole.gpu_util == 40
    assert "GPU 0 has a utilisation in 1 of 10 readings: the mean is of these" in run.whole.remarks
