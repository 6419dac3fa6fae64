#!/bin/sh
# Continuing an XGBoost model by one round costs as much as predicting with all of its trees.
#
# Expect    `xgboost.train(..., num_boost_round=1, xgb_model=model)` adds one round to a model of 2000, so it
#           costs one round. Training in chunks, with a checkpoint after each, costs what one long call costs.
# Happens   The margins of the training rows are cached with a booster, and each call starts from a new booster:
#           the first round predicts all rows with all trees of the past before it grows one. The price of a call rises
#           with the rounds behind it. A booster that the caller keeps and calls `update` on pays it once; its later
#           rounds cost one round.
# Versions  xgboost-cpu 3.2.0 (the package xgboost without its CUDA libraries), numpy 2.4.6.
# Hurts     Long runs in chunks (checkpoints, pauses for a scheduler, rounds of a federation): rounds a second
#           fall chunk by chunk though data and trees are alike, and it looks like a leak or a slower machine.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check xgboost-cpu==3.2.0 numpy==2.4.6

cat >"$room/probe.py" <<'PY'
import time
from importlib.metadata import version

import numpy
import xgboost

ROWS, ROUNDS, TRIES = 5000, 2000, 5
SETTINGS = {"max_depth": 3, "nthread": 1, "seed": 0}

draw = numpy.random.default_rng(0)
features = draw.normal(size=(ROWS, 20)).astype("float32")
target = features[:, 0] + draw.normal(size=ROWS)
rows = xgboost.QuantileDMatrix(features, target)


def cheapest(call):
    """Return the least processor time of a call in a few tries."""
    costs = []
    for attempt in range(TRIES):
        start = time.process_time()
        call(attempt)
        costs.append(time.process_time() - start)
    return min(costs)


def continued(model):
    return lambda _: xgboost.train(SETTINGS, rows, num_boost_round=1, xgb_model=model)


young = xgboost.train(SETTINGS, rows, num_boost_round=1)
old = xgboost.train(SETTINGS, rows, num_boost_round=ROUNDS)
assert continued(old)(0).num_boosted_rounds() == ROUNDS + 1

from_young, from_old = cheapest(continued(young)), cheapest(continued(old))
old.update(rows, ROUNDS)
kept = cheapest(lambda attempt: old.update(rows, ROUNDS + 1 + attempt))

print("xgboost-cpu", version("xgboost-cpu"), "numpy", version("numpy"))
print(f"one round onto 1 round, xgb_model: {from_young * 1e3:.1f} ms of processor time")
print(f"one round onto {ROUNDS} rounds, xgb_model: {from_old * 1e3:.1f} ms")
print(f"one round onto {ROUNDS} rounds, update of a kept booster: {kept * 1e3:.1f} ms")
assert from_old > 5 * from_young, "a continued round costs about one round now"
assert from_old > 5 * kept, "a kept booster is no longer cheaper"
print(f"the continued round costs {from_old / kept:.0f} times the kept one")
PY
"$room/venv/bin/python" "$room/probe.py" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
