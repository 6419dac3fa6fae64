#!/bin/sh
# W&B: what a training logged in its last seconds is lost if it is killed, though another process already has it.
#
# Expect   log() hands each row to wandb-core, a process of its own. If the training is killed hard (out of memory, a
#          scheduler), that process is alive and writes what it has.
# Happens  wandb-core holds rows back in memory and ends with the training without writing them: five seconds after its first
#          row the run file of a killed training holds 7 bytes, its header, and stays so.
# Versions wandb 0.31.0, offline
# Hurts    Whoever looks for why a training died in its run file: the rows before the end are the missing ones, and a run that
#          dies early leaves none at all.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
python3 -m venv venv
venv/bin/pip install --quiet wandb==0.31.0
cat >train.py <<'END'
import os, pathlib, signal, sys, time

import wandb

settings = wandb.Settings(silent=True, console="off", x_disable_stats=True)
run = wandb.init(project="p", mode="offline", dir=sys.argv[1], settings=settings)
for step in range(50):
    run.log({"loss": 1.0 / (step + 1)})
    time.sleep(0.1)
mine = pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
print("its own processes:", *(pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in mine), flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
run.finish()
END
mkdir ended killed
WANDB_ERROR_REPORTING=false venv/bin/python - <<'END'
import importlib.metadata, pathlib, subprocess, sys, time

print("wandb", importlib.metadata.version("wandb"))
size, rows = {}, {}
for how in ("ended", "killed"):
    done = subprocess.run([sys.executable, "train.py", how], stdout=subprocess.PIPE, text=True)
    print(how, done.stdout.strip())
    # More than wandb-core needs between two writes of its own.
    time.sleep(20 if how == "killed" else 0)
    (file,) = pathlib.Path(how).glob("wandb/offline-run-*/*.wandb")
    size[how], rows[how] = file.stat().st_size, file.read_bytes().count(b"loss")
    print(f"{how}: 50 rows logged in 5 s; {size[how]} bytes, the name of the metric {rows[how]} times")
if rows["ended"] < 50 or rows["killed"] or size["killed"] > 100:
    sys.exit("changed: expected all rows of the run that ended, and none of the one that was killed")
print("as found")
END
