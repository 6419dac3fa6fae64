#!/bin/sh
# zarr reads the index of a shard again for each sample: 64 KB for a row of 256 bytes.
#
# Expect    Sharding puts many small chunks in one object, so that random reads of samples cost about what
#           they did: the bytes of the chunk, and the shard's index once.
# Happens   The index is not kept. Each read of one row first fetches the whole index of its shard (16 bytes a
#           chunk, so 65 540 bytes for 4096 rows) and then the row. 200 reads of one open array fetch 257 times the
#           bytes that they return, and each is two requests where an array without shards needs one.
#           Reading the rows in one indexed selection pays for the index once.
# Versions  zarr 3.1.6.
# Hurts     Those who shard a dataset to spare an object store its small files, and read samples in random
#           order: the loader becomes slower, bound by bytes and by requests, and more rows a shard make it worse.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check zarr==3.1.6 numpy==2.4.6

cat >"$room/probe.py" <<'PY'
from importlib.metadata import version

import numpy
import zarr
from zarr.storage import MemoryStore, WrapperStore

ROWS, WIDTH, READS = 4096, 64, 200


class Counted(WrapperStore):
    """Count the requests and the bytes that a store answers."""

    requests = 0
    fetched = 0

    async def get(self, key, prototype, byte_range=None):
        value = await super().get(key, prototype, byte_range)
        Counted.requests += 1
        Counted.fetched += len(value) if value is not None else 0
        return value


def cost(array, read):
    """Return the requests and bytes of one way to read."""
    Counted.requests = Counted.fetched = 0
    read(array)
    return Counted.requests, Counted.fetched


def one_by_one(array):
    for row in rows:
        assert numpy.array_equal(array[int(row)], values[row])


def at_once(array):
    assert numpy.array_equal(array.oindex[rows, slice(None)], values[rows])


draw = numpy.random.default_rng(0)
values = draw.random((ROWS, WIDTH), dtype="float32")
rows = numpy.sort(draw.choice(ROWS, READS, replace=False))
held = MemoryStore()
arrays = {}
for name, shards in (("no shards", None), ("one shard", (ROWS, WIDTH))):
    made = zarr.create_array(
        held, name=name, shape=values.shape, chunks=(1, WIDTH), shards=shards, dtype="float32", compressors=None
    )
    made[:] = values
    arrays[name] = zarr.open_array(Counted(held), path=name, mode="r")

print("zarr", version("zarr"))
found = {}
for name, array in arrays.items():
    for way, read in (("one by one", one_by_one), ("at once", at_once)):
        found[name, way] = cost(array, read)
        print(f"{READS} rows, {name}, {way}: {found[name, way][0]} requests, {found[name, way][1]} bytes")

need, index = READS * WIDTH * 4, ROWS * 16 + 4
assert found["no shards", "one by one"] == (READS, need)
assert found["one shard", "one by one"] == (2 * READS, need + READS * index), "the index is not read each time now"
assert found["one shard", "at once"] == (READS + 1, need + index)
print(f"{found['one shard', 'one by one'][1] // need} times the bytes of the rows")
PY
"$room/venv/bin/python" "$room/probe.py" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
