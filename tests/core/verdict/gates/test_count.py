"""Log, probe and command held together: what does not fit makes throughput unknown, and is named."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.trials import gate, runs, verdict

from gpudebug.core.records import Evidence, ProbeEvidence
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.words import Result, Status

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
