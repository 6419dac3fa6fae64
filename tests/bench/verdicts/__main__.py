"""How often verdicts are wrong and what they cost, simulated: `python -m tests.bench.verdicts`.

Every simulated run becomes evidence, and every trial is decided, by the functions that `gpudebug next` calls.
Exit status 1 where the shipped protocol misses a bound.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence

from tests.bench.verdicts.campaign import EARLY, SHIPPED, Outcome, Plan, simulate_plan
from tests.bench.verdicts.tables import by_scenario, dilution, headline
from tests.bench.verdicts.traces import Scenario

MODELS = ("ar", "steps")
RUN_SDS = (2.0, 3.5, 5.0)
_MANY, _FEW = 20_000, 2_000
_DRIFT = 6.0


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    began = time.monotonic()
    plans = _headline_plans(options)
    extra = [] if options.quick else _extra_plans(options)
    outcomes = _simulated([*plans, *extra], options.jobs)
    first = outcomes[: len(plans)]
    text, missed = headline(first)
    log = "known" if options.steps_known else "unknown"
    print(f"# Simulated verdicts: {options.trials} trials at 0, 10 and 25 pp, seed {options.seed}, step times {log}\n")
    print(text)
    print(f"\nWorst of {len(first)} scenarios, 95 % intervals; device-seconds in the reference scenario.")
    session = max(o.sessions for o in first)
    print(f"Sessions of eight changes without effect in which the MAD rule keeps one: {100 * session:.0f} %.\n")
    for name in (SHIPPED, EARLY):
        print(by_scenario(first, name), end="\n\n")
    _print_extra(outcomes[len(plans) :])
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.verdicts", description=__doc__)
    parser.add_argument("--trials", type=int, default=_MANY, help="at 0, 10 and 25 pp; a tenth elsewhere")
    parser.add_argument("--runs", type=int, default=2000, help="simulated runs to draw from, a command")
    parser.add_argument("--scenario", help="only scenarios whose name contains this, such as 'ar sd 2'")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="the first table only")
    parser.add_argument("--steps-known", action="store_true", help="logs tell when steps were made")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args(argv)


def _counts(trials: int, deltas: Sequence[int]) -> dict[int, int]:
    few = max(1, trials * _FEW // _MANY)
    return {d: trials if d in (0, 10, 25) else max(few, min(trials, 300)) for d in deltas}


def _headline_plans(options: argparse.Namespace) -> list[Plan]:
    counts = _counts(options.trials, (0, 10, 15, 20, 25, 30))
    plans = [
        Plan(s.name, s, counts, options.runs, options.seed, steps_known=options.steps_known)
        for s in (Scenario(model, sd) for model in MODELS for sd in RUN_SDS)
    ]
    return [p for p in plans if not options.scenario or options.scenario in p.title]


def _extra_plans(options: argparse.Namespace) -> list[Plan]:
    return []


def _print_extra(outcomes: Sequence[Outcome]) -> None:
    pass


def _simulated(plans: Sequence[Plan], jobs: int) -> list[Outcome]:
    if jobs == 1:
        return [simulate_plan(p) for p in plans]
    with multiprocessing.Pool(jobs) as workers:
        return workers.map(simulate_plan, plans, chunksize=1)


if __name__ == "__main__":
    sys.exit(main())
