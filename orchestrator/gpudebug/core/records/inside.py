"""What a training's processes and ranks did, as seen from inside and from outside."""

from __future__ import annotations

from gpudebug.core.records.parts import Record


class SeenProcess(Record):
    """A process of the job over `seconds`, by /proc; None is what could not be read.

    `of` is `training` (the one whose stacks are shown), `rank`, `worker` (a DataLoader's) or `other`. `cores`
    is CPU time a second, `system_share` the kernel's part of it. Of its main thread, or the one that trains:
    `main_running` and `main_ready` are the shares of the time that it ran, and was ready to while others had
    the core; `disk_wait` that it waited for a disk. Rates a second: `major_faults_s` page faults that read,
    `read_mb_s` and `write_mb_s` of storage, `waits_s` and `forced_s` how often threads gave up a core, and
    had it taken. `affinity` is how many cores it may use. `looks` counts stacks that py-spy read; `place` is
    the line in which most were, with its share (0 to 1) of the last span. `why` says why there are none,
    `allow` what to do about that. `loader` is its DataLoader's iterator, "" if none.
    """

    pid: int
    of: str
    rank: int | None = None
    name: str = ""
    seconds: float | None = None
    cores: float | None = None
    system_share: float | None = None
    main_running: float | None = None
    main_ready: float | None = None
    disk_wait: float | None = None
    major_faults_s: float | None = None
    read_mb_s: float | None = None
    write_mb_s: float | None = None
    waits_s: float | None = None
    forced_s: float | None = None
    threads: int | None = None
    affinity: int | None = None
    rss_mb: float | None = None
    swap_mb: float | None = None
    looks: int = 0
    place: str = ""
    place_share: float | None = None
    why: str | None = None
    allow: str | None = None
    loader: str = ""


class AttachedEvidence(Record):
    """The processes of a job that gpudebug did not start. `members` are its Python processes, of which the
    first are looked at; `observer_cores` is what looking took, in cores, without the sampler's; `ended` says
    that the job ended meanwhile."""

    processes: tuple[SeenProcess, ...] = ()
    members: int | None = None
    observer_cores: float | None = None
    ended: bool = False

    @property
    def main(self) -> SeenProcess | None:
        """The process whose stacks are the run's."""
        return next((one for one in self.processes if one.of == "training"), None)

    def of(self, kind: str) -> tuple[SeenProcess, ...]:
        """Return those of one kind."""
        return tuple(one for one in self.processes if one.of == kind)


class RankLine(Record):
    """A line of the program and its `share` (0 to 1) of the time that a rank was watched, waits for others
    left out. `state` is `running` or `waiting`, the more of both; `code` its source, as far as known;
    `others` is the median share of the other ranks in it."""

    frame: str
    line: int | None = None
    state: str
    code: str | None = None
    share: float
    others: float | None = None


class RankEvidence(Record):
    """One rank. None is not known, and never 0.

    `device` is where it trains, as PyTorch names it; `uuid` that device's, and `gpu_index` its number among
    the devices of the run's samples, if it is one of them. `own_clock`: it ran on another
    host than the first rank, so that its times compare with no other rank's. `start_s` is when it began to
    train, `met_s` what it had waited for the others until then, `last_step_s` its last report,
    `last_step_by_s` when its last step was over at the latest, in seconds since launch.

    Shares (0 to 1) are of the `watched_s` seconds in which its thread was seen `samples` times, within the
    run's window and while the other ranks were watched, too: `wait_share` waits for other ranks (in a
    collective, or, on a CPU, without running in the backward pass, where DDP reduces; what another device
    waits is not in it), `data_share` for batches; `evaluation_share`, `save_share` and `log_share` evaluate,
    write checkpoints and log; `forward_share`, `backward_share` (on a CPU what it ran) and `optimizer_share`
    compute; `other_share` is the rest. Together they are 1. `starved_share` of them it was ready and others
    had the CPUs. `read_share` (blocking reads) and `copy_share` are of its steps, as the probe timed them.
    `own_s` is what a step takes without the waits for others: data, host work and computing before and after
    its collectives, of ranks on a CPU alone. `cores` is what it may use, `affinity` which ones (`0-3,8`),
    `cpu_cores` what it used. `loader` are the settings of the loaders that feed its training, of each the
    values, that of the most fetches first. `sharded`: its weights or optimizer are (FSDP, ZeRO), so that
    ranks meet in each layer. `lines` are those with the most time, waits for others left out, of the ranks
    that wait least for others.
    """

    pid: int
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    node: str | None = None
    device: str | None = None
    uuid: str | None = None
    gpu_index: int | None = None
    visible: str | None = None
    torch: str | None = None
    python: str | None = None
    own_clock: bool = False
    steps: int
    start_s: float | None = None
    met_s: float | None = None
    last_step_s: float | None = None
    last_step_by_s: float | None = None
    steps_per_s: float | None = None
    step_time_p50_s: float | None = None
    watched_s: float | None = None
    samples: int | None = None
    wait_share: float | None = None
    data_share: float | None = None
    evaluation_share: float | None = None
    save_share: float | None = None
    log_share: float | None = None
    forward_share: float | None = None
    backward_share: float | None = None
    optimizer_share: float | None = None
    other_share: float | None = None
    starved_share: float | None = None
    own_s: float | None = None
    read_share: float | None = None
    copy_share: float | None = None
    reads_per_step: float | None = None
    inputs_per_step: float | None = None
    samples_per_s: float | None = None
    loader_workers: int | None = None
    loader: dict[str, tuple[str, ...]] = {}
    cores: float | None = None
    affinity: str | None = None
    cpu_cores: float | None = None
    threads: int | None = None
    omp: str | None = None
    slurm_cpus: str | None = None
    sharded: bool | None = None
    off: str | None = None
    lines: tuple[RankLine, ...] = ()


class ReadSite(Record):
    """One place of the training's code that read tensors: `kind` is `item`, `cpu`, `tolist`, ….

    `device` is where the tensors lived; `seconds` is what the reads took together.
    """

    site: str
    kind: str
    device: str
    count: int
    seconds: float


class ProbedCopies(Record):
    """Copies in one direction, in the span of the figures; `pinned_share` of them came from pinned memory."""

    count: int
    mb: float
    seconds: float
    pinned_share: float | None = None


class ProbedForwards(Record):
    """Forwards without gradients of less than half as many rows as training's, in the span of the figures:
    together they took `rows` rows and `seconds`."""

    count: int
    rows: float
    seconds: float


class ProbeRank(Record):
    """One training process of a run."""

    pid: int
    rank: int | None = None
    steps: int
    samples_per_s: float | None = None
    steps_per_s: float | None = None
    data_wait_share: float | None = None


class ProbeEvidence(Record):
    """What the training process reported from inside; of several, the one that made the most iterations.

    An iteration is one step of the optimizer that steps most often. Shares (0 to 1), rates and step times
    are those of the steady window as far as the process trained in it, of its own steady iterations where
    there is no window: `span_steps` iterations from `start_s` to `end_s`, in seconds since launch. None is
    not known. `data_wait_share` is what training waits for batches, `eval_data_share` what evaluation does,
    `background_data_share` what other threads take to fetch them, above 1 if there are several: what
    training waits for those is not known. `device_time_share` is the device's time in iterations, without
    what it waited for batches. `inputs_per_step` are the elements that a step takes in: of the largest tensor
    of the first forward of each backward pass; `rows_per_backward` are that forward's rows, and `acts` the
    forwards in which a policy acts. `loader_restart_share` is the start of loaders with what the first batch
    of an epoch takes beyond the usual one. `stall_share` is the time that steps above 1.5 times the
    median take beyond it, one in `stall_every_steps`. `slowing_share` is the time that steps take beyond the
    first ones where they get longer and longer, most of it in the phase `slowing_part` (or `other`).
    `steps` are the whole run's, `samples_per_s` those of all `ranks` together. `cpu_cores` is the
    CPU time a second. `facts` are the process's own (device, loaders, optimizers, AMP, …), `off` why the
    probe switched itself off, `notes` what the cross-check with log and devices found. `sites` are the
    reads that took the most time in the whole run.
    """

    pid: int
    rank: int | None = None
    world_size: int | None = None
    torch: str | None = None
    steps: int
    first_step_s: float | None = None
    last_step_s: float | None = None
    start_s: float | None = None
    end_s: float | None = None
    span_steps: int | None = None
    steps_per_s: float | None = None
    samples_per_s: float | None = None
    step_time_p50_s: float | None = None
    step_time_p95_s: float | None = None
    data_wait_share: float | None = None
    eval_data_share: float | None = None
    background_data_share: float | None = None
    loader_start_share: float | None = None
    loader_restart_share: float | None = None
    loader_starts_per_step: float | None = None
    forward_share: float | None = None
    backward_share: float | None = None
    optimizer_share: float | None = None
    backwards_per_step: float | None = None
    inputs_per_step: float | None = None
    rows_per_backward: float | None = None
    blocking_reads_per_step: float | None = None
    blocking_read_share: float | None = None
    syncs_per_step: float | None = None
    device_time_share: float | None = None
    gc_share: float | None = None
    stall_share: float | None = None
    stall_every_steps: float | None = None
    slowing_share: float | None = None
    slowing_part: str | None = None
    cpu_cores: float | None = None
    h2d: ProbedCopies | None = None
    d2h: ProbedCopies | None = None
    acts: ProbedForwards | None = None
    alloc_retries: int | None = None
    peak_host_mb: float | None = None
    peak_device_mb: float | None = None
    facts: dict[str, object] = {}
    sites: tuple[ReadSite, ...] = ()
    ranks: tuple[ProbeRank, ...] = ()
    off: str | None = None
    notes: tuple[str, ...] = ()


class SectionFigures(Record):
    """One section of the training's code; seconds, MB of 2**20 bytes. `share` is of the profiled time."""

    name: str
    category: str | None = None
    calls: int
    errors: int = 0
    total_s: float
    self_s: float
    mean_s: float
    min_s: float
    max_s: float
    p50_s: float | None = None
    p95_s: float | None = None
    mem_peak_mb: float | None = None
    gpu_peak_mb: float | None = None
    share: float


class SectionsEvidence(Record):
    """The sections that took the most time, at most 40, of the `count` that the training named."""

    count: int
    profiled_s: float
    sections: tuple[SectionFigures, ...] = ()
    notes: tuple[str, ...] = ()


class Stacks(Record):
    """Where one kind of thread was, by samples of its call stack: the thread that trains, or loader workers.

    `frames` are `folder/file.py:function`. Each of `stacks` is a phase (data; forward; eval and act: one
    without gradients, of a network in evaluation mode and in training mode; backward; optimizer; env: an
    environment's step or reset; other), its frames from the outermost in as places in `frames`, the line of
    the innermost frame of code that is no library's, or of the framework that trains below such a line, the
    seconds that it was seen and those of them that it ran on a CPU, or was ready to while others had it; at
    most 100, those with the most time. `packaged` are the frames with a line that are a framework's. What
    it waited for in the kernel is a frame `(kernel):socket`. `seconds` and `cpu_s` are of all, `code` the
    source of such lines by `frame:line`. `starved_s` is how long the thread was ready to run while others had
    the CPUs, which `cpu_s` has in it; None: unknown.
    """

    seconds: float
    cpu_s: float
    samples: int
    frames: tuple[str, ...] = ()
    stacks: tuple[tuple[str, tuple[int, ...], int, float, float], ...] = ()
    code: dict[str, str] = {}
    starved_s: float | None = None
    packaged: tuple[int, ...] = ()


class StacksEvidence(Record):
    """The stacks of the thread that trains or infers and, together, of loader workers; of the window.

    Where nothing trains with PyTorch `training` is the program's main thread, whose phases are `other`.
    """

    training: Stacks | None = None
    workers: Stacks | None = None
    notes: tuple[str, ...] = ()


class ProgramEvidence(Record):
    """The program of a command, of all processes below it. `beside` are programs that ran at the same time,
    `name (pid)`; `apart` is what keeps the probe out of it, `held` what keeps its output from the log, with
    the remedy; None is unknown, too."""

    pid: int
    name: str
    beside: tuple[str, ...] = ()
    apart: str | None = None
    held: str | None = None


class LoadedFiles(Record):
    """The files of the code that the processes of a run imported, as they reported it from inside.

    `tree` is the tested tree's folder, `files` are those of it, relative; `elsewhere` holds, by folder, those
    of another checkout of the same code. At most 2,000 each.
    """

    tree: str
    files: tuple[str, ...] = ()
    elsewhere: dict[str, tuple[str, ...]] = {}
