#!/bin/sh
# py-spy `record -- python train.py` ends with status 0 when the training failed: by its status, a traceback or the OOM killer.
#
# Expect    A command that starts another and waits for it hands its status on, as time, nice, env, strace and
#           `python -m cProfile` do.
# Happens   py-spy writes its profile and ends with 0: after sys.exit(3), after an exception that nothing caught, and after
#           SIGKILL.
# Versions  py-spy 0.4.3.
# Hurts     A job whose script profiles its training: `py-spy record … && python export.py` exports a checkpoint of a
#           training that died, the scheduler shows COMPLETED, and the profile of a run that was cut short looks whole.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check py-spy==0.4.3

cat >"$room/probe.py" <<'PY'
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ENDINGS = {
    "sys.exit(3)": ("import sys", "sys.exit(3)", 3),
    "an exception": ("", "raise MemoryError('no room for the batch')", 1),
    "SIGKILL": ("import os", "os.kill(os.getpid(), 9)", -9),
}
TRAIN = """
{before}
import time
began = time.monotonic()
while time.monotonic() - began < 5:
    sum(range(1000))
{end}
"""
room = Path(sys.argv[1])
print("py-spy", version("py-spy"), "Python", sys.version.split()[0])
for name, (before, end, status) in ENDINGS.items():
    program, profile = room / "train.py", room / "profile.raw"
    program.write_text(TRAIN.format(before=before, end=end))
    profile.unlink(missing_ok=True)
    alone = subprocess.run([sys.executable, program], capture_output=True)
    record = [room / "venv/bin/py-spy", "record", "-f", "raw", "-o", profile, "--"]
    spied = subprocess.run([*record, sys.executable, program], capture_output=True)
    print(f"{name}: alone {alone.returncode}, below py-spy {spied.returncode}")
    assert alone.returncode == status
    assert profile.exists() and "train.py" in profile.read_text(), "nothing was sampled"
    assert spied.returncode == 0, "the status is handed on now"
PY
"$room/venv/bin/python" "$room/probe.py" "$room" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
