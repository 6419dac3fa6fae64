"""What the cluster did to a run's steps, and what the command did itself."""

from __future__ import annotations

import pytest

from gpudebug.core.cluster.step_ends import failed_by_cluster
from gpudebug.core.trainlog.failure import ALERT, FailureScan, classify_failure

TORCHRUN = """\
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15
"""
NO_MEMORY = "srun: error: Unable to create step for job 12: Memory required by task is not available"
CRASH = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 8, in <module>
[rank0]: ValueError: bad
"""
AWAY = "srun: error: Unable to confirm allocation for job 12: Unable to contact slurm controller"
LATE = "srun: error: Unable to create step for job 12: Socket timed out on send/recv operation"
LAUNCH = "srun: error: Task launch for StepId=12.0 failed on node n1: Communication connection failure"
STEP = "slurmstepd: error: *** STEP 12.0 ON n0 CANCELLED AT 2026-11-26T12:00:00"


def quoted(log: str, status: int) -> tuple[str, ...]:
    scan = FailureScan()
    for line in log.encode().splitlines():
        scan.feed(line, bool(ALERT.search(line)), 0)
    failure = classify_failure(scan, status, None, 0)
    return () if failure is None else failure.lines


@pytest.mark.parametrize(
    ("log", "status", "why"),
    [
        (f"{AWAY} (connect failure)\nsrun: Check SLURM_JOB_ID environment variable.\n", 1, AWAY),
        (f"step 1 loss 2\n{LATE}\n", 1, LATE.removesuffix(" on send/recv operation")),
        (f"{LAUNCH}\nsrun: Job step aborted: Waiting up to 32 seconds\n", 1, LAUNCH),
        (
            "srun: error: Node failure on n1\nsrun: error: n0: task 0: Killed\n",
            1,
            "srun: error: Node failure on n",
        ),
        (f"{STEP} DUE TO PREEMPTION ***\n{TORCHRUN}", 1, f"{STEP} DUE TO PREEMPTION"),
        (TORCHRUN, 1, TORCHRUN.splitlines()[-1]),
        ("step 1 loss 2\nTerminated\n", 143, "ended by signal 15"),
        ("step 1 loss 2\n", 143, "ended by signal 15"),
        # The command's own: what it asks for, its step's limit, a rank that took others along.
        (
            f"{NO_MEMORY}\n",
            1,
            None,
        ),
        (f"{STEP} DUE TO TIME LIMIT ***\n", 1, None),
        (
            CRASH + f"srun: Terminating StepId=12.0\n{STEP} ***\n" + TORCHRUN,
            1,
            None,
        ),
        ("W1126 Sending process 7 closing signal SIGTERM\n" + CRASH, 1, None),
        (f"{CRASH}", 143, None),
        ("step 1 loss 2\n", 1, None),
        ("step 1 loss 2\nKilled\n", 137, None),
    ],
)
def test_what_a_crash_says_of_the_cluster(log: str, status: int, why: str | None) -> None:
    assert failed_by_cluster(quoted(log, status), log, status - 128) == why
