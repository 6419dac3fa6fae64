from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.diagnoses import facts, stacks
from tests.support.expressions import found_in, texts

from gpudebug.core.catalogue import KINDS
from gpudebug.core.catalogue.model import Cause, Condition, Share, Term
from gpudebug.core.catalogue.signals import SIGNALS
from gpudebug.core.diagnosis.figures import equal, figure, holds, largest, number, similar, truth
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.records import SectionFigures, Stacks
from gpudebug.core.trainlog.failure import _CLASSES
from gpudebug.engine.run import adapters, catalogue

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
