"""What gpudebug costs, in one run: `python -m tests.bench`, or the parts that are named behind it."""

from __future__ import annotations

import sys

from tests.bench import parsing, probe, report, sampler, sections, startup, trace
from tests.bench.table import print_table

PARTS = {
    "startup": startup,
    "parsing": parsing,
    "sampler": sampler,
    "sections": sections,
    "probe": probe,
    "trace": trace,
    "report": report,
}


def main() -> None:
    """Print one table; exit status 1 where a figure is over its bound."""
    named = sys.argv[1:] or list(PARTS)
    if unknown := [name for name in named if name not in PARTS]:
        sys.exit(f"no part {unknown[0]!r}: there are {', '.join(PARTS)}")
    kept = print_table(row for name in named for row in PARTS[name].rows())
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
