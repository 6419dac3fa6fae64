"""`gpudebug doctor --gpu` on stand-ins for both of NVIDIA's libraries: healthy GPUs, and each fault found."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import platform
import sys
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import cuda, nvml
from tests.support import gpu_recordings as made
from tests.support.campaigns import gpudebug
from tests.support.gpu_bundles import members, read_bundle, stored_and_derived
from tests.support.gpu_doctor import diagnosed
from tests.support.places import DATA

from gpudebug.core.answers.log import FailureLines
from gpudebug.core.answers.setup import DoctorCheck
from gpudebug.core.errors import BusyError, GpudebugError, InterruptedRun, StoreError
from gpudebug.core.hardware.recording import Gpu
from gpudebug.core.hardware.table import checks_of
from gpudebug.core.words import Outcome
from gpudebug.edges import launcher
from gpudebug.edges.launcher.interpreter import Asked
from gpudebug.engine.tools import gpu_doctor
from gpudebug.engine.tools.gpu_doctor import BUNDLE as NAME
from gpudebug.engine.tools.gpu_doctor import RunTexts, place_in, write_bundle

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


BUNDLES = sorted((DATA / "gpu_bundles").glob("*.tar.gz"))
CHECKS = (DoctorCheck("load", "failed", "cannot read /home/anna/x", "see `ls -l /dev/nvidia*`"),)


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.name)
def test_a_bundle_of_a_report_gives_its_table_again(path: Path) -> None:
    stored, again = stored_and_derived(path)
    assert again == stored


def test_nothing_in_it_names_card_person_path_or_time(tmp_path: Path) -> None:
    samples, log, notes = made.texts(2, notes={"written": ["/home/anna/events"], "lost": "at /home/anna/x"})
    log = "Traceback of /home/anna/train.py\n" + log
    machine = made.machine(2, outcome="SAMPLER_LOST", reason="no /home/anna/samples.csv")
    write_bundle(tmp_path / NAME, machine, RunTexts(samples, log, notes), CHECKS)
    with tarfile.open(tmp_path / NAME) as archive:
        members = archive.getmembers()
        text = "".join((archive.extractfile(m) or pytest.fail(m.name)).read().decode() for m in members)
    assert len(members) == 6
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "", "", 0)}
    assert "anna" not in text and "5ca1ab1" not in text
    assert "/dev/nvidia" in text and "NVIDIA Stand-in 100" in text


def test_no_host_or_user_and_no_words_of_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "node", lambda: "node17.lab.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "anna")
    for name, value in (
        ("SLURM_JOB_NODELIST", "ampere[01-02]"),
        ("MASTER_ADDR", "10.1.2.3"),
        ("HEAD_ADDR", "curie"),
    ):
        monkeypatch.setenv(name, value)
    found = "CRASHED, torch.distributed.DistNetworkError: secret at db-4:29500"
    check = DoctorCheck("probe", "unknown", found, "ask anna about node17 and node18.lab.example: /srv/a/b")
    notes = {"lost": "RuntimeError: secret", "interval": 0.1, "missing": {"power_w": "ask curie, ampere07"}}
    log = '{"kind": "failed", "message": "10.1.2.3 and ampere02 are gone"}\n'
    machine = made.machine(outcome="CRASHED", reason="node17: RuntimeError: secret")
    write_bundle(tmp_path / NAME, machine, RunTexts(log=log, notes=json.dumps(notes)), (check,))
    files = members(tmp_path / NAME)
    text = "".join(files.values())
    assert not [word for word in ("ampere", "10.1.2.3", "curie", "node18") if word in text]
    assert not [word for word in ("anna", "node17", "lab.example", "secret", "db-4", "/srv") if word in text]
    (stored,) = json.loads(files["gpudebug-gpu/checks.json"])
    assert stored["found"] == "CRASHED, torch.distributed.DistNetworkError"
    assert stored["next"].startswith("ask (a name) about (a name) and ")


def test_a_campaign_gets_it_into_its_runs(tmp_path: Path) -> None:
    """An untracked file beside the code would be part of the base that its worktrees are made of."""
    inner = tmp_path / "src"
    inner.mkdir()
    assert place_in(inner) == inner / NAME
    (tmp_path / "gpudebug.yaml").touch()
    assert place_in(inner) == place_in(tmp_path) == tmp_path / "runs" / NAME
    write_bundle(place_in(tmp_path), made.machine(), RunTexts(), ())
    assert read_bundle(tmp_path / "runs" / NAME)


def test_what_is_read_back_gives_the_same_checks(tmp_path: Path) -> None:
    texts, machine = RunTexts(*made.texts(2)), made.machine(2)
    write_bundle(tmp_path / NAME, machine, texts, ())
    assert checks_of(*read_bundle(tmp_path / NAME)) == checks_of(machine, texts.parsed())


def test_a_run_that_never_was_has_a_bundle_too(tmp_path: Path) -> None:
    write_bundle(tmp_path / NAME, made.machine(outcome="NOT_STARTED"), RunTexts(), CHECKS)
    machine, recording = read_bundle(tmp_path / NAME)
    assert (machine.outcome, recording.rows) == ("NOT_STARTED", ())


def test_what_was_checked_before_an_interruption_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, texts = made.machine(), RunTexts(*made.texts())
    monkeypatch.setattr(gpu_doctor, "_machine", lambda env: machine)
    monkeypatch.setattr(gpu_doctor, "_recorded", lambda *asked: (machine, texts))

    def trials(*asked: object) -> Iterator[DoctorCheck]:
        assert read_bundle(tmp_path / NAME)
        yield CHECKS[0]
        raise InterruptedRun("interrupted")

    plan = gpu_doctor.GpuPlan(trials=trials)
    with pytest.raises(InterruptedRun, match="checks, which are in the bundle"):
        gpu_doctor.gpu_doctor(tmp_path, lambda live: None, plan)
    with tarfile.open(tmp_path / NAME) as archive:
        kept = archive.extractfile("gpudebug-gpu/checks.json")
        assert kept is not None and json.load(kept)[-1]["name"] == CHECKS[0].name


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("mine")
    with pytest.raises(StoreError, match="is there already"):
        write_bundle(tmp_path / NAME, made.machine(), RunTexts(), ())
    assert (tmp_path / NAME).read_text() == "mine"


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A GPU of the stand-ins for what this process starts."""
    for name, value in {**cuda.standin(tmp_path), "GPUDEBUG_LOCK_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield


@pytest.mark.heavy
def test_a_campaign_on_the_gpu_is_validated(gpu: None) -> None:
    check = gpu_doctor._campaign(made.machine(), lambda live: None, 7.0)
    assert (check.result, check.next) == ("ok", None), check.found
    assert "tested: VALIDATED" in check.found


def test_a_part_of_a_gpu_has_no_utilisation_to_judge_by() -> None:
    part = Gpu(0, made.machine().gpus[0].uuid, "x", mig=True)
    assert gpu_doctor._campaign(made.machine(gpus=(part,)), lambda live: None, 7.0).result == "unknown"


def test_a_campaign_that_cannot_run_fails_with_its_reason(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    check = gpu_doctor._campaign(made.machine(), lambda live: None, 7.0)
    assert check.result == "failed" and check.found and check.next


def test_a_gpu_that_another_took_meanwhile_is_unknown_and_ctrl_c_ends_all(
    gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(error: GpudebugError) -> DoctorCheck:
        def stop(*_: object) -> None:
            raise error

        monkeypatch.setattr(gpu_doctor, "_validated", stop)
        return gpu_doctor._campaign(made.machine(), lambda live: None, 7.0)

    assert stopping(BusyError("taken", next="wait")).result == "unknown"
    assert stopping(GpudebugError("broken")).result == "failed"
    with pytest.raises(InterruptedRun):
        stopping(InterruptedRun("interrupted"))


def test_without_pytorch_the_probe_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "ask", lambda path, env: Asked("3.11.0", {}))
    check = gpu_doctor._probe([sys.executable], lambda live: None)
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
    monkeypatch.setattr(gpu_doctor, "sample", lambda *_, **__: ended)
    check = gpu_doctor._probe([sys.executable], lambda live: None)
    assert check.found == f"PyTorch did not train on the GPU: {said}"


@pytest.mark.slow
def test_a_pytorch_that_cannot_use_the_gpu_is_unknown_too(gpu: None) -> None:
    asked = launcher.ask(sys.executable, os.environ)
    if asked is None or "torch" not in asked.packages:
        pytest.skip("no PyTorch here")
    check = gpu_doctor._probe([sys.executable], lambda live: None)
    assert check.result == "unknown" and "did not train on the GPU: CRASHED" in check.found
