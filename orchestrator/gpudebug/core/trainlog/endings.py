"""Lines that say by themselves that a run failed: of shells, schedulers, launchers, runtimes and parsers.

They count without a traceback and without an exit status, as in a log that was copied or cut off.
"""

from __future__ import annotations

import re

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


SIGNALLED = re.compile(
    r"killed by signal|(?:terminated|died|exited|interrupted) (?:with|by|on|with <) ?<?(?:signal "
    r"|Signals\.)\S"
    r"|process pool was terminated abruptly|child process terminated abruptly|TerminatedWorkerError"
    r"|(?:ActorDied|WorkerCrashed)Error|worker died or was killed|exit codes of the workers are \{SIG"
)
"""A worker, a rank or an actor that a signal ended."""

CHILD_KILLED = re.compile(r"Signal (\d+) \(SIG\w+\) received by PID|(?:exitcode|return code)\s*[:=]? ?-(\d+)")
KILLED = re.compile(
    r"^\W*(?:\S+: line \d+: +\d+ )?(?:Killed|Segmentation fault|Bus error|Aborted|Floating point exc"
    r"|Terminated *$"
    r"|Illegal instruction)"
    r"|^\W*\d+ +(?:killed|terminated|segmentation fault|abort|bus error) {2,}\S"
    r"|^(?:zsh: |\[\d+\]\W{1,6}(?:\d+ +)?)(?:killed|terminated|segmentation fault|abort|bus error"
    r"|Killed|Terminated|Segmentation fault)\b"
    r"|^F\d{4} \d\d:\d\d:|: F (?:tensorflow|external|xla|\./)"
)
"""What a shell says of a process that a signal ended, and the last word of glog before it aborts."""

SAID = re.compile(
    r"(?<!no )(?<!0 )\b(?:error|exception|failure)s? (?:has |was )?"
    r"(?:occurred|caught|during|while|in (?:train|epoch|step))"
    r"|\b(?:caught|unhandled|uncaught|unexpected) (?:an? )?(?:\w+ )?(?:error|exception)\b"
    r"|\b(?:training|trainer|run|job|worker|experiment) (?:\w+ )?(?:failed|aborted|crashed)\b"
    r"|\b(?:aborting|giving up)\b|^\W*(?:FAILED|CRASHED)\b|^\W*(?:fatal )?error: ",
    re.I,
)
"""What programs print that catch their own error; it counts only at the end of a log."""

GAVE_UP = re.compile(
    r"\b(?:error|exception|failure)s? (?:occurred |caught )?(?:during|while|in) (?:the )?train"
    r"|\btraining (?:\w+ )?(?:failed|aborted|crashed)\b",
    re.I,
)
"""Among them those that speak of the training itself: they count though the program ended with status 0."""

STATUS = re.compile(
    r"\b[Ee]xit(?:ed with)?(?: exit)? (?:code|status)[ :=]+(?P<status>1[2-5]\d|-1073741819)\b"
)
INTERRUPT = 130

_ENDINGS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "oom_host",
            r"oom[-_]kill|OOMKilled|task \d+(?:[-,]\d+)*: Out Of Memory|[Ee]xceeded (?:job "
            r"|step )?memory limit"
            r"|cgroup out[- ]of[- ]memory|Out of memory: Kill|TERM_MEMLIMIT|PBS: job killed: v?mem"
            r"|killed due to (?:memory pressure|the node running low on memory)",
        ),
        (
            "signal",
            r"\*\*\* (?:JOB|STEP) .{0,80}CANCELLED|CANCELLED (?:AT|DUE TO)|TERM_[A-Z]+LIMIT|PBS: job killed"
            r"|srun: error: \S+: tasks? [\d,-]+: (?:Killed|Terminated|Segmentation|Bus error|Aborted)"
            r"|terminate called|libc\+\+abi: terminating|Fatal Python error",
        ),
        (
            "nccl",
            r"Watchdog caught collective operation timeout|watchdog thread terminated with exception"
            r"|watchdog got stuck|Heartbeat monitor timed out|Some NCCL operations have failed or timed out",
        ),
        (
            "config",
            r"error: (?:unrecognized arguments|the following arguments|argument |ambiguous option"
            r"|one of the arg)"
            r"|^Could not (?:override|append to config)|^Key '.{1,80}' is not in struct"
            r"|Cannot find primary config"
            r"|^In '.{1,120}': Could not (?:find|load)|Unknown command line flag|^mismatched input '"
            r"|(?:^|[|\u2502] )(?:Error: )?(?:No such option|Invalid value for|Missing (?:option|argument"
            r"|parameter))"
            r"|can't open file .{1,200}No such file",
        ),
        ("import", r"^\S*python\S*: (?:No module named|Error while finding module specification)"),
    )
)


def ending(line: str) -> str | None:
    """Return the class of a failure that this line alone reports, or None."""
    for kind, pattern in _ENDINGS:
        if pattern.search(line):
            return kind
    if CHILD_KILLED.search(line):
        return "signal"
    status = STATUS.search(line)
    if status:
        return "interrupted" if status["status"] == str(INTERRUPT) else "signal"
    return "signal" if KILLED.search(line) or SIGNALLED.search(line) else None
