#!/bin/sh
# PyArrow: the first ten rows of a Parquet file cost reading all of it, and all of it stays in memory.
#
# Expect   iter_batches(batch_size=10) streams: its first batch needs the footer and the first of 100 row groups, 2 % of the file.
# Happens  ParquetFile fetches the bytes of every row group that the iterator may come to before it yields the first batch, and
#          holds them: 100 % is read and allocated. With pre_buffer=False or row_groups=[0] it is 2 %.
# Versions pyarrow 26.0.1
# Hurts    Loaders that stream shards: at each new shard the GPU waits for a whole file, workers hold one file each in memory, and
#          a look at the first rows on a network file system is a download.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1
venv/bin/python - <<'END'
import io, os, pathlib, sys

import pyarrow
import pyarrow.parquet as pq

print("pyarrow", pyarrow.__version__)
table = pyarrow.table({"id": range(100_000), "picture": [os.urandom(100) for _ in range(100_000)]})
pq.write_table(table, "shard.parquet", row_group_size=1000)
size = pathlib.Path("shard.parquet").stat().st_size


class Counted(io.FileIO):
    """A file that counts what is read of it."""

    count = 0

    def read(self, size=-1):
        data = super().read(size)
        self.count += len(data)
        return data

    def readinto(self, buffer):
        count = super().readinto(buffer)
        self.count += count
        return count


ways = {
    "plain": ({}, {}),
    "pre_buffer=False": ({"pre_buffer": False}, {}),
    "row_groups=[0]": ({}, {"row_groups": [0]}),
}
read, held = {}, {}
for name, (opened, asked) in ways.items():
    file = Counted("shard.parquet")
    next(pq.ParquetFile(pyarrow.PythonFile(file, mode="r"), **opened).iter_batches(batch_size=10, **asked))
    read[name] = file.count / size
    before = pyarrow.total_allocated_bytes()
    batches = pq.ParquetFile("shard.parquet", **opened).iter_batches(batch_size=10, **asked)
    next(batches)
    held[name] = (pyarrow.total_allocated_bytes() - before) / size
    del batches
    print(f"{name}: for the first 10 of 100,000 rows {read[name]:.1%} of the file is read, {held[name]:.1%} held")
if min(read["plain"], held["plain"]) < 0.95 or max(*[*read.values()][1:], *[*held.values()][1:]) > 0.1:
    sys.exit("changed: expected all of the file, and 2 % of it")
print("as found")
END
