"""The loading process by what it prints, on a stand-in for CUDA's driver that takes the time it is told."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support import cuda, nvml

from gpudebug.core.hardware.plan import Load, Phase
from gpudebug.edges import cudaload
from gpudebug.edges.cudaload import driver

PHASES = (Phase("idle", 0.1), Phase("work 50", 1.3, (Load(nvml.uuid(0), "work", 0.5),)))


def printed(env: dict[str, str], *phases: Phase, status: int = 0) -> list[dict[str, Any]]:
    done = subprocess.run(
        cudaload.load_command(phases or PHASES), env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_kind(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["kind"] == kind]


def test_it_prints_what_it_made_the_gpu_do(tmp_path: Path) -> None:
    lines = printed(cuda.standin(tmp_path))
    assert (lines[0]["kind"], lines[-1]["kind"]) == ("begin", "end")
    assert [line["name"] for line in of_kind(lines, "phase")] == ["idle", "work 50"]
    (timer,) = of_kind(lines, "timer")
    assert timer["event_s"] == pytest.approx(0.05, abs=1e-4) and timer["host_s"] >= timer["event_s"]
    (copy,) = of_kind(lines, "copy")
    assert copy["same"] is True and copy["bytes"] == 32 << 20
    assert [line["bytes"] for line in of_kind(lines, "memory")] == [256 << 20]
    slices = of_kind(lines, "slice")
    assert slices and all(line["gpu"] == nvml.uuid(0) and line["kernel"] == "work" for line in slices)
    # A busy machine may start kernels late, never run them longer: the share is at most what was asked for.
    assert all(0 < line["busy_s"] <= 0.55 * (line["to"] - line["from"]) for line in slices)


def test_two_gpus_work_at_the_same_time(tmp_path: Path) -> None:
    loads = (Load(nvml.uuid(0), "work", 0.15), Load(nvml.uuid(1), "spin", 0.95))
    lines = printed(cuda.standin(tmp_path, count=2), Phase("together", 1.2, loads))
    slices = of_kind(lines, "slice")
    assert {line["gpu"] for line in slices} == {nvml.uuid(0), nvml.uuid(1)}
    (phase,) = of_kind(lines, "phase")
    assert phase["to"] - phase["from"] < 2.4
    assert all(phase["from"] <= line["from"] < line["to"] <= phase["to"] for line in slices)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("bad_ptx=1", "ptxas application ptx input, line 3; error : made up"),
        ("launch_error=2", "cuLaunchKernel: CUDA_ERROR_OUT_OF_MEMORY"),
        ("vanish_at=0.7", "CUDA_ERROR_UNKNOWN (CUDA error 999)"),
    ],
)
def test_a_call_that_fails_is_named_and_ends_it(tmp_path: Path, script: str, said: str) -> None:
    lines = printed(cuda.standin(tmp_path, script), status=1)
    assert lines[-1]["kind"] == "failed"
    assert said in lines[-1]["message"]


CALLS = (
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetUuid_v2",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxSetFlags_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuModuleLoadDataEx",
    "cuModuleGetFunction",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemAllocHost_v2",
    "cuMemFreeHost",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuLaunchKernel",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventElapsedTime",
)


@pytest.mark.parametrize("call", CALLS)
def test_each_call_of_the_driver_may_fail(tmp_path: Path, call: str) -> None:
    short = Phase("work 50", 0.05, PHASES[1].loads)
    lines = printed(cuda.standin(tmp_path, f"fail={call}"), short, status=1)
    assert lines[-1]["kind"] == "failed"
    assert lines[-1]["message"].startswith(f"{call}: CUDA_ERROR_UNKNOWN")


def test_those_are_all_calls() -> None:
    source = "".join(path.read_text() for path in Path(driver.__file__).parent.glob("*.py"))
    older = set(driver._RENAMED.values())
    named = set(re.findall(r'"(cu[A-Z]\w+)"', source)) - older
    assert named == set(CALLS) | {"cuDriverGetVersion"}


def test_a_driver_before_cuda_11_has_the_older_names(tmp_path: Path) -> None:
    lines = printed(cuda.standin(tmp_path, older=True), Phase("idle", 0.01), PHASES[1])
    assert lines[-1]["kind"] == "end"


@pytest.mark.parametrize("corrupt", [0, 1, 2])
def test_copies_that_come_back_changed_are_not_the_same(tmp_path: Path, corrupt: int) -> None:
    """Wherever in the 32 MB a byte differs."""
    env = cuda.standin(tmp_path, f"corrupt={corrupt}")
    (copy,) = of_kind(printed(env, Phase("idle", 0.0), PHASES[1]), "copy")
    assert copy["same"] is (corrupt == 0)


def test_as_a_training_it_logs_steps_and_a_loss_that_falls(tmp_path: Path) -> None:
    done = subprocess.run(
        cudaload.command("train", "0.01", "0.8"),
        env=cuda.standin(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    words = [line.split() for line in done.stdout.splitlines()]
    assert len(words) >= 2 and all(w[0] == "step" and w[2] == "loss" for w in words)
    losses = [float(w[3]) for w in words]
    assert losses == sorted(losses, reverse=True)


def test_other_arguments_are_refused() -> None:
    done = subprocess.run(cudaload.command("nonsense"), check=False)
    assert done.returncode == 2
