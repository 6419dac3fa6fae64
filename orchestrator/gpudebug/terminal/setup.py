"""The answers of `init`, `doctor`, `demo` and `clean` as text for people."""

from __future__ import annotations

from gpudebug.core.answers.doctor import DoctorAnswer, GpuDoctorAnswer
from gpudebug.core.answers.setup import CleanAnswer, DemoAnswer, InitAnswer

_LISTED = 20
_MARKS = {"ok": "ok     ", "warning": "warning", "unknown": "unknown", "failed": "FAILED "}
_ALL = "--unused-runs, --looks, --temporaries, --worktrees, or --runs (evidence too)"


def doctor(answer: DoctorAnswer) -> str:
    lines = []
    width = max(14, *(len(check.name) for check in answer.checks))
    for check in answer.checks:
        mark = _MARKS[check.result]
        lines.append(f"{mark} {check.name:<{width}} {check.found}")
        if check.next:
            lines.append(f"{'':<{width + 9}}next: {check.next}")
    if isinstance(answer, GpuDoctorAnswer):
        lines += ["", f"wrote {answer.bundle}: attach it to a report", *_counted(answer)]
    return "\n".join(lines)


def _counted(answer: GpuDoctorAnswer) -> list[str]:
    results = [check.result for check in answer.checks]
    return [
        f"{results.count('ok')} passed, {results.count('failed')} failed, {results.count('unknown')} unknown"
    ]


def init(answer: InitAnswer) -> str:
    lines = [f"wrote {f}" for f in answer.files]
    lines += [f"note: {n}" for n in answer.notes]
    return "\n".join([*lines, f"Next: {answer.next_command}"])


def demo(answer: DemoAnswer) -> str:
    from gpudebug.terminal.status import status

    lines = [status(answer.status), "", "Files:", *(f"  {f}" for f in answer.files)]
    return "\n".join([*lines, f"Look around: {answer.next_command}"])


def clean(answer: CleanAnswer) -> str:
    """List what gpudebug left, or what was removed and what was kept."""
    if answer.action == "cleaned":
        lines = [f"removed {path}" for path in answer.removed]
        lines += [f"kept {one.path}: {one.why}" for one in answer.kept]
        return "\n".join(lines) or "nothing removed"
    left = answer.left
    lines = [f"{_size(one.bytes)}  {one.kind}  {one.path}" for one in left[:_LISTED]]
    if len(left) > _LISTED:
        lines.append(f"and {len(left) - _LISTED} more; --json lists all")
    lines.append(f"{_size(answer.bytes)}  in all" if left else "gpudebug left nothing here")
    if left:
        lines.append(f"Remove with {_ALL if answer.campaign else '--looks'}.")
    return "\n".join(lines)


def _size(count: int) -> str:
    return f"{count / (1 << 20):9.1f} MB"
