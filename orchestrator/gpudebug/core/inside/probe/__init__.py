"""What the probe in the training process reported -> figures of a run, or why there are none."""

from gpudebug.core.inside.probe.figures import evidence_of
from gpudebug.core.inside.probe.processes import ProbeRecord, ProcessKey, TrainingProcess, read_probe
from gpudebug.core.inside.probe.spans import first_step, steady
