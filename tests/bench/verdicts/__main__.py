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
from tests.bench.verdicts.tables import by_scenario, dilution, headline, robustness
from tests.bench.verdicts.traces import Scenario

MODELS = ("ar", "steps")
RUN_SDS = (2.0, 3.5, 5.0)
_MANY, _FEW = 20_000, 2_000
_DRIFT = 6.0
_ALL = (0, 10, 15, 20, 25, 30)


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    began = time.monotonic()
    plans = _headline_plans(options)
    robust = [] if options.quick else _robustness_plans(options)
    fixed = [] if options.quick else _fixed_plans(options)
    wild = _wild_plans(options)
    outcomes = _simulated([*plans, *robust, *fixed, *wild], options.jobs)
    first = outcomes[: len(plans)]
    last = outcomes[len(outcomes) - len(wild) :]
    text, missed = headline(first) if first else ("", [])
    print(f"# Simulated verdicts: {options.trials} trials at 0, 10 and 25 pp, seed {options.seed}\n")
    print(text)
    print(f"\nWorst of {len(first)} scenarios, 95 % intervals; device-seconds in the reference scenario.")
    session = max((o.sessions for o in first), default=0.0)
    print(
        f"Sessions of eight changes without effect in which the MAD rule keeps one: {100 * session:.0f} %.\n"
    )
    for name in (SHIPPED, EARLY):
        if any(name in o.cells for o in first):
            print(by_scenario(first, name)[0], end="\n\n")
    if wild:
        text, more = by_scenario(last, SHIPPED)
        missed += more
        print(f"## Fixed step counts, hosts that drift, short runs\n\n{text}\n")
    if robust:
        text, more = robustness(outcomes[len(plans) : len(plans) + len(robust)])
        missed += more
        print(f"## What the protocol does not know\n\n{text}\n")
        print("## Fixed step counts: a faster run is shorter, and start-up dilutes it more\n")
        print(dilution(outcomes[len(plans) + len(robust) :][: len(fixed)], [SHIPPED, "seed's rule"]))
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
    parser.add_argument("--quick", action="store_true", help="the first tables only")
    parser.add_argument("--no-early", action="store_true", help="without early_stop")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args(argv)


def _counts(trials: int, deltas: Sequence[int]) -> dict[int, int]:
    few = max(1, trials * _FEW // _MANY)
    return {d: trials if d in (0, 10, 25) else few for d in deltas}


def _headline_plans(options: argparse.Namespace) -> list[Plan]:
    counts = _counts(options.trials, _ALL)
    plans = [
        Plan(s.name, s, counts, options.runs, options.seed, early=not options.no_early)
        for s in (Scenario(model, sd) for model in MODELS for sd in RUN_SDS)
    ]
    return [p for p in plans if not options.scenario or options.scenario in p.title]


def _wild_plans(options: argparse.Namespace) -> list[Plan]:
    """What users' programs and hosts do; the bounds are those of the first table."""
    counts = _counts(max(1, options.trials // 2), _ALL)
    scenarios = {
        "fixed steps": Scenario("steps", 3.5, fixed_steps=True),
        **{
            f"host drifts {sign * _DRIFT:+g} pp": Scenario("steps", 3.5, drift=sign * _DRIFT)
            for sign in (1, -1)
        },
        "runs of 20 s": Scenario("steps", 3.5, training=20.0),
    }
    return [
        Plan(title, scenario, counts, options.runs, options.seed, early=False, others=False)
        for title, scenario in scenarios.items()
        if options.scenario is None or options.scenario in title
    ]


def _robustness_plans(options: argparse.Namespace) -> list[Plan]:
    """What the protocol is not told: a wrong prior, drift, long memory, strangers, no times of steps."""
    counts = _counts(max(1, options.trials // 4), (0, 10, 25))

    def plan(title: str, scenario: Scenario, **more: bool | tuple[float, ...]) -> Plan:
        return Plan(title, scenario, counts, options.runs, options.seed, early=False, others=False, **more)

    return [
        *(plan(f"{model} sd 2, prior", Scenario(model, 2.0), priors=(0.5, 2.0)) for model in MODELS),
        *(plan(f"{model} sd 5, prior", Scenario(model, 5.0), priors=(0.5, 2.0)) for model in MODELS),
        *(
            plan(f"{model} sd 3.5, drift {sign * _DRIFT:+g} pp", Scenario(model, 3.5, drift=sign * _DRIFT))
            for model in MODELS
            for sign in (1, -1)
        ),
        *(plan(f"{model} sd 3.5, memory 10 s", Scenario(model, 3.5, memory=10.0)) for model in MODELS),
        *(plan(f"{model} sd 3.5, tenants", Scenario(model, 3.5, tenants=True)) for model in MODELS),
        plan("recorded sd 3.5", Scenario("recorded", 3.5)),
        *(
            plan(f"{model} sd 3.5, step times unknown", Scenario(model, 3.5), steps_known=False)
            for model in MODELS
        ),
    ]


def _fixed_plans(options: argparse.Namespace) -> list[Plan]:
    counts = dict.fromkeys((0, 10, 25, 30), max(1, options.trials // 10))
    return [
        Plan(
            f"start-up {startup:g} s",
            Scenario("steps", 3.5, startup=startup, fixed_steps=True),
            counts,
            options.runs,
            options.seed,
            early=False,
        )
        for startup in (3.0, 12.0, 30.0)
    ]


def _simulated(plans: Sequence[Plan], jobs: int) -> list[Outcome]:
    if jobs == 1:
        return [simulate_plan(p) for p in plans]
    with multiprocessing.Pool(jobs) as workers:
        return workers.map(simulate_plan, plans, chunksize=1)


if __name__ == "__main__":
    sys.exit(main())
