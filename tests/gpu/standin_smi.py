"""What `nvidia-smi` prints in a rehearsal, for as long as it runs: what the driver's stand-in says."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timezone

import pynvml

HEADS = {
    "dmon": (
        "#Date       Time        gpu   pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk",
        "#YYYYMMDD   HH:MM:SS    Idx     W      C      C      %      %      %      %    MHz    MHz",
    ),
    "pmon": (
        "#Date       Time        gpu         pid   type     sm    mem    enc    dec     fb    command",
        "#YYYYMMDD   HH:MM:SS    Idx           #    C/G      %      %      %      %     MB    name",
    ),
    "--query-gpu": ("timestamp, utilization.gpu [%], power.draw [W], memory.used [MiB]",),
}


def main() -> None:
    """The three forms that parts.FORMS and the looks ask for, by their first word."""
    form, quick = sys.argv[1].partition("=")[0], "-lms" in sys.argv
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    for line in () if quick else HEADS[form]:
        print(line)
    while True:
        now, busy = datetime.now(timezone.utc), pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu
        watts, row = pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000, f" {now:%Y%m%d}   {now:%H:%M:%S}      0"
        if form == "dmon":
            row += f"   {watts:3.0f}     50      -    {busy:3}     10      0      0   2619   1980"
        elif form == "pmon":
            row += f"        4711     C    {busy:3}     10      -      -    800    python"
        else:
            row = f"{now:%Y/%m/%d %H:%M:%S}.{now.microsecond // 1000:03}, {busy} %"
            used = pynvml.nvmlDeviceGetMemoryInfo(gpu).used >> 20
            row += "" if quick else f", {watts:.2f} W, {used} MiB"
        print(row, flush=True)
        time.sleep(0.2 if quick else 1.0)


if __name__ == "__main__":
    main()
