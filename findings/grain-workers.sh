#!/bin/sh
# More grain workers make an epoch shorter, down to none at all.
#
# Expect    The number of workers changes how fast batches come, not how many. 1000 records in batches of 64
#           with the remainder dropped are 15 steps, whatever reads them.
# Happens   Each worker takes every n-th record and makes batches of its own share, and each drops its own
#           remainder. 15 steps become 14 with 7 workers, 8 with 8 workers and 0 with 16: the loop then ends at once,
#           without a word. The rows that meet in a batch depend on the number of workers too.
#           Both faces of grain do it: DataLoader, and IterDataset.batch(...) before mp_prefetch(...).
# Versions  grain 0.2.18.
# Hurts     Those who add workers since the accelerator waits for data. Steps an epoch and samples seen change
#           with the setting under test, so two runs that differ only in workers are not the same work.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check grain==0.2.18

cat >"$room/probe.py" <<'PY'
import sys
from importlib.metadata import version

import grain
import grain.python as pygrain
from absl import flags

RECORDS, BATCH = 1000, 64


class Records:
    """Hold the numbers below 1000."""

    def __len__(self):
        return RECORDS

    def __getitem__(self, index):
        return int(index)


def loader(workers):
    """Return the batches of one epoch of a DataLoader."""
    sampler = pygrain.IndexSampler(RECORDS, shuffle=True, seed=7, num_epochs=1, shard_options=pygrain.NoSharding())
    operations = [pygrain.Batch(BATCH, drop_remainder=True)]
    return list(pygrain.DataLoader(data_source=Records(), sampler=sampler, operations=operations, worker_count=workers))


def dataset(workers):
    """Return the batches of one epoch of an IterDataset."""
    batches = grain.MapDataset.source(Records()).to_iter_dataset().batch(BATCH, drop_remainder=True)
    return list(batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)) if workers else batches)


if __name__ == "__main__":
    flags.FLAGS(sys.argv[:1])
    print("grain", version("grain"))
    steps = {}
    for name, epoch in (("DataLoader", loader), ("IterDataset", dataset)):
        for workers in (0, 1, 7, 8, 16):
            batches = epoch(workers)
            assert all(len(batch) == BATCH for batch in batches)
            steps[name, workers] = len(batches)
            print(f"{name}, {workers} workers: {len(batches)} steps, {len(batches) * BATCH} of {RECORDS} records")
    for name in ("DataLoader", "IterDataset"):
        found = [steps[name, workers] for workers in (0, 1, 7, 8, 16)]
        assert found == [15, 15, 14, 8, 0], f"{name}: steps an epoch are {found} now"
    print("the number of workers sets the steps of an epoch")
PY
"$room/venv/bin/python" "$room/probe.py" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
