"""What py-spy counted of one process over a span -> a run's record; why the kernel may refuse the look.

Two recordings go side by side: one of every look, one of those looks at which the thread ran. The first says
how long each stack took, the second how much of that it ran on a CPU or was ready to. How long the thread ran
in all is known better, from /proc: what the stacks ran is brought to that sum.

Sources: ptrace(2), "Ptrace access mode checking"; Documentation/admin-guide/LSM/Yama.rst; the seccomp
profiles of container runtimes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpudebug.core.inside.attached.foreign_frames import OTHER, FoldedStack, Line, RawStack, fold, trainers

MOST_STACKS = 100
_ROUNDS = 4
# Of the looks of the busiest thread, how many another one must have to be the one that trains.
_SEEN = 0.5
TRAINING, WORKERS = "training", "workers"


class LookedStack(NamedTuple):
    """A stack of the thread that was chosen: seconds that it took, and of these it ran."""

    stack: FoldedStack
    seconds: float
    cpu_s: float
    looks: int


@dataclass(frozen=True)
class Looks:
    """One process in one span. `seconds` is the span, `cpu_s` how long its thread ran or was ready to, None
    if unknown. `worker`: it is a loader worker. `loader` is the class of its iterator, "" if none was
    seen; `count` how often it was looked at."""

    stacks: tuple[LookedStack, ...]
    seconds: float
    cpu_s: float
    count: int
    worker: bool
    loader: str


def hottest_place(looks: Looks) -> tuple[str, float]:
    """Return the line `train.py:87 main` in which most time went, and its share (0 to 1); without a user's
    line the innermost function."""
    spent: dict[str, float] = {}
    for one in looks.stacks:
        stack = one.stack
        if not stack.names:
            continue
        file, _, function = stack.names[stack.at].rpartition(":")
        line = f":{stack.line}" if stack.at >= 0 else ""
        place = f"{file.rpartition('/')[2]}{line} {function}"
        spent[place] = spent.get(place, 0.0) + one.seconds
    most = max(spent, key=lambda place: spent[place], default="")
    return most, min(1.0, spent[most] / looks.seconds) if most else 0.0


def looks_of(
    seen: Sequence[RawStack],
    ran: Sequence[RawStack] | None,
    *,
    seconds: float,
    ran_looks: int,
    cpu_of: Callable[[int | None], float | None],
) -> Looks | None:
    """Join both recordings of a process over `seconds`; None if no stack was seen.

    `ran` are the stacks at looks at which the thread ran, of `ran_looks` looks; None if that was not
    recorded, or if py-spy cannot see it: then a stack that computes runs, and the others share what is left.
    `cpu_of` is what /proc counts of a thread by its number, None if it counts nothing.
    """
    thread = _thread(seen)
    mine = [one for one in seen if one.thread == thread]
    count = sum(one.times for one in mine)
    if not count:
        return None
    cpu_s = cpu_of(mine[0].tid)
    below = trainers(one.frames for one in mine)
    took = _folded(mine, seconds / count, below)
    if ran is None:
        spent = _guessed(took, cpu_s)
    else:
        share = seconds / max(ran_looks, 1)
        spent = _folded((one for one in ran if one.thread == thread), share, below)
        spent = _brought_to(took, spent, cpu_s)
    found = [
        LookedStack(stack, value, min(value, spent.get(stack, 0.0)), round(value * count / seconds))
        for stack, value in sorted(took.items(), key=lambda item: -item[1])
    ]
    return Looks(
        stacks=tuple(found),
        seconds=seconds,
        cpu_s=min(seconds, sum(one.cpu_s for one in found)),
        count=count,
        worker=any(one.stack.worker for one in found),
        loader=next((one.stack.loader for one in found if one.stack.loader), ""),
    )


def _thread(seen: Sequence[RawStack]) -> str | None:
    """Return the thread that trains: the one most in a model, a loader or an optimizer; else Python's main
    thread."""
    training: dict[str, int] = {}
    for one in seen:
        if fold(one.frames).phase != OTHER:
            training[one.thread] = training.get(one.thread, 0) + one.times
    main = next((one.thread for one in seen if one.main), None)
    if training:
        most = max(training, key=lambda thread: training[thread])
        return main if training.get(main or "", 0) >= _SEEN * training[most] else most
    return main if main is not None else max(seen, key=lambda one: one.times).thread if seen else None


def _folded(
    stacks: Iterable[RawStack], each: float, below: Mapping[Line, frozenset[str]]
) -> dict[FoldedStack, float]:
    found: dict[FoldedStack, float] = {}
    for one in stacks:
        key = fold(one.frames, below)
        found[key] = found.get(key, 0.0) + one.times * each
    return found


def _brought_to(
    took: Mapping[FoldedStack, float], ran: Mapping[FoldedStack, float], cpu_s: float | None
) -> dict[FoldedStack, float]:
    """Return what each stack ran, so that together they ran `cpu_s`: none more than it took."""
    found = {stack: min(value, ran.get(stack, 0.0)) for stack, value in took.items()}
    if cpu_s is None:
        return found
    for _ in range(_ROUNDS):
        total = sum(found.values())
        if total <= 0:
            break
        found = {stack: min(took[stack], value * cpu_s / total) for stack, value in found.items()}
    return found


def _guessed(took: Mapping[FoldedStack, float], cpu_s: float | None) -> dict[FoldedStack, float]:
    """Return what each stack ran if only the sum is known: a model computes first, the rest alike."""
    if cpu_s is None:
        return {}
    computing = sum(value for stack, value in took.items() if stack.phase not in ("data", OTHER))
    others = sum(took.values()) - computing
    first = min(1.0, cpu_s / computing) if computing else 0.0
    rest = min(1.0, max(0.0, cpu_s - computing) / others) if others else 0.0
    return {
        stack: value * (rest if stack.phase in ("data", OTHER) else first) for stack, value in took.items()
    }


def stacks_line(
    looks: Looks,
    *,
    pid: int,
    since: float,
    until: float,
    t0: float,
    sources: Mapping[tuple[str, int], str],
    most: int = MOST_STACKS,
) -> dict[str, object]:
    """Return the line of kind `stacks` in probe.jsonl, as the probe writes it of its own process.

    `since`, `until` and `t0` (the launch) are seconds of the monotonic clock; `sources` the text of lines by
    file and number. At most `most` stacks, those that took the most time.
    """
    numbers: dict[str, int] = {}
    stacks, code = [], {}
    packaged: dict[int, None] = {}
    for stack, seconds, cpu_s, count in looks.stacks[:most]:
        places = [numbers.setdefault(name, len(numbers)) for name in stack.names]
        if stack.at >= 0:
            code[f"{places[stack.at]}:{stack.line}"] = sources.get((stack.file, stack.line), "")
            if stack.packaged:
                packaged[places[stack.at]] = None
        stacks.append([stack.phase, places, stack.line, round(seconds, 4), round(cpu_s, 4), count])
    return {
        "kind": "stacks",
        "pid": pid,
        "t": round(until, 6),
        "t0": t0,
        "of": WORKERS if looks.worker else TRAINING,
        "since": round(since, 6),
        "s": round(looks.seconds, 4),
        "cpu": round(min(looks.cpu_s, looks.seconds), 4),
        "n": looks.count,
        "frames": list(numbers),
        "stacks": stacks,
        "code": code,
        "packaged": list(packaged),
    }


_CAPABILITY = "CAP_SYS_PTRACE"
_CONTAINER = (
    "start the container with --cap-add SYS_PTRACE (Kubernetes: securityContext.capabilities.add: "
    "[SYS_PTRACE])"
)


class PtraceFacts(NamedTuple):
    """What decides. `yama` is kernel.yama.ptrace_scope, None without Yama; `capable` whether this process has
    CAP_SYS_PTRACE, `root` whether it is root, `same_user` whether the target is this user's, `filtered`
    whether a seccomp filter is in force here, `contained` whether this is a container's PID namespace."""

    yama: int | None
    capable: bool
    root: bool
    same_user: bool
    filtered: bool
    contained: bool


class Refusal(NamedTuple):
    """Why looking is refused, and what a person can do to allow it."""

    why: str
    allow: str


def refusal(facts: PtraceFacts, command: str) -> Refusal:
    """Explain a refusal that has happened; `command` is what to run again with more rights."""
    asking = f"sudo {command}" if not facts.root else _CONTAINER
    if facts.yama == 3:
        return Refusal(
            "kernel.yama.ptrace_scope is 3: no process may look into another until a reboot",
            "set kernel.yama.ptrace_scope=1 in /etc/sysctl.d and reboot, then run gpudebug as root",
        )
    if not facts.same_user and not facts.capable:
        return Refusal(f"the process is another user's, and gpudebug runs without {_CAPABILITY}", asking)
    if facts.yama in (1, 2) and not facts.capable:
        lower = " or sudo sysctl kernel.yama.ptrace_scope=0" if facts.yama == 1 else ""
        return Refusal(
            f"kernel.yama.ptrace_scope is {facts.yama}: only root may look into what it did not start",
            f"{asking}{lower}",
        )
    if facts.filtered:
        return Refusal(
            "a seccomp filter refuses it, as those of containers do",
            f"{_CONTAINER}, or with --security-opt seccomp=unconfined",
        )
    if not facts.capable:
        return Refusal(
            "the process is protected (it has changed its user, or has capabilities), and gpudebug runs "
            f"without {_CAPABILITY}",
            asking,
        )
    where = _CONTAINER if facts.contained else "look for SELinux or AppArmor in the kernel's log (dmesg)"
    return Refusal("the kernel refuses it", where)
