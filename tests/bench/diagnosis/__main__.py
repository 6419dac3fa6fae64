"""Does the order that gpudebug tests in find the fix sooner? `python -m tests.bench.diagnosis`.

Every program of the zoo is measured once (`--measure`), and orders are replayed on that table by the
functions that `gpudebug next` calls. Exit status 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path

from tests.bench.diagnosis import orders, recording
from tests.bench.diagnosis.measuring import measure
from tests.bench.diagnosis.orders import Cost
from tests.bench.diagnosis.replaying import Replay
from tests.support import zoo

from gpudebug.core.answers.diagnosis import gained

TOP_1, TOP_3 = 0.70, 0.90
BORNE_OUT = 0.85
"""Of the fixes: how many bring no more than the ceiling of a right cause, within their interval."""
EXPERIMENTS, OF_RANDOM = 2.0, 0.5
ORDERS = ("next", "random", "catalogue", "checklist")
_SHOWN = 3
_RATIO = re.compile(r"([\d.]+)x \(95% CI ([\d.]+) to ")


@dataclass(frozen=True)
class Score:
    """One program on the table. `place` is that of a right cause, None where none is named;
    `validated` are the hypotheses that were; `gain` what its fix brought, as a ratio of throughput with the
    lower end of its interval, `ceiling` the highest of the right causes."""

    program: str
    truth: tuple[str, ...]
    named: tuple[tuple[str, float], ...]
    place: int | None
    abstains: bool
    validated: tuple[int, ...]
    fixes: tuple[int, ...]
    costs: dict[str, Cost]
    gain: tuple[float, float] | None = None
    ceiling: float | None = None

    @property
    def borne_out(self) -> bool | None:
        """None where no fix was VALIDATED or no right cause has a ceiling."""
        if self.gain is None or self.ceiling is None:
            return None
        return self.gain[1] <= self.ceiling

    @property
    def healthy(self) -> bool:
        return not self.truth


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    programs = options.programs or [name for name in zoo.names() if zoo.truth(name).shows == "cpu"]
    if options.measure:
        _measure(programs, options.jobs)
    scores = [score for name in programs if (score := _score(name)) is not None]
    if not scores:
        sys.exit("nothing was measured yet: add --measure")
    print(table(scores))
    missed = list(_missed(scores))
    print("\n".join(summary(scores)))
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.diagnosis", description=__doc__)
    parser.add_argument(
        "programs", nargs="*", help="of the zoo; all that show their cause on a CPU by default"
    )
    parser.add_argument("--measure", action="store_true", help="run them anew and keep what came of it")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time, each on a core of its own")
    return parser.parse_args(argv)


def _measure(programs: Sequence[str], jobs: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if not 1 <= jobs <= len(cores):
        sys.exit(f"--jobs {jobs}: there are {len(cores)} cores")
    context = multiprocessing.get_context("fork")
    free = context.Queue()
    for core in cores[:jobs]:
        free.put(core if jobs > 1 else None)
    with ProcessPoolExecutor(jobs, context, _apart, (free,)) as pool:
        failed = [told for told in pool.map(_measured, programs) if told is not None]
    if failed:
        sys.exit("\n".join(failed))


def _apart(free: Queue[int | None]) -> None:
    """One of several that measure: on a core of its own, where another one's device is not its own."""
    core = free.get()
    if core is not None:
        os.sched_setaffinity(0, {core})
    os.environ["GPUDEBUG_LOCK_DIR"] = tempfile.mkdtemp(prefix="gpudebug-locks-")


def _measured(program: str) -> str | None:
    """Why there is no new recording of it: what failed in one program says nothing about the others."""
    folder = Path(tempfile.mkdtemp(prefix=f"gpudebug-zoo-{program}-"))
    try:
        found = measure(program, folder / program, lambda line: print(line, file=sys.stderr, flush=True))
        recording.write(found, renamed={str(folder): "/zoo", sys.executable: "python3", sys.prefix: "/venv"})
    except AssertionError as error:
        return f"{program}: {error}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


def _score(program: str) -> Score | None:
    recorded, truth = recording.read(program), zoo.truth(program)
    if recorded is None:
        return None
    with tempfile.TemporaryDirectory(prefix="gpudebug-zoo-") as folder:
        replay = Replay(recorded, Path(folder) / program)
        diagnosis = replay.diagnosis()
        order = orders.chosen(replay)
        costs = {
            "next": orders.cost(recorded, order),
            "random": orders.shuffled(recorded),
            "catalogue": orders.cost(recorded, orders.by_catalogue(replay)),
            "checklist": orders.cost(recorded, orders.by_checklist(replay)),
        }
    named = tuple((cause.id, cause.probability) for cause in diagnosis.causes)
    right = () if truth.healthy else truth.cause
    places = [place for place, (id, _) in enumerate(named, 1) if id in right]
    validated = tuple(n for n, t in recorded.trials.items() if t.status == orders.VALIDATED)
    return Score(
        program,
        right,
        named[:_SHOWN],
        min(places, default=None),
        diagnosis.abstains is not None,
        validated,
        truth.fix,
        costs,
        next(
            (gain for n in truth.fix if n in validated and (gain := _gain(recorded.trials[n])) is not None),
            None,
        ),
        max((c.ceiling_ratio for c in diagnosis.causes if c.id in right and c.ceiling_ratio), default=None),
    )


def _gain(trial: recording.Trial) -> tuple[float, float] | None:
    """What a trial's gate on throughput measured, and the lower end of its interval."""
    verdicts = (run.files["verdict.json"] for run in trial.runs if "verdict.json" in run.files)
    gates = (gate for verdict in verdicts for gate in verdict["gates"] if gate["name"] == "throughput")
    found = (_RATIO.match(str(gate["value"])) for gate in gates)
    return next(((float(one[1]), float(one[2])) for one in found if one), None)


def table(scores: Sequence[Score]) -> str:
    lines = [
        "| program | right cause | place | named first | at most | fix brought"
        " | fix after | random | catalogue | checklist |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for s in scores:
        first = ", ".join(f"{id} {100 * p:.0f}%" for id, p in s.named[:1])
        place = ("abstains" if s.abstains else "names one") if s.healthy else str(s.place or "none")
        costs = [_cost(s, name) for name in ORDERS]
        lines.append(
            f"| {s.program} | {', '.join(s.truth) or 'healthy'} | {place} | {first} | {_ceiling(s)}"
            f" | {' | '.join(costs)} |"
        )
    return "\n".join(lines)


def _ceiling(score: Score) -> str:
    if score.gain is None or score.ceiling is None:
        return " | "
    return f"{gained(score.ceiling)} | {score.gain[0]:.2f}x"


def _cost(score: Score, order: str) -> str:
    cost = score.costs[order]
    if score.healthy or not score.validated:
        return "no fix" if score.healthy else "never VALIDATED"
    return f"{cost.experiments:.1f}, {cost.device_s:.0f} s" + ("" if cost.found else ", not found")


def _shares(scores: Sequence[Score]) -> tuple[float, float]:
    ill = [s for s in scores if not s.healthy]
    top = [sum(1 for s in ill if s.place is not None and s.place <= most) / len(ill) for most in (1, 3)]
    return top[0], top[1]


def _borne_out(scores: Sequence[Score]) -> tuple[int, int]:
    known = [s.borne_out for s in scores if s.borne_out is not None]
    return len(known), sum(known)


def _means(scores: Sequence[Score], order: str) -> tuple[float, float]:
    """Experiments and device-seconds until VALIDATED, over programs that have a fix that was."""
    fixed = [s.costs[order] for s in scores if s.validated and not s.healthy]
    return sum(c.experiments for c in fixed) / len(fixed), sum(c.device_s for c in fixed) / len(fixed)


def summary(scores: Sequence[Score]) -> Iterator[str]:
    ill, healthy = [s for s in scores if not s.healthy], [s for s in scores if s.healthy]
    top_1, top_3 = _shares(scores)
    yield f"\nRight cause first: {top_1:.0%} of {len(ill)}, among the first three: {top_3:.0%}."
    known, kept = _borne_out(scores)
    yield f"Fixes that brought no more than the ceiling, within their interval: {kept} of {known}."
    for name in ORDERS:
        experiments, seconds = _means(scores, name)
        yield f"Until VALIDATED, {name}: {experiments:.2f} experiments, {seconds:.0f} device-seconds."
    false = sum(len(s.validated) for s in healthy)
    trials = sum(len(recorded.trials) for s in healthy if (recorded := recording.read(s.program)))
    named = sum(1 for s in healthy if not s.abstains)
    yield f"Healthy programs: {false} VALIDATED of {trials} trials; {named} of {len(healthy)} name a cause."
    for s in ill:
        if not set(s.validated) & set(s.fixes):
            yield f"{s.program}: its fix was not VALIDATED when it was measured."
        if others := sorted(set(s.validated) - set(s.fixes)):
            yield f"{s.program}: VALIDATED beside its fix: {', '.join(f'h{n}' for n in others)}."


def _missed(scores: Sequence[Score]) -> Iterator[str]:
    top_1, top_3 = _shares(scores)
    if top_1 < TOP_1:
        yield f"right cause first in {top_1:.0%}, wanted {TOP_1:.0%}"
    if top_3 < TOP_3:
        yield f"right cause among three in {top_3:.0%}, wanted {TOP_3:.0%}"
    known, kept = _borne_out(scores)
    if kept < BORNE_OUT * known:
        yield f"ceilings hold for {kept} of {known} fixes, wanted {BORNE_OUT:.0%}"
    ours, chance = _means(scores, "next")[0], _means(scores, "random")[0]
    if ours > EXPERIMENTS:
        yield f"{ours:.2f} experiments to the fix, wanted {EXPERIMENTS}"
    if ours > OF_RANDOM * chance:
        yield f"{ours:.2f} experiments are more than half of random order's {chance:.2f}"
    if any(s.validated for s in scores if s.healthy):
        yield "VALIDATED on a healthy program"


if __name__ == "__main__":
    sys.exit(main())
