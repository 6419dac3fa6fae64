"""`gpudebug why --pid`: a look at a training that runs already. Nothing of it is changed, stopped or written
to.

A follower is launched in the place of the training, so that window, evidence and diagnosis are those of any
run. No device is leased: who looks computes nothing on it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gpudebug.core.answers.diagnosis import AttachedLook, WhyAnswer
from gpudebug.core.errors import BusyError, UsageError
from gpudebug.core.inside.attached.looks import PtraceFacts, refusal
from gpudebug.core.statistics import numbers
from gpudebug.core.words import device_kind
from gpudebug.edges import store
from gpudebug.edges.attach import FIND, AttachError, TargetJob, follower, processes, spy, target
from gpudebug.edges.devices.probe import probe_nvml
from gpudebug.edges.devices.visible import VARIABLE
from gpudebug.engine.campaign.session import RUN, NotAPerson, session_of
from gpudebug.engine.diagnosis.why import (
    COMMAND,
    FOLDER,
    POLL_S,
    ROLE,
    LookedAt,
    answer_of,
    plan_for,
)
from gpudebug.engine.run.job import AttachedJob, Bench, MeasuredRun, PreparedRun, RunLimits
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.measure import measure
from gpudebug.engine.run.prepare import claim_of, lone_bench

INTERVAL_S = 0.5
"""No baseline begins with such a look, so it need not be sampled as one."""
_NAMED = 4


def attach(
    directory: Path,
    report: Report,
    *,
    pid: int | None = None,
    gpu: int | None = None,
    most: float | None = None,
    interval: float = INTERVAL_S,
    device: str = "auto",
    session: str | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> WhyAnswer:
    """Look at the job of process `pid`, or at the one on GPU `gpu`, as long as `why` does, and say why its
    device waits.

    `tell` is given a line before the look if it will show no stacks. AttachError in one line if there is no
    job, or it is another user's; a session may look at the runs of its campaign alone.
    """
    root = store.find_root(directory)
    job = target(pid) if pid is not None else _on_gpu(gpu or 0)
    _admit(job, root, session)
    order, remarks = _order(job)
    if order.why is not None:
        tell(f"no stacks will be seen: {order.why}; to see them: {order.allow}. Ctrl-C ends the look")
    variables = processes.environment(job.root.pid) or {}
    prepared = PreparedRun(
        label=ROLE,
        role=ROLE,
        argv=job.root.argv or (job.root.name,),
        cwd=Path(processes.folder(job.root.pid) or directory),
        env=variables,
        limits=RunLimits(plan=plan_for(most)),
        attached=AttachedJob(job.root.pid, follower.command(order)),
        poll=POLL_S,
    )
    seen = _devices_of(job, device, variables)
    with _place(lone_bench(root or directory, device, seen, directory, interval, report), root) as bench:
        measured = measure(bench, prepared)
        bench.workspace.seal(measured.folder)
    answer = answer_of(measured, LookedAt(bench, prepared, root, (*remarks, *bench.notes)))
    found = replace(answer, attached=_seen(measured, job), next_command=_next(answer.command))
    if order.why is not None:
        found = _without_stacks(found, order.why)
    problem = _problem(answer, measured)
    return replace(found, problem=problem, abstains=found.abstains if problem is None else problem)


def _without_stacks(answer: WhyAnswer, why: str) -> WhyAnswer:
    """Return the answer with the reason that is the job's; how to allow it is said of its process."""
    return answer if answer.abstains is None else replace(answer, abstains=f"there are no stacks: {why}")


def _next(command: str) -> str:
    """Return what a person does next: the job's command in a campaign, if it is one that can be typed."""
    typed = command if command.isprintable() else "YOUR TRAINING COMMAND"
    return f"gpudebug init --command {shlex.quote(typed)}"


def _seen(measured: MeasuredRun, job: TargetJob) -> AttachedLook | None:
    """Return the processes of the job, and what looking at them took, the sampler's part with it."""
    seen, pid = measured.evidence.attached, measured.record.attached
    if seen is None or pid is None:
        return None
    return AttachedLook(
        pid=pid,
        members=seen.members if _has_python(job) else None,
        processes=tuple(one.model_dump(mode="json") for one in seen.processes),
        cost=_cost(measured, seen.observer_cores),
    )


def _cost(measured: MeasuredRun, follower_cores: float | None) -> float | None:
    """CPU time a second of all that looked: follower, py-spy and sampler; None if one is unknown."""
    notes, took = measured.folder.read("sampler.json"), measured.evidence.duration_s
    sampled = notes.get("cpu_s") if isinstance(notes, dict) else None
    if follower_cores is None or not took or not isinstance(sampled, (int, float)):
        return None
    return follower_cores + sampled / took


def _problem(answer: WhyAnswer, measured: MeasuredRun) -> str | None:
    """Return what kept the look from seeing the job: from outside no step need be seen."""
    if answer.window is not None:
        return None
    seen = measured.evidence.attached
    if seen is not None and seen.ended:
        return (
            f"the job ended {numbers.duration(answer.duration_s or 0.0)} after the look began; how is "
            "not seen from outside: its own log says it"
        )
    return answer.problem


def _admit(job: TargetJob, root: Path | None, session: str | None = None) -> None:
    """NotAPerson if a session asks for a job that is no run of its campaign."""
    session = session or session_of()
    if session is None:
        return
    known = [processes.variables(pid, (RUN,)) or {} for pid in (job.root.pid, job.asked.pid)]
    runs = store.Workspace(root).runs.resolve() if root is not None else None
    if runs is None or any(Path(env.get(RUN, "/")).parent != runs for env in known):
        raise NotAPerson(
            f"session {session} may look at the runs of its campaign alone, and process {job.asked.pid} "
            f"({job.asked.shown}) belongs to none",
            next="a person runs gpudebug why --pid in a terminal that no agent started",
        )


def _order(job: TargetJob) -> tuple[follower.FollowOrder, list[str]]:
    """Return what the follower is told, and what cannot be seen of the job with the way to allow it."""
    parts = follower.parts_of(job.family)
    place = (job.root.pid, job.root.start)
    if not _has_python(job):
        why = f"no process of the job runs Python ({job.root.shown})"
        return follower.FollowOrder(*place, None, why, FIND), []
    main = parts[0].process
    looked = spy.look_once(spy.find(), main.pid)
    if looked.result == "seen":
        return follower.FollowOrder(*place, spy.find()), _remarks(job, parts)
    why, allow = _why_not(looked, job, main)
    return follower.FollowOrder(*place, None, why, allow), _remarks(job, parts)


def _has_python(job: TargetJob) -> bool:
    """Tell whether a process of it is one of Python, or may be: what cannot be read counts."""
    return any(python is not False for python in job.python.values())


def _remarks(job: TargetJob, parts: Sequence[follower.Part]) -> list[str]:
    found = []
    if job.asked.pid != job.root.pid:
        found.append(f"process {job.asked.pid} belongs to the job of {job.root.pid}: all of it is looked at")
    left = len(parts) - len(follower.watched(parts))
    if left:
        found.append(f"{left} of {len(parts)} Python processes are counted and not looked into")
    return found


def _why_not(looked: spy.FirstLook, job: TargetJob, main: processes.ForeignProcess) -> tuple[str, str]:
    """Return why there are no stacks, and what allows them."""
    if looked.result == "missing":
        return "py-spy is not installed", spy.INSTALL
    if looked.result == "gone":
        raise AttachError(f"process {main.pid} ended while it was looked at", next=FIND)
    if looked.result == "refused":
        facts = PtraceFacts(
            yama=processes.yama(),
            capable=processes.capable(),
            root=os.geteuid() == 0,
            same_user=main.uid == os.geteuid(),
            filtered=processes.filtered(),
            contained=processes.contained(),
        )
        found = refusal(facts, f"gpudebug why --pid {job.asked.pid}")
        return f"{found.why} (process {main.pid})", found.allow
    if looked.result == "unknown":
        return (
            f"py-spy does not know the interpreter of process {main.pid}: {looked.said}",
            "pip install -U py-spy, or gpudebug why -- CMD, which needs no py-spy",
        )
    return f"py-spy failed on process {main.pid}: {looked.said}", "gpudebug why -- CMD needs no py-spy"


def _devices_of(job: TargetJob, setting: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that choose the job's devices: of several GPUs those on which it computes."""
    found = {name: value for name, value in variables.items() if name.startswith(("CUDA_", "NVIDIA_"))}
    seen = {**os.environ, **found}
    if setting != "auto" and not device_kind(setting).is_gpu:
        return seen
    listed = probe_nvml(seen)
    uses = [d["uuid"] for d in listed.devices if job.family.keys() & set(d.get("processes") or ())]
    return {**seen, VARIABLE: ",".join(uses)} if uses else seen


def _on_gpu(index: int) -> TargetJob:
    """Return the one job that computes on a GPU. AttachError naming them if there are several, or none."""
    listed = probe_nvml(os.environ)
    if not listed.works or not listed.devices:
        raise listed.as_error()
    device = next((d for d in listed.devices if d["index"] == index), None)
    if device is None:
        known = ", ".join(str(d["index"]) for d in listed.devices)
        raise UsageError(
            f"there is no GPU {index}", next=f"--gpu takes one of {known}, as nvidia-smi has them"
        )
    pids = [pid for pid in device.get("processes") or () if processes.read(pid) is not None]
    # In a container the driver may list the numbers of the host.
    pids = pids or processes.holding(f"/dev/nvidia{index}")
    jobs = {job.root.pid: job for pid in pids if (job := _readable(pid)) is not None}
    if len(jobs) == 1:
        return next(iter(jobs.values()))
    if not jobs:
        why = (
            f"process {pids[0]} on it is another user's"
            if pids
            else "no process that is seen here computes on it"
        )
        raise AttachError(f"GPU {index}: {why}", next=FIND)
    named = ", ".join(f"{pid} ({job.root.shown})" for pid, job in list(jobs.items())[:_NAMED])
    raise AttachError(
        f"GPU {index} is used by {len(jobs)} jobs: {named}", next=f"gpudebug why --pid {next(iter(jobs))}"
    )


def _readable(pid: int) -> TargetJob | None:
    try:
        return target(pid)
    except (AttachError, UsageError):
        return None


@contextmanager
def _place(bench: Bench, root: Path | None) -> Iterator[Bench]:
    """The bench with the place of its evidence: as `why`'s, and beside the runs while another command runs
    something in the campaign, which would take an unfinished run for an interrupted one."""
    if root is None:
        yield replace(bench, workspace=store.LoneFolders(bench.workspace.root, FOLDER))
        return
    try:
        claim = claim_of(bench.workspace, COMMAND)
    except BusyError:
        yield replace(bench, workspace=store.LoneFolders(bench.workspace.runs, FOLDER))
        return
    with claim:
        yield replace(bench, hold_fds=(claim.fd, *bench.hold_fds))
