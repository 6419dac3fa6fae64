"""Output of other programs by name, in which no GPU is read over time: none of it is a training's log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gpudebug.core.lazy import regex
from gpudebug.core.recordings.lines import uncoloured

_LOOKED_AT = 4096
_HOST, _JOB = "it shows the host, not a GPU", "it sums up a job, without times"
_RECORD = "record the GPU while the training runs: gpudebug sample -- CMD, or nvidia-smi dmon -o DT"
_POINTER = "it stands for a file that was not fetched"
_TRACE, _UNNAMED = "it sums up a trace", "it does not name the GPU of each figure"
_OF: dict[str, dict[str, str]] = {
    _HOST: {
        "top": r"^top - \d\d:\d\d:\d\d up ",
        "vmstat": r"^procs -+memory-+",
        "iostat": r"^avg-cpu:\s+%user",
        "pidstat": r"^\d\d:\d\d:\d\d.*\s+UID\s+PID\s+%",
        "sar": r"^\d\d:\d\d:\d\d.*\s(CPU\s+%us|kbmemfree|runq-sz|rxpck/s|DEV\s+tps)",
        "free": r"^\s+total\s+used\s+free\s+shared",
        "dstat": r'^"(pcp-)?d(ool|stat) [\d.]+ CSV',
        "a Prometheus exporter": r"^# (HELP|TYPE) (node|go|process)_",
    },
    _JOB: {
        "seff": r"^Job ID: \d+\nCluster: ",
        "jobstats": r"^\s*Slurm Job Statistics$",
        "sacct or sstat": r"^JobID[ |]+(JobName|State|AveCPU|MaxRSS|Elapsed)",
        "squeue or bjobs": r"^\s*JOBID\s+(PARTITION|USER|NAME)",
        "dcgmi stats": r"Successfully retrieved statistics for|-----  Execution Stats",
    },
    "it names GPUs without figures": {
        "nvidia-smi -L": r"^GPU \d+: .+ \(UUID: (GPU|MIG)-",
        "a DCGM exporter's list of fields": r"^DCGM_FI_\w+, *(gauge|counter|label)\b",
        "nvidia-smi topo": r"^(\s*(GPU|NIC)\d+)+\s+CPU Affinity",
    },
    "it is an error, not a recording": {
        "nvidia-smi": r'NVIDIA-SMI has failed|^Failed to initialize NVML|^Field "[^"]+" is not a valid field',
        "a storage service": r"^\s*(<\?xml[^>]*\?>\s*)?<Error>\s*<Code>",
        "a shell": r"(nvidia-smi|dcgmi|rocm-smi|amd-smi|gpustat|nvitop): (command )?not found",
    },
    "how busy the GPU is as a whole is not in it": {
        "intel_gpu_top": r'"engines":\s*\{\s*"Render/3D|^\s*Freq MHz\s+IRQ\s+RC6',
        "xpu-smi stats": r"^\|? ?Device ID +\| \d+ +\|\s+[+|-]+\s+\|? ?GPU Utilization",
        "neuron-monitor": r'"neuron_runtime_data"',
        "powermetrics": r"\*\*\* Sampled system activity",
    },
    _POINTER: {"Git LFS": r"^version https://git-lfs\."},
    _TRACE: {"nsys stats": r"^Time \(%\),\s*Total Time \(\w+\),\s*(Num Calls|Instances|Count)"},
    _UNNAMED: {
        "CloudWatch": r'"Datapoints":\s*\[|"MetricDataResults":\s*\[',
        "Datadog": r'"pointlist":\s*\[',
        "Grafana, one figure a row": r'^"?Time"?,.*("?Value"?,|__name__)',
    },
}
"""Why it is no recording: by whom it is, and how its text is known."""
_NEXT = {
    _POINTER: "fetch the file itself: git lfs pull",
    _TRACE: "export the trace: nsys export --type sqlite F.nsys-rep, then gpudebug analyze F.sqlite",
    _UNNAMED: "export it with a column of times and one for each GPU, named gpu0_util and so on",
}


class OtherOutput(NamedTuple):
    """By which program a text is, why it is no recording, and what to do instead."""

    name: str
    why: str
    next: str


def _known() -> Iterator[tuple[re.Pattern[str], OtherOutput]]:
    for why, programs in _OF.items():
        for name, form in programs.items():
            yield regex(form, re.MULTILINE), OtherOutput(name, why, _NEXT.get(why, _RECORD))


def other_output(head: str) -> OtherOutput | None:
    """Return whose output begins so; None if it is not known. A log may begin with any of them."""
    text = uncoloured(head[:_LOOKED_AT])
    return next((output for form, output in _known() if form.search(text)), None)
