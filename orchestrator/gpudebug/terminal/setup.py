"""What `init`, `doctor` and `demo` tell."""

from __future__ import annotations

from gpudebug.core.answers.doctor import DoctorAnswer
from gpudebug.core.answers.setup import DemoAnswer, InitAnswer
from gpudebug.terminal.status import status


def doctor(answer: DoctorAnswer) -> str:
    lines = []
    width = max(14, *(len(check.name) for check in answer.checks))
    for check in answer.checks:
        mark = {"ok": "ok     ", "warning": "warning", "failed": "FAILED "}[check.result]
        lines.append(f"{mark} {check.name:<{width}} {check.found}")
        if check.next:
            lines.append(f"{'':<{width + 9}}next: {check.next}")
    return "\n".join(lines)


def init(answer: InitAnswer) -> str:
    lines = [f"wrote {f}" for f in answer.files]
    lines += [f"note: {n}" for n in answer.notes]
    return "\n".join([*lines, f"Next: {answer.next_command}"])


def demo(answer: DemoAnswer) -> str:
    lines = [status(answer.status), "", "Files:", *(f"  {f}" for f in answer.files)]
    return "\n".join([*lines, f"Look around: {answer.next_command}"])
