"""The signals that conditions of the catalogue read: one name, one unit and one sentence each."""

from __future__ import annotations

from typing import NamedTuple


class Signal(NamedTuple):
    """`unit` is `share` (0 to 1), `%`, `pp` (percentage points), `s`, `MB`, `1/s`, `count`, `yes` (true or
    false), `word`.

    `said` is its sentence, with `{}` for the value in its unit; `source` what reports it:
    `samples`, `probe`, `stacks`, `log`, `trace`, `command`, `host`, `reference` or `layer`.
    """

    unit: str
    said: str
    source: str


_DEVICE = {
    "gpu_util": Signal("%", "the device is busy {}", "samples"),
    "device_stand_in": Signal("yes", "the CPU stands in for a GPU: {}", "samples"),
    "device_idle_share": Signal("share", "the device idles {} of the time", "samples"),
    "working_share": Signal("share", "the GPUs draw the power of work {} of the time", "samples"),
    "busy_waiting_share": Signal(
        "share", "the GPUs are busy at the power of waiting {} of the time", "samples"
    ),
    "awaited_share": Signal("share", "the other GPUs wait {} of the time for one of them", "samples"),
    "awaited_device": Signal("word", "{}", "samples"),
    "telling_util": Signal("%", "judged by what tells of several GPUs they are busy {}", "samples"),
    "telling_devices": Signal("word", "of several GPUs this tells how busy they are: {}", "samples"),
    "mem_used_share": Signal("share", "device memory in use: {}", "samples"),
    "throttled_share": Signal("share", "clocks are throttled {} of the time", "samples"),
    "foreign_procs": Signal("count", "other processes on the device: {}", "samples"),
    "foreign_cpu": Signal("%", "other processes use {} of the run's cores", "samples"),
    "read_mb_s": Signal("MB", "{} a second are read from disk", "samples"),
    "write_mb_s": Signal("MB", "{} a second are written to disk", "samples"),
    "cpu_cores": Signal("count", "the training's processes use {} cores", "samples"),
    "cores": Signal("count", "cores that they may use: {}", "host"),
    "cores_busy_share": Signal("share", "of what others leave of those cores {} is busy", "samples"),
    "cpu_quota_throttled": Signal("yes", "the CPU quota holds the processes back: {}", "samples"),
    "peak_rss_share": Signal("share", "resident memory at its peak, of the host's: {}", "samples"),
}
_PROBE = {
    "probe_steps": Signal("count", "iterations that the probe saw: {}", "probe"),
    "step_time_s": Signal("s", "a step takes {}", "probe"),
    "trains_on": Signal("word", "the parameters live on {}", "probe"),
    "data_wait_share": Signal("share", "training waits {} of its time for batches", "probe"),
    "eval_data_share": Signal("share", "evaluation waits {} of the time for batches", "probe"),
    "background_data_share": Signal("share", "other threads fetch batches {} of the time", "probe"),
    "loader_start_share": Signal("share", "starting loaders takes {} of the time", "probe"),
    "loader_starts_per_step": Signal("count", "loaders are started {} times a step", "probe"),
    "loader_used": Signal("yes", "a DataLoader feeds the training: {}", "probe"),
    "loader_workers": Signal("count", "loader workers: {}", "probe"),
    "loader_workers_over_cores": Signal("count", "loader workers a core: {}", "probe"),
    "loader_persistent": Signal("yes", "workers persist between epochs: {}", "probe"),
    "loader_prefetch": Signal("count", "batches that each worker prefetches: {}", "probe"),
    "loader_pinned": Signal("yes", "the loader pins memory: {}", "probe"),
    "batch_size": Signal("count", "batch size: {}", "probe"),
    "forward_share": Signal("share", "the forward takes {} of the time", "probe"),
    "backward_share": Signal("share", "the backward takes {} of the time", "probe"),
    "optimizer_share": Signal("share", "the optimizer takes {} of the time", "probe"),
    "unattributed_share": Signal(
        "share", "{} of the time is neither data, forward, backward nor optimizer", "probe"
    ),
    "blocking_reads_per_step": Signal("count", "blocking reads of tensors: {} a step", "probe"),
    "blocking_read_share": Signal("share", "blocking reads take {} of the time", "probe"),
    "syncs_per_step": Signal("count", "explicit synchronisations: {} a step", "probe"),
    "device_time_share": Signal("share", "the device works {} of the iterations' time", "probe"),
    "gc_share": Signal("share", "garbage collection takes {} of the time", "probe"),
    "alloc_retries": Signal("count", "allocator retries: {}", "probe"),
    "h2d_copies_per_step": Signal("count", "copies to the device: {} a step", "probe"),
    "h2d_mb_per_step": Signal("MB", "{} a step are copied to the device", "probe"),
    "h2d_share": Signal("share", "copying to the device blocks the host {} of the time", "probe"),
    "h2d_pinned_share": Signal("share", "{} of the copies are from pinned memory", "probe"),
    "d2h_copies_per_step": Signal("count", "copies to the host: {} a step", "probe"),
    "d2h_share": Signal("share", "copying to the host takes {} of the time", "probe"),
    "step_time_spread": Signal("count", "step time, p95 over p50: {}", "probe"),
    "stall_share": Signal("share", "{} of the time is lost in steps much longer than the median", "probe"),
    "stall_every_steps": Signal("count", "one step in {} is much longer than the median", "probe"),
    "threads": Signal("count", "PyTorch's threads, of all ranks: {}", "probe"),
    "threads_over_cores": Signal("count", "PyTorch's threads a core: {}", "probe"),
    "main_cpu_cores": Signal("count", "the training process uses {} cores", "probe"),
    "backwards_per_step": Signal("count", "backward passes a step: {}", "probe"),
    "inputs_per_step": Signal("count", "numbers that a step takes in: {}", "probe"),
    "act_rows": Signal("count", "observations in each forward of the policy: {}", "probe"),
    "acts_per_step": Signal("count", "forwards of the policy between two updates: {}", "probe"),
    "train_rows": Signal("count", "rows in each forward of the training: {}", "probe"),
    "optimizers": Signal("count", "optimizers: {}", "probe"),
    "optimizer_steps_per_iteration": Signal("count", "optimizer steps an iteration: {}", "probe"),
    "amp": Signal("yes", "mixed precision: {}", "probe"),
    "parameter_dtype": Signal("word", "parameters are {}", "probe"),
    "compiled": Signal("yes", "compiled: {}", "probe"),
    "graph_breaks": Signal("count", "graph breaks: {}", "probe"),
    "anomaly": Signal("yes", "autograd's anomaly detection is on: {}", "probe"),
    "deterministic": Signal("yes", "deterministic algorithms are asked for: {}", "probe"),
    "launch_blocking": Signal("yes", "CUDA_LAUNCH_BLOCKING is set: {}", "probe"),
    "cudnn_benchmark": Signal("yes", "cuDNN searches its algorithms: {}", "probe"),
    "world_size": Signal("count", "training processes: {}", "probe"),
    "backend": Signal("word", "they communicate by {}", "probe"),
    "rank_skew": Signal("share", "the slowest rank's wait and the fastest's differ by {}", "probe"),
    "rank_wait_gap": Signal("share", "the other ranks wait {} of the time for one of them", "stacks"),
}
_STACKS = {
    "stacks_s": Signal("s", "the training thread was watched for {}", "stacks"),
    "waiting_share": Signal("share", "the training thread waits {} of the time", "stacks"),
    "waiting_outside_data_share": Signal("share", "it waits {} of the time outside its loader", "stacks"),
    "backward_wait_share": Signal(
        "share", "it waits {} of the time in the backward pass, in which ranks reduce gradients", "stacks"
    ),
    "starved_share": Signal("share", "the training thread waits {} of the time for a core", "stacks"),
    "hot_waiting_share": Signal(
        "share", "no loader is there, and one function waits {} of the time", "stacks"
    ),
    "host_share": Signal(
        "share", "between compiled steps the program itself computes {} of the time", "stacks"
    ),
    "eval_share": Signal("share", "evaluation takes {} of the time", "stacks"),
    "act_share": Signal("share", "choosing actions takes {} of the time", "stacks"),
    "collect_share": Signal("share", "choosing actions and what goes with it takes {} of the time", "stacks"),
    "env_share": Signal("share", "stepping environments one by one takes {} of the time", "stacks"),
    "beside_share": Signal("share", "one function beside policy and update runs {} of the time", "stacks"),
    "batches_share": Signal("share", "making the batches of updates takes {} of the time", "stacks"),
    "hot_share": Signal("share", "one function of the training's own code takes {} of the time", "stacks"),
    "hot_python_share": Signal("share", "one function burns {} of the time on the CPU", "stacks"),
    "hot_in_forward_share": Signal("share", "one function within the forward takes {} of the time", "stacks"),
    "worker_running_share": Signal("share", "loader workers compute {} of their time", "stacks"),
}
_LOG = {
    "framework": Signal("word", "the framework is {}", "command"),
    "workload_kind": Signal("word", "the workload looks like {}", "command"),
    "log_data_share": Signal("share", "the log's data time is {} of a step", "log"),
    "log_update_share": Signal("share", "the log's update time is {} of a step", "log"),
    "loss_points": Signal("count", "loss values in the log: {}", "log"),
    "latency_s": Signal("s", "a request takes {}", "log"),
    "failure": Signal("word", "the run failed: {}", "log"),
    "failure_text": Signal("word", "the run ended with: {}", "log"),
    "expected_share": Signal("share", "throughput is {} of the least that is expected here", "reference"),
}
_TRACE = {
    "trace_busy_share": Signal("share", "kernels run {} of the traced time", "trace"),
    "kernels_per_step": Signal("count", "kernels a step: {}", "trace"),
    "mean_kernel_us": Signal("count", "a kernel takes {} us", "trace"),
    "memcpy_pageable_share": Signal("share", "{} of the copies are from pageable memory", "trace"),
    "sync_share": Signal("share", "synchronising takes {} of the traced time", "trace"),
    "nccl_share": Signal("share", "NCCL takes {} of the traced time", "trace"),
    "nccl_exposed_share": Signal(
        "share", "for {} of the traced time NCCL runs and nothing computes", "trace"
    ),
    "nccl_overlap_share": Signal("share", "{} of NCCL's time lies behind computation", "trace"),
}
_COMPARED = {
    "reference_gap_pp": Signal("pp", "the reference is busier by {}", "reference"),
    "layer_cached_batch_ratio": Signal("count", "with one cached batch a step is {} times as fast", "layer"),
    "layer_quiet_ratio": Signal("count", "without logging, evaluation and saving it is {} times", "layer"),
    "layer_double_batch_ratio": Signal("count", "samples a second at twice the batch: {} times", "layer"),
}
SIGNALS: dict[str, Signal] = {**_DEVICE, **_PROBE, **_STACKS, **_LOG, **_TRACE, **_COMPARED}
BELOW_ZERO = {"reference_gap_pp": "the reference is less busy by {}"}
"""The sentence for a value below 0, by its size."""
