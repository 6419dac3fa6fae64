#!/bin/sh
# A run that resumes off the grid of `save_interval_steps` never writes a checkpoint again.
#
# Expect    With `save_interval_steps=100` orbax saves when 100 steps or more have passed since the last
#           checkpoint. A loop that offers a checkpoint every 50 steps loses 100 steps at most, wherever it began.
# Happens   A checkpoint is due at the multiples of 100 only. A job that was preempted at step 1007, saved there
#           by force and resumed, offers 1057, 1107, ... and none is ever taken: `save` returns False each time, with no
#           warning. A loop of three steps an iteration, from 0, saves every 300 steps.
# Versions  orbax-checkpoint 0.12.8, jax 0.10.2.
# Hurts     Loops that run many steps in one call (a scan of 50, say) and get preempted: from the second job on,
#           a kill costs all that the job has done, and the run directory looks healthy until then.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check \
  orbax-checkpoint==0.12.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6

cat >"$room/probe.py" <<'PY'
import logging
import sys
from importlib.metadata import version

import numpy
import orbax.checkpoint as ocp

INTERVAL = 100
warned = []


class Warned(logging.Handler):
    def emit(self, record):
        warned.append(record.getMessage())


def job(folder, start, stop, stride, preempted_at=None):
    """Offer a checkpoint every `stride` steps; return those taken and refused."""
    options = ocp.CheckpointManagerOptions(
        save_interval_steps=INTERVAL, max_to_keep=3, enable_async_checkpointing=False
    )
    state = ocp.args.StandardSave({"weight": numpy.zeros(2)})
    with ocp.CheckpointManager(folder, options=options) as manager:
        answers = {step: manager.save(step, args=state) for step in range(start, stop, stride)}
        if preempted_at is not None:
            assert manager.save(preempted_at, args=state, force=True)
        latest = manager.latest_step()
    taken = [step for step, saved in answers.items() if saved]
    return taken, len(answers) - len(taken), latest


for name in (None, "absl"):
    logging.getLogger(name).addHandler(Warned(level=logging.WARNING))
room = sys.argv[1]
print("orbax-checkpoint", version("orbax-checkpoint"), "jax", version("jax"))

first = job(f"{room}/run", 0, 1001, 50, preempted_at=1007)
print("first job, steps 0 to 1000:", first)
warned.clear()
second = job(f"{room}/run", first[2] + 50, 21_000, 50)
print(f"resumed from {first[2]}, steps to 21000: saved {second[0]}, refused {second[1]}, latest {second[2]}")
about = [line for line in warned if "interval" in line.lower()]
print("warnings that name the interval:", len(about))
thirds = job(f"{room}/thirds", 0, 1000, 3)
print("three steps an iteration: saved", thirds[0])

assert first[0] == list(range(0, 1001, 100)) and first[2] == 1007
assert second == ([], 399, 1007), "a resumed run off the grid saves now"
assert not about, "the refusal is warned of now"
assert thirds[0] == [0, 300, 600, 900], "steps off the grid are taken now"
print("399 offers over 20000 steps, none taken")
PY
JAX_PLATFORMS=cpu "$room/venv/bin/python" "$room/probe.py" "$room" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
