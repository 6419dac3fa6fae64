"""What other programs record of GPUs, made up: `nvidia-smi`, `dcgmi dmon`, W&B."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

BLOCK = 32768
QUERY = ("timestamp", "index", "utilization.gpu", "power.draw", "memory.used")
_START = datetime(2025, 7, 27, 1, 48, 27)


class Shown(NamedTuple):
    """What one GPU shows at one moment."""

    util: float
    power: float = 300.0
    memory: float = 20_000.0


At = Callable[[float, int], Shown]
"""What GPU `n` shows `t` seconds after the beginning."""


def busy(time: float, gpu: int) -> Shown:
    """GPU 0 at 20 %, the others at 90."""
    return Shown(20 if gpu == 0 else 90, 500 if gpu else 150)


def ticks(seconds: float, interval: float) -> Iterator[float]:
    return (n * interval for n in range(round(seconds / interval)))


def date(time: float) -> str:
    moment = _START + timedelta(seconds=time)
    return f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03}"


def query(
    seconds: float = 60,
    gpus: int = 2,
    fields: Sequence[str] = QUERY,
    *,
    interval: float = 1.0,
    header: bool = True,
    units: bool = True,
    at: At = busy,
    start: float = 0.0,
) -> str:
    """`nvidia-smi --query-gpu=FIELDS --format=csv[,noheader][,nounits]`; rows of a tick are 1 ms apart."""
    of = {"utilization.gpu": "%", "power.draw": "W", "memory.used": "MiB", "clocks.sm": "MHz"}
    lines = [", ".join(f"{f} [{of[f]}]" if f in of else f for f in fields)] if header else []
    for time in ticks(seconds, interval):
        for gpu in range(gpus):
            shown = at(time, gpu)
            cells = {
                "timestamp": date(start + time + gpu / 1000),
                "index": str(gpu),
                "uuid": f"GPU-{gpu:08x}-1111-2222-3333-444444444444",
                "pci.bus_id": f"00000000:{gpu + 1:02X}:00.0",
                "serial": f"13203210{gpu:05}",
                "name": "NVIDIA H100 80GB HBM3",
                "utilization.gpu": f"{shown.util:.0f}",
                "power.draw": f"{shown.power:.2f}",
                "memory.used": f"{shown.memory:.0f}",
                "clocks.sm": "1980",
            }
            lines.append(", ".join(cells[f] + (f" {of[f]}" if units and f in of else "") for f in fields))
    return "\n".join(lines) + "\n"


def dmon(
    seconds: int = 60,
    gpus: int = 2,
    *,
    dated: bool = False,
    repeat: int = 20,
    at: At = busy,
    csv: bool = False,
) -> str:
    """`nvidia-smi dmon [-o DT]`, its header again every `repeat` rows."""
    names = ["gpu", "pwr", "gtemp", "mtemp", "sm", "mem", "enc", "dec", "mclk", "pclk"]
    units = ["Idx", "W", "C", "C", "%", "%", "%", "%", "MHz", "MHz"]
    if dated:
        names, units = ["Date", "Time", *names], ["YYYYMMDD", "HH:MM:SS", *units]
    between = ", " if csv else "  "
    head = ["#" + between.join(names), "#" + between.join(units)]
    lines: list[str] = []
    for time in range(seconds):
        for gpu in range(gpus):
            if len(lines) % (repeat + 2) == 0:
                lines += head
            shown = at(time, gpu)
            row = [gpu, round(shown.power), 60, "-", round(shown.util), 10, 0, 0, 2619, 1980]
            moment = _START + timedelta(seconds=time)
            first = [f"{moment:%Y%m%d}", f"{moment:%H:%M:%S}"] if dated else []
            lines.append(between.join(map(str, [*first, *row])))
    return "\n".join(lines) + "\n"


def dcgmi(seconds: int = 60, gpus: int = 2, *, at: At = busy, repeat: int = 20, mig: bool = False) -> str:
    """`dcgmi dmon -e 203,155,100`."""
    lines: list[str] = []
    for time in range(seconds):
        for gpu in range(gpus):
            if len(lines) % (repeat + 2) == 0:
                lines += ["#Entity   GPUTL     POWER     SMCLK", "ID                      W         MHz"]
            shown = at(time, gpu)
            lines.append(f"GPU {gpu}     {shown.util:.0f}        {shown.power:.3f}   N/A")
            lines += [f"GPU-I {gpu}   N/A       N/A       N/A"] if mig else []
    return "\n".join(lines) + "\n"


def message(number: int, data: bytes) -> bytes:
    """A field of a protobuf message that holds bytes."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def history(step: int, **values: object) -> bytes:
    """A row of a W&B run's history."""
    row = {**values, "_step": step}
    items = [message(1, message(1, k.encode()) + message(16, json.dumps(v).encode())) for k, v in row.items()]
    return message(2, b"".join(items))


def stats(time: float, **values: float) -> bytes:
    """System metrics of a W&B run; a key's `__` is a dot."""
    stamp = message(2, integer(1, int(time)) + integer(2, round(time % 1 * 1e9)))
    items = [
        message(3, message(1, k.replace("__", ".").encode()) + message(16, json.dumps(v).encode()))
        for k, v in values.items()
    ]
    return message(7, integer(1, 0) + stamp + b"".join(items))


def wandb(records: Sequence[bytes]) -> bytes:
    """As wandb's DataStore writes them: no part crosses a block of 32 KiB, the first with the file's head."""
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for whole in records:
        record, first = whole, True
        while True:
            left = BLOCK - len(out) % BLOCK
            if left < 7:
                out += b"\0" * left
                continue
            part, record = record[: left - 7], record[left - 7 :]
            kind = (1 if first else 4) if not record else (2 if first else 3)
            out += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part
            first = False
            if not record:
                break
    return bytes(out)


def wandb_run(seconds: int = 300, gpus: int = 2, *, at: At = busy, every: int = 10) -> bytes:
    """A training that logs its loss each second, and its GPUs every so many seconds."""
    records = []
    for time in range(seconds):
        records.append(history(time, **{"train/loss": 4.0 / (1 + time / 20)}))
        if time % every == 0:
            values: dict[str, float] = {"cpu": 12.5}
            for gpu in range(gpus):
                shown = at(time, gpu)
                of = {
                    "gpu": shown.util,
                    "powerWatts": shown.power,
                    "memoryAllocatedBytes": shown.memory * 2**20,
                }
                values |= {f"gpu__{gpu}__{key}": value for key, value in of.items()}
            records.append(stats(1_764_928_878 + time, **values))
    return wandb(records)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])
