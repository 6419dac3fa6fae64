"""How often verdicts are wrong and what they cost, simulated: `python -m tests.bench.verdicts`.

Simulated runs become evidence, and trials are decided, by the functions that `gpudebug next` calls. Exit
status 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.bench.verdicts.campaign import Outcome, Plan, simulate_plan
from tests.bench.verdicts.rows import GROUPS
from tests.bench.verdicts.table import table


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.verdicts", description=__doc__)
    parser.add_argument("--trials", type=int, default=12_000, help="of a quiet row; half in others")
    parser.add_argument("--runs", type=int, default=3_000, help="simulated runs to draw from, a program")
    parser.add_argument("--row", default="", help="only rows whose name contains this, such as 'drift'")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    began = time.monotonic()
    groups = {plan: group for group in GROUPS for plan in group.plans if options.row in plan.title}
    found = _simulated({plan: options.trials * group.tenths // 10 for plan, group in groups.items()}, options)
    text, missed = table(found)
    print(text)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


def _simulated(trials: Mapping[Plan, int], options: argparse.Namespace) -> dict[str, Outcome]:
    one = partial(simulate_plan, runs=options.runs, seed=options.seed)
    if options.jobs == 1:
        return {plan.title: one(plan, count) for plan, count in trials.items()}
    with ProcessPoolExecutor(options.jobs) as workers:
        outcomes = workers.map(one, trials, trials.values())
        return dict(zip([plan.title for plan in trials], outcomes, strict=True))


if __name__ == "__main__":
    sys.exit(main())
