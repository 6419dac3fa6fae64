"""`gpudebug sample`: statuses as `env` and `timeout` give them, and where the files go."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import (
    TRAINER,
    Campaign,
    environment,
    gpudebug,
    killed_at_the_end,
    make_repository,
    wait_for,
)
from tests.support.places import SUPPORT

STATUSES = {
    "success": (["true"], 0),
    "its own": (["sh", "-c", "exit 42"], 42),
    "125 of its own": (["sh", "-c", "exit 125"], 125),
    "not found": (["no-such-program"], 127),
    "not executable": ([str(TRAINER)], 126),
    "a folder": (["/tmp"], 126),
    "killed": (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
    "terminated": (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
}
OWN_FAILURES = {
    "no command": (),
    "an unknown option": ("--intervall", "1", "--", "true"),
    "a word for a time": ("--timeout", "soon", "--", "true"),
    "no such device": ("--device", "tpu", "--", "true"),
    "an impossible interval": ("--interval", "0", "--", "true"),
    "methods of no class": ("--methods", "pol:a b", "--", "true"),
    "a folder below a file": ("-o", "/etc/hostname/F.csv", "--", "true"),
}


@pytest.mark.parametrize(("command", "status"), STATUSES.values(), ids=STATUSES)
def test_the_status_is_the_commands(tmp_path: Path, command: list[str], status: int) -> None:
    done = gpudebug(tmp_path, "--json", "sample", "--device=cpu:1", "--", *command).expect(status)
    if status in (126, 127) and "error" in done.json:
        assert done.json["error"]["code"] == "launch"
        assert done.json["error"]["next"]
        assert list(tmp_path.iterdir()) == []
    else:
        assert done.json["exit_status"] == status


def test_a_time_out_is_124(tmp_path: Path) -> None:
    words = ("sample", "--device=cpu:1", "--timeout=0.5s", "--json", "--", "sleep", "60")
    answer = gpudebug(tmp_path, *words).expect(124).json
    assert answer["outcome"] == "TIMED_OUT"


@pytest.mark.parametrize("words", OWN_FAILURES.values(), ids=OWN_FAILURES)
def test_a_failure_of_its_own_before_the_launch_is_125(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = gpudebug(tmp_path, "sample", *words).expect(125)
    (line,) = done.err.splitlines()
    assert "; next: " in line
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_the_command_and_keeps_what_was_sampled(tmp_path: Path) -> None:
    process = Campaign(tmp_path).start("sample", "--device=cpu:1", "-o", "F.csv", "--", "sleep", "600")
    with killed_at_the_end(process):
        wait_for(lambda: (tmp_path / "F.csv").exists() and (tmp_path / "F.csv").stat().st_size > 300)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert len((tmp_path / "F.csv").read_text().splitlines()) > 1


def test_output_and_log_lie_beside_each_other(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo out; echo err >&2"]
    answer = gpudebug(tmp_path, "sample", "--device=cpu:1", "-o", "F.csv", "--json", "--", *command).json
    assert (answer["csv"], answer["log"]) == (str(tmp_path / "F.csv"), str(tmp_path / "F.log"))
    assert sorted((tmp_path / "F.log").read_text().split()) == ["err", "out"]
    assert sorted(os.listdir(tmp_path)) == ["F.csv", "F.log"]
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_its_folder_is_made(tmp_path: Path) -> None:
    gpudebug(tmp_path, "sample", "--device=cpu:1", "-o", "new/sub/F.csv", "--", "true").expect(0)
    assert sorted(os.listdir(tmp_path / "new" / "sub")) == ["F.csv", "F.log"]


def test_a_program_that_takes_the_folder_away_that_it_is_to_tell_in_is_sampled_all_the_same(
    tmp_path: Path,
) -> None:
    command = ["sh", "-c", 'rm -rf "$GPUDEBUG_RUN_DIR" "$GPUDEBUG_RECORDS_DIR"']
    done = gpudebug(tmp_path, "--json", "sample", "--device=cpu:1", "--", *command).expect(0)
    assert (done.json["outcome"], done.json["probe"], done.json["sections"]) == ("COMPLETED", None, None)


def test_a_folder_that_was_put_in_the_place_of_its_temporary_one_stays(tmp_path: Path) -> None:
    """Whoever may write beside the samples can rename there while the command runs."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("three years")
    swap = 'd=$(dirname "$GPUDEBUG_RUN_DIR"); mv "$d" .aside; mv thesis "$d"; echo "$d" > swapped'
    words = ("--json", "sample", "--device=cpu:1", "--torch-profile=default", "-o", "F.csv")
    done = gpudebug(tmp_path, *words, "--", "sh", "-c", swap).expect(0)
    place = Path((tmp_path / "swapped").read_text().strip())
    assert place.parent == tmp_path
    assert (place / "chapter").read_text() == "three years"
    assert any("was moved away" in note for note in done.json["notes"])


def test_without_a_name_nothing_is_overwritten(tmp_path: Path) -> None:
    for _ in range(2):
        gpudebug(tmp_path, "sample", "--device=cpu:1", "--", "true").expect(0)
    assert sorted(os.listdir(tmp_path)) == ["sample-1.csv", "sample-1.log", "sample-2.csv", "sample-2.log"]


def test_in_a_campaign_it_is_a_run(campaign: Campaign) -> None:
    done = gpudebug(campaign.folder, "--json", "sample", "--device=cpu:1", "--", "echo", "hello").expect(0)
    assert campaign.runs() == ["0001-sample"]
    assert done.json["log"] == str(campaign.folder / "runs" / "0001-sample" / "train.log")
    assert (campaign.folder / "runs" / "0001-sample" / "manifest.json").exists()
    # A sample is nobody's evidence: the campaign goes on as if it were not there.
    assert campaign.json("status")["next"]["action"] == "record_baseline"


def test_a_short_window_is_unknown_and_never_zero(tmp_path: Path) -> None:
    done = gpudebug(tmp_path, "--json", "sample", "--device=cpu:1", "--", "sleep", "1").expect(0)
    assert done.json["window"] is None
    (device,) = done.json["devices"]
    assert device["gpu_util"] is None
    assert "too short" in device["reason"]
    assert done.json["throughput"]["steps_per_s"] is None


@pytest.mark.slow
def test_a_real_training_is_measured(tmp_path: Path) -> None:
    command = [sys.executable, str(TRAINER), "--work=0.5", "--duration=8"]
    done = gpudebug(tmp_path, "--json", "sample", "--device=cpu:1", "--", *command).expect(0)
    assert set(done.json) >= {
        *("outcome", "exit_status", "window", "devices", "throughput", "probe", "csv", "log")
    }
    (device,) = done.json["devices"]
    assert (device["index"], device["uuid"]) == (0, "CPU")
    assert 20 < device["gpu_util"]["mean"] < 80
    assert device["gpu_util"]["p5"] <= device["gpu_util"]["p50"] <= device["gpu_util"]["p95"]
    assert done.json["window"]["end_s"] - done.json["window"]["start_s"] >= 5
    # At what rate its 400 steps went depends on who else computes: the last sample says how long they took.
    took = float((tmp_path / "sample-1.csv").read_text().splitlines()[-1].split(",")[0])
    assert done.json["throughput"]["steps_per_s"] == pytest.approx(400 / took, rel=0.3)
    text = gpudebug(tmp_path, "analyze", "sample-1.csv").expect(0).out
    assert "CPU stand-in" in text


def test_the_commands_own_options_are_left_alone(tmp_path: Path) -> None:
    words = ("sample", "--device=cpu:1", "-o", "F.csv", "--", "echo", "--json", "-C", "/", "-o", "x")
    done = gpudebug(tmp_path, *words).expect(0)
    assert "COMPLETED" in done.out
    assert (tmp_path / "F.log").read_text() == "--json -C / -o x\n"


def test_standard_input_is_closed_to_it(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "gpudebug", "sample", "--device=cpu:1", "-o", "F.csv", "--", "cat"],
        cwd=tmp_path,
        input=b"not for the training\n",
        env=environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0
    assert (tmp_path / "F.log").read_bytes() == b""


@pytest.mark.parametrize("name", ["F", "F.txt", "a b.csv"])
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    gpudebug(tmp_path, "sample", "--device=cpu:1", "-o", name, "--", "true").expect(0)
    assert (tmp_path / name).read_text().startswith("elapsed,gpu_util,")


def test_a_log_that_is_somebody_elses_is_never_replaced(tmp_path: Path) -> None:
    for name in ("train.log", "sample-1.log"):
        (tmp_path / name).write_text("mine\n")
    done = gpudebug(tmp_path, "sample", "--device=cpu:1", "-o", "train.csv", "--", "true").expect(125)
    assert "train.log" in done.err
    gpudebug(tmp_path, "sample", "--device=cpu:1", "--", "true").expect(0)
    assert sorted(os.listdir(tmp_path)) == ["sample-1.log", "sample-2.csv", "sample-2.log", "train.log"]
    assert (tmp_path / "train.log").read_text() == (tmp_path / "sample-1.log").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["F.log", "fifo", "folder", "/", "."])
def test_an_output_that_would_not_do_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    done = gpudebug(tmp_path, "sample", "--device=cpu:1", "-o", name, "--", "true").expect(125)
    assert re.search("; next: ", done.err)
    assert sorted(os.listdir(tmp_path)) == ["fifo", "folder"]


def test_a_shell_sees_json(tmp_path: Path) -> None:
    done = gpudebug(tmp_path, "sample", "--json", "--device=cpu:1", "--", "sh", "-c", "echo noise").expect(0)
    assert len(done.out.splitlines()) == 1
    assert json.loads(done.out)["outcome"] == "COMPLETED"


def test_the_log_of_a_server_is_replaced_with_the_samples_alone(tmp_path: Path) -> None:
    """It was appended to: what an earlier server had printed made the next one ready."""
    python = shlex.quote(sys.executable)
    config = (
        f"workload: {{command: '{python} {SUPPORT}/ask.py --port={{port}} --requests=3'}}\n"
        f"server: {{command: '{python} {SUPPORT}/serve.py --port={{port}}', ready: {{log: complete}}}}\n"
    )
    folder = tmp_path / "repo"
    make_repository(folder, {"gpudebug.yaml": config})
    log = folder / "F.server.log"
    log.write_text("startup complete\n")
    words = ("sample", "--device=cpu:1", "-o", "F.csv")
    done = gpudebug(folder, *words).expect(125)
    assert "F.server.log: is not a file that gpudebug wrote" in done.err
    assert not (folder / "F.csv").exists()
    log.unlink()
    for _ in range(2):
        gpudebug(folder, *words).expect(0)
        assert log.read_text().count("startup complete") == 1


def test_out_of_memory_outside_a_campaign_is_named_with_what_to_try(tmp_path: Path) -> None:
    error = "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')"
    done = gpudebug(tmp_path, "sample", "--device=cpu:1", "-o", "F.csv", "--", sys.executable, "-c", error)
    assert "failure oom_gpu: RuntimeError: CUDA out of memory" in done.out
    assert "try a smaller batch" in done.out


def test_the_methods_of_a_class_are_timed_and_one_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "pol.py").write_text("class Policy:\n    def act(self):\n        return sum(range(9999))\n")
    (tmp_path / "main.py").write_text("import pol\nfor _ in range(50):\n    pol.Policy().act()\n")
    words = ("--device=cpu:1", "--", sys.executable, "main.py")
    done = gpudebug(tmp_path, "sample", "--methods", "pol:Policy", *words).expect(0)
    assert re.search(r"Policy\.act +100\.0% .* 50 calls", done.out), done.out
    lost = gpudebug(tmp_path, "sample", "--methods", "pol:Polisy", *words).expect(0)
    assert "note: no method of pol:Polisy was timed" in lost.out
