#!/bin/sh
# ClearML: a loss of NaN or infinity is recorded as 0, the best loss that there is.
#
# Expect   A scalar that is no number is kept as such, left out, or refused.
# Happens  report_scalar writes 0.0 in its place, here into the metrics.jsonl of an offline session. That is said once for NaN
#          and once for infinity, as INFO in the program's output; nothing in the record tells these zeros apart.
#          (Though named .jsonl, a line of the file is a list of events.)
# Versions clearml 2.1.12
# Hurts    Whoever ranks runs by their last or least loss, or stops a run once its loss is no number: a run that diverged
#          wins. A reader cannot mend it; Logger.set_reporting_nan_value in the training can.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
python3 -m venv venv
venv/bin/pip install --quiet clearml==2.1.12
HOME="$room" CLEARML_CACHE_DIR="$room/cache" venv/bin/python - >output.txt 2>&1 <<'END' || { cat output.txt; exit 1; }
import importlib.metadata, json, math, pathlib, sys

from clearml import Task

print("clearml", importlib.metadata.version("clearml"))
Task.set_offline(True)
task = Task.init("p", "n", auto_connect_frameworks=False, auto_resource_monitoring=False, output_uri=False)
losses = [2.0, 1.5, math.nan, math.inf, math.nan, math.inf]
for step, loss in enumerate(losses):
    task.get_logger().report_scalar("loss", "train", value=loss, iteration=step)
task.get_logger().flush(wait=True)
folder = pathlib.Path(task.get_offline_mode_folder())
task.close()

lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
kept = [event["value"] for line in lines for event in line if event["metric"] == "loss"]
print("logged:", losses)
print("recorded:", kept)
if kept != [2.0, 1.5, 0.0, 0.0, 0.0, 0.0] or not all(isinstance(line, list) for line in lines):
    sys.exit("changed: expected 2.0, 1.5 and four zeros")
END
cat output.txt
said=$(grep -c "value encountered" output.txt || true)
if [ "$said" != 2 ]; then
    echo "changed: expected it to be said twice, not $said times" && exit 1
fi
echo "as found"
