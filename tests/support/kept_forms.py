"""Recordings as people keep them: passed on by another program, coloured, or written by a spreadsheet."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.support.monitor_forms import Form

QUERY = "nvidia-smi --query-gpu"
_HEADER = "timestamp, index, utilization.gpu [%], memory.used [MiB]"


def _lines(make: Callable[[int, int, int], str], header: str = "", count: int = 12) -> str:
    """`make(n, gpu, util)` of each tick and GPU, in lines below a header."""
    rows = [make(n, gpu, util) for n in range(count) for gpu, util in ((0, 10), (1, 90))]
    return "".join(f"{line}\n" for line in ([header] if header else []) + rows)


def _row(n: int, gpu: int, util: int) -> str:
    return f"2026/03/09 14:05:{n:02d}.412, {gpu}, {util} %, 400 MiB"


def _prefixed(prefix: Callable[[int], str]) -> str:
    lines = _lines(_row, _HEADER).splitlines()
    return "".join(f"{prefix(at)}{line}\n" for at, line in enumerate(lines))


def _exported(gpu: int) -> str:
    return f'"DCGM_FI_DEV_GPU_UTIL{{Hostname=""n7"", gpu=""{gpu}"", job=""dcgm""}}"'


def _series(gpu: int, util: int) -> dict[str, object]:
    labels = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": str(gpu), "Hostname": "n7"}
    return {"metric": labels, "values": [[1773065107 + n, str(util)] for n in range(12)]}


KEPT = {
    "passed on by a container": Form(_prefixed(lambda _: "gpu-monitor-1  | "), QUERY),
    "passed on with the time of each line": Form(
        _prefixed(lambda n: f"2026-03-09T14:05:{n:02d}.123456789Z stdout F "), QUERY
    ),
    "passed on by a journal": Form(_prefixed(lambda n: f"Mar 09 14:05:{n:02d} node7 gpumon[2211]: "), QUERY),
    "passed on by two hosts, each with its GPU 0": Form(
        f"node1: {_HEADER}\nnode2: {_HEADER}\n" + _lines(lambda n, k, u: f"node{k + 1}: {_row(n, 0, u)}"),
        QUERY,
    ),
    "two hosts in a column": Form(
        _lines(lambda n, k, u: f"node{k},{_row(n, 0, u)}", f"hostname,{_HEADER}"), QUERY
    ),
    "passed on by a journal with ISO times": Form(
        _prefixed(lambda n: f"2026-03-09T14:05:{n:02d}+0100 node7 gpumon[2211]: "), QUERY
    ),
    "rows whose only time is the prefix of ts": Form(
        "".join(
            f"Mar 09 14:05:{n:02d} {line}\n"
            for n, line in enumerate(["index, utilization.gpu [%]"] + ["0, 10 %"] * 12)
        ),
        QUERY,
        (10,),
    ),
    "rows whose only time is in brackets": Form(
        "[2026-03-09 14:05:00] index, utilization.gpu [%]\n"
        + _lines(lambda n, k, u: f"[2026-03-09 14:05:{n:02d}] {k}, {u} %"),
        QUERY,
    ),
    "dates in words of another language": Form(
        "".join(
            f"lun. 09 mars 2026 14:05:{n:02d} CET\nutilization.gpu [%], memory.used [MiB]\n10 %, 5 MiB\n"
            for n in range(12)
        ),
        QUERY,
        (10,),
    ),
    "devices called as CUDA does": Form(
        _lines(lambda n, k, u: f"{n},cuda:{k},{u},900", "time,device,util_percent,mem_mb"), "CSV"
    ),
    "GPU-Z": Form(
        "Date , GPU Temperature [°C] , Fan Speed (%) [%] , GPU Load [%] , Memory Controller Load [%] ,\r\n"
        + "".join(f"2026-03-09 14:05:{n:02d} , 45.0 , 30 ,  10  , 3 ,\r\n" for n in range(12)),
        "CSV",
        (10,),
    ),
    "days first": Form(
        "timestamp,gpu_util\n" + "".join(f"{n}/03/2026 14:05:07,10\n" for n in range(9, 21)),
        "CSV",
        (10,),
        86400.0,
    ),
    "milliseconds since a launch": Form(
        "elapsed_ms,gpu_util\n" + "".join(f"{1000 * n},10\n" for n in range(12)), "CSV", (10,)
    ),
    "a ratio": Form("time,gpu_utilization_ratio\n" + "0,0.1\n1,0.1\n2,0.1\n" * 1, "CSV", (10,)),
    "an amount called mem": Form(
        "time gpu util mem\n" + _lines(lambda n, k, u: f"14:05:{n:02d} {k} {u} 3000"), "CSV"
    ),
    "a date between strokes": Form(
        "".join(
            f"=== 2026-03-09 14:05:{n:02d} ===\nindex, utilization.gpu [%]\n0, 10 %\n1, 90 %\n"
            for n in range(12)
        ),
        QUERY,
    ),
    "seconds since 1970 between rows": Form(
        "".join(f"{1773065107 + n}\n0, 10 %, 5 MiB\n1, 90 %, 5 MiB\n" for n in range(12)), QUERY
    ),
    "rocm-smi below dates": Form(
        "".join(
            f"Mon Mar  9 14:05:{n:02d} UTC 2026\n\n===== ROCm System Management Interface =====\n"
            "===== % time GPU is busy =====\n"
            "GPU[0]\t\t: GPU use (%): 10\nGPU[1]\t\t: GPU use (%): 90\n===== End of ROCm SMI Log =====\n"
            for n in range(12)
        ),
        "rocm-smi",
    ),
    "dmon of two hosts": Form(
        "".join(f"{n}: # gpu    sm   mem\n{n}: # Idx     %     %\n" for n in ("n1", "n2"))
        + _lines(lambda _, k, u: f"n{k + 1}:     0    {u}     3"),
        "nvidia-smi dmon",
    ),
    "a spreadsheet with quotes, decimal commas and a name of its own for the time": Form(
        '"Zeit";"gpu_util"\n' + "".join(f'"09.03.2026 14:05:{n:02d}";"10,0"\n' for n in range(12)),
        "CSV",
        (10,),
    ),
    "GPUtil": Form(
        "| ID | GPU | MEM |\n------------------\n|  0 | 10% | 12% |\n|  1 | 90% | 50% |\n" * 12,
        "GPUtil",
        period=None,
    ),
    "gpustat in colours": Form(
        "".join(
            f"\x1b[1;37mn7\x1b(B\x1b[m  Mon Mar  9 14:05:{n:02d} 2026  \x1b[1;30m535.54.03\x1b(B\x1b[m\n"
            + "".join(
                f"\x1b[36m[{k}]\x1b(B\x1b[m \x1b[34mRTX 3090\x1b(B\x1b[m |\x1b[31m 50°C\x1b(B\x1b[m, "
                f"\x1b[1;32m {u} %\x1b(B\x1b[m | \x1b[33m9000\x1b(B\x1b[m / \x1b[33m24576\x1b(B\x1b[m MB |\n"
                for k, u in ((0, 10), (1, 90))
            )
            for n in range(12)
        ),
        "gpustat",
    ),
    "a spreadsheet that left the hours out": Form(
        _lines(
            lambda n, k, u: f"{59 + n // 6:02d}:{10 * (n % 6):02d}.4,{k},{u}%".replace("60:", "00:"),
            "timestamp,index,utilization.gpu [%]",
        ),
        QUERY,
        period=10.0,
    ),
    "a spreadsheet that left the seconds out": Form(
        _lines(
            lambda n, k, u: f"3/9/2026 2:{n // 6:02d} PM,{k},{u}%", "timestamp,index,utilization.gpu [%]", 121
        ),
        QUERY,
        period=10.0,
    ),
    "a frame of pandas": Form(
        _lines(lambda n, k, u: f"{2 * n + k},{_row(n, k, u)}", f"Unnamed: 0,{_HEADER}"), QUERY
    ),
    "memory alone": Form(
        _lines(
            lambda n, k, _: f"2026/03/09 14:05:{n:02d}.1, {k}, 400 MiB", "timestamp, index, memory.used [MiB]"
        ),
        QUERY,
        (None, None),
    ),
    "memory alone, no header": Form("400 MiB\n" * 12, QUERY, (None,), None),
    "dmon below a prompt in brackets": Form(
        "[me@node7 run]$ nvidia-smi dmon -s u\n# gpu    sm   mem\n# Idx     %     %\n"
        + _lines(lambda _, k, u: f"    {k}    {u}     3")
        + "Killed\n[me@node7 run]$ exit\n",
        "nvidia-smi dmon",
    ),
    "hl-smi": Form(
        _lines(
            lambda n, k, u: f"Mon Mar  9 14:05:{n:02d} UTC 2026, {k}, {u} %, 100 W",
            "timestamp, index, utilization.aip [%], power.draw [W]",
        ),
        QUERY,
    ),
    "amd-smi": Form(
        "+-------------------------------------+----------------------------------------+\n"
        "| AMD-SMI 26.0.0+37d158ab      amdgpu version: 6.14.14  ROCm version: 7.0.0    |\n"
        "|-------------------------------------+----------------------------------------|\n"
        "| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |\n"
        "| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |\n"
        "|=====================================+========================================|\n"
        + "|-------------------------------------+----------------------------------------|\n".join(
            f"| 0000:05:00.0 ...Instinct MI300X OAM | 0 %      38 °C   0           133/750 W |\n"
            f"|   {k}       {k}       {k}        SPX/NPS1 | {u} %       N/A           283/196592 MB |\n"
            for k, u in ((0, 10), (1, 90))
        )
        + "+-------------------------------------+----------------------------------------+\n",
        "amd-smi",
        period=None,
    ),
    "a JSON list of moments": Form(
        json.dumps(
            [
                {"time": 1773065107 + n, "gpus": [{"id": k, "gpu_util": u} for k, u in ((0, 10), (1, 90))]}
                for n in range(12)
            ]
        ),
        "JSON",
    ),
    "numbers below gpu": Form(
        "".join(
            json.dumps(
                {
                    "ts": f"2026-03-09T14:05:{n:02d}Z",
                    "gpu": {"0": {"utilization": 10}, "1": {"utilization": 90}},
                }
            )
            + "\n"
            for n in range(12)
        ),
        "JSON",
    ),
    "scrapes with their times": Form(
        _lines(
            lambda n, k, u: f'DCGM_FI_DEV_GPU_UTIL{{gpu="{k}",UUID="GPU-{k}"}} {u} {1773065107000 + 1000 * n}'
        ),
        "DCGM exporter",
    ),
    "series of Grafana": Form(
        f'"Time",{_exported(0)},{_exported(1)}\n'
        + "".join(f"{1773065107000 + 1000 * n},10,90\n" for n in range(12)),
        "DCGM exporter",
    ),
    "a legend of Grafana": Form(
        '"Time","GPU 0","GPU 1"\n' + "".join(f"2026-03-09 14:05:{n:02d},10%,90%\n" for n in range(12)), "CSV"
    ),
    "an answer of Prometheus": Form(
        json.dumps(
            {
                "status": "success",
                "data": {"resultType": "matrix", "result": [_series(0, 10), _series(1, 90)]},
            }
        ),
        "DCGM exporter",
    ),
    "lines of a program's log": Form(
        _lines(
            lambda n, k, u: (
                f"2026-03-09 14:05:{n:02d},123 INFO mon: GPU {k}: util={u}% mem=400/24564MiB power=200W"
            )
        ),
        "log lines",
    ),
    "lines of a log with the time of day": Form(
        _lines(lambda n, k, u: f"[14:05:{n:02d}] GPU{k} | Util: {u}% | Mem: 400 MiB | Temp: 60C | CPU: 5%"),
        "log lines",
    ),
    "gpustat with encoders, and power that is not known": Form(
        "".join(
            f"n7                Mon Mar  9 14:05:{n:02d} 2026  465.19.01\n"
            f"[0] RTX 2070 | 29°C,  31 %,  10 % (E:  0 %  D:  0 %),  ?? /  ?? W |  758 / 7982 MB |\n"
            for n in range(12)
        ),
        "gpustat",
        (10,),
    ),
    "tegrastats that began without root": Form(
        "RAM 2633/7850MB (lfb 3x4MB) CPU [0%@2035,off] GPU@41C VDD_IN 3624/3624\n" * 6
        + "RAM 2633/7850MB (lfb 3x4MB) CPU [0%@2035,off] GR3D_FREQ 10%@1134 GPU@44C VDD_IN 3652/366\n" * 6,
        "tegrastats",
        (10,),
    ),
    "tegrastats as a table": Form(
        '"Mon Mar  9 14:05:07 UTC 2026\n"\n'
        "Index,Time (mS),Used RAM (MB),CPU 0 Load (%),Used GR3D (%),GPU Temperature (C)\n"
        + "".join(f"{n},{1000 * n},896.0,4,10.0,31.0\n" for n in range(20)),
        "CSV",
        (10,),
    ),
    "the power panel of a Jetson": Form(
        "System-Time,CPU0-CURR_LOAD,IGPU0-CURR_FREQ,IGPU0-CURR_LOAD,MEM-USED_SIZE,gpu-thermal-CURR_TEMP\n"
        + "".join(f"14:05:{n:02d},36,1185.75,10,38136,61.8\n" for n in range(12)),
        "CSV",
        (10,),
    ),
    "rows that end with an empty cell": Form(
        "Timestamp, CPU_Util, GPU_Utilization, Extra Power\n"
        + "".join(f"2026-03-09 14:05:{n:02d}, 1, 10%, \n" for n in range(12)),
        "CSV",
        (10,),
    ),
    "below times of half a day": Form(
        "".join(
            f"==== Mon Mar  9 {hour}:00:00 {half} EDT 2026 ====\nutilization.gpu [%]\n10 %\n"
            for half in ("AM", "PM")
            for hour in ("12", "04", "08")
        ),
        QUERY,
        (10,),
        14400.0,
    ),
    "cut while it was written": Form(
        _HEADER + "\n" + "\0" * 77 + _lines(_row).replace("2026/03/09 14:05:05", "\0\0002026/03/09 14:05:05"),
        QUERY,
    ),
    "figures below each date": Form(
        "".join(
            f"\n=== 2026-03-09 14:{n:02d}:07 ===\nGPU Load: 10.0%\nGPU Memory: 121.0MB / 6144.0MB (2.0%)\n"
            "GPU Temperature: 45.0°C\nCPU Usage: 0.0%\nRAM Usage: 603.9MB\n"
            for n in range(12)
        ),
        "log lines",
        (10,),
        60.0,
    ),
    "rows of containers in another order each time": Form(
        "timestamp,container,cpu_percent (%),mem_usage (MiB),gpu_mem_usage (MiB),gpu_utilization (%)\n"
        + "".join(
            f"2026-03-09 14:05:{2 * n:02d},worker-{k},9.9,{9000 + n},400,{90 if k else 10}\n"
            for n in range(12)
            for k in ((0, 1) if n % 3 else (1, 0))
        ),
        "CSV",
        (90, 10),
        2.0,
    ),
}
