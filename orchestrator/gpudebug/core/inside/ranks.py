"""The records of a run's training processes, joined: one `RankEvidence` a rank, from the same window.

In one step all-reduce lets every rank take equally long, so that step times name nobody: what tells ranks
apart is how much of it each one waits for the others.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from gpudebug.core.command import loader_settings
from gpudebug.core.inside.probe import ProbeRecord, TrainingProcess, steady
from gpudebug.core.inside.probe.spans import ProcessSpan, percentile
from gpudebug.core.inside.stacks import StacksRecord, stacks_of, watched_span
from gpudebug.core.inside.stacks.evaluation import evaluating
from gpudebug.core.inside.stacks.shares import LONGEST_SOURCE, SampledStack, seen
from gpudebug.core.lazy import regex
from gpudebug.core.records import DeviceInfo, RankEvidence, RankLine, Stacks, Window

_NAMED = 8
_KIND_OF_UUID = regex("^(?:GPU|MIG)-", re.I)


def named(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0, 1`; of many the first ones."""
    more = f" and {len(ranks) - _NAMED} more" if len(ranks) > _NAMED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks[:_NAMED]))}{more}"


def bare_uuid(uuid: str) -> str:
    """PyTorch reports a UUID without the `GPU-` or `MIG-` that NVML begins it with."""
    return _KIND_OF_UUID.sub("", uuid).lower()


def place_of(one: RankEvidence) -> str | None:
    """The GPU's UUID, else the GPU that CUDA_VISIBLE_DEVICES makes of a number; None if unknown, or a CPU."""
    if one.device is None or not one.device.startswith("cuda"):
        return None
    if one.uuid is not None:
        return one.uuid
    number = one.device.partition(":")[2] or "0"
    if one.visible is None:
        return f"GPU {number}"
    entries = dict(enumerate(entry.strip() for entry in one.visible.split(",")))
    entry = entries.get(int(number)) if number.isdecimal() else None
    return f"GPU {entry}" if entry else None


MOST_LINED = 8
"""Ranks whose lines are kept: who is named is one of those that wait least, or none is."""
_DIGITS = 5
"""Significant digits of a figure: looks at a thread, of which shares are, are some hundreds."""


def compact(ranks: Sequence[RankEvidence]) -> tuple[RankEvidence, ...]:
    """The same ranks with short figures, and lines of the `MOST_LINED` that wait least for others alone.

    What the others spend in a line that is kept stands in it, since theirs may not be kept.
    """
    watched = [one for one in ranks if one.wait_share is not None and one.samples]
    lined = sorted(watched, key=lambda one: one.wait_share or 0.0)[:MOST_LINED]
    return tuple(_short(one, _beside(one, watched) if one in lined else ()) for one in ranks)


def _beside(one: RankEvidence, watched: Sequence[RankEvidence]) -> tuple[RankLine, ...]:
    others = [other for other in watched if other is not one]
    return tuple(line.model_copy(update=_of_line(line, others)) for line in one.lines)


def _of_line(line: RankLine, others: Sequence[RankEvidence]) -> dict[str, object]:
    known = [others_share(line, other) for other in others]
    return {
        "share": _rounded(line.share),
        "others": _rounded(median(known)) if known else None,
        # One more than is shown: that it goes on is shown, too.
        "code": None if line.code is None else line.code[: LONGEST_SOURCE + 1],
    }


def others_share(line: RankLine, other: RankEvidence) -> float:
    """Return the share of its time (0 to 1) that another rank spends in a line."""
    return sum(one.share for one in other.lines if (one.frame, one.line) == (line.frame, line.line))


def _short(one: RankEvidence, lines: tuple[RankLine, ...]) -> RankEvidence:
    figures = {name: _rounded(value) for name, value in one if isinstance(value, float)}
    return one.model_copy(update={**figures, "lines": lines})


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


MOST_RANKS = 64
MOST_LINES = 5
FEW_SAMPLES = 20
"""Fewer looks at a thread, about a second of it, say nothing of shares."""
FEW_STEPS = 5

_KERNEL = "(kernel):"
_COLLECTIVE = regex(
    r"(?:^|/)distributed/(?:distributed_c10d|_functional_collectives|utils|rendezvous)\.py:"
    r"|(?:^|/)(?:parallel/distributed|algorithms/join|comm/torch|comm/comm|torch/mpi_ops)\.py:"
    r"|(?:^|/)(?:fsdp|_fully_shard)/\w+\.py:|[:.](?:barrier|monitored_barrier|wait_for_everyone|all_?reduce)$"
)
"""The innermost code of PyTorch, DeepSpeed or Horovod of a thread that waits for other ranks."""
_AROUND = regex(r"[:.](?:forward|_run_ddp_forward|_inference_forward|_post_forward|fsdp_hook_wrapper)$")
"""DDP and FSDP around each forward of the network: what waits is in functions of theirs below these, and a
stack that was cut short for its size may end here."""
_WRAPPER = regex(r"(?:^|/)c10d_logger\.py:|(?:^|/)_contextlib\.py:|[:.]wrapper$")
_SHARDED = regex(r"(?:^|/)(?:fsdp|_fully_shard|zero)/\w+\.py:|zero_redundancy_optimizer\.py:")
_SAVE = regex(
    r"serialization\.py:(?:[\w<>]+\.)*_?(?:legacy_)?save|safetensors/torch\.py:|checkpoint/\w*sav\w*\.py:"
    r"|[:.]_?(?:save|write|dump|store|persist|export)_?\w*(?:checkpoint|ckpt|model|state|weights|snapshot|pretrained)"
    r"|[:.]_?(?:checkpoint|ckpt|snapshot|save)(?:_(?:save|write|now|step))?$"
    r"|torch\.save\(|save_file\(|save_pretrained\(|save_(?:checkpoint|model|state|weights)\(",
    re.I,
)
_LOG = regex(
    r"(?:^|/)(?:wandb|tensorboardX?|mlflow|comet_ml|neptune|clearml|swanlab|matplotlib|summary)/|logging/__init__\.py:"
    r"|[:.]_?(?:log|logs|logging|emit|flush|report|publish|upload)(?:_(?!softmax|prob|sum|sigmoid)\w+)?$"
    r"|\bprint\(|wandb\.log|\.add_(?:scalar|image|histogram|figure)|\blogg(?:er|ing)\.\w+\(",
    re.I,
)
_COMPUTES = ("forward", "backward", "optimizer")
_PARTS = ("wait", "data", "evaluation", "save", "log", *_COMPUTES, "other")


def rank_evidence(
    told: ProbeRecord | None,
    watched: StacksRecord | None,
    window: Window | None,
    scrub: Callable[[str], str] = str,
    devices: Sequence[DeviceInfo] = (),
) -> tuple[RankEvidence, ...]:
    """One record for each rank that reported, by rank, the first `MOST_RANKS`; none if a training has one
    process.

    `window` is the run's; without one, and of a rank with a clock of its own, its own steady steps count.
    `devices` are the run's, of which each rank names its own.
    """
    ranks = told.ranks if told else ()
    main = told.main if told else None
    if main is None or (len(ranks) < 2 and (main.world_size or 1) < 2):
        return ()
    whole = (window.start_s, window.end_s) if window else None
    bounds = [(one, steady(one) if whole is None or one.aside else whole) for one in ranks[:MOST_RANKS]]
    common = _common(bounds, watched) if watched else None
    known = {bare_uuid(device.uuid): device for device in devices}
    found = [
        _rank(one, _stacks(one, watched, within if one.aside else common or within, scrub), within, known)
        for one, within in bounds
    ]
    return compact(found)


def _common(
    bounds: Sequence[tuple[TrainingProcess, tuple[float, float] | None]], watched: StacksRecord
) -> tuple[float, float] | None:
    """The time in which all ranks of the first one's clock were watched: the stacks of some end early in a
    long run, and what a training does by phases is not what others do in another phase. None if none was."""
    known = [
        span
        for one, within in bounds
        if within is not None and not one.aside
        if (span := _watched(one, within, watched))
    ]
    if not known:
        return None
    start_s, end_s = max(start for start, _ in known), min(end for _, end in known)
    return start_s, max(start_s, end_s)


def _watched(
    one: TrainingProcess, within: tuple[float, float], watched: StacksRecord
) -> tuple[float, float] | None:
    """When it was watched, by the first one's clock; its stacks have the times of its own."""
    start_s, end_s = within[0] + one.moved_s, within[1] + one.moved_s
    span = watched_span(watched, one.key, (start_s, end_s), FEW_SAMPLES)
    return None if span is None else (span[0] - one.moved_s, span[1] - one.moved_s)


def _stacks(
    process: TrainingProcess,
    watched: StacksRecord | None,
    within: tuple[float, float] | None,
    scrub: Callable[[str], str],
) -> Stacks | None:
    return stacks_of(watched, process.key, within, process.moved_s, scrub) if watched else None


def _rank(
    process: TrainingProcess,
    stacks: Stacks | None,
    bounds: tuple[float, float] | None,
    devices: Mapping[str, DeviceInfo],
) -> RankEvidence:
    span = ProcessSpan(process, *bounds) if bounds else None
    facts = _facts(process, devices)
    on_cpu = facts["device"] == "cpu"
    parts = _parts(stacks, on_cpu) if stacks and stacks.samples >= FEW_SAMPLES else {}
    step_s = span.seconds / span.steps if span and span.seconds and span.steps else None
    waits = parts.get("wait_share") if on_cpu else None
    return RankEvidence(
        pid=process.pid,
        rank=process.rank,
        local_rank=process.local_rank,
        world_size=process.world_size,
        node=process.node,
        visible=process.visible,
        torch=process.torch,
        python=process.python,
        affinity=process.affinity,
        own_clock=process.aside,
        steps=process.steps,
        start_s=None if process.aside else round(process.start_s, 3),
        met_s=process.met_s,
        last_step_s=round(process.beats[-1].t, 3) if process.beats and not process.aside else None,
        last_step_by_s=_last_step_by(process),
        own_s=step_s * (1 - waits) if step_s is not None and waits is not None else None,
        **parts,
        **(_counted(span) if span and span.seconds and span.steps else {}),
        **facts,
        off=process.off,
    )


def _last_step_by(process: TrainingProcess) -> float | None:
    """When its last step was over at the latest, in seconds since launch; None if that is not known.

    It reports the more rarely the fuller the record is, so that the next report may be due in twice the time
    that the last one took; one that exited tells how many steps it made in all.
    """
    if not process.beats or process.aside or process.off is not None:
        return None
    last = process.beats[-1]
    if process.ended_s is not None:
        return round(process.ended_s if process.steps > last.steps else last.t, 3)
    before = process.beats[-2].t if len(process.beats) > 1 else process.start_s
    return round(last.t + 2 * (last.t - before), 3)


def _counted(span: ProcessSpan) -> dict[str, Any]:
    """Return what the probe timed and counted in the span."""
    times = span.step_times()
    copies = [took for way in ("h2d_s", "d2h_s") if (took := span.delta(way)) is not None]
    return {
        "steps_per_s": span.steps / span.seconds,
        "step_time_p50_s": percentile(times, 0.5) if sum(times.values()) >= FEW_STEPS else None,
        "read_share": _per(span.delta("reads_s"), span.seconds),
        "reads_per_step": _per(span.delta("reads_n"), span.steps),
        "copy_share": _per(math.fsum(copies) if copies else None, span.seconds),
        "inputs_per_step": _per(span.delta("inputs_n"), span.steps),
        "samples_per_s": _per(span.delta("samples_n"), span.seconds),
        "cpu_cores": _per(span.delta("cpu_s"), span.seconds),
    }


def _per(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def _facts(process: TrainingProcess, devices: Mapping[str, DeviceInfo]) -> dict[str, Any]:
    facts = process.facts
    loaders = facts.get("loaders")
    known = [one for one in loaders if isinstance(one, Mapping)] if isinstance(loaders, list) else []
    workers = [_whole(one.get("workers")) for one in known if one.get("training") is not False]
    device, uuid = facts.get("device"), facts.get("device_uuid")
    sampled = devices.get(bare_uuid(uuid)) if isinstance(uuid, str) else None
    cores = process.cores if process.cores is not None else _whole(facts.get("cpus"))
    return {
        "device": device if isinstance(device, str) else None,
        "uuid": sampled.uuid if sampled else uuid if isinstance(uuid, str) else None,
        "gpu_index": sampled.index if sampled else None,
        "loader": {
            name: values
            for name in loader_settings.NAMES
            if (values := loader_settings.reported(facts, name))
        },
        "loader_workers": max((w for w in workers if w is not None), default=None),
        "threads": _whole(facts.get("threads")),
        "cores": cores,
        "omp": process.omp,
        "slurm_cpus": process.slurm_cpus,
    }


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _parts(stacks: Stacks, on_cpu: bool) -> dict[str, Any]:
    """Return the shares of the watched time, the lines with the most of it, and how well it was watched."""
    evaluates = evaluating(stacks, ".")
    spent = dict.fromkeys(_PARTS, 0.0)
    lines: defaultdict[tuple[str, int | None, str | None], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in seen(stacks):
        part, waits_s = _part(one, evaluates, on_cpu)
        spent["wait"] += waits_s
        spent[part] += one.seconds - waits_s
        if part != "wait" and one.own is not None:
            entry = lines[one.spot]
            entry[0] += one.seconds - waits_s
            entry[1] += one.cpu_s
    total = stacks.seconds
    if total <= 0:
        return {}
    # Stacks with little time are not listed, and are no waits for others that are worth a word.
    spent["other"] += max(0.0, total - math.fsum(spent.values()))
    most = sorted(lines, key=lambda spot: -lines[spot][0])[:MOST_LINES]
    return {
        "watched_s": total,
        "samples": stacks.samples,
        **{f"{name}_share": min(1.0, seconds / total) for name, seconds in spent.items()},
        "starved_share": None if stacks.starved_s is None else min(1.0, stacks.starved_s / total),
        "sharded": any(_SHARDED.search(frame) for frame in stacks.frames),
        "lines": tuple(_line(spot, lines[spot], total) for spot in most if lines[spot][0] > 0),
    }


def _part(one: SampledStack, evaluates: frozenset[str], on_cpu: bool) -> tuple[str, float]:
    """Return what a stack is part of, and the seconds of it in which it waited for other ranks."""
    if _is_collective(one.frames):
        return "wait", one.seconds
    if one.phase == "eval" or not evaluates.isdisjoint(one.frames):
        return "evaluation", 0.0
    if one.phase == "data":
        return "data", 0.0
    if one.phase == "backward":
        # On a CPU DDP reduces inside of it, and gives the thread nothing else to wait for. Of other devices
        # autograd has threads of its own: the caller sleeps through all of the pass, waits or none.
        return "backward", max(0.0, one.seconds - one.cpu_s) if on_cpu else 0.0
    texts = (*one.frames, one.source or "")
    if any(_SAVE.search(text) for text in texts):
        return "save", 0.0
    if any(_LOG.search(text) for text in texts):
        return "log", 0.0
    return (one.phase if one.phase in _COMPUTES else "other"), 0.0


def _is_collective(frames: tuple[str, ...]) -> bool:
    known = [frame for frame in frames if not frame.startswith(_KERNEL) and not _WRAPPER.search(frame)]
    return bool(known) and not _AROUND.search(known[-1]) and _COLLECTIVE.search(known[-1]) is not None


def _line(spot: tuple[str, int | None, str | None], spent: Sequence[float], total: float) -> RankLine:
    frame, line, source = spot
    seconds, cpu_s = spent
    state = "running" if cpu_s >= seconds / 2 else "waiting"
    return RankLine(frame=frame, line=line, state=state, code=source, share=min(1.0, seconds / total))
