#!/bin/sh
# A Hydra sweep on the local submitit launcher puts every job on GPU 0, all at once.
#
# Expect    `gpus_per_node=1` gives each job of a sweep a GPU of its own, or lets jobs wait for one, as the
#           same setting does on a cluster.
# Happens   Submitit's local executor has no account of the GPUs. Each job gets the first `gpus_per_node`
#           indexes, so each gets CUDA_VISIBLE_DEVICES=0, and all jobs run together. On a machine of eight GPUs a
#           sweep of eight jobs shares one and leaves seven idle, with no warning.
# Versions  hydra-core 1.3.8, hydra-submitit-launcher 1.2.0, submitit 1.5.4.
# Hurts     Whoever tries a cluster sweep on a workstation: one GPU is full (or out of memory), the others are
#           idle, and every job looks slow for no reason of its own.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check \
  hydra-core==1.3.8 hydra-submitit-launcher==1.2.0 submitit==1.5.4 setuptools==80.9.0

cat >"$room/train.py" <<'PY'
import json
import os
import pathlib
import time

import hydra

JOBS = 4


@hydra.main(version_base=None, config_path=None)
def train(config):
    """Write the GPU of this job, and wait until all jobs of the sweep run."""
    room = pathlib.Path(__file__).parent / "seen"
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES")
    (room / f"{config.lr}.json").write_text(json.dumps({"job": config.lr, "gpu": gpu}))
    deadline = time.monotonic() + 300
    while len(list(room.glob("*.json"))) < JOBS and time.monotonic() < deadline:
        time.sleep(0.1)
    (room / f"{config.lr}.met").write_text(str(len(list(room.glob("*.json")))))


train()
PY
mkdir "$room/seen"
(cd "$room" && env -u CUDA_VISIBLE_DEVICES venv/bin/python train.py --multirun \
  hydra/launcher=submitit_local hydra.launcher.gpus_per_node=1 hydra.launcher.timeout_min=10 \
  hydra.sweep.dir=sweep +lr=1,2,3,4)

"$room/venv/bin/python" - "$room/seen" <<'PY' || { echo "changed: the assertion above says what"; exit 1; }
import json
import pathlib
import sys
from importlib.metadata import version

room = pathlib.Path(sys.argv[1])
for name in ("hydra-core", "hydra-submitit-launcher", "submitit"):
    print(name, version(name))
jobs = sorted((json.loads(path.read_text()) for path in room.glob("*.json")), key=lambda job: job["job"])
together = [int(path.read_text()) for path in sorted(room.glob("*.met"))]
for job in jobs:
    print(f"job lr={job['job']}: CUDA_VISIBLE_DEVICES={job['gpu']}")
print("jobs that ran at the same time, as each saw it:", together)
assert len(jobs) == 4 and together == [4, 4, 4, 4], "the jobs no longer run together"
assert [job["gpu"] for job in jobs] == ["0"] * 4, "the jobs no longer share GPU 0"
print("four jobs of one GPU each share GPU 0")
PY
echo "as found"
