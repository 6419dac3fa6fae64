"""What is submitted to a cluster and seen of it there, in words that fit every scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from gpudebug.core.cluster.node_reports import ClusterFact
from gpudebug.core.lazy import regex
from gpudebug.core.words import Word


class JobState(Word):
    """Where a job stands. PAUSED: it has its nodes, and its processes are stopped. CLEANING: its processes
    have ended, its nodes are being cleaned up, and then it has ended or waits again. UNKNOWN: the cluster did
    not answer, or answered nothing of it; never success."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    CLEANING = "CLEANING"
    ENDED = "ENDED"
    UNKNOWN = "UNKNOWN"


class JobEnd(Word):
    """How a job ended. COMPLETED and FAILED are the program's own ends; all others are the cluster's."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    PREEMPTED = "PREEMPTED"
    NODE_FAIL = "NODE_FAIL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    REQUEUED = "REQUEUED"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job to submit. `argv` runs on the first node, in `cwd`, with `env` added to the caller's environment.

    `log` is the absolute path that its output is appended to; `{job}` in it is replaced by the job's id.
    `seal_s` is how many seconds before the time limit, or before a preemption, `argv` gets SIGUSR1.
    With `elements` it is an array of as many jobs, each with its number, of which `at_once` run at a time.
    """

    name: str
    argv: tuple[str, ...]
    cwd: str
    log: str
    env: tuple[tuple[str, str], ...] = ()
    seal_s: int = 120
    elements: tuple[int, ...] = ()
    at_once: int = 1


@dataclass(frozen=True, slots=True)
class SeenJob:
    """What was seen of one job.

    `word` and `reason` are the cluster's own (`PENDING`, `Resources`; empty if it gives none); of UNKNOWN
    `reason` is why the cluster does not say, empty if it was not asked yet. `end` is known
    of an ENDED job only. `restarts` counts its requeues and `left_s` the seconds to its time limit; both None
    if unknown, `left_s` without a limit too. `exit_status` is the program's, 128 + N of a signal. `by` is the
    number of the user who cancelled it; None if no user did, or it is unknown. `unlogged`: the node could not
    open the job's log, so its program never began.
    """

    id: str
    state: JobState
    word: str = ""
    reason: str = ""
    nodes: tuple[str, ...] = ()
    end: JobEnd | None = None
    exit_status: int | None = None
    restarts: int | None = None
    left_s: float | None = None
    by: int | None = None
    unlogged: bool = False

    @property
    def over(self) -> bool:
        """Whether it ended and will not run again by itself."""
        return self.state is JobState.ENDED

    @property
    def infrastructure(self) -> bool:
        """Whether the cluster ended it: what ran in it is void, and says nothing of the program."""
        return self.end is not None and self.end not in (JobEnd.COMPLETED, JobEnd.FAILED)

    @property
    def how(self) -> str:
        """How it ended, in the cluster's words as far as it has any: `TIMEOUT (TimeLimit)`."""
        word = self.word or ("" if self.reason else str(self.end or ""))
        return f"{word} ({self.reason})" if word and self.reason else word or self.reason


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where a job ran: its nodes and, if known, their GPUs as the cluster counts them (`gpu:1(IDX:0)`)."""

    id: str
    nodes: tuple[str, ...]
    gpus: tuple[str, ...] = ()
    partition: str = ""


@dataclass(frozen=True, slots=True)
class InsideJob:
    """The allocation that this process is in.

    `node` is this node's name in the cluster and `index` its place in `nodes`. `restarts` counts how often
    the job was requeued. `step` is the id of the step, None in the batch script. `cpus_per_task` is what the
    job asked for; not every step inherits it. `array` and `element` are of an element of a job array.
    """

    id: str
    node: str
    nodes: tuple[str, ...]
    index: int = 0
    restarts: int = 0
    step: str | None = None
    cpus_per_task: int | None = None
    array: str | None = None
    element: int | None = None

    @property
    def allocation(self) -> str:
        """`412`, and `412.1` once it was requeued: what it is then given is another allocation."""
        id = self.id if self.element is None else f"{self.array}_{self.element}"
        return f"{id}.{self.restarts}" if self.restarts else id


@dataclass(frozen=True, slots=True)
class NodeStep:
    """How a program is run once on each of `nodes`, beside all that runs there and taking nothing from it.

    `argv` comes before the program's own words, `env` is the environment to start it in. On each node
    `variable` holds the node's name. What is written to its standard input reaches every node, its end too.
    """

    nodes: tuple[str, ...]
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    variable: str


class Cluster(Protocol):
    """What a scheduler has to be able to do; everything that asks it may raise ClusterError."""

    title: str
    """Its name in a sentence: `Slurm`."""

    def script(self, job: BatchJob) -> str:
        """Render the batch script that `submit` sends, byte for byte. Asks nothing."""

    def submit(self, job: BatchJob) -> str:
        """Submit and return the job's id. ClusterError with the cluster's own reason if it refuses."""

    def element(self, array: str, number: int) -> str:
        """Return the id of one element of a job array."""

    def states(self, ids: tuple[str, ...]) -> tuple[SeenJob, ...]:
        """Return what is known of each job, in the order of `ids`: at most one question in `ASK_S` seconds.

        Answers of the last question are returned in between, whichever process asked it. UNKNOWN where the
        cluster does not answer: an outage raises nothing and ends nothing.
        """

    def cancel(self, ids: tuple[str, ...]) -> None:
        """End jobs, waiting or running. One that has ended already, or that is not known, is no error."""

    def where(self, id: str) -> JobPlace | None:
        """Return where a job runs or ran; None if the cluster does not know it (any more)."""

    def login_facts(self, job: BatchJob) -> Iterator[ClusterFact]:
        """Return what this host can find out about the cluster and about `job`, without an allocation."""

    def node_facts(self, job: BatchJob, folder: str, token: str) -> Iterator[ClusterFact]:
        """What two nodes say in a short job: `folder` has `token` in its file `asked`, and takes theirs."""


ASK_S = 10.0
"""Least seconds between two questions about jobs, whatever their number and whoever asks."""


# Sites name a job's own scratch so; Slurm itself names none.
_SCRATCH = ("SLURM_TMPDIR", "TMPDIR", "JOBFS", "LOCAL_SCRATCH", "SCRATCH_LOCAL", "PBS_JOBFS")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_STEP = regex(r"(?<![\w./-])(?:[\w./-]*/)?srun(?=\s)")
_OF_A_TASK = regex(r"\$\{?(SLURM_(?:NODEID|PROCID|LOCALID))\b")
_QUOTED = regex(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_NO_VARIABLE = regex(r"\\.|[;&|\n]", re.DOTALL)
# `2>&1`, `&>` and `>|` redirect.
_ENDS = regex(r"[;\n]|(?<![<>])&(?!>)|(?<!>)\|")
_PER_TASK = regex(r"(?<!\S)--gpus-per-task(?:[=\s]|$)")


def traps(
    job: InsideJob, argv: Sequence[str], environ: Mapping[str, str], cores: int, folder: PurePath
) -> tuple[str, ...]:
    """Return each in a line, with what to change; () if nothing is wrong.

    `argv` is the workload's command, `environ` the step's variables, `cores` how many of the node's it may
    use, and `folder` where the campaign is.
    """
    found = (_cores(job, cores), _gpus(argv, environ), _too_early(argv), _scratch(job, environ, folder))
    return tuple(line for each in found for line in each)


def _cores(job: InsideJob, cores: int) -> Iterator[str]:
    """Slurm 22.05 and 23.02 give a step one core for a task unless `srun` is told of more; in any version it
    may be told of fewer. The option is heard by all of them, SRUN_CPUS_PER_TASK by those two alone."""
    asked = job.cpus_per_task
    if asked is None or cores >= asked:
        return
    may = "1 core" if cores == 1 else f"{cores} cores"
    yield (
        f"this step may use {may} of the {asked} that job {job.id} asked for a task, and all loader workers "
        f"share them: give them to the step, srun --cpus-per-task={asked}"
    )


def _gpus(argv: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    if environ.get("SLURM_GPUS_PER_TASK") or any(map(_PER_TASK.search, argv)):
        yield (
            "--gpus-per-task hides the GPUs of a node from each other, so that NCCL copies by host memory: "
            "use --gpus-per-node, and let each rank choose its GPU by LOCAL_RANK"
        )


def _too_early(argv: Sequence[str]) -> Iterator[str]:
    """A shell replaces what a task is called by before `srun` has started one: it is its own, the first's."""
    if len(argv) != 3 or PurePath(argv[0]).name not in _SHELLS or argv[1] != "-c":
        return
    _, *steps = _STEP.split(_QUOTED.sub(_replaced, argv[2]))
    # What comes behind the end of the step's own command is the shell's.
    named = next(filter(None, (_OF_A_TASK.search(_ENDS.split(step, maxsplit=1)[0]) for step in steps)), None)
    if named is not None:
        yield (
            f"the shell replaces ${named[1]} before srun starts a task, and each gets the first one's: "
            f"have a shell in the step read it, srun bash -c '... ${named[1]} ...'"
        )


def _replaced(quoted: re.Match[str]) -> str:
    """Return what of a quoted text a shell replaces variables in."""
    return _NO_VARIABLE.sub(" ", quoted[0]) if quoted[0].startswith('"') else " "


def _scratch(job: InsideJob, environ: Mapping[str, str], folder: PurePath) -> Iterator[str]:
    """Yield a folder of the job's own, by a variable or by the job's number in its path."""
    places = {name: PurePath(environ[name]) for name in _SCRATCH if environ.get(name)}
    inside = (name for name, path in places.items() if len(path.parts) > 2 and path in folder.parents)
    own = next(inside, None)
    numbered = any(re.search(rf"(?<!\d){job.id}(?!\d)", part) for part in folder.parts)
    if own is not None or numbered:
        why = f"it is in {own}" if own is not None else f"its path has the number of job {job.id}"
        yield (
            f"the campaign's folder {folder} may vanish with the job ({why}): keep it on a file system that "
            "outlives jobs, and copy data alone to scratch"
        )
