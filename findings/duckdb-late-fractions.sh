#!/bin/sh
# DuckDB: a column with whole numbers in its first 20,480 lines rounds every fraction after them, without a word.
#
# Expect   A fraction in a column that was taken for whole numbers widens the column, or is an error (a word is: NaN in the same
#          place is refused, with the line).
# Happens  CSV and JSON lines alike: the type is guessed from the first 20,480 lines, and a later 0.4 is read as 0, 99.5 as 100. A
#          sum, a maximum and a plot come out, of other numbers than the file has.
# Versions duckdb 2.0.1
# Hurts    Logs of long runs: a sparse reward that is 0 for a long time and then 0.4 stays 0, a utilisation that is 100 and then
#          99.5 stays 100. A shorter log is read right.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
python3 -m venv venv
venv/bin/pip install --quiet duckdb==2.0.1
venv/bin/python - <<'END'
import pathlib, sys

import duckdb

print("duckdb", duckdb.__version__)


def read(early: int, late: str, rows: int) -> dict[str, str]:
    """Type, and value of the last of 1,000 rows with `late` that come after `rows` with `early`."""
    values = [str(early)] * rows + [late] * 1000
    csv = "step,figure\n" + "".join(f"{step},{value}\n" for step, value in enumerate(values))
    lines = "".join(f'{{"step": {step}, "figure": {value}}}\n' for step, value in enumerate(values))
    found = {}
    for name, text in (("run.csv", csv), ("run.jsonl", lines)):
        pathlib.Path(name).write_text(text)
        try:
            (row,) = duckdb.sql(f"SELECT typeof(figure), last(figure ORDER BY step) FROM '{name}' GROUP BY 1").fetchall()
            found[name] = "{} {}".format(*row)
        except (duckdb.ConversionException, duckdb.InvalidInputException):
            found[name] = "refused"
    return found


seen = {}
for early, late, rows in ((0, "0.4", 1000), (0, "0.4", 30_000), (100, "99.5", 30_000), (0, "NaN", 30_000)):
    seen[late, rows] = read(early, late, rows)
    print(f"{rows} rows of {early}, then {late}:", ", ".join(f"{n} {v}" for n, v in seen[late, rows].items()))
right, rounded = seen["0.4", 1000], (seen["0.4", 30_000], seen["99.5", 30_000])
if {*right.values()} != {"DOUBLE 0.4"} or {*seen["NaN", 30_000].values()} != {"refused"}:
    sys.exit("changed: expected 0.4 after a thousand rows, and NaN refused")
if any({*one.values()} != {expected} for one, expected in zip(rounded, ("BIGINT 0", "BIGINT 100"), strict=True)):
    sys.exit("changed: expected 0.4 read as 0, and 99.5 as 100")
print("as found")
END
