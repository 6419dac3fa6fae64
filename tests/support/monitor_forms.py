"""Recordings of many monitors in the forms that people keep, made up: two GPUs at 10 and 90 % in most."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.support import monitors


class Form(NamedTuple):
    """A text, whose it is, and the mean utilisation of each device in it; None if the text does not say.

    `period` is in seconds, None if its rows have no time.
    """

    text: str
    source: str
    means: tuple[float | None, ...] = (10, 90)
    period: float | None = 1.0


def _each(make: Callable[[int], str], count: int = 12) -> str:
    return "".join(make(n) for n in range(count))


def _rows(make: Callable[[int, int, int], str], count: int = 12, gpus: Iterable[int] = (0, 1)) -> str:
    """`make(n, gpu, util)` of each tick and GPU."""
    return "".join(make(n, gpu, 90 if gpu else 10) for n in range(count) for gpu in gpus)


def _box(n: int) -> str:
    gpu = """|   {0}  NVIDIA A100-SXM4-40GB          On  |   00000000:0{0}:00.0 Off |                    0 |
| N/A   31C    P0              46W / 400W |    1234MiB / 40960MiB |     {1:2d}%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""
    return f"""Mon Mar  9 14:05:{n:02d} 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
{gpu.format(0, 10)}{gpu.format(1, 90)}
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|=========================================================================================|
|    1   N/A  N/A      4711      C   python                                      31226MiB |
+-----------------------------------------------------------------------------------------+
"""


def _query(n: int) -> str:
    gpus = "".join(
        f"""GPU 00000000:0{k}:00.0
    Minor Number                          : {k}
    GPU UUID                              : GPU-aaaa-{k}
    GPU Link Info
        Max                               : 4
    FB Memory Usage
        Total                             : 40960 MiB
        Used                              : 3000 MiB
    BAR1 Memory Usage
        Used                              : 1 MiB
    Utilization
        Gpu                               : {u} %
        Memory                            : 5 %
        Encoder                           : 0 %
    Temperature
        GPU Current Temp                  : 31 C
        GPU Shutdown Temp                 : 92 C
    GPU Power Readings
        Average Power Draw                : 46.10 W
        Current Power Limit               : 400.00 W
    Max Clocks
        SM                                : 1410 MHz
    Processes
        Process ID                        : 4711
            Used GPU Memory               : 2000 MiB
"""
        for k, u in ((0, 10), (1, 90))
    )
    head = f"Timestamp                : Mon Mar  9 14:05:{n:02d} 2026\nDriver Version           : 550.54.15\n"
    return f"\n==============NVSMI LOG==============\n\n{head}\nAttached GPUs            : 2\n{gpus}"


def _xml(n: int) -> str:
    gpus = "".join(
        f"""<gpu id="00000000:0{k}:00.0"><uuid>GPU-aa-{k}</uuid><minor_number>{k}</minor_number>
<fb_memory_usage><total>40960 MiB</total><used>3000 MiB</used></fb_memory_usage>
<bar1_memory_usage><used>1 MiB</used></bar1_memory_usage>
<utilization><gpu_util>{u} %</gpu_util><memory_util>3 %</memory_util></utilization>
<gpu_power_readings><power_draw>46.10 W</power_draw></gpu_power_readings>
<max_clocks><sm_clock>1410 MHz</sm_clock></max_clocks>
<processes><process_info><used_memory>200 MiB</used_memory></process_info></processes></gpu>
"""
        for k, u in ((0, 10), (1, 90))
    )
    return f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><timestamp>Mon Mar  9 14:05:{n:02d} 2026</timestamp>
<driver_version>550.54.15</driver_version>{gpus}</nvidia_smi_log>
"""


def _gpustat(n: int) -> dict[str, object]:
    gpus = [
        {"index": k, "uuid": f"GPU-{k}", "utilization.gpu": u, "memory.used": 8000, "processes": [{"pid": 1}]}
        for k, u in ((0, 10), (1, 90))
    ]
    return {"hostname": "h", "query_time": f"2026-03-09T14:05:{n:02d}.1", "gpus": gpus}


def _nvtop(n: int) -> str:
    """As nvtop 3.3.0 writes it, without commas."""
    one = "\n".join(
        (
            "  {{",
            '   "device_name": "AMD {0}",',
            '   "gpu_clock": "365MHz",',
            '   "gpu_util": "{1}%"',
            '   "mem_util": "4%"',
            "  }}",
        )
    )
    return f"[\n{one.format('A', 10)},\n{one.format('B', 90)}\n]\n"


_AMD = [
    {
        "gpu": k,
        "usage": {"gfx_activity": {"value": u, "unit": "%"}, "mm_activity": "N/A", "vcn_activity": ["N/A"]},
        "power": {"socket_power": {"value": 139, "unit": "W"}},
        "mem_usage": {"used_vram": {"value": 283, "unit": "MB"}},
    }
    for k, u in ((0, 10), (1, 90))
]
_ROCM = "\n=================== ROCm System Management Interface ===================\n"
_NPU = """+---------------------------+---------------+-----------------------------------------+
| npu-smi 24.1.rc3                 Version: 24.1.rc3                                  |
+---------------------------+---------------+-----------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)                     |
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)            |
+---------------------------+---------------+-----------------------------------------+
| 0     910B3               | OK            | 150.6       47                          |
| 0                         | 0000:C0:00.0  | 10          0    / 0                    |
+---------------------------+---------------+-----------------------------------------+
| 1     910B3               | OK            | 151.6       47                          |
| 0                         | 0000:C1:00.0  | 90          0    / 0                    |
+---------------------------+---------------+-----------------------------------------+
"""
_SMI = "timestamp, index, utilization.gpu [%]\n"


def _smi(n: int, gpu: int, util: int | str) -> str:
    return f"2026/03/09 14:05:{n:02d}.1, {gpu}, {util if isinstance(util, str) else f'{util} %'}\n"


FORMS = {
    "a query": Form(
        monitors.query(12, at=lambda _, g: monitors.Shown(90 if g else 10)), "nvidia-smi --query-gpu"
    ),
    "with a header each tick": Form(
        _each(lambda n: _SMI + _smi(n, 0, 10) + _smi(n, 1, 90)), "nvidia-smi --query-gpu"
    ),
    "without units, US dates": Form(
        "timestamp, index, utilization.gpu\n"
        + _rows(lambda n, g, u: f"03-09-2026 14:05:{n:02d}, {g}, {u}\n"),
        "nvidia-smi --query-gpu",
    ),
    "quoted": Form(
        '"timestamp","index","utilization.gpu [%]"\n'
        + _rows(lambda n, g, u: f'"2026/03/09 14:05:{n:02d}.1","{g}","{u} %"\n'),
        "nvidia-smi --query-gpu",
    ),
    "a GPU that does not answer": Form(
        _SMI + _rows(lambda n, g, u: _smi(n, g, "[Not Supported]" if g else u)),
        "nvidia-smi --query-gpu",
        (10, None),
    ),
    "no time, rows by index": Form(
        "index, utilization.gpu [%]\n" + _rows(lambda _, g, u: f"{g}, {u} %\n"),
        "nvidia-smi --query-gpu",
        period=None,
    ),
    "one column": Form("utilization.gpu [%]\n" + "10 %\n" * 12, "nvidia-smi --query-gpu", (10,), None),
    "no header, two in percent": Form(
        _each(lambda n: f"2026/03/09 14:05:{n:02d}.100, 10 %, 3 %, 799 MiB, 23000 MiB\n"),
        "nvidia-smi --query-gpu",
        (10,),
    ),
    "blocks under dates": Form(
        _each(
            lambda n: (
                f"Mon Mar 09 14:05:{n:02d} UTC 2026\n"
                f"utilization.gpu [%], memory.used [MiB]\n"
                f"10 %, 5 MiB\n"
                f"90 %, 5 MiB\n"
            )
        ),
        "nvidia-smi --query-gpu",
    ),
    "close rows of two GPUs": Form(
        monitors.query(
            12, 2, ("timestamp", "utilization.gpu"), at=lambda _, g: monitors.Shown(90 if g else 10)
        ),
        "nvidia-smi --query-gpu",
    ),
    "rows under dates, no header": Form(
        _each(lambda n: f"2026-03-09 14:05:{n:02d}\n10 %, 100 MiB\n90 %, 200 MiB\n"), "nvidia-smi --query-gpu"
    ),
    "under watch, European dates": Form(
        _each(
            lambda n: (
                f"Every 1.0s: nvidia-smi   h: Mon Mar  9 14:05:{n:02d} 2026\n\nutilization.gpu [%]\n10 %\n"
            )
        ),
        "nvidia-smi --query-gpu",
        (10,),
    ),
    "power alone": Form(
        "timestamp, power.draw [W]\n" + _each(lambda n: f"2026/03/09 14:05:{n:02d}.1, 60.71 W\n"),
        "nvidia-smi --query-gpu",
        (None,),
    ),
    "dmon": Form(
        "$ nvidia-smi dmon\n" + monitors.dmon(12, at=lambda _, g: monitors.Shown(90 if g else 10)) + "$\n",
        "nvidia-smi dmon",
    ),
    "dmon, dated CSV": Form(
        monitors.dmon(12, dated=True, csv=True, at=lambda _, g: monitors.Shown(90 if g else 10)),
        "nvidia-smi dmon",
    ),
    "dmon over midnight": Form(
        "#Time        gpu    pwr    sm\n#HH:MM:SS    Idx      W     %\n"
        + "".join(f"{t}     0    100    10\n" for t in ("23:59:58", "23:59:59", "00:00:00", "00:00:01")),
        "nvidia-smi dmon",
        (10,),
    ),
    "dmon interrupted by its header": Form(
        "# gpu   pwr    sm  pclk\n"
        "# Idx     W     %   MHz\n"
        "    0    50    10  1500\n"
        "    1    50    90  15# gpu   pwr    sm  pclk\n"
        "# Idx     W     %   MHz\n    0    50    10  1500\n    1    50    90  1500\n",
        "nvidia-smi dmon",
    ),
    "dmon of PCIe alone": Form(
        "# gpu  rxpci  txpci\n# Idx   MB/s   MB/s\n" + "    0     12      5\n" * 12,
        "nvidia-smi dmon",
        (None,),
    ),
    "pmon": Form(
        "# gpu         pid   type     sm    mem    command\n# Idx           #    C/G      %      %    name\n"
        + "    0      14835     C     45     15    python\n    1          -     -      -      -    -\n" * 4,
        "nvidia-smi pmon",
        (None, None),
    ),
    "nvidia-smi": Form(_each(_box), "nvidia-smi"),
    "-q": Form(_each(_query), "nvidia-smi -q"),
    "-q -x": Form(_each(_xml), "nvidia-smi -q -x"),
    "dcgmi": Form(monitors.dcgmi(12, at=lambda _, g: monitors.Shown(90 if g else 10)), "dcgmi dmon"),
    "dcgmi by numbers": Form(
        "# Entity  203  1002  1004\n      Id\n"
        + _rows(lambda _, g, u: f"    GPU {g}      {u}     0.4   0.1\n"),
        "dcgmi dmon",
    ),
    "tegrastats": Form(
        _each(
            lambda n: (
                f"03-09-2026 14:05:{n:02d} RAM 4100/15656MB (lfb 120x4MB) CPU [66%@1510,off] GR3D_FREQ "
                f"10%@[305] GPU@42C VDD_IN 6280mW/7000mW\n"
            )
        ),
        "tegrastats",
        (10,),
    ),
    "tegrastats without dates": Form(
        "RAM 2448/3964MB (lfb 1x2MB) EMC_FREQ 0% GR3D_FREQ 10% GPU@36.5C POM_5V_IN 3463/3463\n" * 12,
        "tegrastats",
        (10,),
    ),
    "gpustat": Form(
        _each(
            lambda n: (
                f"host  Mon Mar  9 14:05:{n:02d} 2026  550.54\n"
                f"[0] NVIDIA A100 | 31'C,  10 % |  1000 / 40960 MB | me(900M)\n"
                f"[1] NVIDIA A100 | 41'C,  90 % | 31000 / 40960 MB |\n"
            )
        ),
        "gpustat",
    ),
    "gpustat --json": Form(_each(lambda n: json.dumps(_gpustat(n)) + "\n"), "gpustat --json"),
    "gpustat --json, indented": Form(
        _each(lambda n: json.dumps(_gpustat(n), indent=4) + "\n"), "gpustat --json"
    ),
    "nvtop -s": Form(_each(_nvtop), "nvtop -s", period=None),
    "nvitop": Form(
        '"timestamp","host/cpu_percent (%)/mean","metrics-daemon/cuda:0 (gpu:3)/gpu_utilization (%)/mean"\n'
        + _each(lambda n: f"{1773065107 + n},5,10\n"),
        "nvitop",
        (10,),
    ),
    "rocm-smi": Form(
        _each(
            lambda _: (
                _ROCM + "GPU  Temp   AvgPwr  SCLK    Fan   Perf  PwrCap  VRAM%  GPU%\n"
                "0    39.0c  35.0W   1700Mhz 0%    auto  290.0W    0%   10%\n"
                "1    49.0c  135.0W  1700Mhz 0%    auto  290.0W    50%   90%\n"
                "======\n"
            )
        ),
        "rocm-smi",
        period=None,
    ),
    "rocm-smi 6": Form(
        _ROCM
        + "Device  Node  IDs              Temp    Power  Partitions          SCLK  Fan  Perf  VRAM%  GPU%\n"
        "              (DID,     GUID)  (Edge)  (Avg)  (Mem, Compute, ID)\n"
        "0       1     0x73bf,   46182  29.0°C  26.0W  N/A, N/A, 0         0Mhz  0%   auto  0%     10%\n"
        "1       2     0x73bf,   46183  29.0°C  126.0W  N/A, N/A, 0         0Mhz  0%   auto  50%    90%\n",
        "rocm-smi",
        period=None,
    ),
    "rocm-smi --showuse": Form(
        _ROCM + "GPU[0]\t\t: GPU use (%): 10\nGPU[0]\t\t: GFX Activity: 12345\nGPU[1]\t\t: GPU use (%): 90\n",
        "rocm-smi",
        period=None,
    ),
    "rocm-smi --json": Form(
        json.dumps(
            {
                "card0": {"GPU use (%)": "10"},
                "card1": {"GPU use (%)": "90"},
                "system": {"Driver version": "6"},
            }
        ),
        "rocm-smi",
        period=None,
    ),
    "rocm-smi --csv": Form(
        "device,GPU use (%),Power (W)\ncard0,10,35.0\ncard1,90,135.0\n\n" * 3, "rocm-smi", period=None
    ),
    "amd-smi monitor": Form(
        _each(
            lambda _: (
                "GPU  XCP  POWER  GPU_TEMP  GFX_CLK   GFX%  MEM%  ENC%  VRAM_USAGE\n"
                "  0    0  139 W     43 °C   132 MHz   10 %   0 %   N/A   0.3/192.0 GB\n"
                "  1    0  639 W     63 °C  2132 MHz   90 %  40 %   N/A   150.3/192.0 GB\n"
            )
        ),
        "amd-smi",
        period=None,
    ),
    "amd-smi metric": Form(
        "".join(
            f"GPU: {k}\n"
            f"    USAGE:\n"
            f"        GFX_ACTIVITY: {u} %\n"
            f"        VCN_ACTIVITY: [0 %, 0 %]\n"
            f"    POWER:\n"
            f"        SOCKET_POWER: 139 W\n"
            f"    CLOCK:\n"
            f"        GFX_0:\n"
            f"            CLK: 132 MHz\n"
            f"            MAX_CLK: 2100 MHz\n"
            for k, u in ((0, 10), (1, 90))
        ),
        "amd-smi",
        period=None,
    ),
    "amd-smi metric --json": Form(json.dumps(_AMD, indent=4), "amd-smi", period=None),
    "amd-smi metric --json, newer": Form(json.dumps({"gpu_data": _AMD}), "amd-smi", period=None),
    "amd-smi metric --csv": Form(
        "timestamp,gpu,gfx_activity,umc_activity,vcn_activity,socket_power,gfx_0_clk,edge\n"
        + _rows(lambda n, g, u: f"{1772939616 + n},{g},{u},80,\"['N/A', 'N/A']\",350,1980,N/A\n"),
        "amd-smi",
    ),
    "xpu-smi dump": Form(
        "Timestamp, DeviceId, GPU Utilization (%), GPU Power (W), GPU Memory Utilization (%)\n"
        + _rows(lambda n, g, u: f"08:08:{n:02d}.817,    {g}, {u}.00, 280.13, 99.00\n"),
        "xpu-smi dump",
    ),
    "npu-smi info": Form(_NPU, "npu-smi", period=None),
    "npu-smi info watch": Form(
        "NpuID(Idx)  ChipId(Idx) Pwr(W)      Temp(C)     AI Core(%)  AI Cpu(%)   Memory(%)\n"
        + _rows(
            lambda _, g, u: f"{g}           0           66.3        45          {u}           0           3\n"
        ),
        "npu-smi",
        period=None,
    ),
    "codecarbon": Form(
        "timestamp,project_name,duration,emissions,cpu_power,gpu_power,gpu_energy,gpu_count\n"
        "2026-03-09T14:05:07,p,3600.1,0.1,42.5,250.3,0.25,1\n",
        "codecarbon",
        (None,),
        None,
    ),
    "a logger of one's own, wide": Form(
        "time,gpu0_util,gpu0_mem_used_mb,gpu1_util\n" + _each(lambda n: f"{n},10,100,90\n\n"), "CSV"
    ),
    "one with tabs": Form(
        "datetime\tgpu_id\tgpu_utilization_pct\n"
        + _rows(lambda n, g, u: f"2026-03-09 14:05:{n:02d}\t{g}\t{u}\n"),
        "CSV",
    ),
    "one with decimal commas": Form(
        "timestamp;gpu_util;mem_used_mb\n" + _each(lambda n: f"09.03.2026 14:05:{n:02d};10,0;100,5\n"),
        "CSV",
        (10,),
    ),
    "one whose column gpu is the index": Form(
        "time,gpu,util,temp\n" + _rows(lambda n, g, u: f"{1773065107 + n},{g},{u},50\n"), "CSV"
    ),
    "jtop": Form(
        "time,jetson_clocks,CPU1,RAM,GPU,Temp GPU\n"
        + _each(lambda n: f"2026-03-09 14:05:{n:02d},OFF,5,0.3,10,42\n"),
        "jtop",
        (10,),
    ),
    "a chart of W&B": Form(
        '"Relative Time (Process)","run1 - system/gpu.0.gpu","run1 - system/gpu.0.gpu__MAX"\n'
        + _each(lambda n: f'"{15 * n}","10","99"\n'),
        "CSV",
        (10,),
        15.0,
    ),
    "one in JSON lines": Form(
        _each(
            lambda n: json.dumps({"timestamp": 1773065107 + n, "gpu_util": 10, "gpu_mem_used_mb": 9}) + "\n"
        ),
        "JSON",
        (10,),
    ),
    "a share without a unit": Form(
        "time,gpu_load\n" + _each(lambda n: f"{n},0.{n + 1}\n", 8), "CSV", (None,)
    ),
}
