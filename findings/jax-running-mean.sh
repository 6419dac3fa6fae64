#!/bin/sh
# The mean of a growing list of JAX losses compiles a new program at each report, for the whole run.
#
# Expect    After the first report, `jnp.mean(jnp.stack(losses))` is a few cached operations, and only what
#           jax.jit wraps is ever compiled.
# Happens   Operations outside jit are compiled too, once a shape and number of operands. The list has one more
#           loss at each report, so each report compiles twice: the stack of n scalars, and the mean of n values.
#           `jnp.array(losses)` compiles at each report as well; `sum(losses)` and numpy's mean do not.
# Versions  jax 0.10.2, numpy 2.4.6.
# Hurts     Training loops that keep losses on the device so as not to wait, and report the running mean of the
#           epoch: the accelerator is idle at each report while XLA compiles, from the first epoch to the last.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6

cat >"$room/probe.py" <<'PY'
from importlib.metadata import version

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy

REPORTS = 40
compiled = []


def heard(event, seconds, **_):
    if event == "/jax/core/compile/backend_compile_duration":
        compiled.append(seconds)


jax.monitoring.register_event_duration_secs_listener(heard)
step = jax.jit(lambda weight: ((weight - 1) ** 2).sum())
weight = jnp.zeros(8)
step(weight)

ways = {
    "jnp.mean(jnp.stack(losses))": lambda losses: jnp.mean(jnp.stack(losses)),
    "jnp.mean(jnp.array(losses))": lambda losses: jnp.mean(jnp.array(losses)),
    "sum(losses) / len(losses)": lambda losses: sum(losses) / len(losses),
    "numpy.mean(losses)": numpy.mean,
}

print("jax", version("jax"), "jaxlib", version("jaxlib"), "numpy", version("numpy"))
late = {}
for name, mean in ways.items():
    jax.clear_caches()
    losses, counts = [], []
    for _ in range(REPORTS):
        losses.append(step(weight))
        before = len(compiled)
        assert abs(float(mean(losses)) - 8) < 1e-6
        counts.append(len(compiled) - before)
    late[name] = counts[REPORTS // 2 :]
    print(f"{name}: {sum(counts)} compilations in {REPORTS} reports, in the last five {counts[-5:]}")

half = REPORTS - REPORTS // 2
assert late["jnp.mean(jnp.stack(losses))"] == [2] * half, "a stack of one more no longer compiles twice"
assert min(late["jnp.mean(jnp.array(losses))"]) >= 1, "an array of one more no longer compiles"
assert late["sum(losses) / len(losses)"] == late["numpy.mean(losses)"] == [0] * half
print("each report compiles anew")
PY
JAX_PLATFORMS=cpu "$room/venv/bin/python" "$room/probe.py" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
