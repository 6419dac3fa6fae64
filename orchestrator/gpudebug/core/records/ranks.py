"""What each process of a training on several devices did: one record a rank."""

from __future__ import annotations

from gpudebug.core.records.base import Record


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
