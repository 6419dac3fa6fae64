"""`gpudebug doctor --gpu` on stand-ins for both of NVIDIA's libraries: healthy GPUs, and each fault found."""

from __future__ import annotations

import fcntl
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import cuda, nvml
from tests.support.campaigns import gpudebug
from tests.support.gpu_bundles import read_bundle
from tests.support.gpu_doctor import diagnosed

from gpudebug.core.errors import InterruptedRun
from gpudebug.core.hardware.table import checks_of
from gpudebug.core.words import Outcome
from gpudebug.engine.tools import gpu_doctor
from gpudebug.engine.tools.gpu_bundle import NAME

# What only a busy host decides: how punctual the sampler was.
BY_LOAD = {"sampling"}
CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "two healthy ones": ({"count": 2, "seconds": 2.0}, {}),
    "lies": (
        {"driver": "unsupported=energy\ngpu 0 util=100"},
        {"utilisation": "failed", "idle": "failed", "energy": "unknown", "columns": "unknown"},
    ),
    "no power": (
        {"driver": "unsupported=power,energy denied=temperature"},
        {"power": "unknown", "spinning": "unknown", "energy": "unknown", "columns": "failed"},
    ),
    "a part": (
        {"driver": "gpu 0 mig=2"},
        dict.fromkeys(
            ("MIG", "buffer", "columns", "idle", "utilisation", "power", "spinning", "throttling", "energy"),
            "unknown",
        )
        | {"processes": "unknown"},
    ),
    "another order": ({"count": 2, "script": "order=1,0", "seconds": 1.8}, {"UUIDs": "failed"}),
    "vanishes": ({"script": "vanish_at=5", "driver": "lost_at=7"}, {"load": "failed"}),
    "crashes": ({"script": "crash_at=5"}, {"load": "failed"}),
}


@pytest.fixture(scope="module")
def answers(made_once: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """The answer of each case."""
    return made_once("gpu_doctor", all_diagnosed)


def all_diagnosed(folder: Path) -> dict[str, Any]:
    """Some at a time, since they wait more than they compute."""
    with ThreadPoolExecutor(4) as pool:
        running = {
            name: pool.submit(diagnosed, folder / str(number), **told)
            for number, (name, (told, _)) in enumerate(CASES.items())
        }
        return {name: one.result() for name, one in running.items()}


def results(answer: Any) -> dict[str, str]:
    """What is not ok, by the name of the check without its GPU; of two GPUs the worse."""
    found: dict[str, str] = {}
    for check in answer["checks"]:
        name = check["name"].removeprefix("GPU 0 ").removeprefix("GPU 1 ")
        if check["result"] != "ok" and name not in BY_LOAD and found.get(name) != "failed":
            found[name] = check["result"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in CASES if n not in ("vanishes", "crashes")])
def test_each_fault_is_found_and_nothing_else(answers: dict[str, Any], name: str) -> None:
    assert results(answers[name]) == CASES[name][1]
    checks = answers[name]["checks"]
    assert answers[name]["ok"] == ("failed" not in {c["result"] for c in checks})
    assert all(c["next"] for c in checks if c["result"] != "ok")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vanishes", "crashes"])
def test_a_gpu_that_goes_away_ends_the_load_not_the_doctor(answers: dict[str, Any], name: str) -> None:
    found = {c["name"]: c for c in answers[name]["checks"]}
    assert found["load"]["result"] == "failed"
    assert found["GPU 0 utilisation"]["result"] == "unknown"
    assert found["GPU 0 copies"]["result"] == "ok"


@pytest.mark.slow
def test_one_gpu_is_loaded_while_the_other_idles(answers: dict[str, Any]) -> None:
    found = {c["name"]: c["found"] for c in answers["two healthy ones"]["checks"]}
    assert "in 5 phases" in found["GPU 0 idle"] and "in 5 phases" in found["GPU 1 idle"]
    assert "GPU 0: 1" in found["two together"] and "GPU 1: " in found["two together"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_bundle_gives_the_same_table_again(answers: dict[str, Any], name: str) -> None:
    machine, recording = read_bundle(Path(answers[name]["bundle"]))
    again = [(c.name, c.result) for c in checks_of(machine, recording)]
    assert again == [(c["name"], c["result"]) for c in answers[name]["checks"]][: len(again)]


@pytest.mark.slow
def test_a_bundle_is_replayed_and_analysed(answers: dict[str, Any], tmp_path: Path) -> None:

    with tarfile.open(answers["two healthy ones"]["bundle"]) as archive:
        archive.extractall(tmp_path, filter="data")
    samples = "gpudebug-gpu/0001-sample/samples.csv"
    found = gpudebug(tmp_path, "analyze", samples, "--json").expect(0).json
    assert [d["uuid"][:12] for d in found["devices"]] == ["GPU-00000000", "GPU-00000000"]
    device = "replay:gpudebug-gpu@60x"
    done = gpudebug(tmp_path, "sample", "--device", device, "--json", "-o", "again.csv", "--", "true").expect(
        0
    )
    assert done.json["replayed"] is True and len(done.json["devices"]) == 2


def test_without_a_gpu_it_is_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    env = nvml.no_driver(tmp_path)
    here = tmp_path / "here"
    here.mkdir()
    done = gpudebug(here, "doctor", "--gpu", env=env).expect(2)
    assert done.err.count("\n") == 1 and "no NVIDIA driver" in done.err
    env = cuda.standin(tmp_path)
    assert (
        "hides every GPU"
        in gpudebug(here, "doctor", "--gpu", env={**env, "CUDA_VISIBLE_DEVICES": ""}).expect(2).err
    )
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / cuda.LIBRARY).touch()
    path = f"{tmp_path / 'empty'}:{env['LD_LIBRARY_PATH']}"
    done = gpudebug(here, "doctor", "--gpu", "--json", env={**env, "LD_LIBRARY_PATH": path}).expect(2)
    assert "cannot be loaded" in done.json["error"]["message"]
    assert list(here.iterdir()) == []


def test_a_gpu_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "procs").write_text("4711\n")
    env = cuda.standin(tmp_path, driver=f"gpu 0 procs={tmp_path / 'procs'}")
    done = gpudebug(tmp_path, "doctor", "--gpu", env=env).expect(6)
    assert "in use by process 4711" in done.err


def test_a_bundle_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("mine")
    done = gpudebug(tmp_path, "doctor", "--gpu", env=cuda.standin(tmp_path)).expect(1)
    assert "is there already" in done.err and (tmp_path / NAME).read_text() == "mine"


def test_an_interruption_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for name, value in {**cuda.standin(tmp_path), "GPUDEBUG_LOCK_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    record = SimpleNamespace(outcome=Outcome.INTERRUPTED, reason="from the keyboard")
    ended = SimpleNamespace(record=record, folder=SimpleNamespace(path=here))
    monkeypatch.setattr(gpu_doctor, "measure", lambda bench, job: ended)
    with pytest.raises(InterruptedRun):
        gpu_doctor.gpu_doctor(here, lambda live: None, gpu_doctor.GpuPlan())
    assert list(here.iterdir()) == []


def test_a_gpu_that_a_campaign_holds_is_left_alone(tmp_path: Path) -> None:
    env = {**cuda.standin(tmp_path), "GPUDEBUG_LOCK_DIR": str(tmp_path)}
    lock = tmp_path / f"{nvml.uuid(0)}.lock"
    with open(lock, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = gpudebug(tmp_path, "doctor", "--gpu", env=env).expect(6)
    assert "is in use" in done.err and not (tmp_path / NAME).exists()


def test_where_cuda_uses_another_gpu_than_is_sampled_nothing_is_loaded(tmp_path: Path) -> None:
    answer = diagnosed(tmp_path / "case", "order=1,0", count=2, CUDA_VISIBLE_DEVICES="0")
    assert results(answer) == {"UUIDs": "failed", "load": "failed"}
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in next(c["next"] for c in answer["checks"] if c["name"] == "UUIDs")


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    assert "--gpu checks the GPUs alone" in gpudebug(tmp_path, "doctor", "--gpu", "--ask").expect(2).err
