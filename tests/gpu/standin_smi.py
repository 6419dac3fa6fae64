"""What `nvidia-smi` prints in a rehearsal, for as long as it runs: a GPU at 30 %."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timezone


def main() -> None:
    """The three forms that parts.FORMS and the looks ask for, by their first word."""
    form, quick = sys.argv[1].partition("=")[0], "-lms" in sys.argv
    if form in ("dmon", "pmon"):
        print("#Date       Time        gpu   pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk")
        print("#YYYYMMDD   HH:MM:SS    Idx     W      C      C      %      %      %      %    MHz    MHz")
    elif "--format=csv" in sys.argv:
        print("timestamp, utilization.gpu [%], power.draw [W], memory.used [MiB]")
    while True:
        now = datetime.now(timezone.utc)
        if form == "--query-gpu":
            more = "" if quick else ", 200.00 W, 800 MiB"
            print(f"{now:%Y/%m/%d %H:%M:%S}.{now.microsecond // 1000:03}, 30 %{more}", flush=True)
        else:
            cells = "0   200     50      -     30     10      0      0   2619   1980"
            print(f" {now:%Y%m%d}   {now:%H:%M:%S}      {cells}", flush=True)
        time.sleep(0.2 if quick else 1.0)


if __name__ == "__main__":
    main()
