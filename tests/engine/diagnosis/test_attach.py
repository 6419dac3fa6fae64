"""`why --pid`: a job that somebody else started is looked at, and stays as it is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.support.jobs import TRAINING, needs_spy, running

from gpudebug.edges import store
from gpudebug.edges.attach import AttachError, processes, spy, target
from gpudebug.engine.campaign.session import RUN, VARIABLE, NotAPerson
from gpudebug.engine.diagnosis import attach
from gpudebug.engine.tools import carry_over
from gpudebug.terminal.why import why as render


def ignored(_: object) -> None:
    pass


@pytest.mark.slow
@needs_spy
def test_a_job_of_another_shell_is_explained_and_goes_on(tmp_path: Path) -> None:
    with running(TRAINING, tmp_path) as job:
        before = sorted(os.listdir(tmp_path))
        (tmp_path / "here").mkdir()
        answer = attach.attach(tmp_path / "here", ignored, pid=job.pid, most=9.0, device="cpu:1")
        assert job.poll() is None
        # Nothing is left where the job runs.
        assert sorted(os.listdir(tmp_path)) == sorted([*before, "here"])
    assert answer.attached is not None
    assert answer.attached.pid == job.pid
    assert answer.outcome == "ENDED_BY_PLAN"
    assert answer.throughput.steps_per_s is not None
    assert answer.throughput.steps_per_s > 1
    assert {place.function for place in answer.step.places} >= {"fetch"}
    assert ((answer.devices[0].gpu_util and answer.devices[0].gpu_util.mean) or 0) < 80
    text = render(answer)
    assert len(text.splitlines()) <= 12
    assert "fetch" in text
    folder = Path(answer.folder)
    assert folder.name == "gpudebug-why-1"
    record = json.loads((folder / "run.json").read_text())
    assert (record["attached"], record["probed"]) == (job.pid, False)
    assert store.RunFolder(folder, str).sealed
    look = carry_over.look_of(folder.parent, folder.name)
    assert next(carry_over._against(folder.parent, look, None)).startswith("gpudebug did not start it")


def looked(result: str, said: str = "its own line") -> object:
    return lambda program, pid: spy.FirstLook(result, said)


@pytest.mark.parametrize(
    ("result", "why", "allow"),
    [
        ("missing", "py-spy is not installed", "pip install 'gpudebug[attach]'"),
        ("unknown", "does not know the interpreter", "pip install -U py-spy"),
        ("failed", "py-spy failed on process", "gpudebug why -- CMD"),
        ("refused", "", ""),
    ],
)
def test_what_py_spy_cannot_do_is_said_with_what_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: str, why: str, allow: str
) -> None:
    monkeypatch.setattr(spy, "look_once", looked(result))
    with running(TRAINING, tmp_path) as job:
        order, _ = attach._order(target(job.pid))
        assert order.program is None
        assert order.why is not None and why in order.why
        assert order.allow is not None and allow in order.allow


def test_that_there_are_no_stacks_is_said_before_the_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Began(Exception):
        pass

    def begin(*_: object) -> None:
        raise Began

    said: list[str] = []
    monkeypatch.setattr(spy, "find", lambda: None)
    monkeypatch.setattr(attach, "measure", begin)
    with running(TRAINING, tmp_path) as job, pytest.raises(Began):
        attach.attach(tmp_path, ignored, pid=job.pid, device="cpu:1", tell=said.append)
    assert said == [
        "no stacks will be seen: py-spy is not installed; to see them: pip install 'gpudebug[attach]'. "
        "Ctrl-C ends the look"
    ]


def test_a_job_that_ends_under_the_first_look_is_said_to_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spy, "look_once", looked("gone"))
    with running(TRAINING, tmp_path) as job, pytest.raises(AttachError, match="ended while it was looked at"):
        attach._order(target(job.pid))


def test_a_job_without_python_is_said_to_have_none() -> None:
    job = subprocess.Popen(["sleep", "60"])
    try:
        order, _ = attach._order(target(job.pid))
        assert order.program is None
        assert order.why == "no process of the job runs Python (sleep 60)"
        assert not attach._has_python(target(job.pid))
    finally:
        job.kill()
        job.wait()


def test_a_session_looks_at_the_runs_of_its_campaign_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = store.Workspace(tmp_path).runs
    (runs / "0001-baseline-workload").mkdir(parents=True)
    own = {**os.environ, RUN: str(runs / "0001-baseline-workload")}
    with running(TRAINING, tmp_path, env=own) as job:
        monkeypatch.setenv(VARIABLE, "s-1")
        attach._admit(target(job.pid), tmp_path)
        with pytest.raises(NotAPerson, match="session s-1 may look at the runs of its campaign alone"):
            attach._admit(target(job.pid), tmp_path / "elsewhere")
        with pytest.raises(NotAPerson):
            attach._admit(target(job.pid), None)
    with running(TRAINING, tmp_path) as other, pytest.raises(NotAPerson):
        attach._admit(target(other.pid), tmp_path)


def test_a_person_looks_at_any_job_of_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with running(TRAINING, tmp_path) as job:
        attach._admit(target(job.pid), None)


class Listed:
    """What NVIDIA's driver lists, without a driver."""

    works = True

    def __init__(self, *pids: int) -> None:
        self.devices = ({"index": 0, "uuid": "GPU-a", "processes": list(pids)}, {"index": 1, "uuid": "GPU-b"})


def test_the_job_on_a_gpu_is_found_by_what_the_driver_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(TRAINING, tmp_path) as job:
        monkeypatch.setattr(attach, "probe_nvml", lambda env: Listed(job.pid))
        assert attach._on_gpu(0).root.pid == job.pid
        assert attach._devices_of(target(job.pid), "auto", {})["CUDA_VISIBLE_DEVICES"] == "GPU-a"
        with pytest.raises(AttachError, match="GPU 1: no process that is seen here computes on it"):
            attach._on_gpu(1)
        with pytest.raises(Exception, match="there is no GPU 7"):
            attach._on_gpu(7)
        other = subprocess.Popen(["sleep", "60"])
        try:
            monkeypatch.setattr(attach, "probe_nvml", lambda env: Listed(job.pid, other.pid))
            with pytest.raises(AttachError, match="used by 2 jobs"):
                attach._on_gpu(0)
        finally:
            other.kill()
            other.wait()


def test_while_a_campaign_runs_something_the_evidence_lies_beside_its_runs(tmp_path: Path) -> None:
    from gpudebug.engine.run.prepare import claim_of, lone_bench

    (tmp_path / "runs").mkdir()
    bench = lone_bench(tmp_path, "cpu:1", os.environ, tmp_path, 0.2, ignored)
    with attach._place(bench, tmp_path) as alone:
        assert alone.workspace.new_run("why").name == "0001-why"
    with claim_of(bench.workspace, "gpudebug next"), attach._place(bench, tmp_path) as beside:
        folder = beside.workspace.new_run("why")
    assert folder.path == tmp_path / "runs" / "gpudebug-why-1"
    # What is recovered after a kill are runs: this is none of them.
    assert folder.name not in bench.workspace.run_names()
    assert processes.read(os.getpid()) is not None


@pytest.mark.slow
def test_without_stacks_what_is_seen_is_shown_with_what_allows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spy, "look_once", looked("missing"))
    with running(TRAINING, tmp_path) as job:
        answer = attach.attach(tmp_path, ignored, pid=job.pid, most=8.0, device="cpu:1")
    text = render(answer)
    assert "Stacks unknown: py-spy is not installed" in text
    assert "To see them: pip install 'gpudebug[attach]'" in text
    assert answer.window is not None
    assert answer.attached is not None
    assert answer.attached.processes[0]["cores"] is not None
    assert f"Job {job.pid}: 1 Python process" in text
    assert len(text.splitlines()) <= 12


@pytest.mark.slow
def test_a_job_that_ends_meanwhile_is_said_to_have_ended(tmp_path: Path) -> None:
    ends = "import time; print('ready', flush=True); time.sleep(4)"
    with running(ends, tmp_path) as job:
        answer = attach.attach(tmp_path, ignored, pid=job.pid, most=30.0, device="cpu:1")
    assert answer.window is None
    assert answer.problem is not None
    assert "the job ended" in answer.problem
    assert answer.causes == ()
    assert len(render(answer).splitlines()) <= 12


def test_a_command_that_cannot_be_typed_is_not_offered() -> None:
    assert attach._next("python train.py --x 'a b'").startswith("gpudebug init --command 'python train.py")
    assert attach._next("python -c '\nx'") == "gpudebug init --command 'YOUR TRAINING COMMAND'"
