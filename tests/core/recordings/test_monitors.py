"""Recordings of many monitors: recognised, and each device with its utilisation."""

from __future__ import annotations

import json
import random

import pytest
from tests.support import monitors
from tests.support.kept_forms import KEPT
from tests.support.monitor_forms import FORMS, Form

from gpudebug.core.errors import GpudebugError
from gpudebug.core.recordings.monitors import MonitorRows, read_monitor, recognised
from gpudebug.core.recordings.runs import read_recording
from gpudebug.core.samples.row import HEADER

EVERY = {**FORMS, **KEPT}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def read(text: str) -> MonitorRows:
    return read_monitor(lines(text), "f.csv")


@pytest.mark.parametrize("form", EVERY.values(), ids=EVERY)
def test_each_form_is_recognised_and_read(form: Form) -> None:
    assert recognised(form.text) == form.source
    found = read_recording(lines(form.text), "f")
    assert (found.source, found.unreadable, len(found.runs)) == (form.source, found.unreadable and 1, 1)
    assert tuple(d.gpu_util for d in found.whole.devices) == pytest.approx(form.means)
    assert found.whole.period_s == pytest.approx(form.period, abs=0.01)
    assert found.whole.gap_count == 0


@pytest.mark.parametrize("form", EVERY.values(), ids=EVERY)
def test_a_form_that_is_cut_anywhere_gives_no_other_figure(form: Form) -> None:
    made = random.Random(3)
    for _ in range(10):
        text = form.text[: made.randrange(len(form.text) // 4, len(form.text))]
        try:
            found = read_recording(lines(text), "f").whole
        except GpudebugError:
            continue
        known = {d.gpu_util for d in found.devices} - {None}
        assert known <= {*form.means, 50.0}


def spoilt(text: str, made: random.Random) -> str:
    """A text of which some characters are others, gone or elsewhere too."""
    found = list(text)
    for _ in range(made.choice((1, 3, 10))):
        at, kind = made.randrange(len(found)), made.random()
        if kind < 0.4:
            found[at] = made.choice('\0\t\n ,:/{}[|"09█')
        elif kind < 0.7:
            del found[at]
        else:
            start = made.randrange(len(found))
            found[at:at] = found[start : start + made.randrange(40)]
    return "".join(found)


@pytest.mark.parametrize("form", EVERY.values(), ids=EVERY)
def test_a_form_that_is_spoilt_is_read_or_refused(form: Form) -> None:
    made = random.Random(7)
    for _ in range(15):
        text = spoilt(form.text, made)
        recognised(text)
        try:
            found = read_recording(lines(text), "f").whole
        except GpudebugError:
            continue
        assert all(0 <= d.gpu_util <= 100 for d in found.devices if d.gpu_util is not None)


NO_RECORDINGS = (
    *("", "# gpu run of today\nstep 1\n", "step 1 loss 2\n", HEADER, "step,loss,gpu_util\n1,2,3\n"),
    "".join(f"step {n}, loss {2 / (n + 1):.3f}, gpu util 50 %\n" for n in range(30)),
    "".join(f'{{"step": {n}, "loss": 2.0, "gpu_util": 50}}\n' for n in range(9)),
    FORMS["nvidia-smi"].text[:2000] + "Epoch 1/3\nstep 1 loss 2.0\n",
    "<!DOCTYPE html>\n<html><body>utilization.gpu</body></html>\n",
    "timestamp,cpu_util,memory.used\n1,2,3\n",
    "elapsed,gpu_util,mem_util\n1,2,3\n",
    "\x00\x9c\x13gpu\x7f\n" * 20,
    '{"devices": [{"index": 0, "gpu_util": {"mean": 50.0, "p95": 90.0}}]}',
    "".join(f'[13.24{n}, 100, "stderr"]\n' for n in range(30)),
)


@pytest.mark.parametrize("text", NO_RECORDINGS)
def test_what_is_none_is_not(text: str) -> None:
    assert recognised(text) is None


def test_shares_of_dcgm_stand_beside_the_utilisation() -> None:
    (device,) = read_recording(
        lines(
            "#Entity   GPUTL  SMACT  TENSO  DRAMA\n"
            "ID\n"
            "GPU 0     90     0.4    0.1   0.2\n"
            "GPU 0     70     0.2    0.1   N/A\n"
        ),
        "f",
    ).whole.devices
    assert (device.gpu_util, device.sm_active, device.tensor_active, device.dram_active) == pytest.approx(
        (80, 0.3, 0.1, 0.2)
    )


def test_without_its_utilisation_dcgm_has_that_of_the_graphics_engine() -> None:
    found = read("#Entity   GRACT   DRAMA\nID\nGPU 0     0.457   0.1\nGPU 0     N/A   0.1\n")
    assert [r.reading.gpu_util for r in found.parts[0].rows] == [pytest.approx(45.7), None]
    assert any("GRACT" in note for note in found.notes)


def test_other_figures_of_a_box_and_of_a_tree() -> None:
    for form in ("nvidia-smi", "-q", "-q -x"):
        (first, _) = read_recording(lines(FORMS[form].text), "f").whole.devices
        assert first.power_w == pytest.approx(46, abs=0.2)
        assert first.mem_used_mb in (1234, 3000)
        assert read(FORMS[form].text).version == "550.54.15"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "timestamp, index, utilization.gpu [%]\n",
            "is its header alone: nvidia-smi --query-gpu with no sample",
        ),
        ("timestamp, index, utilization.gpu [%]\nkilled\n", "that can be read: at line 2 a row has 1 cell"),
        (monitors.query(5, header=False, units=False), "no header and no units"),
        (
            "index, utilization.gpu [%]\n" + "".join(f"{n}, 5 %\n" for n in range(300)) * 2,
            "names more than 256 devices",
        ),
        (
            "timestamp,emissions,gpu_power,gpu_count,gpu_utilization_percent\n2026-03-09T14:05:07,1e-6,0.0,0,0\n",
            "by codecarbon of a host without a GPU",
        ),
        ("4711, python, 3000 MiB\n" * 3, "of processes"),
        ("2026/03/09 14:05:07.412, 4711, /usr/bin/python3, 3000 MiB\n" * 3, "of processes"),
        (
            "timestamp, pid, process_name, used_gpu_memory [MiB]\n2026/03/09 14:05:07.1, 1, python, 3 MiB\n",
            "of processes",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_name(text: str, said: str) -> None:
    assert recognised(text)
    with pytest.raises(GpudebugError, match=said):
        read_recording(lines(text), "f")


def test_rows_that_cannot_be_read_are_counted_and_named() -> None:
    found = read(
        monitors.query(5, 1) + "Unable to determine the device handle\n2025/07/27 01:49:00.000, 0, 50"
    )
    assert found.unreadable == 2
    assert found.notes == ["at line 7 a row has 1 cell where the header names 5", "2 rows could not be read"]


def test_two_formats_in_one_file_are_two_recordings() -> None:
    found = read_recording(lines(monitors.query(20, 1) + monitors.dmon(20, 1)), "f")
    assert [run.whole.source for run in found.runs] == ["nvidia-smi --query-gpu", "nvidia-smi dmon"]
    assert found.whole.span_s is None
    assert "the columns change at line 22" in found.notes[0]


def test_columns_that_change_without_a_header_are_not_mixed() -> None:
    fields = ("timestamp", "index", "power.draw", "utilization.gpu", "memory.used")
    found = read(monitors.query(5, 1) + monitors.query(5, 1, fields, header=False, start=60))
    assert (len(found.parts[0].rows), found.unreadable) == (5, 5)


def test_an_impossible_utilisation_is_not_one() -> None:
    found = read("time_s,gpu_util\n0,50\n1,150\n2,nan\n3,50\n")
    assert [r.reading.gpu_util for r in found.parts[0].rows] == [50, None, 50]
    assert found.unreadable == 1


def test_times_since_1970_in_any_unit() -> None:
    for unit in (1, 1e3, 1e6, 1e9):
        found = read(f"timestamp,gpu_util\n{1.76e9 * unit:.0f},50\n{(1.76e9 + 2) * unit:.0f},50\n")
        assert found.parts[0].times[1] - found.parts[0].times[0] == pytest.approx(2)


def test_dcgmi_names_what_it_leaves_out() -> None:
    assert read(monitors.dcgmi(10, mig=True)).notes[1] == "left out: 20 rows of GPU-I"


def test_blocks_that_lack_a_gpu_count_for_no_gpu() -> None:
    def block(n: int) -> str:
        rows = "10 %\n20 %\n" if n == 3 else "10 %\n20 %\n90 %\n"
        return f"Mon Mar 09 14:{n:02d}:07 UTC 2026\nutilization.gpu [%]\n{rows}"

    found = read_recording(lines("".join(map(block, range(10)))), "f")
    assert [(d.gpu_util, d.readings) for d in found.whole.devices] == [(10, 9), (20, 9), (90, 9)]
    assert found.whole.gpu_util == pytest.approx((300 + 90 * 9) / 29)
    assert "1 of 10 readings have not 3 rows" in found.notes[0]


def exported(gpu: int, util: float, more: str = "") -> str:
    labels = f'{{gpu="{gpu}",UUID="GPU-{gpu}0000000",device="nvidia{gpu}"{more}}}'
    return (
        f"# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\nDCGM_FI_DEV_GPU_UTIL{labels} {util}\n"
        f"DCGM_FI_DEV_POWER_USAGE{labels} 100.5\n"
    )


def test_scrapes_of_an_exporter_are_readings_of_each_gpu() -> None:
    instance = exported(0, 99, ',GPU_I_ID="1"')
    text = "".join(exported(0, util) + exported(1, 20) + instance for util in (40, 60))
    assert recognised(text) == "DCGM exporter"
    devices = read_recording(lines(text), "f").whole.devices
    assert [(d.readings, d.gpu_util, d.power_w) for d in devices] == [(2, 50, 100.5), (2, 20, 100.5)]


def test_a_table_of_instances_below_a_box_is_no_gpu() -> None:
    text = (
        "+---------------------------+----------------------+----------------------+\n"
        "| GPU  Name   Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
        "| Fan  Temp  Perf  Pwr:Usage/Cap |    Memory-Usage | GPU-Util  Compute M. |\n"
        "|===========================+======================+======================|\n"
        "|   0  A100   On            | 00000000:07:00.0 Off |                   On |\n"
        "| N/A  32C   P0  86W / 400W | 6789MiB / 40960MiB   |     N/A      Default |\n"
        "+---------------------------+----------------------+----------------------+\n"
        "+-------------------------------------------------------------------------+\n"
        "| MIG devices:                                                            |\n"
        "+------------------+----------------------+-----------+-------------------+\n"
        "| GPU  GI  CI  MIG |         Memory-Usage |        Vol|         Shared    |\n"
        "|==================+======================+===========+===================|\n"
        "|  0    1   0   0  |   3333MiB / 20096MiB | 42      0 |  3   0    2    0  |\n"
        "+------------------+----------------------+-----------+-------------------+\n"
    )
    (device,) = read_recording(lines(text), "f").whole.devices
    assert (device.power_w, device.gpu_util) == (86, None)


@pytest.mark.parametrize("name", ["power", "gpu_power_w"])
def test_a_power_alone_is_a_recording_and_no_gpu_draws_kilowatts(name: str) -> None:
    watts = (90, 110) if name == "power" else (90, 110, 6500)
    text = f"timestamp,{name}\n" + "".join(f"{1_700_000_000 + i},{w}\n" for i, w in enumerate(watts))
    assert recognised(text) == "CSV"
    whole = read_recording(lines(text), "f").whole
    assert (whole.missing, whole.devices[0].power_w) == (("gpu_util", "mem_used_mb"), 100)


def test_a_power_of_no_name_is_remarked() -> None:
    notes = {
        name: read(f"timestamp,{name}\n1700000000,90\n1700000001,91\n").notes
        for name in ("power", "gpu_power_w")
    }
    assert notes == {
        "power": ["its power is taken for a GPU's: no name in it says of what it is"],
        "gpu_power_w": [],
    }


def test_memory_beside_a_column_of_the_cpu_is_the_hosts() -> None:
    text = "timestamp,cpu_percent,memory_used_mb,gpu_util{}\n1700000000,9,9000,50{}\n1700000001,9,9000,50{}\n"
    for more, memory in ((("", "", ""), None), ((",gpu_memory_mb", ",400", ",400"), 400)):
        (device,) = read_recording(lines(text.format(*more)), "f").whole.devices
        assert (device.gpu_util, device.mem_used_mb) == (50, memory)


def test_rows_are_told_apart_by_a_column_that_names_them() -> None:
    found = read_recording(lines(KEPT["rows of containers in another order each time"].text), "f")
    assert [(d.name, d.mem_used_mb) for d in found.whole.devices] == [("worker-1", 400), ("worker-0", 400)]
    assert found.notes == (
        "its rows are told apart by column 'container': whether each is of another GPU is not in the file",
    )


def test_a_row_that_lost_its_index_is_of_no_gpu() -> None:
    text = "index, utilization.gpu [%]\n" + "0, 50 %\n" * 9 + ", 90 %\n"
    (device,) = read_recording(lines(text), "f").whole.devices
    assert (device.readings, device.gpu_util) == (9, 50)


def test_a_log_behind_a_recording_is_named_and_left_out() -> None:
    text = monitors.query(40) + "epoch,loss\n1,2.5\n2,2.1\n"
    assert recognised(text) == "nvidia-smi --query-gpu"
    assert read(text).unreadable == 3


def test_a_mig_device_is_no_part_of_its_gpu() -> None:
    text = FORMS["-q -x"].text.replace(
        "<fb_memory_usage>",
        "<mig_devices><mig_device><fb_memory_usage><used>77 MiB</used></fb_memory_usage>"
        "</mig_device></mig_devices><fb_memory_usage>",
    )
    assert {d.mem_used_mb for d in read_recording(lines(text), "f").whole.devices} == {3000}


def test_a_gpu_with_an_error_in_its_row_is_one() -> None:
    text = FORMS["nvidia-smi"].text.replace(
        "46W / 400W |    1234MiB / 40960MiB |     90%", "ERR! / 400W |    1234MiB / 40960MiB |    ERR!"
    )
    devices = read_recording(lines(text), "f").whole.devices
    assert [(d.gpu_util, d.power_w, d.mem_used_mb) for d in devices] == [(10, 46, 1234), (None, None, 1234)]


def test_a_line_of_many_words_keeps_its_date() -> None:
    rows = "".join(
        f"2026-03-09 14:05:{n:02d} | Power Usage: 49.35W/320.0W | Memory Usage: 17% | GPU Utilization: 11%\n"
        for n in range(9)
    )
    assert read_recording(lines(rows), "f").whole.start == "2026-03-09 14:05:00"


def test_a_gpu_that_is_lost_is_named() -> None:
    box, at_end = FORMS["nvidia-smi"].text, FORMS["nvidia-smi"].text.rindex("Mon Mar")
    gone = box[at_end:].replace(
        "46W / 400W |    1234MiB / 40960MiB |     90%", "ERR! / ERR! | GPU is lost | ERR!"
    )
    found = read(box + gone)
    assert (found.unreadable, found.notes[0]) == (
        1,
        "a GPU is lost in 1 reading: its driver could not reach it any more",
    )


def test_a_clock_that_is_coarser_than_its_rows_gives_no_period_of_its_own() -> None:
    rows = "".join(f"2026-03-09 14:05:{n // 10:02d},0,50\n" for n in range(400))
    whole = read_recording(lines(f"timestamp,gpu_id,gpu_util\n{rows}"), "f").whole
    assert (whole.period_s, whole.gap_count) == (pytest.approx(0.1, abs=0.01), 0)


def test_columns_of_pandas_are_rows_and_no_devices() -> None:
    times = {str(n): 1773065107000 + 1000 * n for n in range(20)}
    for util in ([50] * 20, dict.fromkeys(times, 50)):
        columns = {"timestamp": list(times.values()) if isinstance(util, list) else times, "gpu_util": util}
        (device,) = read_recording([json.dumps(columns)], "f").whole.devices
        assert (device.gpu_util, device.readings) == (50, 20)


def test_a_page_behind_readings_is_named() -> None:
    found = read(monitors.query(5, 1) + "<html>\n<head><title>502 Bad Gateway</title></head>\n</html>\n")
    assert found.notes[0] == "at line 7 an HTML page begins, an error of who delivered it"
    assert found.unreadable == 3


def test_noise_behind_readings_costs_only_itself() -> None:
    noise = random.Random(5).randbytes(2000).decode("utf-8", "replace")
    found = read(monitors.query(20, 1) + noise)
    assert len(found.parts[0].rows) == 20
    assert found.unreadable > 0
