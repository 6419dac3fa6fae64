"""Whether the probe counts what a PyTorch program is known to do with a GPU."""

from __future__ import annotations

from gpudebug.core.answers.doctor import DoctorCheck
from gpudebug.core.hardware.gpu_checks import unknown
from gpudebug.core.records import ProbeEvidence

NAME = "probe"
_SLACK = 0.2


def probe_check(probe: ProbeEvidence | None, reason: str | None) -> DoctorCheck:
    """Compare the probe's figures with one copy, one blocking read and one wait a step.

    `reason` says why there is no probe.
    """
    if probe is None:
        return DoctorCheck(NAME, "failed", f"it reported nothing: {reason or 'no reason'}", _REPORT)
    h2d = probe.h2d.count / probe.span_steps if probe.h2d and probe.span_steps else None
    counted = {
        "copies to the GPU a step": h2d,
        "blocking reads a step": probe.blocking_reads_per_step,
        "waits a step": probe.syncs_per_step,
    }
    text = ", ".join(f"{_figure(value)} {what}" for what, value in counted.items())
    device = probe.device_time_share
    text += f"; events: {'unknown' if device is None else f'{100 * device:.0f} % of a step on the GPU'}"
    if any(value is not None and abs(value - 1) > _SLACK for value in counted.values()):
        return DoctorCheck(NAME, "failed", f"{text}, where one of each was made", _REPORT)
    if None in counted.values() or device is None:
        return unknown(NAME, text, _REPORT)
    return DoctorCheck(NAME, "ok", text)


_REPORT = "attach the bundle to a report"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
