"""What monitors call the figures of a GPU: a closed vocabulary, so that what only looks alike is not read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from gpudebug.core.lazy import regex

TIME, DATE, INDEX, UUID, BUS, SERIAL, NAME = "time", "date", "index", "uuid", "bus", "serial", "name"
HOST, COUNT = "host", "count"
ENTITY, PROCESS, GRACT = "entity", "process", "gract"
IDENTITIES = (UUID, BUS, SERIAL, ENTITY, INDEX)
"""What tells GPUs apart, the most certain first."""
SHARES = ("sm_active", "tensor_active", "dram_active")
"""Of DCGM and GPM: the share of time in which a part of the GPU works, 0 to 1."""
FIGURES = (
    *("gpu_util", "mem_util", "mem_used_mb", "mem_total_mb", "power_w", "sm_clock_mhz", "mem_clock_mhz"),
    *("temperature_c", *SHARES),
)
"""Figures of a device, in the order in which they are listed."""

# Marks: `!` only a GPU monitor uses the name, `~` it counts with a word for a GPU beside it, `?` it may be a
# share of memory as well and counts with a unit. Words are spelled as `_SPELLED` has them.
_CALLED: dict[str, str] = {
    TIME: "timestamp|time|datetime|date time|query time|elapsed|elapsed time|seconds|secs|ts|unix time|"
    "utc epoch|epoch time|wall time|walltime|time stamp|local time|time s|elapsed s|elapsed sec|"
    "elapsed seconds|utc epoch s|timestamp s|unix timestamp|timestamp unix|relative time|"
    "relative time process|runtime|unix|unix ts|epoch",
    DATE: "date",
    INDEX: "index|idx|gpu|device|card|npu|~id|~number|~no|device id|deviceid|device index|gpuid|"
    "card id|npu id|npu id idx|minor number",
    UUID: "uuid|device uuid",
    BUS: "pci bus id|bus id|pci bus|bdf|pci bdf|pcie id",
    SERIAL: "serial",
    NAME: "name|product name|device name|card series|card model|model name",
    HOST: "host|hostname|host name|node|nodename|node name|machine",
    COUNT: "!gpu count|!attached gpu",
    ENTITY: "entity",
    PROCESS: "pid|process id|process name|used gpu memory",
    "gpu_util": "util|~use|~usage|~busy|~load|~activity|~core util|~core usage|~core load|~compute util|"
    "~3d util|~util rate|~usage rate|!gfx|!gfx util|!gfx activity|!gfx usage|!gputl|!gr3d clock|!used gr3d|"
    "!aicore|!aicore util|!aicore usage|!aicore usage rate|!ai core|!compute util|!util overall|!util aip|"
    "!sm util|!203",
    "mem_util": "!util memory|!util memory util|!memory copy util|!mcutl|!umc|!umc activity|!204",
    "mem_used_mb": "memory used|used memory|vram used|used vram|vram used memory|vram total used memory|!fb|"
    "!fb used|!fb memory usage used|!fbusd|!252|?memory usage|?vram usage|?vram|~?memory|?memory allocated|"
    "?allocated memory",
    "mem_total_mb": "memory total|total memory|vram total|total vram|vram total memory|!fb total|"
    "!fb memory usage total|!fbttl|!250",
    "power_w": "power|!power draw|power usage|power usage cap|power consumption|!graphics package power|"
    "!socket graphics package power|!socket power|!avgpower|powr|!board power|!vdd in|!power draw instant|"
    "!power draw instantaneous|!instantaneous power draw|!power readings power draw|real time power|!155",
    "temperature_c": "temperature|~t|~core temperature|!gtemperature|edge|temperature edge|"
    "temperature sensor edge|!tmptr|!150",
    "sm_clock_mhz": "!clock sm|!sm clock|!clock sm clock|!smclock|sclock|!pclock|!gfx clock|!gfx 0 clock|"
    "~clock|!100",
    "mem_clock_mhz": "!clock memory|!memory clock|!clock memory clock|!mclock|!mmclock|!memory 0 clock|!101",
    "throttle": "!clock throttle reasons active|!clock event reasons active",
    GRACT: "!gract|!gr engine active|!graphics engine active|!prof gr engine active|!gr active|!1001",
    "sm_active": "!smact|!sm active|!sm activity|!prof sm active|!sm active cycles|!1002",
    "tensor_active": "!tenso|!tensor active|!tensor activity|!pipe tensor active|!prof pipe tensor active|"
    "!1004",
    "dram_active": "!drama|!dram active|!dram activity|!prof dram active|!1005",
}
_TABLE_ONLY = {"sm": ("gpu_util", "!"), "mem": ("mem_util", "")}
"""NamedColumns of dmon and `amd-smi monitor`: too short to name a figure outside of a table of theirs."""
_NAMES = {
    called.lstrip("!~?"): (quantity, called[: len(called) - len(called.lstrip("!~?"))])
    for quantity, names in _CALLED.items()
    for called in names.split("|")
}
_SPELLED = {
    **dict.fromkeys(("utilization", "utilisation", "utils", "utl", "uti"), "util"),
    **dict.fromkeys(("mem",), "memory"),
    **dict.fromkeys(("temp",), "temperature"),
    **dict.fromkeys(("pwr",), "power"),
    **dict.fromkeys(("clk", "clocks", "freq", "frequency"), "clock"),
    **dict.fromkeys(("hbm", "framebuffer"), "vram"),
    "igpu": "gpu",
    "gtemp": "gtemperature",
    "avgpwr": "avgpower",
    "smclk": "smclock",
    "sclk": "sclock",
    "pclk": "pclock",
    "mclk": "mclock",
    "mmclk": "mmclock",
}
_NOISE = frozenset(
    {
        "current",
        "curr",
        "average",
        "avg",
        "mean",
        "system",
        "sys",
        "nvidia",
        "amd",
        "intel",
        "dcgm",
        "fi",
        "dev",
        "percent",
        "pct",
        "percentage",
        "value",
    }
)
_GPU_WORDS = frozenset(
    {"gpu", "gpus", "gfx", "vram", "aicore", "npu", "xpu", "card", "nvidia", "dcgm", "cuda"}
)
_OF_A_GPU = frozenset({"gpu", "gpus", "nvidia", "card", "device"})
_UNIT_WORDS = {
    **dict.fromkeys(("percent", "pct", "percentage", "perc"), "%"),
    **dict.fromkeys(("w", "watt", "watts"), "W"),
    **dict.fromkeys(("mw", "milliwatts"), "mW"),
    **dict.fromkeys(("mhz",), "MHz"),
    **dict.fromkeys(("ms", "msec", "milliseconds"), "ms"),
    **dict.fromkeys(("ratio", "fraction"), "share"),
    **dict.fromkeys(("c", "celsius", "degc", "celsius degree"), "C"),
    **dict.fromkeys(("b", "bytes", "byte"), "B"),
    **dict.fromkeys(("kb", "kib"), "KiB"),
    **dict.fromkeys(("mb", "mib", "megabytes", "mbytes"), "MiB"),
    **dict.fromkeys(("gb", "gib", "gigabytes", "gbytes"), "GiB"),
}
UNITS = {
    **dict.fromkeys(("gpu_util", "mem_util", *SHARES, GRACT), ("%", "share")),
    **dict.fromkeys(("mem_used_mb", "mem_total_mb"), ("B", "KiB", "MiB", "GiB")),
    **dict.fromkeys(("sm_clock_mhz", "mem_clock_mhz"), ("MHz",)),
    "power_w": ("W", "mW"),
    "temperature_c": ("C",),
}
_IN_BRACKETS = regex(r"\[([^\[\]]*)\]|\(([^()]*)\)")
_DEVICE = regex(r"\b(?:i?gpu|card|device|npu|cuda|nvidia)s? ?(\d{1,3})\b")
_LAST = regex(r"\b(?:gpu|vram)\b.* (\d{1,3})$")
# In a chart's export the name of the run comes first.
_WANDB = regex(r"(?:.* - )?(?:system[./])?gpu\.(\d{1,3})\.(gpu|memory)")
_OF_WANDB = {"gpu": "gpu_util", "memory": "mem_util"}
_LABELLED = regex(r"(\w+)\{(.*)\}")
_LABEL = regex(r"(\w+)=\"([^\"]*)\"")
# As nvidia-smi spells a field and its unit.
_FIELD = regex(r"[a-z]+(?:\.[a-z_]+)+ \[(?:%|W|MiB|MHz)\]")
_CAMEL = regex(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class NamedFigure:
    """What a column is of: `device` if the name numbers one, `unit` if it gives one, `sure` if only a GPU
    monitor uses it, `vague` if a cell must have a unit to count."""

    quantity: str
    unit: str | None = None
    device: str | None = None
    sure: bool = False
    vague: bool = False


@lru_cache(maxsize=4096)
def named(name: str, *, table: bool = False) -> NamedFigure | None:
    """Return what a name is of; None if it is in no vocabulary, or its unit is another figure's.

    `table` takes the short names of dmon's columns too, and the numbers of DCGM's fields.
    """
    if len(name) > 200:
        return None
    tracked = _WANDB.fullmatch(name.strip())
    if tracked:
        return NamedFigure(_OF_WANDB[tracked.group(2)], "%", tracked.group(1), sure=True)
    labelled = _LABELLED.fullmatch(name.strip())
    if labelled:
        return _of_series(labelled.group(1), dict(_LABEL.findall(labelled.group(2))))
    plain, unit = _unit_of(name.strip().strip("\"'"))
    words = re.sub(r"[^0-9a-z]+", " ", _CAMEL.sub(" ", plain).lower()).strip()
    if words.isdecimal() and not table:
        return None
    numbered = _DEVICE.search(words) or _LAST.search(words)
    device = numbered.group(1) if numbered and words != numbered.group(1) else None
    if numbered:
        at, end = numbered.span(1)
        words = " ".join(f"{words[:at]} {words[end:]}".split())
    tokens = words.split()
    if unit is None and len(tokens) > 1 and tokens[-1] in _UNIT_WORDS:
        unit = _UNIT_WORDS[tokens.pop()]
    found = (*_TABLE_ONLY[words], False) if table and words in _TABLE_ONLY else _looked_up(tokens, unit)
    if found is None:
        return _last_part(name, device)
    quantity, mark, of_gpu = found
    if unit is not None and unit not in UNITS.get(quantity, (unit,)):
        return None
    sure = "!" in mark or (quantity in (*FIGURES, INDEX) and of_gpu) or _FIELD.fullmatch(name) is not None
    return NamedFigure(quantity, unit, device, sure, "?" in mark and unit is None)


def _of_series(metric: str, labels: Mapping[str, str]) -> NamedFigure | None:
    """Return what a series of Prometheus is of: `DCGM_FI_DEV_GPU_UTIL{gpu="0"}`."""
    found, gpu = named(metric), labels.get("gpu")
    if found is None or found.quantity not in (*FIGURES, GRACT) or gpu is None or labels.get("GPU_I_ID"):
        return None
    host = labels.get("Hostname") or labels.get("instance")
    return NamedFigure(found.quantity, found.unit, f"{host}/{gpu}" if host else gpu, True, found.vague)


def _last_part(name: str, device: str | None) -> NamedFigure | None:
    """Return what `host/cuda:0 (gpu:0)/gpu_utilization (%)/mean` is of, by its last part; of statistics only
    the mean counts."""
    parts = name.split("/")
    if len(parts) > 2 and parts[-1] in ("mean", "avg"):
        parts.pop()
    found = named(parts[-1]) if len(parts) > 1 and "gpu" in name.lower() else None
    if found is None or found.quantity not in FIGURES:
        return None
    return NamedFigure(found.quantity, found.unit, found.device or device, True, found.vague)


def _unit_of(name: str) -> tuple[str, str | None]:
    """Take `[%]`, `(MB)` or a last `%` off a name; what brackets say besides a unit stays a word of it."""
    unit: str | None = None

    def take(match: re.Match[str]) -> str:
        nonlocal unit
        inside = (match.group(1) or match.group(2) or "").strip()
        found = "%" if inside.startswith("%") else _UNIT_WORDS.get(inside.lower().lstrip("°"))
        unit = unit or found
        return " " if found else f" {inside} "

    plain = _IN_BRACKETS.sub(take, name)
    if "%" in plain:
        unit, plain = unit or "%", plain.replace("%", " ")
    return plain, unit


def _looked_up(tokens: Iterable[str], unit: str | None) -> tuple[str, str, bool] | None:
    """Look a name up as it stands, then without words that say nothing, then without `gpu`: what it is of,
    its mark, and whether it names a GPU."""
    tokens = [_SPELLED.get(token, token) for token in tokens]
    words = " ".join(tokens)
    of_gpu = bool(_GPU_WORDS & {*tokens})
    if words in ("gpu", "npu") and unit == "%":
        return "gpu_util", "!", True
    less = [token for token in tokens if token not in _NOISE] or tokens
    bare = [token for token in less if token not in _OF_A_GPU]
    for tried in (words, " ".join(less), " ".join(bare)):
        quantity, mark = _NAMES.get(tried, ("", ""))
        if quantity and ("~" not in mark or of_gpu):
            return quantity, mark, of_gpu
    return None
