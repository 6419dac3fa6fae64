"""What to try first, by the class of a failure."""

from __future__ import annotations

_REMEDIES = {
    "oom_gpu": "a smaller batch with gradient accumulation, mixed precision, activation checkpointing, "
    "fewer denoising steps; look for other processes on the GPU (nvidia-smi)",
    "oom_host": "fewer loader workers, a smaller prefetch_factor, data that is mapped instead of read; "
    "more --mem or --shm-size if a scheduler or a container sets a limit",
    "nccl": "find the rank that stopped first and its own error: the others only waited for it",
    "cuda": "CUDA_LAUNCH_BLOCKING=1 shows the call that failed; check label and index ranges",
    "import": "install what is missing into the interpreter that runs the training",
    "config": "correct the option or file that it names",
    "signal": "see who ended it: the scheduler's time limit, the kernel (dmesg), a person",
}


def remedy(kind: str) -> str | None:
    """Return what usually helps against failures of this class; None if only the error itself tells."""
    return _REMEDIES.get(kind)
