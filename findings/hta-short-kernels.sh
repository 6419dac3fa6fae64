#!/bin/sh
# HolisticTraceAnalysis: a GPU that is 35 % busy with short kernels is called 100 % idle.
#
# Expect   get_temporal_breakdown gives the share of time in which kernels run, as the trace has it, to the nanosecond.
# Happens  Begin and end of each event are rounded to whole microseconds, inwards: a kernel of 1.4 us has no time left, one of
#          2.3 us one or two. Of kernels of 1.4 us every 4 us it says 0 % computing and all of it waiting for the host; with
#          60 us every 100 us it is right. With HTA_DISABLE_NS_ROUNDING=1 all are right.
# Versions HolisticTraceAnalysis 0.5.0
# Hurts    Small models in eager mode, recurrent nets, optimizers that are not fused: where the question is how much launching
#          costs, and a change that makes kernels shorter or longer moves the idle share by rounding alone.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
python3 -m venv venv
venv/bin/pip install --quiet HolisticTraceAnalysis==0.5.0
cat >busy.py <<'END'
import json, logging, os, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis

COUNT, BEGIN = 300, 1000.3


def trace(kernel_us: float, every_us: float) -> dict:
    """Three profiled steps, each of as many launches and kernels of one stream."""
    events = []

    def add(cat: str, name: str, at: float, took: float, pid: int, tid: int, **args: int) -> None:
        events.append({"ph": "X", "cat": cat, "name": name, "ts": at, "dur": took, "pid": pid, "tid": tid, "args": args})

    for step in range(3):
        at = BEGIN + step * COUNT * every_us
        add("user_annotation", f"ProfilerStep#{step}", at, COUNT * every_us, 1, 1)
        for number in range(COUNT):
            launch = at + number * every_us
            linked = {"correlation": step * COUNT + number + 1}
            add("cuda_runtime", "cudaLaunchKernel", launch, 0.2, 1, 1, **linked)
            add("kernel", "gemm", launch + 0.2, kernel_us, 0, 7, stream=7, device=0, **linked)
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "gpu"}],
        "distributedInfo": {"rank": 0, "world_size": 1},
        "traceEvents": events,
    }


shares = []
for kernel_us, every_us in ((60, 100), (2.3, 5.7), (1.4, 4)):
    with open("rank0.json", "w") as f:
        json.dump(trace(kernel_us, every_us), f)
    analysis = TraceAnalysis(trace_files={0: "rank0.json"}, trace_dir=os.getcwd())
    shares.append(float(analysis.get_temporal_breakdown(visualize=False)["compute_time_pctg"].iloc[0]))
print(*shares)
END
echo "HolisticTraceAnalysis $(venv/bin/python -c 'import importlib.metadata as m; print(m.version("HolisticTraceAnalysis"))')"
rounded=$(venv/bin/python busy.py)
exact=$(HTA_DISABLE_NS_ROUNDING=1 venv/bin/python busy.py)
echo "kernels of 60 us each 100 us, 2.3 us each 5.7 us, 1.4 us each 4 us: busy 60 %, 40.4 %, 35 %"
echo "said: $rounded; with HTA_DISABLE_NS_ROUNDING=1: $exact"
venv/bin/python - "$rounded" "$exact" <<'END'
import sys

rounded, exact = ([*map(float, words.split())] for words in sys.argv[1:])
true = (60.0, 40.4, 35.0)
if any(abs(a - b) > 1.5 for a, b in zip(exact, true, strict=True)):
    sys.exit("changed: expected the true shares without rounding")
if abs(rounded[0] - 60) > 1.5 or not 20 < rounded[1] < 30 or rounded[2] > 1:
    sys.exit("changed: expected about 60, 25 and 0 % with rounding")
print("as found")
END
