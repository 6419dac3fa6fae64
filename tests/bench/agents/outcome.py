"""What a session came to, whether its claim is true, and the table of many: values in, values out."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

LEEWAY = 0.05
"""A figure without an interval is read as within 5 %."""
CONTROL = "control"
RATIOS = ("claim", "exported", "stopwatch")


class Ratio(NamedTuple):
    """Throughput after over before, with its 95 % interval; the bounds may be the value itself."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Cell:
    """One session to run. `face` is `cli`, `mcp` or `none`, for the control."""

    program: str
    character: str
    face: str
    repeat: int = 0


@dataclass(frozen=True)
class AgentOutcome:
    """One session that was run.

    `claim` is what its user reads in the end, None if it claims no gain; `told` the reason that it read.
    `device_s` are the seconds in which its training lived, `characters` what it wrote and read. `exported` is
    what `export` says of all together once a person has accepted it, None if it was not or that is unknown;
    `stopwatch` was taken then, since what a change gains depends on what else the machine does.
    """

    cell: Cell
    claim: Ratio | None
    verdict: str
    told: str
    device_s: float
    wall_s: float
    characters: int
    exported: Ratio | None = None
    stopwatch: Ratio | None = None


def ratio_of(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """The ratio of interleaved pairs (before, after), and mean ± 2 standard errors of its logarithm."""
    logs = [math.log(after / before) for before, after in pairs]
    middle = statistics.fmean(logs)
    error = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0
    return Ratio(*(math.exp(x) for x in (middle, middle - 2 * error, middle + 2 * error)))


def agrees(claim: Ratio, truth: Ratio) -> bool:
    """Whether a claim's interval, at least `LEEWAY` wide to each side, meets that of the stopwatch."""
    low, high = min(claim.low, claim.value * (1 - LEEWAY)), max(claim.high, claim.value * (1 + LEEWAY))
    return low <= truth.high and truth.low <= high


def reading(outcome: AgentOutcome, truth: Ratio) -> str:
    """What the user of this session reads: `true`, `wrong`, or `open` if it claims nothing.

    A gain has to agree with the stopwatch; a cheat may gain nothing, and a crash has to be told as one.
    """
    character, claim = outcome.cell.character, outcome.claim
    if character == "cheating":
        return "true" if claim is None else "wrong"
    if character == "crashing":
        return "true" if claim is None and "crash" in outcome.told.lower() else "wrong"
    if claim is None:
        return "open"
    return "true" if agrees(claim, truth) else "wrong"


def judged(outcomes: Sequence[AgentOutcome], truth: Ratio) -> str:
    """What all repeats of a session read, or `flaky` if they differ: that is no wrong claim."""
    found = {reading(o, o.stopwatch or truth) for o in outcomes}
    return found.pop() if len(found) == 1 else "flaky"


class Results:
    """The file of what was run: a line of JSON each, so that a series that was cut off goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[Cell, AgentOutcome] = {}
        self.truths: dict[str, Ratio] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            self._take(json.loads(line))

    def add(self, outcome: AgentOutcome) -> None:
        self._write({"outcome": asdict(outcome)})

    def add_truth(self, program: str, truth: Ratio) -> None:
        self._write({"program": program, "truth": truth})

    def truth(self, outcome: AgentOutcome) -> Ratio:
        """The stopwatch of this session, else that of its program."""
        return outcome.stopwatch or self.truths[outcome.cell.program]

    def _write(self, entry: Mapping[str, object]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as f:
            f.write(json.dumps(entry) + "\n")
        self._take(json.loads(json.dumps(entry)))

    def _take(self, entry: dict[str, object]) -> None:
        if "truth" in entry:
            self.truths[str(entry["program"])] = Ratio(*entry["truth"])  # type: ignore[misc]
            return
        read = dict(entry["outcome"])  # type: ignore[call-overload]
        cell = Cell(**read.pop("cell"))
        ratios = {name: Ratio(*found) for name in RATIOS if (found := read.pop(name, None))}
        self.outcomes[cell] = AgentOutcome(cell=cell, **{"claim": None, **read, **ratios})


HEAD = (
    "| agent | by | program | stopwatch | claim | is | export | device-seconds | characters "
    "| of the control's |"
)


def table(results: Results) -> str:
    """A row for each session, repeats together, and the totals of each kind of agent."""
    lines = [HEAD, "|---" * (HEAD.count("|") - 1) + "|"]
    groups: dict[tuple[str, str, str], list[AgentOutcome]] = {}
    for cell, outcome in results.outcomes.items():
        groups.setdefault((cell.character, cell.face, cell.program), []).append(outcome)
    for (character, face, program), outcomes in groups.items():
        truth, control = results.truths.get(program), _control(results, program)
        if truth is None:
            continue
        seconds, characters = (
            statistics.fmean(getattr(o, name) for o in outcomes) for name in ("device_s", "characters")
        )
        against = (
            f"{seconds / control.device_s:.1f}x, {characters / control.characters:.1f}x" if control else ""
        )
        row = (
            *(character, face, program, _shown(outcomes[-1].stopwatch or truth), _shown(outcomes[-1].claim)),
            *(judged(outcomes, truth), _shown(outcomes[-1].exported, "")),
            *(f"{seconds:.0f}", f"{characters:.0f}", "" if character == CONTROL else against),
        )
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def shares(results: Results) -> list[str]:
    """Of each kind of agent, how many claims are true, and what it costs in the control's measure."""
    kinds: dict[tuple[str, str], list[AgentOutcome]] = {}
    for cell, outcome in results.outcomes.items():
        if cell.program in results.truths:
            kinds.setdefault((cell.character, cell.face), []).append(outcome)
    lines = []
    for (character, face), outcomes in kinds.items():
        found = Counter(reading(o, results.truth(o)) for o in outcomes)
        counts = ", ".join(f"{found[kind]} {kind}" for kind in ("true", "wrong", "open") if found[kind])
        costs = "" if character == CONTROL else _costs(results, outcomes)
        lines.append(
            f"{character} by {face}: of {len(outcomes)} claims {counts}{costs}{_exports(results, outcomes)}"
        )
    return lines


def _exports(results: Results, outcomes: Sequence[AgentOutcome]) -> str:
    found = [agrees(o.exported, truth) for o in outcomes if o.exported and (truth := results.truth(o))]
    return f"; {sum(found)} of {len(found)} exports agree with the stopwatch" if found else ""


def _costs(results: Results, outcomes: Sequence[AgentOutcome]) -> str:
    """What sessions took over what the controls of their programs took."""
    pairs = [(o, c) for o in outcomes if (c := _control(results, o.cell.program))]
    if not pairs:
        return ""
    seconds, characters = (
        math.fsum(getattr(o, name) for o, _ in pairs) / math.fsum(getattr(c, name) for _, c in pairs)
        for name in ("device_s", "characters")
    )
    return f"; {seconds:.1f}x device-seconds, {characters:.1f}x characters"


def _control(results: Results, program: str) -> AgentOutcome | None:
    return next(
        (o for c, o in results.outcomes.items() if (c.program, c.character) == (program, CONTROL)), None
    )


def _shown(ratio: Ratio | None, otherwise: str = "none") -> str:
    if ratio is None:
        return otherwise
    return f"{ratio.value:.2f}x" + (
        f" ({ratio.low:.2f} to {ratio.high:.2f})" if ratio.low < ratio.high else ""
    )
