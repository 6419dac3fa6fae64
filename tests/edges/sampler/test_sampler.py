"""The sampler as a real process: its protocol, its clock, and what its endings leave behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.campaigns import record
from tests.support.sampling import SamplerProcess, numbers

from gpudebug.core.samples.row import COLUMNS, HEADER
from gpudebug.core.text.shell_words import isolated_argv
from gpudebug.edges import sampler

CPU = {"kind": "cpu", "cores": 1.0}


@pytest.fixture
def sleeper() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "60"])
    yield process.pid
    process.kill()
    process.wait()


def test_one_run_from_order_to_summary(tmp_path: Path, sleeper: int) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"x" * 321)
    with SamplerProcess(tmp_path, CPU, log=str(log), host_interval=0.3) as run:
        assert run.answer["ready"] is True
        assert run.answer["devices"][0]["uuid"] == "CPU"
        assert run.notes()["complete"] is False
        run.launch(sleeper)
        run.wait_for_rows(7)
        assert run.stop() == 0
    assert run.csv.read_text().startswith(HEADER)
    rows = run.rows()
    assert tuple(rows[0]) == COLUMNS
    assert {row["log_bytes"] for row in rows} == {"321"}
    with_host = [row for row in rows if row["procs"]]
    assert 3 <= len(with_host) < len(rows)
    assert {row["procs"] for row in with_host} == {"1"}
    notes = run.notes()
    assert notes["complete"] is True
    assert (notes["lost"], notes["unwritten"], notes["restarts"]) == (None, 0, 0)
    assert notes["ticks"] == len(rows)
    assert notes["interval"] == 0.1
    assert "power_w" in notes["missing"]


def test_ticks_are_due_at_multiples_of_the_interval_after_the_launch(tmp_path: Path) -> None:
    with SamplerProcess(tmp_path, CPU, interval=0.05) as run:
        run.launch()
        run.wait_for_rows(20)
        run.stop()
    times = numbers(run.rows(), "elapsed")[:-1]
    late = sorted(round(1000 * elapsed) % 50 for elapsed in times)
    # A deadline that drifted would spread the remainders evenly; the median is what load cannot move.
    assert late[len(late) // 2] < 15
    assert numbers(run.rows(), "elapsed") == sorted(numbers(run.rows(), "elapsed"))


def test_ticks_slept_through_are_counted_and_not_made_up_for(tmp_path: Path) -> None:
    with SamplerProcess(tmp_path, CPU, interval=0.05) as run:
        run.launch()
        run.wait_for_rows(3)
        os.kill(run.process.pid, signal.SIGSTOP)
        time.sleep(1)
        os.kill(run.process.pid, signal.SIGCONT)
        run.wait_for_rows(len(run.rows()) + 5)
        run.stop()
    times = numbers(run.rows(), "elapsed")
    gaps = [after - before for before, after in pairwise(times)]
    assert max(gaps) >= 0.95
    notes = run.notes()
    assert notes["missed"] >= 18
    # Each tick was either taken or missed; the row at the end belongs to no tick.
    assert notes["ticks"] - 1 + notes["missed"] == int(times[-1] / 0.05) + 1


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.05, 0.11])
def test_a_kill_leaves_a_readable_csv_and_notes(tmp_path: Path, delay: float) -> None:
    with SamplerProcess(tmp_path, CPU, interval=0.01) as run:
        run.launch()
        run.wait_for_rows(5)
        time.sleep(delay)
        run.process.kill()
        assert run.wait() == -signal.SIGKILL
    assert len(run.rows()) >= 5
    assert run.csv.read_bytes().endswith(b"\n")
    assert run.notes()["complete"] is False


@pytest.mark.parametrize(
    ("left", "kept"),
    [
        (HEADER + "0,12,,,,0,CPU,,,,,,1,,,,,,,,,,,,,\n0.1,13,,,,0,CPU,,,,,,1,,,,,,,,,,,,,\n", 2),
        (HEADER + "0,12,,,,0,CPU,,,,,,1,,,,,,,,,,,,,\n0.1,13,,,", 1),
        (HEADER, 0),
        (HEADER[:30], 0),
        ("", 0),
    ],
    ids=["whole", "torn row", "header only", "torn header", "empty"],
)
def test_a_second_sampler_goes_on_in_the_file_of_the_first(tmp_path: Path, left: str, kept: int) -> None:
    (tmp_path / "samples.csv").write_text(left)
    with SamplerProcess(tmp_path, CPU, resume=True) as run:
        run.launch(t0=time.monotonic() - 5)
        run.wait_for_rows(kept + 3)
        run.stop()
    assert run.csv.read_text().count("elapsed") == 1
    rows = run.rows()
    assert [row["gpu_util"] for row in rows[:kept]] == ["12", "13"][:kept]
    assert all(float(row["elapsed"]) >= 5 for row in rows[kept:])
    notes = run.notes()
    assert notes["restarts"] == 1
    assert notes["resumed_after"] == (None if kept == 0 else (kept - 1) / 10)
    assert notes["missed"] >= 48


def test_a_recording_goes_on_after_its_last_row(tmp_path: Path) -> None:
    recording = record(tmp_path, "0001-h1", seconds=4)
    for resume in (False, True):
        with SamplerProcess(
            tmp_path, {"kind": "replay", "path": str(recording), "speed": 10.0}, resume=resume
        ) as run:
            run.launch(t0=time.monotonic() - 0.1 - 0.2 * resume)
            run.wait_for_rows(8 if resume else 5)
            if resume:
                assert run.stop() == 0
            else:
                run.process.kill()
    seen = numbers(run.rows(), "elapsed")
    assert seen == sorted(set(seen))
    assert len(seen) >= 14


def test_without_resume_an_old_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text("what was here")
    with SamplerProcess(tmp_path, CPU) as run:
        run.launch()
        run.wait_for_rows(1)
        run.stop()
    assert run.csv.read_text().startswith(HEADER)


def test_end_of_input_before_the_launch_ends_it_with_no_row(tmp_path: Path) -> None:
    with SamplerProcess(tmp_path, CPU) as run:
        assert run.stop() == 0
    assert run.rows() == []


def test_ctrl_c_is_left_to_the_parent(tmp_path: Path) -> None:
    with SamplerProcess(tmp_path, CPU) as run:
        run.launch()
        run.wait_for_rows(1)
        os.kill(run.process.pid, signal.SIGINT)
        run.wait_for_rows(len(run.rows()) + 3)
        assert run.stop() == 0


def test_a_full_disk_costs_rows_never_half_ones(tmp_path: Path) -> None:
    with SamplerProcess(tmp_path, CPU, interval=0.02) as run:
        run.launch()
        run.wait_for_rows(3)
        full = run.csv.stat().st_size + 100
        soft, hard = resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (full, hard))
        time.sleep(0.5)
        refused = run.csv.read_bytes()
        resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (soft, hard))
        run.wait_for_rows(refused.count(b"\n") + 3)
        assert run.stop() == 0
    assert full - 100 < len(refused) <= full
    assert refused.endswith(b"\n")
    assert run.notes()["unwritten"] >= 5
    assert run.notes()["ticks"] == len(run.rows()) + run.notes()["unwritten"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_an_error_before_the_run(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with SamplerProcess(tmp_path, CPU) as run:
        assert run.wait() == 4
    assert run.answer["error"]["code"] == "store"


def test_a_file_in_place_of_the_folder_is_an_error_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with SamplerProcess(tmp_path, CPU, csv=str(tmp_path / "file" / "samples.csv")) as run:
        assert run.wait() == 4
    error = run.answer["error"]
    assert error["code"] == "store"
    assert error["file"].endswith("file/samples.csv")
    assert error["next"]


def test_an_unknown_kind_of_device_is_an_error_before_the_run(tmp_path: Path) -> None:
    with SamplerProcess(tmp_path, {"kind": "abacus"}) as run:
        assert run.wait() == 4
    assert "abacus" in run.answer["error"]["message"]


def test_modules_of_the_user_are_never_imported(tmp_path: Path) -> None:
    for name in ("json", "pynvml", "gpudebug", "sitecustomize", "select"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported a module of the user')")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": str(tmp_path / "json.py")}
    with SamplerProcess(tmp_path, CPU, env) as run:
        assert run.answer.get("ready")
        run.launch()
        run.wait_for_rows(1)
        assert run.stop() == 0


def test_it_stays_small(tmp_path: Path) -> None:
    with SamplerProcess(tmp_path, CPU) as run:
        run.launch()
        run.wait_for_rows(3)
        status = Path(f"/proc/{run.process.pid}/status").read_text()
        run.stop()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 20 * 1024


def test_heavy_modules_stay_out_of_its_process() -> None:
    heavy = "{'pydantic', 'typer', 'jinja2', 'yaml', 'numpy', 'git', 'rich'}"
    argv = isolated_argv(
        sys.executable,
        sys.path,
        "from gpudebug.edges import devices, sampler; from gpudebug.edges.devices import nvml, cpu, replay; "
        f"print('pynvml' in sys.modules, {heavy} & set(sys.modules))",
    )
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True set()"


@pytest.mark.parametrize(
    ("elapsed", "planned", "expected"),
    [(0.0, 0, 0), (0.05, 0, 0), (0.21, 1, 1), (0.39, 1, 1), (0.4, 1, 2), (1.01, 2, 5), (0.1, 3, 3)],
)
def test_the_next_tick(elapsed: float, planned: int, expected: int) -> None:
    assert sampler.next_tick(elapsed, 0.2, planned) == expected


def test_the_command_runs_this_interpreter() -> None:
    assert sampler.command()[0] == sys.executable


def test_other_processes_of_the_user_cannot_look_into_it(tmp_path: Path) -> None:
    with SamplerProcess(tmp_path, CPU) as run:
        owner = os.stat(f"/proc/{run.process.pid}/environ").st_uid
        assert owner == 0
        if os.getuid() != 0:
            with pytest.raises(PermissionError):
                os.listdir(f"/proc/{run.process.pid}/fd")
        run.stop()
