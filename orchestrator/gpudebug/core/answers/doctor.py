"""What `doctor` answers: each check with its finding."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.answer import Answer


@dataclass(frozen=True)
class DoctorCheck:
    """One check: `result` is ok, warning, unknown or failed; `next` mends it, null if nothing is amiss."""

    name: str
    result: str
    found: str
    next: str | None = None


@dataclass(frozen=True, kw_only=True)
class DoctorAnswer(Answer):
    """`doctor`: `ok` is false if a check failed. Warnings do not fail."""

    ok: bool
    checks: tuple[DoctorCheck, ...]


@dataclass(frozen=True, kw_only=True)
class GpuDoctorAnswer(DoctorAnswer):
    """`doctor --gpu`: checks that are unknown do not fail. `bundle` is the file to attach to a report."""

    bundle: str
