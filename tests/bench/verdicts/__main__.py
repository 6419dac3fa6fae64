"""How often verdicts are wrong and what they cost, simulated: `python -m tests.bench.verdicts`.

Simulated runs become evidence, and trials are decided, by the functions that `gpudebug next` calls. Exit
status 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.bench.verdicts.campaign import Outcome, Plan, simulate_plan
from tests.bench.verdicts.rows import GROUPS
from tests.bench.verdicts.table import counts, table


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.verdicts", description=__doc__)
    parser.add_argument("--trials", type=int, default=12_000, help="of each row")
    parser.add_argument("--runs", type=int, default=4_000, help="simulated runs to draw from, a program")
    parser.add_argument("--row", default="", help="only rows whose name contains this, such as 'drift'")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    began = time.monotonic()
    plans = [plan for group in GROUPS for plan in group.plans if options.row in plan.title]
    found = dict(zip([p.title for p in plans], _simulated(plans, options), strict=True))
    text, missed = table(found)
    print(f"{text}\n")
    for what, special in (("a row", False), ("a row about one trial of each campaign", True)):
        if outcomes := [found[p.title] for p in plans if p.scenario.special is special]:
            print(f"Trials of {what}, by their true gain: {counts(outcomes)} or more.")
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


def _simulated(plans: Sequence[Plan], options: argparse.Namespace) -> list[Outcome]:
    one = partial(simulate_plan, trials=options.trials, runs=options.runs, seed=options.seed)
    if options.jobs == 1:
        return [one(plan) for plan in plans]
    with ProcessPoolExecutor(options.jobs) as workers:
        return list(workers.map(one, plans))


if __name__ == "__main__":
    sys.exit(main())
