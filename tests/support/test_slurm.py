"""The real Slurm of the tests: what is promised of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.slurm import SlurmSystem


@pytest.mark.slow
def test_jobs_run_on_both_nodes_and_are_requeued(slurm: SlurmSystem, tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    script = tmp_path / "job.sh"
    echo = f'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES" >> {tmp_path}/out'
    script.write_text(f"#!/bin/sh\n{echo}\nsleep 60\n")
    submit = ("sbatch", "--parsable", "--gpus-per-node=1", "-o", "/dev/null", str(script))
    ids = [slurm.run(*submit).strip() for _ in range(2)]
    slurm.wait_for(lambda: slurm.queue() == dict.fromkeys(ids, "RUNNING"))
    slurm.wait_for(lambda: len((tmp_path / "out").read_text().splitlines()) == 2)
    assert sorted((tmp_path / "out").read_text().splitlines()) == ["n0 0", "n1 0"]
    slurm.node_down("n1")
    slurm.wait_for(lambda: sorted(slurm.queue().values()) == ["PENDING", "RUNNING"])
    slurm.kill_controller()
    slurm.start_controller()
    slurm.clear()
    assert slurm.queue() == {}
