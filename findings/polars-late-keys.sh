#!/bin/sh
# Polars, DuckDB: in JSON lines a key that comes late does not exist, without a word.
#
# Expect   A trainer's log has one record a line, those of the evaluation with keys of their own. A table of it has a column for
#          each key, empty where a record lacks it; or reading fails.
# Happens  Polars looks at the first 100 lines, DuckDB at the first 20,480. A key whose first record comes after them is left
#          out, and so are all its values. pandas reads the same file with all columns.
# Versions polars 2.1.0, duckdb 2.0.1, pandas 3.1.1
# Hurts    Whoever reads eval_loss, a learning rate that is logged late or `grad_norm is nan` from such a log: the runs that
#          evaluated early have the column, those that evaluated late seem never to have evaluated.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
python3 -m venv venv
venv/bin/pip install --quiet polars==2.1.0 duckdb==2.0.1 pandas==3.1.1
venv/bin/python - <<'END'
import json, pathlib, sys

import duckdb, pandas, polars

print("polars", polars.__version__, "duckdb", duckdb.__version__, "pandas", pandas.__version__)
readers = {
    "polars": lambda path: polars.read_ndjson(path).columns,
    "polars, lazy": lambda path: polars.scan_ndjson(path).collect().columns,
    "duckdb": lambda path: duckdb.sql(f"SELECT * FROM '{path}'").columns,
    "pandas": lambda path: list(pandas.read_json(path, lines=True).columns),
}
seen = {}
for first in (50, 500, 30_000):
    records = [{"step": step, "loss": 1.5} for step in range(first)]
    records += [{"step": first, "eval_loss": 2.5}] * 10
    pathlib.Path("log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    seen[first] = {who for who, read in readers.items() if "eval_loss" in read("log.jsonl")}
    print(f"eval_loss from line {first + 1} on is seen by:", ", ".join(sorted(seen[first])))
if seen != {50: {*readers}, 500: {"duckdb", "pandas"}, 30_000: {"pandas"}}:
    sys.exit("changed: expected all, then duckdb and pandas, then pandas alone")
print("as found")
END
