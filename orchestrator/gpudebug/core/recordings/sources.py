"""The monitors by name: what in a recording is theirs alone, and what they do where it does not say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

QUERY = "nvidia-smi --query-gpu"
DMON = "nvidia-smi dmon"
PMON = "nvidia-smi pmon"
DCGMI = "dcgmi dmon"
TEGRASTATS, JTOP = "tegrastats", "jtop"
COMPUTE_APPS = "nvidia-smi --query-compute-apps"
CSV, JSON, TEXT, LINES = "CSV", "JSON", "text", "log lines"
BOXED = (TEXT, "nvidia-smi", "npu-smi", "nvitop")
"""Those that draw their tables in boxes."""
OTHERS = (CSV, JSON, TEXT, LINES)
"""Recordings whose monitor is not known by name."""


@dataclass(frozen=True)
class Source:
    """One format: `mark` is looked for in its names and headings, `version` in its text; `delay_s` is what it
    waits between two readings unless it is told otherwise."""

    name: str
    mark: re.Pattern[str]
    version: re.Pattern[str] | None = None
    delay_s: float | None = None


def _source(name: str, mark: str, version: str | None = None, delay_s: float | None = None) -> Source:
    return Source(name, re.compile(mark), re.compile(version, re.IGNORECASE) if version else None, delay_s)


_DRIVER = r"driver[ _]version\W{1,60}([\d.]+\d)"
SOURCES = (
    _source("npu-smi", r"(?i)npu-smi|aicore|npuid", r"npu-smi (\d[\w.]*)"),
    _source("nvitop", r"NVITOP", r"NVITOP v?(\d[\d.]*)"),
    _source("nvidia-smi", r"NVIDIA-SMI \d", r"NVIDIA-SMI (\d[\d.]*)"),
    _source("nvidia-smi -q -x", r"nvidia_smi_log", _DRIVER),
    _source("nvidia-smi -q", r"NVSMI LOG|FB Memory Usage", _DRIVER),
    _source("amd-smi", r"(?i)gfx_activity|gfx_clk|\bGFX%|\bAMD[- ]SMI", r"AMD-?SMI (?:tool: )?v?(\d[\d.]*)"),
    _source("rocm-smi", r"(?i)GPU use \(%\)|ROCm System|VRAM%.*GPU%|Graphics Package Power"),
    _source("xpu-smi dump", r"DeviceId.*GPU (Utilization|Power|Frequency)"),
    _source("gpustat --json", r"query_time"),
    _source("nvtop -s", r"device_name.*gpu_clock"),
    _source(TEGRASTATS, r"GR3D_FREQ", None, 1.0),
    _source("gpustat", r"^\[\d+\] .*\|.*%.*\|"),
    _source(DCGMI, r"(?i)^entity\b", None, 1.0),
    _source(PMON, r"(?i)^(hostname |timestamp )*(date time |time |date )?gpu\b.*\bpid\b", None, 1.0),
    _source(
        DMON,
        r"(?i)^(hostname |timestamp )*(date time |time |date )?gpu( \w+)* "
        r"(sm|pwr|fb|mclk|pclk|gtemp|rxpci|pviol|sbecc)\b",
        None,
        1.0,
    ),
    _source("DCGM exporter", r"DCGM_FI_"),
    _source("nvitop", r"metrics-daemon|/cuda:\d+ \(gpu:"),
    _source(JTOP, r"jetson_clocks"),
    _source("codecarbon", r"emissions.*gpu_power"),
    _source(
        QUERY,
        r"(?i)utilization\.(gpu|memory)|power\.draw|memory\.(used|free|total)|temperature\.gpu|clocks\.",
    ),
)
_BY_NAME = {source.name: source for source in SOURCES}


def source_of(names: Iterable[str], heading: str = "", other: str = CSV) -> str:
    """Return whose names or heading these are; `other` if they are of no monitor that is known."""
    text = " ".join(names)
    return next((s.name for s in SOURCES if s.mark.search(text) or s.mark.search(heading)), other)


def delay_of(name: str) -> float | None:
    """Return the seconds that a monitor waits by default; None if it does not repeat by itself."""
    return _BY_NAME[name].delay_s if name in _BY_NAME else None


def version_of(name: str, text: str) -> str | None:
    """Return the version that a recording gives of its monitor or driver."""
    known = _BY_NAME.get(name)
    found = known.version.search(text) if known and known.version else None
    return found.group(1) if found else None
