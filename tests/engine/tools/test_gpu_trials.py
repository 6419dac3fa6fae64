"""What `doctor --gpu` runs after the loads: a campaign that has to be VALIDATED, and the probe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support import cuda
from tests.support import gpu_recordings as made

from gpudebug.core.answers.sample import FailureLines
from gpudebug.core.answers.setup import DoctorCheck
from gpudebug.core.errors import BusyError, GpudebugError, InterruptedRun
from gpudebug.core.hardware.recording import Gpu
from gpudebug.edges import launcher
from gpudebug.edges.launcher.interpreter import Asked
from gpudebug.engine.tools import gpu_trials


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A GPU of the stand-ins for what this process starts."""
    for name, value in {**cuda.standin(tmp_path), "GPUDEBUG_LOCK_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield


@pytest.mark.heavy
def test_a_campaign_on_the_gpu_is_validated(gpu: None) -> None:
    check = gpu_trials._campaign(made.machine(), lambda live: None, 7.0)
    assert (check.result, check.next) == ("ok", None), check.found
    assert "tested: VALIDATED" in check.found


def test_a_part_of_a_gpu_has_no_utilisation_to_judge_by() -> None:
    part = Gpu(0, made.machine().gpus[0].uuid, "x", mig=True)
    assert gpu_trials._campaign(made.machine(gpus=(part,)), lambda live: None, 7.0).result == "unknown"


def test_a_campaign_that_cannot_run_fails_with_its_reason(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    check = gpu_trials._campaign(made.machine(), lambda live: None, 7.0)
    assert check.result == "failed" and check.found and check.next


def test_a_gpu_that_another_took_meanwhile_is_unknown_and_ctrl_c_ends_all(
    gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(error: GpudebugError) -> DoctorCheck:
        def stop(*_: object) -> None:
            raise error

        monkeypatch.setattr(gpu_trials, "_validated", stop)
        return gpu_trials._campaign(made.machine(), lambda live: None, 7.0)

    assert stopping(BusyError("taken", next="wait")).result == "unknown"
    assert stopping(GpudebugError("broken")).result == "failed"
    with pytest.raises(InterruptedRun):
        stopping(InterruptedRun("interrupted"))


def test_without_pytorch_the_probe_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "ask", lambda path, env: Asked("3.11.0", {}))
    check = gpu_trials._probe([sys.executable], lambda live: None)
    assert check.result == "unknown" and "no PyTorch" in check.found and check.next


@pytest.mark.parametrize(
    ("line", "said"),
    [("RuntimeError: no CUDA", "CRASHED, RuntimeError: no CUDA"), ("node17 died", "CRASHED, exception")],
)
def test_of_a_pytorch_that_crashed_only_an_exception_is_shown(
    monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    ended = SimpleNamespace(outcome="CRASHED", failure=FailureLines(class_="exception", lines=("at x", line)))
    monkeypatch.setattr(launcher, "ask", lambda path, env: Asked("3.11.0", {"torch": "2.4.0"}))
    monkeypatch.setattr(gpu_trials, "sample", lambda *_, **__: ended)
    check = gpu_trials._probe([sys.executable], lambda live: None)
    assert check.found == f"PyTorch did not train on the GPU: {said}"


@pytest.mark.slow
def test_a_pytorch_that_cannot_use_the_gpu_is_unknown_too(gpu: None) -> None:
    asked = launcher.ask(sys.executable, os.environ)
    if asked is None or "torch" not in asked.packages:
        pytest.skip("no PyTorch here")
    check = gpu_trials._probe([sys.executable], lambda live: None)
    assert check.result == "unknown" and "did not train on the GPU: CRASHED" in check.found
