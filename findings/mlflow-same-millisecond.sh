#!/bin/sh
# MLflow: values of one millisecond are sorted by size, equal ones are kept once, and NaN sorts as 0.
#
# Expect   log_metric appends: the history has each call, and the run's metric is the value that was logged last.
# Happens  The database's key is (metric, millisecond, step, value). Of values with one step and millisecond the largest is the
#          latest: 5, then 1, leaves 5; 5, then NaN, leaves 5, and the run looks sound. An equal value in the same
#          millisecond is no new row: of 100 calls one is left. Python's client needs no explicit time for that:
#          asynchronous calls (synchronous=False) without a step come several to a millisecond.
# Versions mlflow 3.17.2, its sqlite store
# Hurts    Who counts rows for a rate; who stops or ranks runs by their latest loss; rewards and losses that repeat (0, 1,
#          a plateau) in fast loops.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
python3 -m venv venv
venv/bin/pip install --quiet mlflow==3.17.2
venv/bin/python - <<'END'
import logging, sqlite3, sys

import mlflow

logging.disable(logging.INFO)
print("mlflow", mlflow.__version__)
mlflow.set_tracking_uri("sqlite:///runs.db")
client = mlflow.MlflowClient()
run = client.create_run(client.create_experiment("e")).info.run_id
logged = {
    "falls": [5.0, 1.0],
    "diverges": [5.0, float("nan")],
    "repeats": [0.5] * 100,
}
for name, values in logged.items():
    for value in values:
        client.log_metric(run, name, value, timestamp=1_760_000_000_000, step=1)

latest = client.get_run(run).data.metrics
rows = {name: len(client.get_metric_history(run, name)) for name in logged}
for name, values in logged.items():
    print(f"{name}: {len(values)} calls, the last {values[-1]}; {rows[name]} rows, latest {latest[name]}")

with mlflow.start_run(run_id=run):
    for _ in range(200):
        mlflow.log_metric("fast", 1.0, synchronous=False)
mlflow.flush_async_logging()
fast = len(client.get_metric_history(run, "fast"))
print(f"fast: 200 asynchronous calls without a time; {fast} rows")

key = [row[1] for row in sqlite3.connect("runs.db").execute("PRAGMA table_info(metrics)") if row[5]]
print("key of table metrics:", ", ".join(key))
if latest["falls"] != 5 or latest["diverges"] != 5 or rows != {"falls": 2, "diverges": 2, "repeats": 1}:
    sys.exit("changed: expected latest 5 and 5, and 2, 2 and 1 rows")
if not {"value", "timestamp"} <= set(key) or fast >= 200:
    sys.exit("changed: the value was part of the key, and fewer rows than calls came of equal values")
print("as found")
END
