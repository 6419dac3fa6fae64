"""Why a run failed."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.records import Failure
from gpudebug.core.trainlog.reader import LogReader


def failure(text: str, status: int | None = 1, signal: int | None = None) -> Failure | None:
    reader = LogReader()
    reader.feed(text.encode())
    return reader.summary(status, signal).failure


def raised(message: str) -> str:
    return f'step 1 loss 2.0\nTraceback (most recent call last):\n  File "t.py", line 3, in <module>\n    f()\n{message}\n'


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "oom_gpu"),
        ("RuntimeError: CUDA error: out of memory", "oom_gpu"),
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
            "oom_gpu",
        ),
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory",
            "oom_host",
        ),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 PiB for an array", "oom_host"),
        ("MemoryError", "oom_host"),
        ("RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed.", "oom_host"),
        (
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system error",
            "nccl",
        ),
        ("RuntimeError: CUDA error: device-side assert triggered", "cuda"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "cuda"),
        ("AssertionError: Torch not compiled with CUDA enabled", "cuda"),
        ("ModuleNotFoundError: No module named 'lerobot'", "import"),
        ("ImportError: libcudart.so.12: cannot open shared object file", "import"),
        ("omegaconf.errors.ConfigKeyError: Key 'x' is not in struct", "config"),
        ("FileExistsError: Output directory outputs/train already exists and resume is False", "config"),
        ("AssertionError", "assertion"),
        ("AssertionError: batch must be even", "assertion"),
        (
            "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: copying",
            "model_load",
        ),
        ("OSError: some/model is not a local folder and is not a valid model identifier", "model_load"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'model.safetensors'", "model_load"),
        ("ValueError: Embodiment tag new_embodiment not found in metadata.json", "model_load"),
        ("KeyError: 'new_embodiment'", "model_load"),
        ("ConnectionRefusedError: [Errno 111] Connection refused", "connection"),
        ("zmq.error.Again: Resource temporarily unavailable", "connection"),
        ("ValueError: Video has invalid resolution (640, 480), expected (1280, 720)", "shape"),
        ("RuntimeError: The size of tensor a (64) must match the size of tensor b (63)", "shape"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x32 and 31x10)", "shape"),
        ("ValueError: operands could not be broadcast together with shapes (3,) (4,)", "shape"),
        ("ValueError: bad sample", "exception"),
        ("KeyError: 'loss'", "exception"),
        ("KeyboardInterrupt", "interrupted"),
    ],
)
def test_classes_of_exceptions(message: str, kind: str) -> None:
    found = failure(raised(message))
    assert found is not None
    assert found.kind == kind
    assert message.splitlines()[0] in found.lines


TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'
NOTICE = TRACEBACK + "ImportError: numpy.core.multiarray failed to import\n\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (NOTICE + TRACEBACK + "ValueError: shape mismatch\n", "shape"),
        (NOTICE + "epoch 1 loss 2\nepoch 2 loss 1\nepoch 3 loss 1\nepoch 4 loss 0.5\n", None),
        (TRACEBACK + "KeyError: 'x'\nsee above\n" * 6 + TRACEBACK + "RuntimeError: size mismatch\n", "shape"),
        (
            f"{TRACEBACK}MemoryError\n\nDuring handling of the above exception, another exception occurred:\n\n"
            f"{TRACEBACK}ValueError: y\n",
            "oom_host",
        ),
        (TRACEBACK + "ConnectionError: refused\nTraining completed in 33 s\nmodel saved\n", None),
        (TRACEBACK + "ConnectionError: refused\nTraining failed\n", "connection"),
    ],
    ids=["import", "went on", "lines between", "handled", "completed", "failed"],
)
def test_the_exception_that_ended_the_run_is_the_last_of_its_process(text: str, kind: str | None) -> None:
    found = failure("step 1 loss 2.0\n" + text, None)
    assert (found.kind if found else None) == kind


@pytest.mark.parametrize("label", ["gpu01: ", "worker-1: ", " 3: ", "[1,3]<stderr>:", "(main pid=3) "])
def test_a_traceback_behind_a_label(label: str) -> None:
    text = raised("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB").splitlines()
    found = failure("\n".join([text[0], *(label + line for line in text[1:])]) + "\n", None)
    assert found is not None
    assert (found.kind, found.lines[-1]) == (
        "oom_gpu",
        "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (
            "2024-01-01 10:00:00 - ERROR - Training failed: CUDA out of memory. Tried to allocate 2 GiB",
            "oom_gpu",
        ),
        ("[2021-01-01] Error: CUDA error 2 'out of memory' - /m/gpu.cu:32", "oom_gpu"),
        (
            "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that workers are out of shared memory.",
            "oom_host",
        ),
        ("ERROR something else", None),
    ],
)
def test_an_error_at_the_end_of_a_log_whose_status_is_unknown(line: str, kind: str | None) -> None:
    found = failure(f"step 1 loss 2.0\nstep 2 loss 1.9\n{line}\n", None)
    assert (found.kind if found else None) == kind
    went_on = "".join(f"step {i} loss 1.5\n" for i in range(3, 8))
    assert kind is None or "Error: " in line or failure(f"step 2 loss 1.9\n{line}\n{went_on}", None) is None


@pytest.mark.parametrize(
    ("status", "signal", "text", "kind"),
    [
        (-9, None, "step 1 loss 2.0\n", "signal"),
        (137, None, "", "signal"),
        (-11, None, "Fatal Python error: Segmentation fault\n", "signal"),
        (-2, None, "", "interrupted"),
        (130, None, "", "interrupted"),
        (None, 15, "step 1 loss 1\n", "signal"),
        (-9, None, "slurmstepd: error: Detected 1 oom-kill event(s) in step 1.batch\n", "oom_host"),
        (-6, None, "terminate called after throwing: CUDA error: an illegal memory access\n", "cuda"),
        (2, None, "usage: t.py [-h]\nt.py: error: unrecognized arguments: --stepz\n", "config"),
        (1, None, "FAIL\n", "exception"),
        (1, None, "", "exception"),
    ],
)
def test_signals_and_statuses(status: int | None, signal: int | None, text: str, kind: str) -> None:
    found = failure(text, status, signal)
    assert found is not None and found.kind == kind


@pytest.mark.parametrize(
    ("level", "kind"),
    [("WARNING jax: Unable to initialize backend 'cuda':", None), ("ERROR job failed:", "cuda")],
)
def test_what_a_logger_records_below_an_error_is_survived(level: str, kind: str | None) -> None:
    record = raised("RuntimeError: CUDA_ERROR_NO_DEVICE").removeprefix("step 1 loss 2.0\n")
    found = failure(f"{level}\n{record}", None)
    assert (found and found.kind) == kind


def test_a_file_that_cannot_be_parsed_was_of_a_run_before() -> None:
    dead = raised("IndentationError: unindent does not match"), raised("RuntimeError: iostream error")
    found = failure("".join(log.removeprefix("step 1 loss 2.0\n") for log in dead), None)
    assert found is not None and found.lines[-1] == "RuntimeError: iostream error"


def test_weights_that_cannot_be_written_are_no_failure_to_load_them() -> None:
    wrote = failure(
        raised("safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28 })")
    )
    read = failure(
        raised("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge")
    )
    assert wrote is not None and read is not None
    assert (wrote.kind, read.kind) == ("exception", "model_load")


def test_status_zero_is_no_failure_whatever_the_text_says() -> None:
    assert failure("WARNING: CUDA out of memory, retrying with half the batch\nstep 2 loss 1.0\n", 0) is None
    assert (
        failure(raised("ValueError: caught and logged") + "step 2 loss 1\nstep 3 loss 1\ndone\n", 0) is None
    )
    assert failure("Exception ignored in: <function f>\n" + raised("OSError: closed"), 0) is None


def test_a_status_hidden_by_a_pipe_is_seen_through() -> None:
    found = failure(raised("ValueError: bad sample"), 0)
    assert found is not None and found.kind == "exception"
    graceful = failure("step 1 loss 1\nDetected KeyboardInterrupt, attempting graceful shutdown ...\n", 0)
    assert graceful is not None and graceful.kind == "interrupted"


def test_without_a_status_the_end_of_the_log_decides() -> None:
    assert failure("step 1 loss 2.0\n", None) is None
    assert failure(raised("ValueError: x") + "".join(f"step {i} loss 1\n" for i in range(2, 9)), None) is None
    found = failure(raised("ValueError: x"), None)
    assert found is not None and found.kind == "exception"


def test_the_root_cause_is_found_among_wrappers_and_ranks() -> None:
    ranks = (
        "[default1]:[rank1]: Traceback (most recent call last):\n"
        '[default1]:[rank1]:   File "t.py", line 1, in <module>\n'
        "[default0]:[rank0]: Traceback (most recent call last):\n"
        "[default1]:[rank1]: torch.OutOfMemoryError: CUDA out of memory.\n"
        '[default0]:[rank0]:   File "t.py", line 1, in <module>\n'
        "[default0]:[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer\n"
    )
    wrapper = raised("subprocess.CalledProcessError: Command '['t.py']' returned non-zero exit status 1.")
    found = failure(ranks + wrapper)
    assert found is not None and found.kind == "oom_gpu"
    assert "torch.OutOfMemoryError: CUDA out of memory." in found.lines


def test_a_killed_child_is_a_signal() -> None:
    text = raised("RuntimeError: Connection reset by peer") + (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        "  exitcode  : -15 (pid: 1)  (SIGTERM)\n  exitcode  : -9 (pid: 2)  (SIGKILL)\n"
    )
    found = failure(text)
    assert found is not None and found.kind == "signal"


def test_lines_are_few_short_and_clean() -> None:
    text = raised("ValueError: " + "\x1b[31mx\u202e" * 2000 + "\n" + "  more\n" * 500)
    found = failure(text)
    assert found is not None
    assert len(found.lines) <= 20
    assert all(len(line) <= 500 and "\x1b" not in line and "\u202e" not in line for line in found.lines)


def test_a_traceback_glued_to_a_bar() -> None:
    found = failure("\r 50%|## | 5/10 [00:01<00:01, 5it/s]" + raised("ValueError: x").split("\n", 1)[1])
    assert found is not None and found.lines[-1] == "ValueError: x"


USAGE = "usage: train.py [-h] [--steps STEPS]\n                [--lr LR]\n"


@pytest.mark.parametrize(
    ("text", "kind", "last"),
    [
        (
            USAGE + "train.py: error: unrecognized arguments: --nosuch=1\n",
            "config",
            "train.py: error: unrecognized arguments: --nosuch=1",
        ),
        (
            USAGE + "train.py: error: the rate must be positive\n",
            "config",
            "train.py: error: the rate must be positive",
        ),
        (
            (USAGE * 2 + "train.py: error: unrecognized arguments: --x\n" * 2)
            + raised("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "),
            "config",
            "train.py: error: unrecognized arguments: --x",
        ),
        (
            "Usage: t.py [OPTIONS]\nTry 't.py --help' for help.\n\nError: No such option: --nosuch\n",
            "config",
            "Error: No such option: --nosuch",
        ),
        (
            "FATAL Flags parsing error:\n  Unknown command line flag 'x'.\nPass --helpfull to see help on flags.\n",
            "config",
            "  Unknown command line flag 'x'.",
        ),
        (
            "Could not override 'x'.\nKey 'x' is not in struct\n\nSet the environment variable HYDRA_FULL_ERROR=1 for a trace\n",
            "config",
            "Could not override 'x'.",
        ),
        ("ERROR: Could not consume arg: --x=1\nUsage: t.py\n", "config", "ERROR: Could not consume arg: --x=1"),
        (
            raised("ValueError: found invalid values:\ntensor([[nan],\n        [nan]])"),
            "exception",
            "ValueError: found invalid values:",
        ),
        (
            raised("RuntimeError: CUDA error: an illegal memory access was encountered\nCompile with `X` to see"),
            "cuda",
            "RuntimeError: CUDA error: an illegal memory access was encountered",
        ),
        (
            raised("IndexError: Exception in `F` when calling event `after_step`:\n\tTarget 5 is out of bounds."),
            "exception",
            "\tTarget 5 is out of bounds.",
        ),
        (
            raised("ValueError: Caught ValueError in DataLoader worker process 0.\nOriginal " + raised("ValueError: bad").split("\n", 1)[1]),
            "exception",
            "ValueError: bad",
        ),
    ],
)  # fmt: skip
def test_the_last_line_explains_the_failure(text: str, kind: str, last: str) -> None:
    found = failure(text, 2 if "usage" in text else 1)
    assert found is not None
    assert (found.kind, found.lines[-1]) == (kind, last)


def test_nothing_said_of_the_message_is_lost() -> None:
    found = failure(
        raised("cfg.ValidationError: 1 validation error for Train\nlr\n  Input should be a number")
    )
    assert found is not None
    assert found.lines[-3:] == (
        "lr",
        "  Input should be a number",
        "cfg.ValidationError: 1 validation error for Train",
    )


def test_a_killed_run_ends_with_what_was_drawn_last() -> None:
    bar = "\r 50%|#####     | 5/10 [00:01<00:01, 5.00it/s, loss=0.5]"
    found = failure("old is deprecated\n" + bar, -9)
    assert found is not None and found.lines[-1] == bar.strip("\r")
    later = failure(bar + "\nsaving\n", -9)
    assert later is not None and later.lines[-1] == "saving"


@pytest.mark.parametrize(
    ("notice", "kind"),
    [
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T03:04:05 ***", "signal"),
        ("Killed", "signal"),
    ],
)
def test_what_is_said_right_behind_a_bar_is_heard(notice: str, kind: str) -> None:
    bar = "\r 50%|#####     | 5/10 [00:01<00:01, 5.00it/s, error=0.5]"
    found = failure(bar + notice, None)
    assert found is not None and (found.kind, found.lines) == (kind, (notice,))
    assert failure(bar, None) is None


@pytest.mark.parametrize(("after", "kind"), [(100, "exception"), (300, None)])
def test_an_error_that_hundreds_of_lines_outlived_ended_nothing(after: int, kind: str | None) -> None:
    going_on = "".join(f"frame {n} of the clip was written\n" for n in range(after))
    found = failure(raised("ValueError: no such clip") + going_on, None)
    assert (found and found.kind) == kind


@given(
    st.lists(
        st.sampled_from(
            [
                "Traceback (most recent call last):",
                "  File x",
                "ValueError: y",
                "[rank0]: ",
                "Killed",
                "step 1 loss 2",
            ]
        ),
        max_size=40,
    ),
    st.sampled_from([None, 0, 1, -9, 137, 255]),
)
def test_any_order_of_lines_gives_at_most_twenty(lines: list[str], status: int | None) -> None:
    found = failure("\n".join(lines), status)
    assert found is None or len(found.lines) <= 20
    assert (found is not None) or status in (None, 0)
