"""The signals that conditions read: a name, a unit, a sentence each; what a catalogue file says in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from gpudebug.core.catalogue.model import Cause, Condition, Own, Share, Term, written
from gpudebug.core.inside.stacks.shares import pattern
from gpudebug.core.lazy import regex


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
    "cpu_lost_share": Signal("share", "others kept {} of the wanted CPU time from the training", "samples"),
    "read_mb_s": Signal("MB", "{} a second are read from disk", "samples"),
    "write_mb_s": Signal("MB", "{} a second are written to disk", "samples"),
    "cpu_cores": Signal("count", "the training's processes use {} cores", "samples"),
    "cores": Signal("count", "cores that they may use: {}", "host"),
    "cores_busy_share": Signal("share", "of what others leave of those cores {} is busy", "samples"),
    "ready_over_cores": Signal("count", "threads that run or wait for a core, a core: {}", "samples"),
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
    "loader_restart_share": Signal(
        "share", "starting loaders and first batches takes {} of the time", "probe"
    ),
    "loader_starts_per_step": Signal("count", "loaders are started {} times a step", "probe"),
    "loader_used": Signal("yes", "a DataLoader feeds the training: {}", "probe"),
    "loader_workers": Signal("count", "loader workers: {}", "probe"),
    "loader_workers_over_cores": Signal("count", "loader workers a core: {}", "probe"),
    "loader_persistent": Signal("yes", "workers persist between epochs: {}", "probe"),
    "loader_prefetch": Signal("count", "batches that each worker prefetches: {}", "probe"),
    "loader_pinned": Signal("yes", "the loader pins memory: {}", "probe"),
    "sample_cost_s": Signal("s", "a sample takes {} to load in the training process itself", "probe"),
    "fetch_s": Signal("s", "a batch takes {} to load in the training process itself", "probe"),
    "weights": Signal("count", "weights of the largest optimizer: {}", "probe"),
    "optimizer_ns_per_weight": Signal("count", "the optimizer takes {} ns a weight in a step", "probe"),
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
    "slowing_share": Signal(
        "share",
        "steps get longer and longer: {} of the time is what they take beyond the first ones",
        "probe",
    ),
    "slowing_part": Signal("word", "what grows is the {} of a step", "probe"),
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
    "host_code_share": Signal(
        "share", "one piece of host code between the steps takes {} of the time", "stacks"
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
    "worker_starved_share": Signal("share", "loader workers wait {} of their time for a core", "stacks"),
    "workers_lack_cores": Signal(
        "yes", "loader workers compute, and no core is left for more of them: {}", "stacks"
    ),
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


GENERAL = "In general"
"""Before what the catalogue says of any program: nothing of it was measured here."""
_LONGEST = 60
_DESCRIBED = 400
_WORDS = 3
_ESCAPE, _WORD = regex(r"\\[A-Za-z]|\(\?[a-zA-Z]+\)"), regex(r"[A-Za-z][A-Za-z0-9_]{2,}")
_MOVES = {"falls": "falls", "rises": "rises", "is_zero": "is zero"}


def shows(cause: Cause) -> str:
    """Return the one sign that speaks most for the cause, in plain words; a signal rather than an expression
    of half its weight."""
    if not cause.signature:
        return said(cause.requires[0], _in_words) if cause.requires else ""
    strongest = max(cause.signature, key=lambda sign: sign.weight * (1 if sign.signal is None else 2))
    return said(strongest, _in_words)


def described(cause: Cause) -> str:
    """Return the first sentences on a cause, for a hypothesis; `gpudebug catalogue ID` shows the rest."""
    kept = ""
    for sentence in re.split(r"(?<=[.:;])\s+(?=[A-Z])", one_line(cause.explanation)):
        if kept and len(kept) + len(sentence) > _DESCRIBED:
            break
        kept = f"{kept} {sentence}".strip()
    return f"{GENERAL}: {kept}"


def tried(cause: Cause, instructions: str | None = None) -> str:
    """How a cause is tested, for a hypothesis: what is written, what should move, when a gain is hollow."""
    how = [f"{GENERAL}: {one_line(instructions)}"] if instructions else []
    if cause.own_signal:
        how.append(f"What should move: {'; '.join(map(said_own, cause.own_signal))}.")
    if cause.hollow_if:
        how.append(f"Hollow if: {one_line(cause.hollow_if)}")
    return " ".join(how)


def one_line(text: str) -> str:
    return " ".join(text.split())


def _short(expression: str) -> str:
    shown = expression if len(expression) <= _LONGEST else expression[: _LONGEST - 1] + "…"
    return f"/{shown}/"


def _in_words(expression: str) -> str:
    """Return the first words of an expression, as people know them; the expression if it has none."""
    words = dict.fromkeys(word.strip("_") for word in _WORD.findall(_ESCAPE.sub(" ", expression)))
    return " or ".join(list(words)[:_WORDS]) or _short(expression)


_Quote = Callable[[str], str]


def said(condition: Condition, quote: _Quote = _short) -> str:
    """Return a condition as a sentence: `training waits more than 20 % of its time for batches`.

    `quote` writes an expression."""
    return _sentence(condition, _compared(condition, quote), quote)


def said_share(share: Share) -> str:
    """Return a share of the time as its figure is called."""
    text = SIGNALS[share.signal].said.format("…") if share.signal in SIGNALS else _sentence(share, "…")
    return text + (f", times {share.times:g}" if share.times != 1 else "")


def said_own(own: Own) -> str:
    """`data_wait_share falls (training waits … of its time for batches)`."""
    about = SIGNALS[own.signal].said.format("…")
    return f"{own.signal} {_MOVES[own.direction]} ({about})"


def _sentence(term: Term, value: str, quote: _Quote = _short) -> str:
    if term.signal is not None:
        return SIGNALS[term.signal].said.format(value) if term.signal in SIGNALS else term.signal
    if term.section is not None:
        return f"sections named {quote(term.section)} take {value} of the profiled time"
    if term.flag is not None:
        return f"the command's {quote(term.flag)} is {value}"
    if term.printed is not None:
        return f"the program prints {quote(term.printed)} as {value}"
    return f"{_watched(term, quote)} take {value} of the watched time"


def _watched(term: Term, quote: _Quote) -> str:
    who = "loader workers' stacks" if term.of == "workers" else "stacks"
    if term.state is not None:
        who = f"{term.state} {who}"
    through = [f"through {quote(term.stack)}"] if term.stack is not None else []
    through += [f"at lines with {quote(term.code)}"] if term.code is not None else []
    where = f" in the {term.phase} phase" if term.phase is not None else ""
    but = f", none with {_short(term.unless)}" if term.unless is not None else ""
    return f"{who} {' or '.join(through)}{where}{but}"


def _compared(condition: Condition, quote: _Quote) -> str:
    unit = SIGNALS[condition.signal].unit if condition.signal in SIGNALS else None
    if condition.signal is None and condition.flag is None and condition.printed is None:
        unit = "share"
    above, below = condition.above, condition.below
    if above is not None and below is not None:
        return f"between {_figure(above, unit)} and {_figure(below, unit)}"
    if above is not None:
        return f"more than {_figure(above, unit)}"
    if below is not None:
        return f"less than {_figure(below, unit)}"
    if condition.matches is not None:
        return f"something like {quote(condition.matches)}"
    value = condition.equals
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _figure(value, unit) if isinstance(value, float) else str(value)


def _figure(number: float, unit: str | None) -> str:
    if unit == "share":
        return f"{100 * number:g} %"
    suffix = {"%": " %", "pp": "pp", "s": " s", "MB": " MB"}.get(unit or "", "")
    return written(float(number)) + suffix


MOST = 8
"""Causes that are shown at most; more are no answer."""

_LONGEST_QUERY = 200
_QUERY_WORD = regex(r"[a-z0-9]+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ers", "er", "ed", "es", "or", "e", "s")
_SHORTEST = 4
"""Letters that a word keeps when its ending goes."""
_SAYS_NOTHING = frozenset(
    _QUERY_WORD.findall(
        "the an of in on to is are my and or with for it by not be at from that this why too so very while "
        "slow slowly slower speed train training run gpu model cause use using left"
    )
)
_ID, _TITLE, _EXPRESSION, _FIX, _TEXT, _TEST = 8, 8, 6, 4, 2, 1
"""What a word counts by where it is; `_EXPRESSION`: one of those of a hypothesis that tests the cause."""


def search(causes: Iterable[Cause], text: str) -> tuple[Cause, ...]:
    """Return the causes that words are of, the best first, at most `MOST`: at least half as many of the words
    are in each as in any.

    British and American spellings, plurals and the forms of a verb are one. () if no word is in any.
    """
    text = text.lower()[:_LONGEST_QUERY]
    words = dict.fromkeys(_QUERY_WORD.findall(text))
    telling = [word for word in words if word not in _SAYS_NOTHING] or list(words)
    found = []
    for cause in causes:
        places = _places(cause)
        weights = [weight for word in telling if (weight := _weight(word, cause, places))]
        if weights:
            whole = _EXPRESSION * any(pattern(words).search(text) for words in cause.words)
            found.append((len(weights), sum(weights) + whole, cause))
    most = max((count for count, _, _ in found), default=0)
    best = sorted((f for f in found if 2 * f[0] >= most), key=lambda f: (-f[1], f[2].id))
    return tuple(cause for _, _, cause in best[:MOST])


def _weight(word: str, cause: Cause, places: Iterable[tuple[int, frozenset[str]]]) -> int:
    """Return the best place that a word has in a cause; 0 if it is not there."""
    stem = stem_of(word)
    expressed = _EXPRESSION * any(pattern(words).search(word) for words in cause.words)
    return max(expressed, *(weight for weight, stems in places if _within(stem, stems)), 0)


def _within(stem: str, stems: frozenset[str]) -> bool:
    return stem in stems or (len(stem) > _SHORTEST and any(one.startswith(stem) for one in stems))


def _places(cause: Cause) -> tuple[tuple[int, frozenset[str]], ...]:
    tests = [f"{i.code or ''} {i.note or ''}" for i in cause.interventions.values()]
    said = (
        (_ID, f"{cause.id} {cause.group or ''}"),
        (_TITLE, cause.title),
        (_FIX, f"{cause.fix} {cause.hollow_if or ''}"),
        (_TEXT, cause.explanation),
        (_TEST, " ".join(tests)),
    )
    return tuple(
        (weight, frozenset(map(stem_of, _QUERY_WORD.findall(each.lower())))) for weight, each in said
    )


def stem_of(word: str) -> str:
    """`rendering`, `renders` and `rendered` are one; so are `quantise` and `quantize`."""
    word = re.sub(r"z(?=e|i|a)", "s", word)
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= _SHORTEST), None)
    return word if ending is None else stem_of(word.removesuffix(ending))
