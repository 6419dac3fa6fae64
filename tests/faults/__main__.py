"""`python -m tests.faults kills|failures [--points N] [--seed S] [--jobs J] [--minutes M] --log FILE`

Draws points of a series, runs them and appends a JSON line for each to FILE; what is in FILE already is not
run again, so that an hour ended early goes on later. `--scenario NAME` names some alone. The sum is printed.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.faults import malformed, rig, story


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("series", choices=["kills", "failures", "malformed"])
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--scenario", action="append", default=[])
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args()
    if options.series == "malformed":
        return malformed.main(options.points, options.seed, options.minutes, options.log)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        return _series(options, Path(folder))


def _series(options: argparse.Namespace, folder: Path) -> int:
    tracer, stages = rig.build(folder), story.tell(folder)
    scenarios = [s for s in story.SCENARIOS if not options.scenario or s.name in options.scenario]
    bench = rig.Bench(folder / "bench", tracer, stages, warm=True)
    faults = rig.KILLS if options.series == "kills" else rig.FAILURES
    every = rig.points(bench, scenarios, faults)
    print(f"seed {options.seed}: {options.points} of {len(every)} points", flush=True)
    drawn = random.Random(options.seed).sample(every, min(options.points, len(every)))
    earlier = (
        [json.loads(line) for line in options.log.read_text().splitlines()] if options.log.exists() else []
    )
    had = {json.dumps(found["point"], sort_keys=True) for found in earlier}
    waiting = [p for p in drawn if json.dumps(vars(p), sort_keys=True) not in had]
    until = time.monotonic() + 60 * options.minutes
    by_name = {s.name: s for s in scenarios}

    def work(number: int) -> None:
        mine = rig.Bench(folder / f"bench{number}", tracer, stages, warm=True)
        mine.ends = bench.ends
        for point in waiting[number :: options.jobs]:
            if time.monotonic() > until:
                return
            result = mine.run(by_name[point.scenario], point)
            with options.log.open("a") as log:
                log.write(json.dumps(result.as_json()) + "\n")
            if result.problems:
                print(json.dumps(result.as_json(), indent=1), flush=True)

    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(n,)) for n in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return _sum(options.log) or max(abs(w.exitcode or 0) for w in workers)


def _sum(log: Path) -> int:
    results = [json.loads(line) for line in log.read_text().splitlines()]
    bad = [r for r in results if r["problems"]]
    kinds = collections.Counter((r["point"]["scenario"], r["point"]["process"]) for r in results)
    for (scenario, process), count in sorted(kinds.items()):
        print(f"{count:6} {process:9} {scenario}")
    print(f"{len(results)} points, {len(bad)} with a violation")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
