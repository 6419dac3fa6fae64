#!/bin/sh
# forkserver: the processor time of worker processes belongs to nobody: not to the program, not to its children, not to `time`.
#
# Expect   Time of workers that ended and were joined is in psutil's children_user and children_system, in
#          getrusage(RUSAGE_CHILDREN), and in what `time` says of the program.
# Happens  So it is with fork and spawn. A worker of forkserver (Python 3.14's way on Linux) is a child of the fork server; its
#          time goes there, and the server itself is never waited for. Two workers that burn a second each add 0 to all three.
# Versions psutil 7.2.2, Python 3.11
# Hurts    Whoever judges by such figures whether data loading needs the CPU: with forkserver, loaders that keep all cores busy
#          look idle. Live processes show it (psutil's children(recursive=True)), as long as they are alive.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
python3 -m venv venv
venv/bin/pip install --quiet psutil==7.2.2
cat >burn.py <<'END'
import multiprocessing, resource, sys, time

import psutil


def burn() -> None:
    while time.process_time() < 1:
        pass


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=burn) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    times, usage = psutil.Process().cpu_times(), resource.getrusage(resource.RUSAGE_CHILDREN)
    print(times.children_user + times.children_system, usage.ru_utime + usage.ru_stime)
END
venv/bin/python - <<'END'
import os, platform, subprocess, sys

import psutil

print("Python", platform.python_version(), "psutil", psutil.__version__)
seen = {}
for how in ("fork", "spawn", "forkserver"):
    process = subprocess.Popen([sys.executable, "burn.py", how], stdout=subprocess.PIPE, text=True)
    out = process.stdout.read()
    _, _, used = os.wait4(process.pid, 0)
    psutil_s, rusage_s = map(float, out.split())
    seen[how] = (psutil_s, rusage_s, time_s := used.ru_utime + used.ru_stime)
    print(f"{how}: children's {psutil_s:.2f} s, RUSAGE_CHILDREN {rusage_s:.2f} s, `time` {time_s:.2f} s")
if min(*seen["fork"], *seen["spawn"]) < 1.5 or max(seen["forkserver"]) > 0.5:
    sys.exit("changed: expected about 2 s of the first two, and next to nothing of forkserver")
print("as found")
END
