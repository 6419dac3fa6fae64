"""What the probe in the training process told -> figures of a run, or why there are none."""

from gpudebug.core.probe.figures import evidence_of
from gpudebug.core.probe.reading import ProbeRecord, Process, read_probe
from gpudebug.core.probe.spans import steady

__all__ = ["ProbeRecord", "Process", "evidence_of", "read_probe", "steady"]
