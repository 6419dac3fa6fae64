from __future__ import annotations

from typing import Any

import pytest
from tests.support.diagnoses import cause, facts, stacks

from gpudebug.core.diagnosis.odds import score
from gpudebug.core.diagnosis.sentences import sentence_of, value
from gpudebug.core.records import SectionFigures

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
