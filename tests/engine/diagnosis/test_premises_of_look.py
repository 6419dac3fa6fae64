"""What a look would be valid for is what the campaign that `init` makes of its command says of itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.campaigns import gpudebug, make_repository

from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis.premises_of_look import with_premises
from gpudebug.engine.run.sample import lone_job


def test_it_is_what_a_campaign_of_the_same_command_has(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo", {"train.py": "print('step 1')"})
    job = with_premises(lone_job(folder, ["python", "train.py", "--x=a b"]), folder, "auto", 0.2)
    gpudebug(folder, "init", "--command", "python train.py '--x=a b'").expect(0)
    assert job.code.identity == load(folder).history.identities["workload"]
    assert job.code.checkout is not None


def test_another_device_or_interval_is_another_identity(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo", {"train.py": ""})
    job = lone_job(folder, ["python", "train.py"])
    usual, other, finer = (
        with_premises(job, folder, *given).code.identity
        for given in (("auto", 0.2), ("cpu:1", 0.2), ("auto", 0.1))
    )
    assert {key for key in usual if usual[key] != other[key]} == {"device"}
    assert {key for key in usual if usual[key] != finer[key]} == {"reading"}


def test_outside_of_git_there_is_none(tmp_path: Path) -> None:
    job = lone_job(tmp_path, ["python", "train.py"])
    assert with_premises(job, tmp_path, "auto", 0.2) == job
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert not with_premises(job, tmp_path, "auto", 0.2).code.identity
