"""Lines that report a failure by themselves."""

from __future__ import annotations

import pytest

from gpudebug.core.trainlog.endings import ending, remedy
from gpudebug.core.trainlog.reader import LogReader


def test_out_of_memory_is_answered_and_an_exception_speaks_for_itself() -> None:
    assert "smaller batch" in (remedy("oom_gpu") or "")
    assert "ss -ltn" in (remedy("connection") or "")
    assert remedy("exception") is None
    assert remedy("exception", ["ValueError: the folder data/train does not exist"]) is None


@pytest.mark.parametrize(
    ("line", "check"),
    [
        ("OSError: Error no file named model.safetensors found in directory /m", "half downloaded"),
        ("OSError: v1.9 is not a valid git identifier (branch name, tag name or commit id)", "tag, branch"),
        ("ValueError: unknown embodiment tag x", "metadata"),
        ("ValueError: Video has invalid resolution (640, 480), expected (1280, 720)", "width and height"),
        ("OSError: [Errno 28] No space left on device", "df -h"),
        ("SafetensorError: Error while serializing: IoError(Os { kind: FilesystemQuotaExceeded })", "quota"),
        ("./run.sh: line 3: pyhton: command not found", "PATH"),
        ("bash: ./train.sh: Permission denied", "chmod"),
        ("FileExistsError: [Errno 17] File exists: 'outputs/a'", "{run}"),
        ("ValueError: Output directory (out) already exists and is not empty. Use --overwrite", "{run}"),
        ("RuntimeError: the checkpoint folder runs/x is not empty", "{run}"),
    ],
)
def test_what_to_check_follows_from_the_error_itself(line: str, check: str) -> None:
    assert check in (remedy("exception", ["f()", line]) or "")


TRAINED = "".join(f"step {i} loss {2 - i / 10:.2f}\n" for i in range(9))

LINES = (
    ("zsh: killed     python train.py", "signal"),
    ("[1]    12345 killed     python train.py", "signal"),
    ("run.sh: line 28:  8156 Killed                  python3 main.py --epochs 400", "signal"),
    ("fish: Job 1, 'python train.py' terminated by signal SIGKILL (Forced quit)", "signal"),
    ("command terminated with exit code 137", "signal"),
    ("Process finished with exit code 130 (interrupted by signal 2:SIGINT)", "interrupted"),
    (
        "slurmstepd: error: *** STEP 9411285.0 ON gpu20 CANCELLED AT 2022-05-17 DUE TO TIME LIMIT ***",
        "signal",
    ),
    ("srun: error: nid01934: tasks 2,4-5,7: Terminated", "signal"),
    ("srun: error: gpu20-15: task 1: Out Of Memory", "oom_host"),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0.", "oom_host"),
    ("=>> PBS: job killed: walltime 3605 exceeded limit 3600", "signal"),
    ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "oom_host"),
    ("mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal 9 (Killed).", "signal"),
    ("['/usr/bin/python', '-u', 'train.py'] exits with return code = -9", "signal"),
    ("Exited with exit code 1.", "exception"),
    ("[INFO] [launch.py:328:sigkill_handler] Main process received SIGINT, exiting", "interrupted"),
    ("Application killed by user.", "signal"),
    (
        "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL",
        "signal",
    ),
    ("RuntimeError: DataLoader worker (pid 2287) is killed by signal: Bus error.", "signal"),
    ("F0413 10:00:00.123456 12 solver.cc:44] Check failed: a == b", "signal"),
    ("[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=28, OpType=ALLREDUCE)", "nccl"),
    ("train.py: error: unrecognized arguments: --batchsize 32", "config"),
    ("Could not override 'trainer.max_step'.", "config"),
    ("│ No such option: --foo │", "config"),
    ("python: can't open file '/w/train.py': [Errno 2] No such file or directory", "config"),
    ("/usr/bin/python3: No module named trainer", "import"),
    ("Killed", "signal"),
    ("Command terminated with exit code 137", "signal"),
    ("Received signal 15 (SIGTERM), exiting", "signal"),
    ("Exited with exit code 126.", "config"),
    ("bash: ./train.sh: Permission denied", "config"),
    ("/home/u/.batch/301: line 8: ./train.sh: Permission denied", "config"),
    ("./run.sh: line 3: pyhton: command not found", "config"),
    ("zsh: command not found: pyhton", "config"),
    ("bash: train.sh: No such file or directory", "config"),
    ("run.sh: line 12: syntax error near unexpected token `done'", "config"),
    ("./run.sh: line 4: DATA: unbound variable", "config"),
)


@pytest.mark.parametrize(("line", "kind"), LINES, ids=[line[:40] for line, _ in LINES])
def test_a_line_that_ends_a_run(line: str, kind: str) -> None:
    assert ending(line) == kind
    reader = LogReader()
    reader.feed(f"{TRAINED}{line}\n".encode())
    found = reader.summary().failure
    assert found is not None
    assert found.kind == kind
    assert found.lines[-1] in line


@pytest.mark.parametrize("line", [line for line, _ in LINES if "Watchdog" not in line])
def test_it_explains_nothing_if_training_went_on(line: str) -> None:
    reader = LogReader()
    reader.feed(f"{line}\n{TRAINED}".encode())
    assert reader.summary().failure is None


@pytest.mark.parametrize(
    "line",
    [
        "job exited with exit code 0",
        "1200 killed monsters a minute",
        "NCCL INFO Using network Socket",
        "epoch 12 terminated early: no improvement",
        "The model was saved; the pool is closed with code 1",
        "precision: P 0.9 R 0.8: F 0.85",
        "sh: 1: nvidia-smi: not found",  # A command that the program itself started.
    ],
)
def test_a_line_that_ends_nothing(line: str) -> None:
    assert ending(line) is None


STEPS = "".join(f"step {i} loss {2.5 - i / 10:.2f}\n" for i in range(8))


@pytest.mark.parametrize(
    ("line", "unknown", "ended_well"),
    [
        ("training failed with error: disk quota exceeded", "exception", "exception"),
        ("Error during training: CUDA out of memory. Tried to allocate 20 MiB", "oom_gpu", "oom_gpu"),
        ("An error occurred: [Errno 28] No space left on device", "exception", None),
        ("Caught exception: list index out of range", "exception", None),
        ("Error: could not load data file train.bin", "exception", None),
        ("CUDA out of memory, skipping batch", None, None),
        ("0 errors occurred while loading the data", None, None),
        ("best error 0.12 at epoch 3", None, None),
    ],
)
def test_an_error_that_is_only_printed(line: str, unknown: str | None, ended_well: str | None) -> None:
    for status, expected in ((None, unknown), (0, ended_well)):
        reader = LogReader()
        reader.feed(f"{STEPS}{line}\n".encode())
        found = reader.summary(status).failure
        assert (found.kind if found else None) == expected
        reader.feed(b"step 9 loss 1.2\nstep 10 loss 1.1\nstep 11 loss 1.0\n")
        assert reader.summary(status).failure is None
