"""What a section report says of where it was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudebug.training.profiling.surroundings import surroundings


def among(
    monkeypatch: pytest.MonkeyPatch, *words: str, torch: Any = None, dynamo: Any = None
) -> dict[str, Any]:
    monkeypatch.setattr(sys, "argv", ["train.py", *words])
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", dynamo)
    return surroundings()


def test_options_that_decide_how_much_a_call_does(monkeypatch: pytest.MonkeyPatch) -> None:
    found = among(
        monkeypatch,
        "--rtc.execution_horizon=20",
        "--batch-size",
        "64",
        "trainer.batch_size=1024",
        "--policy.type=act",
        "--policy.device=cuda",
        "--use_torch_compile",
        "--denoising-steps",
        "4",
        "--api_key=abc",
        "--dtype=/home/you/secret/path",
        "batch_size",
    )
    assert found["settings"] == {
        "rtc.execution_horizon": "20",
        "batch_size": "64",
        "trainer.batch_size": "1024",
        "policy.type": "act",
        "policy.device": "cuda",
        "use_torch_compile": "true",
        "denoising_steps": "4",
    }
    assert found["cpus"] > 0


@pytest.mark.parametrize(("frames", "compiled"), [({"ok": 3}, True), ({}, False)])
def test_whether_something_was_compiled(
    monkeypatch: pytest.MonkeyPatch, frames: dict[str, int], compiled: bool
) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: True, get_device_name=lambda: "NVIDIA A100")
    torch = SimpleNamespace(__version__="2.9.0", cuda=cuda)
    found = among(monkeypatch, torch=torch, dynamo=SimpleNamespace(counters={"frames": frames}))
    assert (found["compiled"], found["device"], found["torch"]) == (compiled, "NVIDIA A100", "2.9.0")


def test_without_pytorch_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = among(monkeypatch)
    assert (found["compiled"], found["device"], found["torch"]) == (None, None, None)
    broken = among(monkeypatch, torch=SimpleNamespace())
    assert (broken["compiled"], broken["device"], broken["torch"]) == (None, None, None)


def test_a_report_holds_it(tmp_path: Path) -> None:
    code = "import gpudebug as g; g.enable_profiling(report='r.json')\nwith g.profile_section('a'): pass"
    subprocess.run([sys.executable, "-c", code, "--batch_size=8"], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "r.json").read_text())["surroundings"]["settings"] == {"batch_size": "8"}
