#!/bin/sh
# trackio: the time of a value is that of the batch that took it along, not of the call that logged it.
#
# Expect   Each row of `metrics` has the time of its trackio.log, so that differences of times are times of steps.
# Happens  log() leaves the time empty; the thread that writes a batch fills in one time for all of it. A value logged every
#          20 ms gets times in lumps, up to half a second late: most steps take 0 s, a few half a second. System metrics
#          (log_system) and alerts are stamped at the call, so that one database holds two clocks.
# Versions trackio 0.43.0
# Hurts    Whoever derives steps a second or the step that was slow from the database; whoever lays GPU figures beside losses.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
python3 -m venv venv
venv/bin/pip install --quiet trackio==0.43.0
TRACKIO_DIR="$room/store" venv/bin/python - <<'END'
import collections, datetime, importlib.metadata, pathlib, sqlite3, sys, time

import trackio

print("trackio", importlib.metadata.version("trackio"))
trackio.init(project="p", name="r")
called, called_system = [], []
for step in range(100):
    called.append(time.time())
    trackio.log({"loss": 1.0})
    if step % 10 == 0:
        called_system.append(time.time())
        trackio.log_system({"gpu": 90})
    time.sleep(0.02)
trackio.finish()


def late(table: str, calls: list[float]) -> list[float]:
    """Seconds from each call to the time of its row."""
    rows = db.execute(f"SELECT timestamp FROM {table} ORDER BY id")
    return [datetime.datetime.fromisoformat(t).timestamp() - at for (t,), at in zip(rows, calls, strict=True)]


(path,) = pathlib.Path("store").glob("*.db")
db = sqlite3.connect(path)
times = collections.Counter(t for (t,) in db.execute("SELECT timestamp FROM metrics"))
values, system = late("metrics", called), late("system_metrics", called_system)
print(f"values: {len(called)} calls in {called[-1] - called[0]:.1f} s, {len(times)} times; rows of each: {[*times.values()]}")
print(f"values are {min(values):.2f} to {max(values):.2f} s late, system metrics at most {max(system):.2f} s")
if len(times) > 50 or max(values) < 0.2 or max(system) > max(values) / 2:
    sys.exit("changed: expected a few times for 100 values, late by up to half a second, and system metrics in time")
print("as found")
END
