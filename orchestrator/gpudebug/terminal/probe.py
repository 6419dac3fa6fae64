"""What went on inside the training: the probe's figures, where its threads were, and torch profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpudebug.core.answers.next import RecordedProfile
from gpudebug.core.answers.show import CopyFigures, ProbeFigures, ProbeSide, SiteFigures
from gpudebug.core.inside.torch_profile import overhead_of
from gpudebug.core.statistics import numbers
from gpudebug.core.words import counted

if TYPE_CHECKING:
    from gpudebug.core.inside.stacks.shares import Taken


HEADING = "Inside the training (% of its time):"
_SITES = 3
# A smaller share of the time is not worth a row; of the blocking reads, not the rows of their places.
_LEAST_SHARE, _LEAST_READS = 0.001, 0.01
_LONGEST_SITE = 36


class _Little(str):
    """A value not worth a look: a row of only such values is left out."""


def sides(probes: Sequence[ProbeSide]) -> list[str]:
    """Render a column for each side with figures, and why the others have none."""
    measured = [(side.part, side.figures) for side in probes if side.figures]
    missing = [side for side in probes if not side.figures and side.reason]
    if not measured:
        reasons = dict.fromkeys(side.reason for side in missing)
        return [f"Inside the training: no data ({reason})" for reason in reasons]
    lines = table([(part if len(probes) > 1 else "", figures) for part, figures in measured])
    lines += [f"  {side.part}: no data ({side.reason})" for side in missing]
    return [HEADING, *lines]


def inside(probes: Sequence[ProbeSide], above: Sequence[str] = ()) -> list[str]:
    """Render `sides` below `above`; nothing without sides."""
    lines = sides(probes)
    return [*above, *lines] if lines else []


def table(columns: Sequence[tuple[str, ProbeFigures]]) -> list[str]:
    """Render figures by row, leaving out rows without a value, and settings that are the same on all sides.

    Headings only if not all are empty.
    """
    every = [figures for _, figures in columns]
    rows = [(label, [show(figures) for figures in every]) for label, show in _ROWS.items()]
    rows[_SITES_AFTER:_SITES_AFTER] = _site_rows(every)
    rows = [(label, cells) for label, cells in rows if any(c and not isinstance(c, _Little) for c in cells)]
    if len(every) > 1:
        rows = [(label, cells) for label, cells in rows if label not in _SETTINGS or len({*cells}) > 1]
    if any(heading for heading, _ in columns):
        rows.insert(0, ("", [heading for heading, _ in columns]))
    lines = _aligned(rows)
    for heading, figures in columns:
        lines += [f"  note{f', {heading}' if heading else ''}: {note}" for note in figures.notes]
    return lines


def _aligned(rows: Sequence[tuple[str, Sequence[str | None]]]) -> list[str]:
    first = max((len(label) for label, _ in rows), default=0)
    texts = [
        (label, [cell if cell is not None else numbers.UNKNOWN for cell in cells]) for label, cells in rows
    ]
    widths = [max(map(len, column)) for column in zip(*(cells for _, cells in texts), strict=True)]
    return [
        f"  {label:<{first}}  {'  '.join(f'{c:<{w}}' for c, w in zip(cells, widths, strict=True))}".rstrip()
        for label, cells in texts
    ]


def _site_rows(every: Sequence[ProbeFigures]) -> list[tuple[str, list[str | None]]]:
    """The places with the most blocking reads of each side, with both sides' figures, if they take long."""
    shares = [figures.blocking_read_share for figures in every]
    if all(share is not None and share < _LEAST_READS for share in shares):
        return []
    wanted = {_site(site): None for figures in every for site in figures.sites[:_SITES]}
    reads = [{_site(site): _reads(site, figures) for site in figures.sites} for figures in every]
    return [(f"  {label}", [sites.get(label, "none") for sites in reads]) for label in wanted]


def _site(site: SiteFigures) -> str:
    """`models/net.py:41 item`."""
    place = "/".join(site.site.rsplit("/", 2)[-2:])
    return f"{place[-_LONGEST_SITE:]} {site.kind}"


def _reads(site: SiteFigures, figures: ProbeFigures) -> str:
    per = numbers.number(site.count / figures.steps) if figures.steps else numbers.UNKNOWN
    return f"{per} a step, {numbers.seconds(site.seconds / site.count)}" if site.count else "none"


def _rate(f: ProbeFigures) -> str | None:
    steps, samples = f.steps_per_s, f.samples_per_s
    if steps is None:
        return None
    rate = numbers.number(steps, "steps/s")
    return rate if samples is None else f"{rate}, {numbers.number(samples, 'samples/s')}"


def _step_time(f: ProbeFigures) -> str | None:
    p50, p95 = f.step_time_p50_s, f.step_time_p95_s
    if p50 is None:
        return None
    return f"p50 {numbers.seconds(p50)}" + (f", p95 {numbers.seconds(p95)}" if p95 is not None else "")


def _value(f: ProbeFigures, name: str) -> float | None:
    value: float | None = getattr(f, name)
    return value


def _share(name: str, least: float = 0.0) -> Callable[[ProbeFigures], str | None]:
    def show(f: ProbeFigures) -> str | None:
        value = _value(f, name)
        if value is None:
            return None
        text = numbers.percent(100 * value)
        return text if value >= least else _Little(text)

    return show


def _number(name: str, unit: str) -> Callable[[ProbeFigures], str | None]:
    return lambda f: None if _value(f, name) is None else numbers.number(_value(f, name), unit)


def _rare(name: str, unit: str = "") -> Callable[[ProbeFigures], str | None]:
    """Format a number that is not worth a row if it is 0."""

    def show(f: ProbeFigures) -> str | None:
        text = _number(name, unit)(f)
        return text if text is None or _value(f, name) else _Little(text)

    return show


def _split(f: ProbeFigures) -> str | None:
    parts = (f.forward_share, f.backward_share, f.optimizer_share)
    if all(p is None for p in parts):
        return None
    # On a GPU the host only queues the work, and waits if the queue is full.
    queued = " (queueing)" if f.facts.get("phases") == "launch" else ""
    return ", ".join(_percent(p) for p in parts) + queued


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{100 * share:.0f}%"


def _blocking(f: ProbeFigures) -> str | None:
    per, share = f.blocking_reads_per_step, f.blocking_read_share
    if per is None:
        return None
    return f"{numbers.number(per)} a step" + (
        f", {numbers.percent(100 * share)}" if share is not None else ""
    )


def _copied(copies: CopyFigures | None, steps: float | None) -> str | None:
    if copies is None or not steps:
        return None
    if not copies.count or copies.mb is None:
        return _Little("none")
    text = f"{numbers.number(copies.count / steps)} a step, {numbers.number(copies.mb / steps, 'MB')}"
    pinned = copies.pinned_share
    return text if pinned is None else f"{text}, {_percent(pinned)} pinned"


def _loader(f: ProbeFigures) -> str | None:
    loaders = f.facts.get("loaders")
    records = [one for one in loaders if isinstance(one, dict)] if isinstance(loaders, list) else []
    if not records:
        return None
    trains = [one for one in records if one.get("training") is not False] or records
    one = max(trains, key=lambda loader: loader.get("fetched") or 0)
    workers, method, batch = one.get("workers"), one.get("method"), one.get("batch_size")
    count = f"{numbers.UNKNOWN} workers" if workers is None else counted(workers, "worker")
    parts = [count + (f" ({method})" if workers and method else "")]
    parts += [f"batch {batch}"] if batch is not None else []
    parts += ["pinned"] if one.get("pin_memory") else []
    return ", ".join(parts) + (f", and {len(trains) - 1} more" if len(trains) > 1 else "")


def _device(f: ProbeFigures) -> str | None:
    facts = f.facts
    parts = [str(facts["device"])] if facts.get("device") else []
    amp, compiled = facts.get("amp"), facts.get("compile")
    if isinstance(amp, dict) and amp.get("enabled"):
        parts.append(f"AMP {amp.get('dtype') or ''}".strip())
    if isinstance(compiled, dict):
        breaks = compiled.get("graph_breaks")
        parts.append("compiled" + (f", {counted(breaks, 'graph break')}" if breaks else ""))
    threads = facts.get("threads")
    parts += [counted(threads, "thread")] if threads else []
    return ", ".join(parts) or None


def _memory(f: ProbeFigures) -> str | None:
    named = (("host", f.peak_host_mb), ("device", f.peak_device_mb))
    peaks = [f"{name} {peak:.0f} MB" for name, peak in named if peak]
    return ", ".join(peaks) or None


def _rank(f: ProbeFigures) -> str | None:
    rank, world = f.rank, f.world_size
    return f"{rank} of {world}" if rank is not None and (world or 1) > 1 else None


_ROWS: dict[str, Callable[[ProbeFigures], str | None]] = {
    "rank": _rank,
    "throughput": _rate,
    "step time": _step_time,
    "waiting for data": _share("data_wait_share"),
    "waiting in evaluation": _share("eval_data_share", _LEAST_SHARE),
    "fetching in other threads": _share("background_data_share", _LEAST_SHARE),
    "starting loaders": _share("loader_start_share", _LEAST_SHARE),
    "forward, backward, optimizer": _split,
    "blocking reads": _blocking,
    "synchronising": _rare("syncs_per_step", "a step"),
    "device time in steps": _share("device_time_share"),
    "copies to the device": lambda f: _copied(f.h2d, f.span_steps),
    "copies to the host": lambda f: _copied(f.d2h, f.span_steps),
    "loader": _loader,
    "device": _device,
    "CPU": _number("cpu_cores", "cores"),
    "garbage collection": _share("gc_share", _LEAST_SHARE),
    "peak memory": _memory,
    "allocator retries": _rare("alloc_retries"),
}
_SETTINGS = ("rank", "loader", "device")
_SITES_AFTER = 1 + list(_ROWS).index("blocking reads")


Stacks = Mapping[str, Any]
_PLACES = {"training": 6, "workers": 3}
_WHO = {"training": "the training thread is", "workers": "loader workers are"}
_LEAST_OF_STACKS = 0.01
_LONGEST_NAME, _LONGEST_CODE = 40, 60


def places(stacks: Stacks | None) -> list[str]:
    """Render an evidence's `stacks`; nothing without them."""
    if not stacks:
        return []
    lines = [line for who in _PLACES for line in _of(who, stacks[who])]
    return [*lines, *(f"  note: {note}" for note in stacks["notes"])]


def _of(who: str, record: Stacks | None) -> list[str]:
    if not record or not record["seconds"]:
        return []
    from gpudebug.core.inside.stacks.evaluation import evaluation, hottest
    from gpudebug.core.records import Stacks

    stacks = Stacks.model_validate(record)
    hot = [one for one in hottest(stacks) if one.share >= _LEAST_OF_STACKS][: _PLACES[who]]
    ran = 100 * record["cpu_s"] / record["seconds"]
    heading = (
        f"Where {_WHO[who]} ({counted(record['samples'], 'sample')}, running in {ran:.0f}% of the time):"
    )
    names = [_cut(f"{one.site} {one.function}", _LONGEST_NAME) for one in hot]
    width = max(map(len, names), default=0)
    evaluates = evaluation(stacks)
    return [
        heading,
        *([_all_of(evaluates)] if evaluates.value >= _LEAST_OF_STACKS else []),
        *(
            f"  {100 * one.share:3.0f}%  {one.state:<5}  {one.phase:<9}  {name:<{width}}  "
            f"{_cut(one.code, _LONGEST_CODE)}".rstrip()
            for one, name in zip(hot, names, strict=True)
        ),
    ]


def _all_of(evaluates: Taken) -> str:
    """Evaluation as a whole: its lines are those of the network, which training runs as well."""
    function = str(evaluates.place).partition(" (")[0] if evaluates.place else "the training's own loop"
    return f"  {100 * evaluates.value:3.0f}%  of it in evaluation, called by {function}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


Profile = dict[str, Any]


def profile(answer: RecordedProfile) -> str:
    """Render `baseline --torch-profile`."""
    role = answer.role.partition("-")[2]
    lines = [f"Profile of the {role}: run {answer.run}, no part of its baseline"]
    lines += trace(answer.trace)
    lines += [f"note: {line}" for line in answer.notes]
    return "\n".join([*lines, f"Next: {answer.next_command}"])


def trace(record: Profile | None) -> list[str]:
    """List the trace's file, what it covers and what the profiler cost; nothing without a trace."""
    if not record or not record.get("file"):
        return []
    overhead = overhead_of(record)
    took = record.get("active_step_s")
    facts = [
        counted(record["steps"], "iteration"),
        *([f"{numbers.number(took * 1e3, 'ms')} each"] if took else []),
        f"{max(0.0, overhead):.0%} longer by the profiler" if overhead is not None else "overhead unknown",
    ]
    others = len(record.get("files", ())) - 1
    more = f" and {others} of other ranks" if others > 0 else ""
    lines = [f"trace   {record.get('path') or record['file']}{more}", f"        {', '.join(facts)}"]
    return lines + [f"        {line}" for line in _summary(record.get("analysis") or {})]


def _summary(analysis: Profile) -> list[str]:
    """Summarise a trace: how busy the device was, what the steps waited for, the slowest operators."""
    steps = analysis.get("steps") or {}
    shares = {
        "device busy": analysis.get("busy_share"),
        "waiting for data": steps.get("data_wait_share"),
    }
    facts = [f"{name} {numbers.percent(100 * share)}" for name, share in shares.items() if share is not None]
    kernels, mean = analysis.get("kernels_per_step"), analysis.get("mean_kernel_us")
    if kernels is not None and mean is not None:
        facts.append(f"{numbers.number(kernels)} kernels a step of {numbers.number(mean, 'us')}")
    most = ", ".join(row["name"] for row in (analysis.get("operators") or ())[:3])
    return ([", ".join(facts)] if facts else []) + ([f"most time in {most}"] if most else [])
