"""Fewer elements a step, or fewer weights: the same work where nothing of it can change the result, a doubt
elsewhere. Each cheat that only looks like a fix is here, as evidence."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from tests.support.trials import gate, run, verdict

from gpudebug.core.records import Evidence, LossEvidence, ProbeEvidence
from gpudebug.core.statistics.loss_curve import curve
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.words import Result, Status, Trend

CODE = TrialSetting(code=True)
NAMED = TrialSetting(code=True, redundant="dl-redundant-frames")
BATCHES = random.Random(3)
NOISE = [BATCHES.gauss(0, 0.05) for _ in range(200)]
TWO_FRAMES, ONE_FRAME = 76800.0, 38400.0


def losses(*, other: float = 0.0, above: float = 0.0, falls: float = 1.5, begin: bool = True) -> LossEvidence:
    """A training's losses; `other` is how far another input moves each from that of the same batch."""
    points = [
        (n, round(0.5 + above + falls * math.exp(-n / 80) + NOISE[n] + other * NOISE[-n - 1], 4))
        for n in range(200)
    ]
    begun = tuple(points[:30]) if begin else ()
    return LossEvidence(name="loss", trend=Trend.CONVERGING, points=200, curve=curve(points), begin=begun)


def side(
    *utilisations: float,
    rate: float,
    inputs: float = ONE_FRAME,
    given: float | None = None,
    reached: float | None = ONE_FRAME,
    weights: int = 5000,
    loss: LossEvidence,
    log: float | None = None,
    **more: Any,
) -> list[Evidence]:
    """Runs of which the probe counted what a step took in, and what of it reached the model's parameters."""
    steps = round(45 * rate)
    facts: dict[str, Any] = {"optimizers": [{"index": 0, "steps": steps, "weights": weights}]}
    if reached is not None:
        facts["input"] = {"looks": 5, "given": given or inputs, "reached": reached}
    inside = ProbeEvidence(
        pid=1,
        steps=steps,
        steps_per_s=rate,
        samples_per_s=16 * rate,
        backwards_per_step=1.0,
        inputs_per_step=inputs,
        facts=facts,
    )
    known = {"steps": round(45 * (log or rate)), "steps_by": "arrival", "probe": inside, "loss": loss}
    return [run(u, log or rate, **{**known, **more}) for u in utilisations]


def before(**more: Any) -> list[Evidence]:
    known = {"inputs": TWO_FRAMES, "loss": losses(), **more}
    return side(28, 27, 29, 28, rate=5.0, **known)


def after(**more: Any) -> list[Evidence]:
    return side(61, 62, rate=11.0, **{"loss": losses(), **more})


OTHER = losses(other=0.3)
# Two frames are loaded, and one is now: what the runs show, by what is set, and why it is the same work.
FRAMES: dict[str, tuple[list[Evidence], list[Evidence], TrialSetting, str]] = {
    "the same losses": (
        before(reached=None),
        after(reached=None),
        CODE,
        "both sides print the same losses",
    ),
    "the same elements in the first modules": (
        before(loss=losses(begin=False)),
        after(loss=losses(begin=False)),
        CODE,
        "as many elements reach the parameters as before",
    ),
    "no seed, and the same elements": (
        [*before()[:2], *before(loss=losses(other=0.2))[2:]],
        after(loss=OTHER),
        CODE,
        "as many elements reach the parameters as before",
    ),
    "a model that resizes what it gets": (
        before(reached=32000.0, loss=losses(begin=False)),
        after(reached=32100.0),
        CODE,
        "as many elements reach the parameters as before",
    ),
    "its cause is named, the model is compiled": (
        before(reached=None),
        after(reached=None, loss=OTHER),
        NAMED,
        "dl-redundant-frames is about input that is never read, and the losses agree",
    ),
    "weights that get no gradient": (
        before(weights=5000, inputs=ONE_FRAME),
        after(weights=4000),
        CODE,
        "4000 trained weights for each step of the optimizer in the trial, 5000 in the baseline, but both",
    ),
}


@pytest.mark.parametrize(("old", "new", "setting", "why"), FRAMES.values(), ids=FRAMES)
def test_less_that_changes_nothing_is_validated_and_says_why(
    old: list[Evidence], new: list[Evidence], setting: TrialSetting, why: str
) -> None:
    found = verdict(old, new, setting)
    throughput = gate(found, "throughput")
    assert found.status is Status.VALIDATED, found.why
    assert throughput.unexplained is None and why in (throughput.note or "")


HALF = ONE_FRAME / 2
FLAT = losses(falls=0.0)
CHEATS: dict[str, tuple[list[Evidence], list[Evidence], TrialSetting]] = {
    "a shorter sequence": (
        before(inputs=768.0, reached=768.0),
        after(inputs=384.0, reached=384.0, loss=OTHER),
        CODE,
    ),
    "a smaller picture": (before(), after(inputs=HALF, reached=HALF, loss=OTHER), CODE),
    "a smaller picture that the model blows up": (before(), after(inputs=HALF, loss=OTHER), CODE),
    "half a clip, printed as whole": (
        before(reached=TWO_FRAMES, printed={"frames": "2"}),
        after(reached=ONE_FRAME, loss=OTHER, printed={"frames": "2"}),
        CODE,
    ),
    "half a clip under the name of a fix": (before(reached=TWO_FRAMES), after(loss=OTHER), NAMED),
    "half a clip in compiled code that learns otherwise": (
        before(reached=None),
        after(reached=None, loss=losses(other=0.3, above=0.6)),
        NAMED,
    ),
    "half a clip in compiled code that happens to learn better": (
        before(reached=None),
        after(reached=None, loss=losses(other=0.3, above=-0.6)),
        NAMED,
    ),
    "half a clip in code of which a part is compiled": (
        before(reached=48.0),
        after(reached=48.0, loss=OTHER),
        CODE,
    ),
    "another frame, where the losses are always the same": (before(), after(loss=OTHER), CODE),
    "losses that the change prints itself": (
        before(reached=None),
        after(reached=None),
        TrialSetting(code=True, prints=True),
    ),
    "the same, under the name of a fix": (
        before(reached=None),
        after(reached=None),
        TrialSetting(code=True, prints=True, redundant="dl-redundant-frames"),
    ),
    "fewer weights": (before(inputs=ONE_FRAME), after(weights=4000, loss=OTHER), CODE),
    "fewer weights under the name of a fix": (
        before(inputs=ONE_FRAME),
        after(weights=4000, loss=OTHER),
        NAMED,
    ),
    "fewer weights before the warm-up is over": (
        before(inputs=ONE_FRAME, loss=FLAT),
        after(weights=4000, loss=FLAT),
        CODE,
    ),
    "nothing known but a cause": (
        before(reached=None, loss=LossEvidence(name="loss", trend=Trend.CONVERGING, points=200)),
        after(reached=None, loss=LossEvidence(name="loss", trend=Trend.CONVERGING, points=200)),
        NAMED,
    ),
    "no evaluation": (
        before(occasions={"evaluation": 11}),
        after(occasions={"evaluation": 0}),
        CODE,
    ),
    "steps that were not made": (before(), after(log=22.0), CODE),
}


@pytest.mark.parametrize(("old", "new", "setting"), CHEATS.values(), ids=CHEATS)
def test_a_cheat_is_never_validated(old: list[Evidence], new: list[Evidence], setting: TrialSetting) -> None:
    found = verdict(old, new, setting)
    assert found.status is not Status.VALIDATED
    # By the gate that is for it, and not for want of anything else.
    rest = [g.name for g in found.gates if g.result is Result.UNKNOWN and g.name != "throughput"]
    assert (gate(found, "throughput").unexplained or found.hollow) and not rest


def test_a_doubt_names_what_shrank_and_who_can_explain_it() -> None:
    found = verdict(before(reached=TWO_FRAMES), after(loss=OTHER), CODE)
    assert (found.status, gate(found, "throughput").result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert "38400 elements of input" in found.why and "reopen 1 --because" in found.why
