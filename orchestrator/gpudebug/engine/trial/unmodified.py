"""One run of an unmodified workload: completed, or why there is nothing to compare against."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.errors import DeviceError, GpudebugError, InterruptedRun
from gpudebug.core.verdict.gates.outcome import is_infrastructure, training_text
from gpudebug.core.verdict.unlike import unlike
from gpudebug.core.words import AS_PLANNED, Outcome
from gpudebug.engine.campaign.worktrees import WorkingTree
from gpudebug.engine.run.attempts import FAILED_STEP
from gpudebug.engine.run.files import SERVER_LOG
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun
from gpudebug.engine.run.measure import measure, set_aside, with_same_code
from gpudebug.engine.run.server import of_server


class BaselineFailed(GpudebugError):
    """A run of the unmodified workload did not complete, so there is nothing to compare against."""

    code = "baseline"


def run_once(
    place: WorkingTree, bench: Bench, role: str, job: PreparedRun, beside: Sequence[MeasuredRun] = ()
) -> MeasuredRun:
    """One sealed run of an unmodified workload in `place`; raises what `launch` raises. What did other work
    than those `beside` it is set aside."""
    measured = launch(bench, role, job)
    try:
        measured = with_same_code(place, measured)
        why = unlike(measured.evidence, [m.evidence for m in beside])
        if why is not None:
            set_aside(measured, why)
        return measured
    finally:
        bench.workspace.seal(measured.folder)


def launch(bench: Bench, role: str, job: PreparedRun) -> MeasuredRun:
    """One completed run of an unmodified workload, not sealed yet; tried again if the machinery failed it.

    `role` is what errors call it. Raises BaselineFailed if the command does not complete, DeviceError if the
    machinery failed it twice.
    """
    for last in (False, True):
        measured = measure(bench, job)
        if measured.evidence.outcome in AS_PLANNED:
            return measured
        bench.workspace.seal(measured.folder)
        if by_the_user(measured):
            raise interrupted(measured)
        if last or not is_infrastructure(measured.evidence):
            break
    raise _failed(role, measured)


def _failed(role: str, m: MeasuredRun) -> GpudebugError:
    ending = training_text([m.evidence]).removeprefix("FAILED - ")
    if is_infrastructure(m.evidence):
        reason = f": {m.record.reason}" if m.record.reason else ""
        return DeviceError(
            f"two runs of the {role} failed for reasons outside the training: {ending}{reason}",
            file=str(m.folder.path),
            next="gpudebug doctor",
        )
    part = "server" if of_server(m.record) else "command"
    return BaselineFailed(
        f"the {role} itself does not complete: {ending}",
        file=str(m.folder.path / SERVER_LOG if of_server(m.record) else m.folder.log),
        next=f"correct the {part} in gpudebug.yaml, then gpudebug next",
    )


def by_the_user(m: MeasuredRun) -> bool:
    """Whether Ctrl-C ended the run, and not the loss of the warden, which is a matter of the machinery."""
    return m.record.outcome is Outcome.INTERRUPTED and (m.record.reason or "").startswith("interrupted")


def interrupted(m: MeasuredRun) -> InterruptedRun:
    """Return what a run leads to that was interrupted, from the keyboard or by the cluster."""
    reason = str(m.record.reason)
    void = reason.startswith(FAILED_STEP)
    error = InterruptedRun(
        f"run {m.folder.name} was {reason if void else 'interrupted'}", next="gpudebug next"
    )
    error.void = void
    return error
