from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.diagnoses import cause, facts, stacks
from tests.support.expressions import found_in, texts

from gpudebug.core.catalogue import KINDS
from gpudebug.core.catalogue.model import Cause, Condition, Share, Term
from gpudebug.core.catalogue.signals import SIGNALS
from gpudebug.core.diagnosis import model
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.odds import (
    CAP,
    equal,
    figure,
    holds,
    largest,
    lowered,
    number,
    prior,
    score,
    sentence_of,
    similar,
    truth,
    value,
)
from gpudebug.core.records import SectionFigures, Stacks
from gpudebug.core.trainlog.endings import _CLASSES
from gpudebug.engine.run import adapters, catalogue

WAIT = {"signal": "data_wait_share", "above": 0.2, "weight": 8.0}
NONE = {"signal": "loader_workers", "equals": 0, "weight": 3.0, "otherwise": 0.5}
EXPOSED = [{"signal": "data_wait_share"}]


def odds(known: Any, **fields: Any) -> float:
    return score(cause(**fields), known).odds


def test_weights_multiply_the_prior_and_what_is_unknown_counts_one() -> None:
    signature = [WAIT, NONE]
    base = odds(facts(gc_share=0.0), signature=signature)
    assert odds(facts(data_wait_share=0.3), signature=signature) == pytest.approx(base * 8 / 0.1)
    assert odds(facts(data_wait_share=0.3, loader_workers=2), signature=signature) == pytest.approx(
        base * 4 / 0.1
    )
    assert odds(facts(data_wait_share=0.3, loader_workers=0), signature=signature) == pytest.approx(
        base * 24 / 0.1
    )


def test_priors_are_those_of_the_kind() -> None:
    one = cause(prior={"vision": 4, "default": 2})
    assert [prior(one, kind) for kind in ("vision", "llm")] == [4, 2]
    assert prior(cause(), "rl") == 1


@given(st.lists(st.floats(2, 100), max_size=6), st.lists(st.floats(0.001, 0.99), max_size=6))
def test_signs_together_stay_within_the_cap(high: list[float], low: list[float]) -> None:
    signs = [{"signal": "gc_share", "above": 0.0, "weight": w} for w in (*high, *low)]
    found = score(cause(signature=signs), facts(gc_share=0.5)).odds
    bare = score(cause(signature=[]), facts()).odds * (10 if high else 1)
    assert bare / CAP * 0.999 <= found <= bare * CAP * 1.001


def test_a_requirement_rules_out_only_where_it_is_known_to_fail() -> None:
    requires = [{"signal": "loader_workers", "below": 1}]
    assert score(cause(requires=requires), facts(loader_workers=2)).ruled_out
    assert not score(cause(requires=requires), facts(loader_workers=0)).ruled_out
    assert not score(cause(requires=requires), facts()).ruled_out


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_exposed_time_never_lowers_a_cause(one: float, other: float) -> None:
    less, more = sorted((one, other))
    fields: dict[str, Any] = {"exposed": EXPOSED, "signature": [NONE]}
    found = [odds(facts(data_wait_share=v, loader_workers=0), **fields) for v in (less, more)]
    assert found[0] <= found[1]


def test_a_small_share_is_a_tenth_and_an_unknown_one_lies_between() -> None:
    at = {v: odds(facts(data_wait_share=v), exposed=EXPOSED) for v in (0.04, 0.06, 0.6)}
    unknown = odds(facts(), exposed=EXPOSED)
    assert at[0.6] == pytest.approx(10 * at[0.06])
    assert at[0.04] < at[0.06] < unknown < at[0.6]


REFERENCE = facts(data_wait_share=0.3, loader_workers=4)


@pytest.mark.parametrize(
    ("reference", "factor"),
    [
        (None, 24.0),
        (facts(data_wait_share=0.02, loader_workers=4), 48.0),
        (facts(data_wait_share=0.35, loader_workers=0), 0.1),
        (facts(data_wait_share=0.9, loader_workers=0), 8.0),
        (facts(data_wait_share=0.35), 3.0),
        (facts(), 24.0),
    ],
    ids=["none", "has neither", "has both", "waits far more", "waits as much", "tells nothing"],
)
def test_what_the_good_reference_shares_explains_nothing(reference: Any, factor: float) -> None:
    known = facts(data_wait_share=0.4, loader_workers=0, reference=reference)
    bare = odds(known, signature=[]) / 0.1
    assert odds(known, signature=[WAIT, NONE]) == pytest.approx(bare * factor)


@pytest.mark.parametrize(
    ("known", "fields", "factor"),
    [
        (facts(gpu_util=95, device_stand_in=False), {}, 0.05),
        (facts(gpu_util=95, device_stand_in=True), {}, 1),
        (facts(gpu_util=95), {}, 1),
        (facts(gpu_util=85, device_stand_in=False), {}, 1),
        (facts(gpu_util=95, busy_waiting_share=0.2, device_stand_in=False), {}, 1),
        (facts(gpu_util=95, busy_waiting_share=0.02, device_stand_in=False), {}, 0.05),
        (facts(gpu_util=95, device_stand_in=False), {"gate": True}, 1),
        (
            facts(gpu_util=95, device_stand_in=False),
            {"signature": [{"signal": "gpu_util", "above": 90, "weight": 5}]},
            50,
        ),
    ],
)
def test_a_gpu_that_is_busy_idles_for_nothing(known: Any, fields: dict[str, Any], factor: float) -> None:
    assert odds(known, **fields) == pytest.approx(factor * odds(facts()))


def trial(status: str, power: float = 0.6, **more: Any) -> model.Tested:
    return model.Tested(more.pop("causes", ("dl-waits",)), status, power, 1, **more)


@pytest.mark.parametrize(
    ("trials", "left"),
    [
        ([], 1.0),
        ([trial("REJECTED")], 0.4),
        ([trial("REJECTED", 0.9)], 0.1),
        ([trial("REJECTED"), trial("REJECTED")], 0.16),
        ([trial("INCONCLUSIVE")], 0.5),
        ([trial("INCONCLUSIVE", 0.2)], 0.8),
        ([trial("INCONCLUSIVE", 0.0)], 1.0),
        ([trial("VALIDATED")], 1.0),
        ([trial("REJECTED", causes=("other",))], 1.0),
        ([trial("REJECTED", before_accepting=True)], 1.0),
    ],
)
def test_trials_lower_the_causes_that_they_tested(trials: list[model.Tested], left: float) -> None:
    assert lowered("dl-waits", trials) == pytest.approx(left)
    assert score(cause(), facts(), trials).odds == pytest.approx(left * odds(facts()))


@given(
    st.lists(
        st.tuples(st.sampled_from(["REJECTED", "INCONCLUSIVE", "VALIDATED", "INVALID"]), st.floats(0, 1))
    )
)
def test_no_trial_raises_a_cause(trials: list[tuple[str, float]]) -> None:
    left = lowered("dl-waits", [trial(status, power) for status, power in trials])
    assert 0.0 <= left <= 1.0
    assert math.isfinite(left)


@given(st.floats(0, 1))
def test_what_a_trial_left_open_says_no_more_than_a_rejection_by_it(power: float) -> None:
    left = [lowered("dl-waits", [trial(status, power)]) for status in ("REJECTED", "INCONCLUSIVE")]
    assert left[0] <= left[1]


ANY = {"signal": "anomaly", "equals": True, "weight": 30.0, "otherwise": 0.3}


@pytest.mark.parametrize(
    ("known", "definite"),
    [
        (facts(anomaly=True, foreign_procs=1), True),
        (facts(anomaly=True, foreign_procs=1, launch_blocking=False), True),
        (facts(anomaly=True), False),
        (facts(foreign_procs=1), False),
        (facts(launch_blocking=True, anomaly=False, foreign_procs=1), False),
    ],
    ids=["one sign", "not the other", "requirement unknown", "nothing known", "little"],
)
def test_what_is_known_without_a_run(known: Any, definite: bool) -> None:
    blocking = {"signal": "launch_blocking", "equals": True, "weight": 8.0, "otherwise": 0.6}
    requires = [{"signal": "foreign_procs", "above": 0}]
    assert score(cause(requires=requires, signature=[ANY, blocking]), known).definite is definite


@pytest.mark.parametrize(("weight", "factor"), [(1.0, 0.1), (1.3, 0.31), (2.0, 2.0), (9.0, 9.0)])
def test_a_cause_without_a_clear_sign_is_a_tenth_as_likely(weight: float, factor: float) -> None:
    sign = {"signal": "gc_share", "above": 0.0, "weight": weight}
    bare = odds(facts(), signature=[]) / 0.1
    assert odds(facts(gc_share=0.5), signature=[sign]) / bare == pytest.approx(factor, abs=0.01)


SECTIONS = tuple(
    SectionFigures(name=n, calls=1, total_s=1, self_s=1, mean_s=1, min_s=1, max_s=1, share=s)
    for n, s in (("env.render", 0.3), ("env.resize", 0.1), ("update", 0.5))
)
KNOWN = facts(
    data_wait_share=0.6,
    loader_workers=0.0,
    amp=False,
    trains_on="cpu",
    sections=SECTIONS,
    flags={"workers": "0", "dataset.streaming": "true", "cache": True, "lr": "1e-3"},
    printed={"data.num_workers": "4", "policy": "act"},
    stacks=stacks(("data", "a/b.py:load", 1, 3.0, 0.0), ("other", "a/c.py:log", 1, 1.0, 1.0)),
    workers=stacks(("other", "d/decode.py:decode", 1, 1.0, 0.9)),
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"signal": "data_wait_share", "above": 0.2}, True),
        ({"signal": "data_wait_share", "below": 0.2}, False),
        ({"signal": "data_wait_share", "above": 0.5, "below": 0.7}, True),
        ({"signal": "data_wait_share", "above": 0.6}, False),
        ({"signal": "gc_share", "above": 0.2}, None),
        ({"signal": "loader_workers", "equals": 0}, True),
        ({"signal": "amp", "equals": False}, True),
        ({"signal": "amp", "above": 0.5}, None),
        ({"signal": "trains_on", "equals": "cuda"}, False),
        ({"signal": "trains_on", "above": 1}, None),
        ({"signal": "trains_on", "matches": "CPU|mps"}, True),
        ({"signal": "trains_on", "matches": "^(?!cpu)"}, False),
        ({"section": "render|resize", "above": 0.2}, True),
        ({"section": "teacher", "above": 0.2}, None),
        ({"flag": "(num_)?workers", "below": 1}, True),
        ({"flag": "work", "below": 1}, None),
        ({"flag": "cache", "equals": True}, True),
        ({"flag": r"dataset\.streaming", "equals": True}, True),
        ({"flag": "lr", "above": 0.0005, "below": 0.01}, True),
        ({"printed": "num_workers", "above": 2}, True),
        ({"printed": "policy", "equals": "ACT"}, True),
        ({"stack": "load", "phase": "data", "state": "waiting", "above": 0.7}, True),
        ({"stack": "decode", "above": 0.1}, False),
        ({"stack": "decode", "of": "workers", "above": 0.1}, True),
    ],
    ids=str,
)
def test_whether_a_condition_holds(condition: dict[str, Any], expected: bool | None) -> None:
    assert holds(Condition.model_validate(condition), KNOWN) is expected


def test_stacks_that_nobody_told_are_unknown_and_code_that_never_ran_is_not() -> None:
    term = Term(stack="decode")
    assert figure(term, facts()) is None
    found = figure(term, KNOWN)
    assert found is not None
    assert (found.value, found.place) == (0.0, None)


@pytest.mark.parametrize(
    ("value", "as_number", "as_truth"),
    [
        (True, None, True),
        ("off", None, False),
        ("0", 0.0, False),
        ("1e-3", 0.001, None),
        (4.0, 4.0, None),
        ("act", None, None),
        (None, None, None),
    ],
)
def test_values_as_numbers_and_truths(value: Any, as_number: float | None, as_truth: bool | None) -> None:
    assert number(value) == as_number
    assert value is None or truth(value) is as_truth


def test_values_are_equal_however_they_are_spelled() -> None:
    assert all(equal(a, b) for a, b in [("4", 4.0), (True, "yes"), ("Off", False), ("cuda", "CUDA")])
    assert not any(equal(a, b) for a, b in [("4", "5"), (True, "no"), ("x", True), ("cpu", "cuda")])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(0.6, 0.5, True), (0.6, 0.3, False), (0.04, 0.0, True), (0, 0, True), (8, 10, True), ("a", "A", True)],
)
def test_similar_figures(one: Any, other: Any, expected: bool) -> None:
    assert similar(one, other) is expected
    assert similar(other, one) is expected


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([], None),
        ([{"signal": "gc_share"}], None),
        ([{"signal": "gc_share"}, {"signal": "data_wait_share"}], 0.6),
        ([{"signal": "data_wait_share", "times": 0.5}], 0.3),
        ([{"signal": "data_wait_share", "times": 9}], 1.0),
        ([{"stack": "decode", "of": "workers", "within": "data_wait_share"}], 0.6),
        ([{"stack": "decode", "of": "workers", "within": "gc_share"}], None),
        ([{"stack": "log"}, {"stack": "load"}], 0.75),
    ],
    ids=str,
)
def test_the_share_that_a_cause_explains(shares: list[dict[str, Any]], expected: float | None) -> None:
    found = largest(tuple(Share.model_validate(s) for s in shares), KNOWN)
    assert found == (None if expected is None else pytest.approx(expected))


CAUSES = catalogue.load(None).causes
WORDS = {
    "trains_on": ("cpu", "cuda:0", "mps", "xpu"),
    "slowing_part": ("data", "forward", "backward", "optimizer", "other"),
    "backend": ("nccl", "gloo", "mpi"),
    "parameter_dtype": ("float32", "float64", "bfloat16", "float16", "int8", "float8_e4m3fn"),
    "workload_kind": KINDS,
    "framework": tuple(framework.name for framework in adapters.known()),
    "failure": ("exception", "signal", *(kind for kind, _ in _CLASSES)),
}
"""The words that these signals have; `failure_text` has any."""
_MOST = {"share": 1.0, "%": 100.0}
_FRAME = re.compile(r"(?:[\w.<> -]+/)?(?:[\w.<> -]+|\(kernel\)):[\w.<>]+")
_ELSE = "zz/zz.py:zz"


def _figure_for(condition: Condition, most: float) -> float:
    """A number that the condition holds of, up to `most`; it fails where there is none."""
    low = condition.above if condition.above is not None else 0.0
    high = min(condition.below if condition.below is not None else most, most)
    if condition.equals is not None:
        return float(condition.equals)
    assert low < high, f"nothing lies between {low} and {high}"
    return (low + high) / 2


def _value_for(condition: Condition) -> Any:
    if condition.matches is not None:
        return next(found_in(condition.matches))
    if condition.equals is not None:
        return condition.equals
    return str(_figure_for(condition, 1e9))


def _signal_for(condition: Condition) -> Any:
    name = condition.signal or ""
    unit = SIGNALS[name].unit
    if unit == "yes":
        return condition.equals
    if unit == "word":
        words = WORDS.get(name) or tuple(found_in(condition.matches or ""))
        return next(w for w in words if holds(condition, facts(**{name: w})))
    return _figure_for(condition, _MOST.get(unit, 1e9))


def _frames(expression: str) -> Iterator[str]:
    """Frames as stacks have them, `folder/file.py:function`, that the expression is found in."""
    for text in texts(expression):
        bare = text.rstrip("/").lstrip("/")
        files = (f"{bare}/b.py:f", f"a/{bare}:f", f"{bare}:f", f"{text}b.py:f", f"<{bare}>:f")
        functions = (f"a/b.py:{text}", f"a/b.py{text}", f"a/b.py:C.{text}")
        for frame in (text, f"a/{text}", f"{text}f", *functions, *files):
            if _FRAME.fullmatch(frame) and re.search(expression, frame, re.IGNORECASE):
                yield frame


def _stacks_for(condition: Condition) -> DiagnosisFacts:
    taken = _figure_for(condition, 1.0)
    phase = condition.phase or "other"
    frame = next(_frames(condition.stack)) if condition.stack else "a/b.py:f"
    cpu = 0.0 if condition.state == "waiting" else taken
    code = {f"{frame}:1": next(found_in(condition.code))} if condition.code else {}
    rows = ((phase, (0,), 1, taken, cpu), ("other", (1,), 2, 1 - taken, 0.0))
    made = Stacks(seconds=1.0, cpu_s=cpu, samples=2, frames=(frame, _ELSE), stacks=rows, code=code)
    return facts(workers=made) if condition.of == "workers" else facts(stacks=made)


def evidence_for(condition: Condition) -> DiagnosisFacts:
    """Facts of which a condition is true, of the kind that runs leave."""
    if condition.signal is not None:
        return facts(**{condition.signal: _signal_for(condition)})
    if condition.flag is not None:
        return facts(flags={next(found_in(condition.flag, whole=True)): _value_for(condition)})
    if condition.printed is not None:
        return facts(printed={next(found_in(condition.printed, whole=True)): str(_value_for(condition))})
    if condition.section is not None:
        share = _figure_for(condition, 1.0)
        name = next(found_in(condition.section))
        return facts(sections=(SECTIONS[0].model_copy(update={"name": name, "share": share}),))
    return _stacks_for(condition)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.id)
def test_every_sign_can_be_true_and_can_be_false(cause: Cause) -> None:
    for number_, condition in enumerate((*cause.requires, *cause.signature), 1):
        known = evidence_for(condition)
        assert holds(condition, known) is True, f"{cause.id}: condition {number_} never holds: {condition!r}"
        assert holds(condition, facts()) is None


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.id)
def test_what_a_cause_exposes_can_take_time(cause: Cause) -> None:
    for share in cause.exposed:
        if share.signal is None and share.section is None:
            term = share.model_dump(include=set(Condition.model_fields), exclude_none=True)
            known = evidence_for(Condition.model_validate({**term, "above": 0.4}))
            assert (largest((share.model_copy(update={"within": None}),), known) or 0) > 0.0, share


STACKS = stacks(
    ("data", "train.py:main data/images.py:load", 87, 3.1, 3.0),
    ("other", "train.py:main", 5, 6.9, 6.0),
    code={"data/images.py:load:87": "img = img.resize(size)"},
)
BATCHES, NOTHING = "of its time for batches", "time is in code of this kind"
RESIZE = "images.py:87 load (running): `img = img.resize(size)`"


@pytest.mark.parametrize(
    ("sign", "known", "sentence"),
    [
        (
            {"signal": "data_wait_share"},
            {"data_wait_share": 0.612},
            "training waits 61% of its time for batches",
        ),
        ({"signal": "gc_share"}, {"gc_share": 0.031}, "garbage collection takes 3.1% of the time"),
        ({"signal": "loader_workers"}, {"loader_workers": 0.0}, "loader workers: 0"),
        ({"signal": "amp"}, {"amp": False}, "mixed precision: no"),
        ({"signal": "step_time_s"}, {"step_time_s": 0.0123}, "a step takes 12.3 ms"),
        ({"signal": "gpu_util"}, {"gpu_util": 27.4}, "the device is busy 27%"),
        ({"signal": "reference_gap_pp"}, {"reference_gap_pp": 55.0}, "the reference is busier by 55.0pp"),
        ({"signal": "reference_gap_pp"}, {"reference_gap_pp": -12.0}, "the reference is less busy by 12.0pp"),
        ({"stack": "images"}, {}, f"31% of the time in {RESIZE}"),
        (
            {"stack": "load|main"},
            {},
            "100% of the time in code of this kind, most of it in train.py main (running)",
        ),
        ({"stack": "images", "state": "running"}, {}, f"31% of the time in {RESIZE}"),
        (
            {"stack": "images", "state": "waiting"},
            {},
            f"1.0% of the time in code of this kind at {RESIZE.replace('running', 'waiting')}",
        ),
        ({"stack": r"\bdecode\w*|av/"}, {}, "none of the time is in code such as decode"),
        (
            {"stack": "x", "of": "workers"},
            {"workers": STACKS},
            "none of loader workers' time is in code of this kind",
        ),
        ({"flag": "(num_)?workers"}, {"flags": {"workers": "0"}}, "--workers is 0"),
        ({"flag": "sync"}, {"flags": {"sync": True}}, "--sync is set"),
        ({"printed": "workers"}, {"printed": {"d.workers": "0"}}, "the configuration has d.workers = 0"),
    ],
    ids=str,
)
def test_a_sign_as_a_sentence(sign: dict[str, Any], known: dict[str, Any], sentence: str) -> None:
    told = facts(stacks=STACKS, **known)
    found = score(cause(signature=[{**sign, "matches": ".", "weight": 3}]), told).signs[0]
    assert sentence_of(found, told) == sentence


@pytest.mark.parametrize(
    ("other", "ending"), [(0.1, "batches (the reference: 10%)"), (0.58, "batches, as in the reference")]
)
def test_the_reference_stands_beside_it(other: float, ending: str) -> None:
    told = facts(data_wait_share=0.6, reference=facts(data_wait_share=other))
    sign = {"signal": "data_wait_share", "above": 0.2, "weight": 8}
    assert sentence_of(score(cause(signature=[sign]), told).signs[0], told).endswith(ending)


@pytest.mark.parametrize(
    ("sign", "sentence"),
    [
        ({"stack": "images", "above": 0.1}, f"31% of the time in {RESIZE}"),
        ({"flag": "workers", "equals": 0}, "--workers is 0"),
        ({"section": "load", "above": 0.1}, "section load takes 40% of the profiled time"),
    ],
    ids=["stack", "flag", "section"],
)
def test_what_the_reference_shares_says_why_it_speaks_against(sign: dict[str, Any], sentence: str) -> None:
    section = SectionFigures(name="load", calls=1, total_s=1, self_s=1, mean_s=1, min_s=1, max_s=1, share=0.4)
    same: dict[str, Any] = {"stacks": STACKS, "flags": {"workers": "0"}, "sections": (section,)}
    told = facts(**same, reference=facts(**same))
    found = score(cause(signature=[{**sign, "weight": 3}]), told).signs[0]
    assert found.shared
    assert sentence_of(found, told) == f"{sentence}, as in the reference"


@pytest.mark.parametrize(
    ("found", "unit", "text"),
    [
        (0.5, "share", "50%"),
        (0.004, "share", "0.4%"),
        (2.0, "s", "2 s"),
        (3.2, "MB", "3.2 MB"),
        (20.0, "pp", "20.0pp"),
        ("cpu", "word", "cpu"),
    ],
)
def test_values_have_their_unit(found: Any, unit: str, text: str) -> None:
    assert value(found, unit) == text
