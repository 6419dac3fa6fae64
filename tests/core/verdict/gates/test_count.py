"""Log, probe and command held together: what does not fit makes throughput unknown, and is named."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from tests.support.trials import gate, run, runs, verdict

from gpudebug.core.records import Conditions, Evidence, LossEvidence, ProbeEvidence
from gpudebug.core.statistics.loss_curve import curve
from gpudebug.core.verdict.gates.setting import TrialSetting
from gpudebug.core.words import Outcome, Result, Status, Trend

CODE = TrialSetting(code=True)


def probe(rate: float = 5.0, **more: Any) -> ProbeEvidence:
    known = {"samples_per_s": 16 * rate, "backwards_per_step": 1.0, "steps": round(45 * rate)}
    known["inputs_per_step"] = 3200.0
    facts = trained(5000, round(45 * rate))
    return ProbeEvidence(pid=1, steps_per_s=rate, **{**known, "facts": facts, **more})


def trained(weights: int, steps: int = 495) -> dict[str, Any]:
    return {"optimizers": [{"index": 0, "name": "SGD", "steps": steps, "weights": weights}]}


def side(*utilisations: float, log: float, inside: ProbeEvidence | None, **more: Any) -> list[Evidence]:
    steps = {"steps": round(45 * log), "steps_by": "arrival"}
    return runs(*utilisations, rate=log, probe=inside, **{**steps, **more})


BEFORE = side(28, 27, 29, 28, log=5.0, inside=probe())


def after(log: float = 11.0, optimizer: float | None = None, **more: Any) -> list[Evidence]:
    return side(61, 62, log=log, inside=probe(optimizer or log, **more))


def two(first: int, second: int) -> dict[str, Any]:
    return {"optimizers": [{"steps": first}, {"steps": second}]}


AGREES = {
    "code that is faster": (after(), CODE),
    "a flag that is faster": (after(), TrialSetting()),
    "a scaler that skips some steps": (after(11.0, 10.2), TrialSetting()),
    "accumulation by a flag": (
        after(11.0, 2.75, backwards_per_step=4.0),
        TrialSetting(knob="--gradient_accumulation_steps"),
    ),
    "more input": (after(inputs_per_step=6400.0), CODE),
    "a larger model": (after(facts=trained(6000)), CODE),
    "input that varies": (after(inputs_per_step=2700.0), CODE),
    "shorter sequences by a flag": (after(inputs_per_step=800.0), TrialSetting(knob="--pad_to_max_length")),
    "another number of environments": (after(11.0, 5.0), TrialSetting(knob="--num_envs")),
    "a flag without a loader that tells": (after(samples_per_s=None), TrialSetting()),
    "what a person confirmed": (
        after(22.0, 5.5),
        TrialSetting(code=True, confirmed="it counts micro-batches"),
    ),
}


@pytest.mark.parametrize(("trial", "setting"), AGREES.values(), ids=AGREES)
def test_what_agrees_or_is_explained_is_validated(trial: list[Evidence], setting: TrialSetting) -> None:
    found = verdict(BEFORE, trial, setting)
    assert found.status is Status.VALIDATED, found.why
    assert gate(found, "throughput").unexplained is None
    assert gate(found, "throughput").source == "both"


DIFFERS = {
    "four lines a step": (after(22.0, 5.5), CODE, "INVALID", "4 steps of the log for each step of the opt"),
    "three lines a step": (after(15.0, 5.0), CODE, "INVALID", "3 steps of the log"),
    "by a flag": (after(22.0, 5.5), TrialSetting(), "INCONCLUSIVE", "4 steps of the log"),
    "by a flag beside code": (
        after(22.0, 5.5),
        TrialSetting(code=True, knob="--batch_size"),
        "INVALID",
        "4 steps of the log",
    ),
    "accumulated in code": (
        after(22.0, 5.5, backwards_per_step=4.0, samples_per_s=16 * 22.0),
        CODE,
        "INCONCLUSIVE",
        "4 steps of the log",
    ),
    "fewer lines than steps": (after(11.0, 22.0), CODE, "INCONCLUSIVE", "0.5 steps of the log"),
    "steps on one batch": (after(samples_per_s=44.0), CODE, "INCONCLUSIVE", "4 samples for each step"),
    "steps on no batch": (after(samples_per_s=None), CODE, "INCONCLUSIVE", "no samples for each step"),
    "steps without gradients": (after(backwards_per_step=0.25), CODE, "INCONCLUSIVE", "0.25 backward passes"),
    "no gradients at all": (after(backwards_per_step=None), CODE, "INCONCLUSIVE", "no backward passes"),
    "half of each sequence": (
        after(inputs_per_step=1600.0),
        CODE,
        "INCONCLUSIVE",
        "1600 elements of input for each step of the optimizer in the trial, 3200 in the baseline",
    ),
    "smaller pictures by a flag": (
        after(inputs_per_step=800.0),
        TrialSetting(),
        "INCONCLUSIVE",
        "800 elements",
    ),
    "a smaller model": (
        after(facts=trained(4200)),
        CODE,
        "INCONCLUSIVE",
        "4200 trained weights for each step of the optimizer in the trial, 5000 in the baseline",
    ),
    "a smaller model behind a batch": (
        after(facts=trained(2000)),
        TrialSetting(code=True, knob="--batch_size"),
        "INCONCLUSIVE",
        "2000 trained weights",
    ),
    "a second optimizer": (
        after(facts=two(495, 124)),
        CODE,
        "INCONCLUSIVE",
        "1.25 steps of all optimizers",
    ),
    "a probe that is gone": (
        side(61, 62, log=11.0, inside=None),
        CODE,
        "INCONCLUSIVE",
        "counted the steps of the baseline, and not those of the trial",
    ),
    "a probe that went": (
        after(off="ValueError: no"),
        CODE,
        "INCONCLUSIVE",
        "counted the steps of the baseline, and not those of the trial",
    ),
    "a probe that a flag took away": (
        side(61, 62, log=11.0, inside=None),
        TrialSetting(),
        "INCONCLUSIVE",
        "counted the steps of the baseline, and not those of the trial",
    ),
    "beyond its plan": (
        after(),
        TrialSetting(beyond="run 0001-x printed 300 steps, and its command plans 75 steps"),
        "INCONCLUSIVE",
        "its command plans 75 steps",
    ),
}


@pytest.mark.parametrize(("trial", "setting", "status", "said"), DIFFERS.values(), ids=DIFFERS)
@pytest.mark.parametrize("metric", ["gpu_util", "steps_per_s"])
def test_what_does_not_fit_is_never_validated(
    trial: list[Evidence], setting: TrialSetting, status: str, said: str, metric: str
) -> None:
    ratios = {} if metric == "gpu_util" else {"success": 1.2, "failure": 1.05}
    found = verdict(BEFORE, trial, setting, metric=metric, **ratios)
    throughput = gate(found, "throughput")
    assert (found.status.value, throughput.result, throughput.value) == (status, Result.UNKNOWN, "unknown")
    assert said in (throughput.unexplained or "")
    assert '`gpudebug reopen 1 --because "WHY"`' in found.why


@pytest.mark.parametrize("setting", [TrialSetting(), CODE])
def test_a_trial_with_a_probe_proves_nothing_beside_a_baseline_without(setting: TrialSetting) -> None:
    found = verdict(side(28, 27, 29, 28, log=5.0, inside=None), after(), setting)
    assert found.status is Status.INCONCLUSIVE
    said = gate(found, "throughput").unexplained or ""
    assert said == "the probe counted the steps of the trial, and not those of the baseline"


def test_both_counts_are_named() -> None:
    found = gate(verdict(BEFORE, after(22.0, 5.5), CODE), "throughput")
    assert "(run 0001-x: 990 steps by the log, 248 by the optimizer)" in (found.unexplained or "")


def test_a_little_more_in_the_log_than_the_optimizer_made_is_no_gain_either() -> None:
    """Within what ratios are known to, the smaller of both counts decides."""
    trial = side(40, 41, 40, 41, log=6.1, inside=probe(5.0))
    found = verdict(BEFORE, trial, CODE, success=10, failure=5)
    assert found.status is Status.INCONCLUSIVE
    assert (gate(found, "throughput").note or "").endswith("by the optimizer's steps")
    assert gate(found, "throughput").value != "unknown"
    found = verdict(BEFORE, trial, CODE, metric="steps_per_s", success=1.15, failure=1.05)
    assert found.status is Status.INCONCLUSIVE
    worked = verdict(BEFORE, side(61, 62, log=11.0, inside=probe(9.0)), CODE)
    assert gate(worked, "work_conserved").result is Result.UNKNOWN


@pytest.mark.parametrize("throughput", ["any", "not_worse", "better"])
def test_whatever_is_wished_counts_that_do_not_fit_are_unknown(throughput: str) -> None:
    found = verdict(BEFORE, after(22.0, 5.5), TrialSetting(), throughput=throughput)
    assert found.status is Status.INCONCLUSIVE


class TestWithoutProbe:
    BEFORE = runs(28, 27, 29, 28, rate=5.0)

    def test_it_is_the_programs_own_word(self) -> None:
        found = verdict(self.BEFORE, runs(61, 62, rate=11.0), CODE)
        assert (found.status, gate(found, "throughput").source) == (Status.VALIDATED, "log")
        assert gate(found, "throughput").note == "by the program's own word"

    def test_code_that_touches_what_counts_proves_nothing(self) -> None:
        setting = TrialSetting(code=True, touches="train.py: print(step)")
        found = verdict(self.BEFORE, runs(61, 62, rate=11.0), setting)
        assert found.status is Status.INCONCLUSIVE
        assert "(train.py: print(step))" in found.why

    def test_a_probe_that_does_not_tell_what_is_compared_bears_nothing_out(self) -> None:
        """Samples by a batch's size that is printed: the optimizer's steps say nothing of it."""
        printed = {"samples_by": "batch", "samples_per_s": 80.0, "batch_size": 16.0}
        before = side(28, 27, 29, 28, log=5.0, inside=probe(samples_per_s=None), **printed)
        more = {"samples_by": "batch", "samples_per_s": 800.0, "batch_size": 160.0}
        trial = side(61, 62, log=5.0, inside=probe(samples_per_s=None), **more)
        setting = TrialSetting(code=True, touches="train.py: print('batch size: 160')")
        assert verdict(before, trial, setting).status is not Status.VALIDATED


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


def side_of_harmless(
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
    return side_of_harmless(28, 27, 29, 28, rate=5.0, **known)


def after_of_harmless(**more: Any) -> list[Evidence]:
    return side_of_harmless(61, 62, rate=11.0, **{"loss": losses(), **more})


OTHER = losses(other=0.3)
# Two frames are loaded, and one is now: what the runs show, by what is set, and why it is the same work.
FRAMES: dict[str, tuple[list[Evidence], list[Evidence], TrialSetting, str]] = {
    "the same losses": (
        before(reached=None),
        after_of_harmless(reached=None),
        CODE,
        "both sides print the same losses",
    ),
    "the same elements in the first modules": (
        before(loss=losses(begin=False)),
        after_of_harmless(loss=losses(begin=False)),
        CODE,
        "as many elements reach the parameters as before",
    ),
    "no seed, and the same elements": (
        [*before()[:2], *before(loss=losses(other=0.2))[2:]],
        after_of_harmless(loss=OTHER),
        CODE,
        "as many elements reach the parameters as before",
    ),
    "a model that resizes what it gets": (
        before(reached=32000.0, loss=losses(begin=False)),
        after_of_harmless(reached=32100.0),
        CODE,
        "as many elements reach the parameters as before",
    ),
    "its cause is named, the model is compiled": (
        before(reached=None),
        after_of_harmless(reached=None, loss=OTHER),
        NAMED,
        "dl-redundant-frames is about input that is never read, and the losses agree",
    ),
    "weights that get no gradient": (
        before(weights=5000, inputs=ONE_FRAME),
        after_of_harmless(weights=4000),
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
        after_of_harmless(inputs=384.0, reached=384.0, loss=OTHER),
        CODE,
    ),
    "a smaller picture": (before(), after_of_harmless(inputs=HALF, reached=HALF, loss=OTHER), CODE),
    "a smaller picture that the model blows up": (before(), after_of_harmless(inputs=HALF, loss=OTHER), CODE),
    "half a clip, printed as whole": (
        before(reached=TWO_FRAMES, printed={"frames": "2"}),
        after_of_harmless(reached=ONE_FRAME, loss=OTHER, printed={"frames": "2"}),
        CODE,
    ),
    "half a clip under the name of a fix": (before(reached=TWO_FRAMES), after_of_harmless(loss=OTHER), NAMED),
    "half a clip in compiled code that learns otherwise": (
        before(reached=None),
        after_of_harmless(reached=None, loss=losses(other=0.3, above=0.6)),
        NAMED,
    ),
    "half a clip in compiled code that happens to learn better": (
        before(reached=None),
        after_of_harmless(reached=None, loss=losses(other=0.3, above=-0.6)),
        NAMED,
    ),
    "half a clip in code of which a part is compiled": (
        before(reached=48.0),
        after_of_harmless(reached=48.0, loss=OTHER),
        CODE,
    ),
    "another frame, where the losses are always the same": (before(), after_of_harmless(loss=OTHER), CODE),
    "losses that the change prints itself": (
        before(reached=None),
        after_of_harmless(reached=None),
        TrialSetting(code=True, prints=True),
    ),
    "the same, under the name of a fix": (
        before(reached=None),
        after_of_harmless(reached=None),
        TrialSetting(code=True, prints=True, redundant="dl-redundant-frames"),
    ),
    "fewer weights": (before(inputs=ONE_FRAME), after_of_harmless(weights=4000, loss=OTHER), CODE),
    "fewer weights under the name of a fix": (
        before(inputs=ONE_FRAME),
        after_of_harmless(weights=4000, loss=OTHER),
        NAMED,
    ),
    "fewer weights before the warm-up is over": (
        before(inputs=ONE_FRAME, loss=FLAT),
        after_of_harmless(weights=4000, loss=FLAT),
        CODE,
    ),
    "nothing known but a cause": (
        before(reached=None, loss=LossEvidence(name="loss", trend=Trend.CONVERGING, points=200)),
        after_of_harmless(reached=None, loss=LossEvidence(name="loss", trend=Trend.CONVERGING, points=200)),
        NAMED,
    ),
    "no evaluation": (
        before(occasions={"evaluation": 11}),
        after_of_harmless(occasions={"evaluation": 0}),
        CODE,
    ),
    "steps that were not made": (before(), after_of_harmless(log=22.0), CODE),
}


@pytest.mark.parametrize(("old", "new", "setting"), CHEATS.values(), ids=CHEATS)
def test_a_cheat_is_never_validated(old: list[Evidence], new: list[Evidence], setting: TrialSetting) -> None:
    found = verdict(old, new, setting)
    assert found.status is not Status.VALIDATED
    # By the gate that is for it, and not for want of anything else.
    rest = [g.name for g in found.gates if g.result is Result.UNKNOWN and g.name != "throughput"]
    assert (gate(found, "throughput").unexplained or found.hollow) and not rest


def test_a_doubt_names_what_shrank_and_who_can_explain_it() -> None:
    found = verdict(before(reached=TWO_FRAMES), after_of_harmless(loss=OTHER), CODE)
    assert (found.status, gate(found, "throughput").result) == (Status.INCONCLUSIVE, Result.UNKNOWN)
    assert "38400 elements of input" in found.why and "reopen 1 --because" in found.why


PLANNED = TrialSetting(planned_steps=400)
ENDED = {"outcome": Outcome.ENDED_BY_PLAN, "exit_status": None}


def side_of_startup(
    level: float, rate: float, first: float | None, *, times: int = 4, **more: Any
) -> list[Evidence]:
    """Runs that gpudebug ended; `first` is when their first step ended, None if no probe told."""
    probe = ProbeEvidence(pid=1, steps=200, steps_per_s=rate, first_step_s=first) if first else None
    return [run(level + i / 2, rate, probe=probe, run=f"000{i}-x", **{**ENDED, **more}) for i in range(times)]


# 400 steps in 80 s, and in 36 s: 44 s are saved.
BEFORE_of_startup = side_of_startup(30, 5.0, 4.0)


@pytest.mark.parametrize(
    ("first", "setting", "status"),
    [
        pytest.param(4.5, PLANNED, Status.VALIDATED, id="as before"),
        pytest.param(20.0, PLANNED, Status.VALIDATED, id="a third of it"),
        pytest.param(48.0, PLANNED, Status.INCONCLUSIVE, id="all of it"),
        pytest.param(30.0, PLANNED, Status.INCONCLUSIVE, id="more than half of it"),
        pytest.param(
            48.0, TrialSetting(planned_steps=40_000), Status.VALIDATED, id="of a real training little"
        ),
        pytest.param(48.0, TrialSetting(), Status.VALIDATED, id="of a length that nobody knows"),
        pytest.param(
            48.0,
            TrialSetting(planned_steps=400, confirmed="it compiles"),
            Status.VALIDATED,
            id="a person knows",
        ),
    ],
)
@pytest.mark.parametrize("metric", ["gpu_util", "steps_per_s"])
def test_a_wait_that_is_moved_before_the_first_step_is_none_saved(
    first: float, setting: TrialSetting, status: Status, metric: str
) -> None:
    terms = {} if metric == "gpu_util" else {"success": 1.2, "failure": 1.05}
    found = verdict(
        BEFORE_of_startup, side_of_startup(61, 11.0, first, times=2), setting, metric=metric, **terms
    )
    assert found.status is status, found.why
    if status is Status.INCONCLUSIVE:
        assert "s longer, and the steps of the planned length save 44 s" in found.why
        assert gate(found, "throughput").result is Result.UNKNOWN


def test_without_a_probe_nobody_knows_when_start_up_ended() -> None:
    after = side_of_startup(61, 11.0, None, times=2)
    assert "start-up" not in (gate(verdict(BEFORE_of_startup, after, PLANNED), "throughput").note or "")


def test_a_host_that_was_busy_makes_start_up_long_and_the_change_does_not() -> None:
    busy = Conditions(foreign_procs=0, foreign_share=0.0, foreign_cpu=50.0, cpu_stolen=85.0, cpu_cores=0.15)
    after = side_of_startup(61, 11.0, 28.0, times=2, conditions=busy)
    assert "start-up" not in (gate(verdict(BEFORE_of_startup, after, PLANNED), "throughput").note or "")
    quiet = side_of_startup(61, 11.0, 28.0, times=2)
    assert "start-up" in (gate(verdict(BEFORE_of_startup, quiet, PLANNED), "throughput").note or "")


def test_runs_that_completed_are_as_long_as_they_were() -> None:
    before = side_of_startup(30, 5.0, 4.0, outcome=Outcome.COMPLETED, exit_status=0, steps=400)
    after = side_of_startup(61, 11.0, 48.0, times=2, outcome=Outcome.COMPLETED, exit_status=0, steps=400)
    assert "start-up takes 44 s longer" in (gate(verdict(before, after), "throughput").note or "")
