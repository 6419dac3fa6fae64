"""What monitors call the figures of a GPU."""

from __future__ import annotations

import pytest

from gpudebug.core.recordings.names import named

KNOWN = {
    "utilization.gpu [%]": ("gpu_util", "%", None),
    "gpu_util(%)": ("gpu_util", "%", None),
    "GPU use (%)": ("gpu_util", "%", None),
    "GPU%": ("gpu_util", "%", None),
    "GFX_ACTIVITY": ("gpu_util", None, None),
    "AI Core(%)": ("gpu_util", "%", None),
    "gpu0_util": ("gpu_util", None, "0"),
    "system/gpu_1_utilization_percentage": ("gpu_util", "%", "1"),
    "DCGM_FI_DEV_GPU_UTIL": ("gpu_util", None, None),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active", None, None),
    "system.gpu.3.smActive": ("sm_active", None, "3"),
    "host/cuda:0 (gpu:2)/gpu_utilization (%)/mean": ("gpu_util", "%", "0"),
    "memory.used [MiB]": ("mem_used_mb", "MiB", None),
    "VRAM Total Used Memory (B)": ("mem_used_mb", "B", None),
    "gpu_0_memory_usage_megabytes": ("mem_used_mb", "MiB", "0"),
    "memory.total [MiB]": ("mem_total_mb", "MiB", None),
    "power.draw.instant [W]": ("power_w", "W", None),
    "Average Graphics Package Power (W)": ("power_w", "W", None),
    "gpu.0.powerWatts": ("power_w", "W", "0"),
    "Temperature (Sensor edge) (C)": ("temperature_c", "C", None),
    "clocks.current.sm [MHz]": ("sm_clock_mhz", "MHz", None),
    "pci.bus_id": ("bus", None, None),
    "DeviceId": ("index", None, None),
    "Timestamp": ("time", None, None),
    "elapsed_ms": ("time", "ms", None),
    "gpu_utilization_ratio": ("gpu_util", "share", None),
    'DCGM_FI_DEV_GPU_UTIL{gpu="3", job="dcgm"}': ("gpu_util", None, "3"),
    'DCGM_FI_DEV_POWER_USAGE{Hostname="n7", gpu="0"}': ("power_w", None, "n7/0"),
}
# What only looks alike.
OTHERS = (
    *("cpu_util", "fan.speed [%]", "power.limit [W]", "utilization.encoder [%]", "gpu_util_limit", "loss"),
    *(
        "memory.free [MiB]",
        "GPU Memory Utilization (%)",
        "gpu_0_memory_usage_percentage",
        "VRAM%",
        "RAM used",
    ),
    *("host/gpu:0/gpu_utilization (%)/max", "clocks.max.sm [MHz]", "pcie.link.gen.current", "throughput"),
    *("100", "[203]", 'DCGM_FI_DEV_GPU_UTIL{gpu="0", GPU_I_ID="1"}', 'node_load1{instance="n7"}'),
)


@pytest.mark.parametrize("name", KNOWN)
def test_figures_by_their_names(name: str) -> None:
    found = named(name)
    assert found is not None
    assert (found.quantity, found.unit, found.device) == KNOWN[name]


@pytest.mark.parametrize("name", OTHERS)
def test_what_looks_alike_is_not_read(name: str) -> None:
    assert named(name) is None


def test_short_names_count_in_tables_alone() -> None:
    assert named("sm") is None
    assert named("203", table=True) is not None
    assert [one.quantity for word in ("sm", "mem") if (one := named(word, table=True))] == [
        "gpu_util",
        "mem_util",
    ]


def test_a_word_for_memory_counts_with_a_unit() -> None:
    vague = {
        name: one.vague for name in ("gpu_memory", "gpu_memory_gb", "memory.used") if (one := named(name))
    }
    assert vague == {"gpu_memory": True, "gpu_memory_gb": False, "memory.used": False}
