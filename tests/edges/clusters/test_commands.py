"""One command of a scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.fake_slurm import FakeSlurm

from gpudebug.edges.clusters import commands


def test_a_users_own_formats_and_language_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSlurm(tmp_path / "bin", "sbatch")
    monkeypatch.setenv("PATH", fake.path)
    for name in ("SQUEUE_FORMAT", "SACCT_FORMAT", "SLURM_CONF", "LC_ALL"):
        monkeypatch.setenv(name, "mine")
    commands.ask("sbatch", stdin="x")
    lines = fake.got("sbatch", "env").splitlines()
    assert "SLURM_CONF=mine" in lines
    assert "LC_ALL=C" in lines
    assert not [line for line in lines if line.startswith(("SQUEUE_", "SACCT_"))]


def test_a_command_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    answer = commands.ask("squeue")
    assert answer.missing
    assert answer.why == "squeue is not on PATH"


def test_a_command_that_does_not_end_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "squeue").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(commands, "LONGEST_S", 0.2)
    answer = commands.ask("squeue")
    assert answer.late
    assert not answer.missing
