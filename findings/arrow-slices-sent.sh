#!/bin/sh
# A worker process that sends 32 rows of an Arrow table sends the whole table.
#
# Expect    A batch of 32 rows that a data worker hands to the trainer costs the bytes of 32 rows: a slice
#           is 256 bytes of int64, and pyarrow's own `nbytes` says so.
# Happens   Pickle writes a slice with the full buffers that it points into. Each of the batches carries the
#           8 MB of its parent, so a pass over 1 000 000 rows moves 31 250 times the table through the pipe.
#           A Hugging Face dataset in memory, in format "arrow", hands out such slices. The same rows written in
#           Arrow's IPC format, or sliced by polars, keep their own size.
# Versions  pyarrow 26.0.1, polars 2.1.0, datasets 5.2.0, numpy 2.4.6.
# Hurts     Loaders that slice Arrow data in worker processes. The trainer waits for data while no disk is
#           read and the workers look busy: the time goes into pickling, the pipe and unpickling.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check \
  pyarrow==26.0.1 polars==2.1.0 datasets==5.2.0 numpy==2.4.6

cat >"$room/probe.py" <<'PY'
import multiprocessing
import pickle
from importlib.metadata import version

import datasets
import numpy
import polars
import pyarrow as pa

ROWS, BATCH, SENT = 1_000_000, 32, 20


def produce(pipe, make):
    for index in range(SENT):
        pipe.send(make(index * BATCH))
    pipe.close()


def moved(make):
    """Count the bytes that a forked worker sends, and check what arrives."""
    forked = multiprocessing.get_context("fork")
    receive, send = forked.Pipe(duplex=False)
    worker = forked.Process(target=produce, args=(send, make))
    worker.start()
    total = 0
    for index in range(SENT):
        message = receive.recv_bytes()
        total += len(message)
        batch = pickle.loads(message)
        first = batch["x"][0]
        assert len(batch) == BATCH and int(getattr(first, "as_py", lambda: first)()) == index * BATCH
    worker.join()
    return total // SENT


values = numpy.arange(ROWS)
arrow = pa.table({"x": values})
frame = polars.DataFrame({"x": values})
hub = datasets.Dataset(arrow).with_format("arrow")

per_batch = {
    "pyarrow table": moved(lambda start: arrow.slice(start, BATCH)),
    "datasets, format arrow": moved(lambda start: hub[start : start + BATCH]),
    "polars frame": moved(lambda start: frame.slice(start, BATCH)),
}
sink = pa.BufferOutputStream()
with pa.ipc.new_stream(sink, arrow.schema) as stream:
    stream.write_table(arrow.slice(0, BATCH))
ipc = sink.getvalue().size
need = arrow.slice(0, BATCH).nbytes

for name in ("pyarrow", "polars", "datasets", "numpy"):
    print(name, version(name))
print("bytes of the rows, by nbytes:", need)
for name, size in per_batch.items():
    print(f"bytes sent a batch of {BATCH}, {name}: {size}")
print("bytes of the same rows in the IPC format:", ipc)

assert need == BATCH * 8
assert per_batch["pyarrow table"] > 8 * ROWS, "a slice of a table is sent alone now"
assert per_batch["datasets, format arrow"] > 8 * ROWS, "a batch of datasets is sent alone now"
assert per_batch["polars frame"] < 10_000 and ipc < 10_000, "the alternatives are no longer small"
print(f"a batch sends {per_batch['pyarrow table'] // need} times its own bytes")
PY
"$room/venv/bin/python" "$room/probe.py" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
