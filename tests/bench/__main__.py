"""What gpudebug costs, in one run: `python -m tests.bench`."""

from __future__ import annotations

import sys

from tests.bench import parsing, sampler, startup
from tests.bench.table import print_table


def main() -> None:
    """Print one table; exit status 1 where a figure is over its bound."""
    kept = print_table(row for part in (startup, parsing, sampler) for row in part.rows())
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
