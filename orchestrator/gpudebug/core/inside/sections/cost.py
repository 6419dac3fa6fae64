"""What a process timed of its own sections, as one frozen record, and what each section costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gpudebug.core.answers.sections import CategoryShare, Section, SectionAdvice, SectionNode
from gpudebug.core.lazy import regex
from gpudebug.core.words import Word


@dataclass(frozen=True, slots=True)
class MeasuredOn:
    """What a report was measured on; None is unknown.

    `compiled` says that torch.compile was in use, `settings` are the program's options that decide how much
    a call does, by name.
    """

    machine: str | None = None
    cpus: int | None = None
    device: str | None = None
    torch: str | None = None
    compiled: bool | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What one process timed, or several: `processes`, merged, `parts_s` their profiled time together.

    `iterations` leave the `warmup` ones out; `enabled_s` is the time in which sections were recorded.
    `categories` are names by the prefix of a section's name. `capped` counts the names beyond the library's
    limit, `open` are sections that were still open at the end; `sync` says that it waited for the device.
    """

    sections: tuple[Section, ...]
    tree: tuple[SectionNode, ...] = ()
    rank: int | None = None
    pid: int | None = None
    python: str | None = None
    surroundings: MeasuredOn = field(default_factory=MeasuredOn)
    wall_s: float | None = None
    enabled_s: float | None = None
    warmup: int = 0
    iterations: int | None = None
    sync: bool = False
    categories: Mapping[str, str] = field(default_factory=dict)
    capped: int = 0
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    processes: int = 1
    parts_s: float | None = None

    @property
    def iterations_per_s(self) -> float | None:
        """Of one process; None if it reported no iterations."""
        if not self.iterations or not self.enabled_s:
            return None
        return self.iterations / self.enabled_s


# The first match counts: the more particular come first. `<` is the beginning of a word.
_HINTS = (
    (
        r"gpu.?(to|2|->).?cpu|d2h|device.?to.?host|to_?cpu|download|<cpu$",
        "copy from the GPU less often, all at once, into pinned buffers that are allocated once",
    ),
    (
        r"cpu.?(to|2|->).?gpu|h2d|host.?to.?device|to_?(gpu|cuda|device)|upload|transfer",
        "copy from pinned memory with non_blocking=True, in one piece, while the GPU computes",
    ),
    (
        r"seriali[sz]|pickle|json|protobuf",
        "serialise less often or in another process, or share memory instead",
    ),
    (r"checkpoint|save|dump|snapshot", "save less often, or in the background from a copy on the host"),
    (r"<eval|<valid", "evaluate less often, or on less data"),
    (
        r"<log(?!it)|<print|tensorboard|wandb|metric",
        "log less often, and read no tensor back for it at each step",
    ),
    (
        r"queue|merg(e|ing)",
        "review how the queue is kept: a ring buffer with slots allocated once needs no copies",
    ),
    (r"replay|store|buffer", "write into arrays allocated once, and whole batches at a time"),
    (
        r"data(?!.?collect)|load|fetch|batch|collate|dataset",
        "give the loader more workers, keep them (persistent_workers), pin memory and prefetch",
    ),
    (
        r"image|rgb|resiz|render|draw|preprocess|augment|decode|frame|transform|normali[sz]",
        "use smaller or fewer images, prepare them once or in the loader's workers, or on the GPU",
    ),
    (
        r"robot|camera|sensor|observation|send_action|serial_port|communicat",
        "lower the resolution or the rate, raise the baud rate, or read in a thread of its own",
    ),
    (r"postprocess", "do it for whole batches, on the GPU, before anything is copied to the host"),
    (r"alloc|copy|clone|stack|concat|reshape", "allocate buffers once, reuse tensors, avoid copies"),
    (
        r"<env|simulator|rollout|collect",
        "run fewer environments, or step them in processes of their own and in batches",
    ),
    (r"guidance", "lower its weight, simplify it, or compile it (torch.compile)"),
    (r"teacher", "leave the teacher out if its output is not used"),
    (
        r"forward|inference|model|policy|conv|lstm|attention|encoder|layer|student",
        "try mixed precision, torch.compile and a larger batch",
    ),
    (r"backward|optim|update", "try mixed precision, a fused optimizer and fewer, larger steps"),
)
_COMPILED = tuple((regex(words.replace("<", "(?<![a-z])")), advice) for words, advice in _HINTS)
_LONGEST = 200


def hint_for(name: str) -> str | None:
    """Advice for a section of this name; None if the name says nothing."""
    text = name[:_LONGEST].lower()
    return next((advice for words, advice in _COMPILED if words.search(text)), None)


DEFAULTS = {
    "env_": "Environment",
    "env_rgb_": "Rendering",
    "convlstm_": "Model",
    "recurrent_policy_": "Policy",
    "training_": "Training",
    "simulated_": "Training",
}
NONE = "(no category)"


def category_of(section: Section, report: Report) -> str | None:
    """Its own, else that of the longest prefix of its name; `DEFAULTS` where the report names none."""
    if section.category:
        return section.category
    prefixes = report.categories or DEFAULTS
    known = [p for p in prefixes if section.name.startswith(p)]
    return prefixes[max(known, key=len)] if known else None


def category_shares(report: Report) -> list[CategoryShare]:
    """Of own time, the largest first; none if no section has a category."""
    times: dict[str, list[float]] = {}
    for section in report.sections:
        times.setdefault(category_of(section, report) or NONE, []).append(section.self_s)
    if set(times) <= {NONE}:
        return []
    sums = {name: math.fsum(values) for name, values in times.items()}
    total = math.fsum(sums.values())
    return [
        CategoryShare(name, seconds, seconds / total if total > 0 else 0.0)
        for name, seconds in sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    ]


# The weights, what makes a part of the score full, and what is named, are those of the profiling system
# that this one replaces: 40 % time share, 30 % time a call, 15 % memory of host and device each.
TIME_WEIGHT, CALL_WEIGHT, MEMORY_WEIGHT = 40.0, 30.0, 15.0
CRITICAL_SHARE = 0.30
SLOW_S = 0.1
LARGE_MB = 100.0
# A section below that takes this much of the one above is where to look.
_WORTH = 0.25


class AdviceLevel(Word):
    """What a recommendation is about, the most pressing first."""

    CRITICAL = "CRITICAL"
    SLOW = "SLOW"
    MEMORY = "MEMORY"
    GPU_MEMORY = "GPU MEMORY"


def profiled_s(report: Report) -> float:
    """Return the time that was profiled: that of the tree's roots; without a tree, own times, else totals."""
    if report.parts_s is not None:
        return report.parts_s
    sums = (
        math.fsum(n.total_s for n in report.tree),
        math.fsum(s.self_s for s in report.sections),
        math.fsum(s.total_s for s in report.sections),
    )
    return next((s for s in sums if s > 0), 0.0)


def share(section: Section, profiled: float) -> float:
    """0 to 1 of the profiled time."""
    return min(section.total_s / profiled, 1.0) if profiled > 0 else 0.0


def score(section: Section, share: float) -> float:
    """0 to 100; memory that was not measured adds nothing."""
    return (
        TIME_WEIGHT * share
        + CALL_WEIGHT * min(section.mean_s / SLOW_S, 1.0)
        + MEMORY_WEIGHT * min((section.mem_peak_mb or 0.0) / LARGE_MB, 1.0)
        + MEMORY_WEIGHT * min((section.gpu_peak_mb or 0.0) / LARGE_MB, 1.0)
    )


def recommendations(report: Report) -> list[SectionAdvice]:
    """Return what stands out, by level, in each the most expensive first."""
    profiled = profiled_s(report)
    below = _below(report.tree)
    found = [
        r
        for section in sorted(report.sections, key=lambda s: (-s.total_s, s.name))
        for r in _of(section, share(section, profiled), below.get(section.name, {}))
    ]
    order = list(AdviceLevel)
    return sorted(found, key=lambda r: order.index(AdviceLevel(r.level)))


def _of(section: Section, share: float, below: Mapping[str, float]) -> Iterator[SectionAdvice]:
    hint = hint_for(section.name)
    inside = _inside(section, below)
    if share > CRITICAL_SHARE:
        advice = inside or hint or "split it into sections to see what in it takes so long"
        yield SectionAdvice(
            level=AdviceLevel.CRITICAL,
            section=section.name,
            text=f"takes {100 * share:.1f}% of the time: {advice}",
        )
        hint = None
    if section.mean_s > SLOW_S:
        advice = inside or hint or "do its work less often, in a worker, in batches or on the GPU"
        times = "once" if section.calls == 1 else f"{section.calls} times"
        text = f"takes {1000 * section.mean_s:.0f} ms a call, {times}: {advice}"
        yield SectionAdvice(level=AdviceLevel.SLOW, section=section.name, text=text)
    if (section.mem_peak_mb or 0.0) > LARGE_MB:
        text = f"peaks at {section.mem_peak_mb:.0f} MB: allocate buffers once and reuse them, avoid copies"
        yield SectionAdvice(level=AdviceLevel.MEMORY, section=section.name, text=text)
    if (section.gpu_peak_mb or 0.0) > LARGE_MB:
        text = (
            f"peaks at {section.gpu_peak_mb:.0f} MB of device memory: free what is not needed, use mixed "
            "precision, or recompute activations"
        )
        yield SectionAdvice(level=AdviceLevel.GPU_MEMORY, section=section.name, text=text)


def _inside(section: Section, below: Mapping[str, float]) -> str | None:
    """Return where most of its time goes to a section below it, that one."""
    if not below or section.total_s <= 0:
        return None
    name = max(below, key=lambda n: below[n])
    part = min(below[name] / section.total_s, 1.0)
    return f"{100 * part:.0f}% of that in {name!r}, look there first" if part >= _WORTH else None


def _below(tree: tuple[SectionNode, ...]) -> dict[str, dict[str, float]]:
    """Sum the seconds of the sections directly below each section, wherever it is in the tree."""
    found: dict[str, dict[str, float]] = {}
    waiting = list(tree)
    while waiting:
        node = waiting.pop()
        waiting += node.children
        for child in node.children:
            if child.name != node.name:
                times = found.setdefault(node.name, {})
                times[child.name] = times.get(child.name, 0.0) + child.total_s
    return found
