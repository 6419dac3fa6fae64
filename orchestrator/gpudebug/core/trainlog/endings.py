"""Words that say how a run failed: the classes of errors, and lines that report a failure by themselves.

Lines of shells, schedulers, launchers, runtimes and parsers count without a traceback and without an exit
status, as in a log that was copied or cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpudebug.core.lazy import regex

_REMEDIES = {
    "oom_gpu": "a smaller batch with gradient accumulation, mixed precision, activation checkpointing, "
    "fewer denoising steps; look for other processes on the GPU (nvidia-smi)",
    "oom_host": "fewer loader workers, a smaller prefetch_factor, data that is mapped instead of read; "
    "more --mem or --shm-size if a scheduler or a container sets a limit",
    "nccl": "find the rank that stopped first and its own error: the others only waited for it",
    "cuda": "CUDA_LAUNCH_BLOCKING=1 shows the call that failed; check label and index ranges",
    "import": "install what is missing into the interpreter that runs the training",
    "model_load": "check that the path exists and is whole, that the checkpoint has that tag or revision, "
    "and that the library is the version that wrote it",
    "connection": "check that the server still runs (its own log), that it listens on that host and port "
    "(ss -ltn), and that this machine reaches it",
    "config": "correct the option or file that it names",
    "signal": "see who ended it: the scheduler's time limit, the kernel (dmesg), a person",
}


_CHECKS = tuple(
    (regex(pattern), check)
    for pattern, check in (
        (
            r"No space left|(?i:quota ?exceeded)",
            "free the file system that it writes to, or raise its quota (df -h, df -i, quota -s); keep fewer "
            "checkpoints",
        ),
        (
            r"[Pp]ermission denied",
            "chmod +x the script or start it with its interpreter; check who owns the file and its folder",
        ),
        (
            r"command not found|: not found$|[Uu]nknown command|executable file not found",
            "activate the environment in the script that starts the job; check the spelling and PATH",
        ),
        (
            r"FileExistsError|File exists|(?i:folder|dir\w*)\b.{0,120}\bnot empty"
            r"|(?i:folder|dir\w*|path|file|experiment|run)\b.{0,120}\balready exists",
            "an earlier run left it: write {run} or {run_dir} into the path of the output, so that each run "
            "has its own, or move it away",
        ),
        (
            r"(?i)embodiment|data.?config|norm(?:alization)?.?stats|unnorm_key",
            "check the tag against those in the checkpoint's metadata (*.json), the data config that it was "
            "trained with, and that path or revision is the fine-tuned checkpoint's, not the base model's",
        ),
        (
            r"safetensors|pytorch_model",
            "list the folder that it names: weights may be missing, half downloaded, a Git LFS pointer, or "
            "saved as .bin (use_safetensors=False)",
        ),
        (
            r"valid git identifier|[Rr]evision ?[Nn]ot|checkpoint tag|latest file at",
            "check the tag, branch or revision that it names: list those that exist",
        ),
        (
            r"EADDRINUSE|[Aa]ddress already in use",
            "another process holds the port (ss -ltnp): end it, or choose another port",
        ),
        (
            r"(?i)(?:image|video|frame|camera|invalid|unexpected|wrong) (?:size|resolution)",
            "check width and height in the camera's options, the input size in the model's configuration, "
            "and that frames are resized before they are given to it",
        ),
    )
)


def remedy(kind: str, lines: Iterable[str] = ()) -> str | None:
    """Return what to check for the error that `lines` quote, else what usually helps against its class.

    None if only the error itself tells.
    """
    text = "\n".join(lines)
    found = next((check for pattern, check in _CHECKS if pattern.search(text)), None)
    return found or _REMEDIES.get(kind)


SIGNALLED = regex(
    r"killed by signal|(?:terminated|died|exited|interrupted) (?:with|by|on|with <) ?<?(?:signal "
    r"|Signals\.)\S"
    r"|process pool was terminated abruptly|child process terminated abruptly|TerminatedWorkerError"
    r"|(?:ActorDied|WorkerCrashed)Error|worker died or was killed|exit codes of the workers are \{SIG"
    r"|\b(?:[Rr]eceived|[Cc]aught|[Gg]ot)[: ]+(?:an? |the )?(?:termination )?(?:[Ss]ignal:? ?)?"
    r"(?:SIG(?:TERM|KILL|HUP|QUIT|XCPU)\b|(?:9|15)\b)|\bSIG(?:TERM|KILL) (?:was )?(?:received|caught)"
)
"""A worker, a rank or an actor that a signal ended."""

CHILD_KILLED = regex(r"Signal (\d+) \(SIG\w+\) received by PID|(?:exitcode|return code)\s*[:=]? ?-(\d+)")
KILLED = regex(
    r"^\W*(?:\S+: line \d+: +\d+ )?(?:Killed|Segmentation fault|Bus error|Aborted|Floating point exc"
    r"|Terminated *$"
    r"|Illegal instruction)"
    r"|^\W*\d+ +(?:killed|terminated|segmentation fault|abort|bus error) {2,}\S"
    r"|^(?:zsh: |\[\d+\]\W{1,6}(?:\d+ +)?)(?:killed|terminated|segmentation fault|abort|bus error"
    r"|Killed|Terminated|Segmentation fault)\b"
    r"|^F\d{4} \d\d:\d\d:|: F (?:tensorflow|external|xla|\./)"
)
"""What a shell says of a process that a signal ended, and the last word of glog before it aborts."""

DONE = regex(
    rb"\b(?:train(?:ing|er)?|run|job|script|experiment|program|fit)\b.{0,20}"
    rb"\b(?:complete[ds]?|finished|done|ended|succeeded|successful(?:ly)?)\b"
    rb"|^\W*(?:all )?(?:done|finished|completed?)\W*$",
    re.I,
)
"""What a program prints that came to its end: an error before it was survived."""

SAID = regex(
    r"(?<!no )(?<!0 )\b(?:error|exception|failure)s? (?:has |was )?"
    r"(?:occurred|caught|during|while|in (?:train|epoch|step))"
    r"|\b(?:caught|unhandled|uncaught|unexpected) (?:an? )?(?:\w+ )?(?:error|exception)\b"
    r"|\b(?:training|trainer|run|job|worker|experiment) (?:\w+ )?(?:failed|aborted|crashed)\b"
    r"|\b(?:aborting|giving up)\b|^\W*(?:FAILED|CRASHED)\b|^\W*(?:fatal )?error: ",
    re.I,
)
"""What programs print that catch their own error; it counts only at the end of a log."""

SURVIVED = regex(
    r"\b(?:DEBUG|INFO|WARN(?:ING)?)\b.*\b(?:[Uu]nable to|[Ff]ailed|[Cc](?:ould |an)not)\b.*:\s*$"
)
"""What a logger says, at a level below an error, ahead of the traceback of what a program goes on without."""

GAVE_UP = regex(
    r"\b(?:error|exception|failure)s? (?:occurred |caught )?(?:during|while|in) (?:the )?train"
    r"|\btraining (?:\w+ )?(?:failed|aborted|crashed)\b",
    re.I,
)
"""Among them those that speak of the training itself: they count though the program ended with status 0."""

STATUS = regex(
    r"\b[Ee]xit(?:ed with)?(?: exit)?(?: code| status)[ :=]+(?P<status>1[2-5]\d|-1073741819)\b"
    r"|^\W*exit(?:ed)?[ :=]+(?P<alone>1[2-5]\d)\W*$"
)
FAILED = regex(r"^Exited with exit code \d+\.$")
"""What LSF reports of a job that failed, of any status."""
INTERRUPT = 130
NOT_STARTED = ("126", "127")
"""What shells exit with if a command is not executable, or is not found."""

_ENDINGS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, regex(pattern))
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
            r"|terminate called|libc\+\+abi: terminating|Fatal Python error|^Application killed by user",
        ),
        ("interrupted", r"\b[Rr]eceived SIGINT\b"),
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
            r"|can't open file .{1,200}No such file"
            r"|^(?!/?(?:bin/)?(?:ba|da)?sh: (?:line )?1: )(?:-?[\w./~-]{1,200}: )(?:(?:line )?\d+: )?"
            r"(?:[^:]{1,200}: ){0,2}(?:[Pp]ermission denied|[Cc]ommand not found|bad interpreter"
            r"|cannot execute|syntax error (?:near|in)|unbound variable|ambiguous redirect|Exec format error)"
            r"|^(?:zsh|-?bash|env|nohup|timeout|exec|/usr/bin/env|\S{1,80}: line \d+): .{1,200}"
            r"(?:[Nn]o such file or directory|: not found|executable file not found)"
            r"|^zsh: no such file or directory: |^fish: Unknown command"
            r"|^(?!/?(?:bin/)?(?:ba|da)?sh: 1: )\S{1,80}: \d+: \S{1,80}: not found$",
        ),
        ("import", r"^\S*python\S*: (?:No module named|Error while finding module specification)"),
    )
)


_CLASSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, regex(pattern))
    for kind, pattern in (
        ("interrupted", r"^KeyboardInterrupt|Detected KeyboardInterrupt"),
        (
            "oom_host",
            r"^(?:\w+\.)*(?:MemoryError|_ArrayMemoryError)|DefaultCPUAllocator|Cannot allocate memory"
            r"|can't allocate memory|bad_alloc|oom[-_]kill|OOM Killer|Out of memory: Kill|Unable to allocate"
            r"|insufficient shared memory|out of shared memory|cgroup out[- ]of[- ]memory"
            r"|killed by signal: Killed|CPU out of memory"
            r"|RESOURCE_EXHAUSTED.{0,200}(?:[cC]pu|host)|OutOfMemoryError.{0,80}(?:Java|object store|node)",
        ),
        (
            "oom_gpu",
            r"OutOfMemoryError|(?:CUDA|HIP|XPU|MPS|GPU|device)[\w ]{0,20} out of memory|RESOURCE_EXHAUSTED"
            r"|ResourceExhausted|OOM when allocating|CUDA error:?(?: \d+)? ?'?out of memory"
            r"|cudaErrorMemoryAllocation"
            r"|CUBLAS_STATUS_ALLOC_FAILED|OUT_OF_MEMORY|[Oo]ut of memory error on GPU"
            r"|[Oo]ut of memory (?:while|allocating)",
        ),
        ("signal", SIGNALLED.pattern),
        (
            "nccl",
            r"NCCL|ncclError|nccl[A-Z]\w+|DistBackendError|ProcessGroup|gloo|c10d"
            r"|collective operation timeout"
            r"|TCPStore|rendezvous|Rendezvous|DistNetworkError|DistStoreError|EADDRINUSE",
        ),
        (
            "cuda",
            r"CUDA error|CUDA_ERROR|cudaError|CUDA driver|device-side assert|cuDNN|CUDNN|cuBLAS|CUBLAS"
            r"|illegal memory access|no kernel image|NVIDIA driver|not compiled with CUDA|No CUDA GPUs"
            r"|HIP error|CUDA runtime|invalid device ordinal|CUDA kernel|AcceleratorError|cuInit",
        ),
        ("import", r"ModuleNotFoundError|ImportError|cannot open shared object file|undefined symbol"),
        (
            "model_load",
            r"loading state_dict|size mismatch for |[Mm]issing key\(s\)|[Uu]nexpected key\(s\)"
            r"|not a valid model identifier|[Cc]an't load |[Cc]annot load |Unable to load"
            r"|Safetensor(?!Error: Error while serial)"
            r"|pickle data was truncated|PytorchStreamReader|RepositoryNotFound|GatedRepo|LocalEntryNotFound"
            r"|HFValidationError|UnpicklingError|RevisionNotFound|not a valid git identifier"
            r"|no file named .{0,80}(?:safetensors|model)|Unable to find latest file"
            r"|(?i:embodiment|unnorm_key|norm_stats).{0,80}(?i:not found|not in|unknown|invalid|missing)"
            r"|(?i:unknown|invalid|unsupported|no such|missing) embodiment|KeyError: '\w{0,60}embodiment"
            r"|[Cc]heckpoint.{0,80}(?:not found|does not exist|corrupt|missing)"
            r"|(?:No such file|not found|does not exist).{0,200}"
            r"(?:checkpoint|\.ckpt|\.pth?\b|safetensors|weights)",
        ),
        (
            "connection",
            r"[Cc]onnection ?(?:[Rr]efused|[Rr]eset|[Aa]borted)|ConnectionError|Max retries exceeded with url"
            r"|zmq\.error\.Again|InactiveRpcError|failed to connect|[Uu]nable to connect|[Cc]annot connect to"
            r"|no answer from \S+:\d+",
        ),
        (
            "shape",
            r"(?i:invalid|unexpected|wrong) resolution"
            r"|(?i:image|video|frame) (?:size|resolution).{0,60}(?:match|expected)"
            r"|size of tensor a|shapes? .{0,80}(?:cannot be multiplied|not aligned|mismatch|incompatible)"
            r"|[Ss]hape mismatch|size mismatch|broadcast|[Ii]ncompatible shapes?|invalid for input of size"
            r"|Sizes of tensors must match|expanded size of the tensor|[Ee]xpected input batch_size"
            r"|Dimension out of range|to have \d+ channels"
            r"|[Dd]imensions? (?:must|mismatch|do not match|incompatible)"
            r"|must have the same (?:shape|size|dimension)|dot_general|inhomogeneous shape|expected shape"
            r"|same number of dimensions|cannot reshape|is incompatible with the layer",
        ),
        (
            "config",
            r"unrecognized arguments|arguments are required|^usage:|error: argument|invalid choice"
            r"|No such option|Could not consume arg|Could not override"
            r"|Invalid value for|omegaconf|hydra|ConfigKeyError|ConfigAttributeError|MissingMandatoryValue"
            r"|ConfigCompositionException|ValidationError|ScannerError|ParserError|ParsingError|DecodingError"
            r"|draccus|jsonargparse|Unknown command line flag|UnrecognizedFlagError|ArgumentError"
            r"|FileExistsError|already exists and|JSONDecodeError|TOMLDecodeError|error: unrecognized",
        ),
        ("assertion", r"AssertionError|Assertion .{0,200}failed"),
    )
)


def kind_of(text: str) -> str | None:
    """Return the most specific class that a message matches, or None."""
    for kind, pattern in _CLASSES:
        if pattern.search(text):
            return kind
    return None


def ending(line: str) -> str | None:
    """Return the class of a failure that this line alone reports, or None."""
    for kind, pattern in _ENDINGS:
        if pattern.search(line):
            return kind
    if CHILD_KILLED.search(line):
        return "signal"
    match = STATUS.search(line)
    if match:
        status = match["status"] or match["alone"]
        return "config" if status in NOT_STARTED else "interrupted" if status == str(INTERRUPT) else "signal"
    if KILLED.search(line) or SIGNALLED.search(line):
        return "signal"
    return "exception" if FAILED.search(line) else None
