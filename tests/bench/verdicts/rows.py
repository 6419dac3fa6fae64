"""What is simulated, in groups that keep the same bounds. Rates in percent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.bench.verdicts.campaign import Plan
from tests.bench.verdicts.host import Scenario
from tests.bench.verdicts.traces import Program

from gpudebug.core.words import Status

Bounds = Mapping[str, float]
"""By column; of VALIDATED at 20 pp and more the least, of everything else the most."""
SECONDS = "device-s"
AT_LEAST = frozenset({"20", "25", "30"})


@dataclass(frozen=True)
class Group:
    """`must` fails the bench where it is missed, `goal` is what is worked towards.

    Each row has so many tenths of the trials that a bound of 0.05 % asks for.
    """

    title: str
    plans: tuple[Plan, ...]
    must: Bounds = field(default_factory=dict)
    goal: Bounds = field(default_factory=dict)
    tenths: int = 5


def _plans(scenarios: Mapping[str, Scenario]) -> tuple[Plan, ...]:
    return tuple(Plan(title, scenario) for title, scenario in scenarios.items())


def _quiet(*noises: float) -> tuple[Plan, ...]:
    return _plans({f"{m}, noise {sd:g}": Scenario(Program(m), sd) for sd in noises for m in ("ar", "steps")})


def _neighbours(*, recorded: bool) -> tuple[Plan, ...]:
    said = ", share recorded" if recorded else ""
    found = {
        f"neighbour of 8 pp, stays {stays} run{'s' if stays > 1 else ''}": Scenario(stays=max(stays, 1.01))
        for stays in (1, 2, 3)
    }
    for seconds in (43, 72):
        program = Program(training=seconds - Program.startup)
        found[f"a core for 40 of 90 s, 15 pp, runs of {seconds} s"] = Scenario(program, periodic=15.0)
    return _plans({title + said: replace(one, recorded=recorded) for title, one in found.items()})


_QUIET = {"0": 0.05, "10": 2.0, "15": 35.0, "20": 55.0, "25": 95.0, "30": 99.5, "R25": 0.5}
_QUIET_GOAL = {"10": 1.0, "25": 99.0, "R25": 0.1}
_CONTINUED = frozenset({Status.INCONCLUSIVE})
_ANEW = frozenset({Status.INCONCLUSIVE, Status.REJECTED})

GROUPS = (
    Group("quiet", _quiet(2.0, 5.0), _QUIET, _QUIET_GOAL, tenths=10),
    Group(
        "quiet at 3.5",
        _quiet(3.5),
        {**_QUIET, SECONDS: 200.0},
        {**_QUIET_GOAL, SECONDS: 150.0},
        tenths=10,
    ),
    Group(
        "drift",
        _plans({f"drift of {pp:+g} pp a run": Scenario(drift=pp) for pp in (0.6, -0.6)}),
        {"10": 2.5, "25": 95.0, "R25": 0.7, SECONDS: 240.0},
        {SECONDS: 200.0},
    ),
    Group(
        "a step in the campaign",
        _plans({f"a step of {pp:+g} pp in the campaign": Scenario(step=pp) for pp in (12.0, -12.0)}),
        {"10": 3.0, "25": 92.0, "R25": 1.0},
    ),
    Group(
        "a step inside a trial",
        _plans({f"a step of {pp:+g} pp inside the trial": Scenario(inside=pp) for pp in (12.0, -12.0)}),
        {"10": 7.0, "25": 78.0, "R25": 9.0},
        {"25": 90.0, "R25": 3.0},
    ),
    Group("neighbours", _neighbours(recorded=False), {"10": 3.5, "25": 92.0, "R25": 1.0}),
    Group("neighbours, share recorded", _neighbours(recorded=True), {"10": 2.0, "25": 96.0, "R25": 0.3}),
    Group(
        "a trial leaves something behind",
        _plans({f"runs after the trial's are {pp:g} pp low": Scenario(poison=-pp) for pp in (10.0, 20.0)}),
        {"0": 0.1},
        {"10": 20.0},
    ),
    Group(
        "short runs",
        _plans(
            {
                "runs of 20 s": Scenario(Program(training=20.0)),
                "fixed steps": Scenario(Program(fixed_steps=True)),
            }
        ),
        {"10": 2.5, "25": 90.0, "R25": 1.0},
        {"25": 95.0},
    ),
    Group(
        "beside these",
        (
            Plan("one run in 20 is 15 pp low", Scenario(outliers=True)),
            Plan("a REJECTED is final", Scenario(), final=True),
            Plan("the same, a step of -12 pp", Scenario(step=-12.0), final=True),
            Plan("--more, up to 5 times", Scenario(), tries=6, again=_CONTINUED),
            Plan("the same, noise 5", Scenario(sd=5.0), tries=6, again=_CONTINUED),
            Plan("one change proposed 5 times", Scenario(), tries=5, again=_ANEW),
            Plan("the same change, noise 5", Scenario(sd=5.0), tries=5, again=_ANEW),
        ),
    ),
)
