#!/bin/sh
# Zarr 3: `for row in array` decodes a chunk for each row, where Zarr 2 decodes it once.
#
# Expect   Iteration goes through the chunks in order, each read and decompressed once: ten reads for 1,000 rows in chunks
#          of 100. Zarr 2 does so.
# Happens  Zarr 3 has no iteration of its own: Python falls back to array[0], array[1], …, and each reads and decompresses its
#          whole chunk: 1,000 reads. Nothing is kept in between.
# Versions zarr 3.1.6 against 2.18.7
# Hurts    Data loading after the move to Zarr 3: the same loop takes as many times the reads and the decompression as a chunk
#          has rows, here a hundred, while the GPU waits. Rows taken from slices of a chunk's length need ten again.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
for version in 2.18.7 3.1.6; do
    python3 -m venv "venv-$version"
    "venv-$version/bin/pip" install --quiet "zarr==$version"
done
cat >old.py <<'END'
import numpy, zarr

reads = 0


class Store(dict):
    def __getitem__(self, key):
        global reads
        reads += not key.startswith(".")
        return super().__getitem__(key)


array = zarr.create(shape=(1000, 64), chunks=(100, 64), dtype="f4", store=Store())
array[:] = numpy.random.default_rng(0).random((1000, 64))
reads = 0
rows = sum(1 for _ in array)
print(zarr.__version__, rows, reads)
END
cat >new.py <<'END'
import numpy, zarr
from zarr.storage import MemoryStore, WrapperStore

reads = 0


class Store(WrapperStore):
    async def get(self, key, *rest, **named):
        global reads
        reads += key.startswith("c/")
        return await super().get(key, *rest, **named)


array = zarr.create_array(Store(MemoryStore()), shape=(1000, 64), chunks=(100, 64), dtype="f4")
array[:] = numpy.random.default_rng(0).random((1000, 64))
reads = 0
rows = sum(1 for _ in array)
print(zarr.__version__, rows, reads)
END
for run in "2.18.7 old" "3.1.6 new"; do
    set -- $run
    found=$("venv-$1/bin/python" "$2.py")
    set -- "$2" $found
    echo "zarr $2: $3 rows in 10 chunks, $4 reads of chunks"
    case "$1 $3 $4" in
    "old 1000 10" | "new 1000 1000") ;;
    *) echo "changed: expected 10 reads by Zarr 2 and 1000 by Zarr 3" && exit 1 ;;
    esac
done
echo "as found"
