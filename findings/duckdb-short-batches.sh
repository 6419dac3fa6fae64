#!/bin/sh
# A DuckDB Arrow reader asked for 1000 rows a batch gives short batches in mid-stream, on several threads only.
#
# Expect    `relation.to_arrow_reader(1000)` gives batches of 1000 rows and one shorter batch at the end: that is
#           what it does with one thread, on the same table and query.
# Happens   On several threads each block of 122 880 stored rows is cut by itself, so its last batch holds 880
#           rows. 500 000 rows give four short batches in mid-stream and one at the end; with a filter that
#           passes two rows in three they hold 920.
# Versions  duckdb 2.0.1, pyarrow 26.0.1.
# Hurts     Training straight from a query. A step compiled for a shape compiles again for each size, deep in the
#           first epoch; a loop that takes a short batch for the last one trains on a quarter of the table.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$room/venv"
"$room/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1

cat >"$room/probe.py" <<'PY'
from importlib.metadata import version

import duckdb

ROWS, BATCH = 500_000, 1000

base = duckdb.connect()
base.execute(f"create table samples as select range as row from range({ROWS})")


def sizes(query, threads):
    """Return the sizes of the batches of a query."""
    base.execute(f"set threads = {threads}")
    batches = list(base.sql(query).to_arrow_reader(BATCH))
    rows = [row for batch in batches for row in batch.column(0).to_pylist()]
    assert rows == sorted(rows), "the rows are out of order"
    return [batch.num_rows for batch in batches]


def until_short(found):
    """Count the rows of a loop that ends at the first short batch."""
    rows = 0
    for size in found:
        rows += size
        if size < BATCH:
            break
    return rows


queries = {"all rows": "from samples", "two rows in three": "from samples where row % 3 <> 0"}
print("duckdb", version("duckdb"), "pyarrow", version("pyarrow"))
short = {}
for name, query in queries.items():
    for threads in (1, 4):
        found = sizes(query, threads)
        short[name, threads] = [size for size in found[:-1] if size != BATCH]
        print(
            f"{name}, {threads} threads: {len(found)} batches, short ones before the last {short[name, threads]}, "
            f"rows until the first short one {until_short(found)} of {sum(found)}"
        )

for name in queries:
    assert short[name, 1] == [], f"{name}: one thread gives short batches in mid-stream now"
    assert len(short[name, 4]) >= 3, f"{name}: several threads fill their batches now"
assert short["all rows", 4] == [880] * 4
print("short batches in mid-stream on several threads")
PY
"$room/venv/bin/python" "$room/probe.py" || {
    echo "changed: the assertion above says what"
    exit 1
}
echo "as found"
