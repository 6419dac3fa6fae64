"""What the launcher is asked to start for a run."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpudebug.edges import launcher
from gpudebug.engine.run.files import Files
from gpudebug.engine.run.job import AttachedJob, PreparedRun
from gpudebug.engine.run.launch import launch_spec, probed
from gpudebug.engine.run.prepare import lone_bench


def spec_of(job: PreparedRun, folder: Path) -> launcher.LaunchSpec:
    bench = lone_bench(folder, "cpu:1", job.env, folder, 0.2, lambda _: None)
    files = Files(folder / "a.csv", folder / "a.log", folder / "a.json", job=folder, records=folder)
    return launch_spec(bench, job, files, job.argv, "marker", "run", str(folder))


@pytest.fixture
def job(tmp_path: Path) -> PreparedRun:
    return PreparedRun(
        label="why",
        role="why",
        argv=("python", "train.py"),
        cwd=tmp_path / "elsewhere",
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "3"},
    )


def test_a_command_is_launched_where_it_belongs_and_made_to_report(job: PreparedRun, tmp_path: Path) -> None:
    spec = spec_of(job, tmp_path)
    assert (spec.argv, spec.cwd) == (job.argv, str(job.cwd))
    assert probed(job)
    assert spec.env["GPUDEBUG_PROBE"] == "1"
    assert spec.sampler is not None
    assert not {"attached", "marker"} & spec.sampler.request.keys()


@pytest.mark.parametrize(("nodes", "told"), [("n0", None), ("n[0-2]", "n0/3")])
def test_a_job_of_several_nodes_says_which_of_them_launched_it(
    job: PreparedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: str, told: str | None
) -> None:
    for name, value in (("NODENAME", "n0"), ("JOB_ID", "7"), ("JOB_NODELIST", nodes)):
        monkeypatch.setenv(f"SLURM{'D' * (name == 'NODENAME')}_{name}", value)
    spec = spec_of(job, tmp_path)
    assert spec.env.get(launcher.NODE) == told
    # What srun starts is no child of ours.
    assert spec.sampler is not None
    assert spec.sampler.request["marker"] == spec.marker


def test_of_a_job_that_runs_already_its_follower_is_launched_and_its_own_tree_sampled(
    job: PreparedRun, tmp_path: Path
) -> None:
    attached = replace(job, attached=AttachedJob(4711, ("follow",)))
    spec = spec_of(attached, tmp_path)
    assert spec.argv == ("follow",)
    # The job's folder may be another container's, its variables are not for what looks at it.
    assert spec.cwd == str(tmp_path)
    assert "GPUDEBUG_PROBE" not in spec.env
    assert spec.env.get("OMP_NUM_THREADS") == os.environ.get("OMP_NUM_THREADS")
    assert not probed(attached)
    assert spec.sampler is not None
    assert (spec.sampler.request["root_pid"], spec.sampler.request["attached"]) == (4711, True)
