"""Which part of a program a section belongs to, and what each part takes."""

from __future__ import annotations

import pytest
from tests.support.section_reports import a_section

from gpudebug.core.inside.sections import Report
from gpudebug.core.inside.sections.categories import NONE, category_of, category_shares

OWN = {"load": "Data", "load_image": "Images"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("env_step", "Environment"),
        ("env_rgb_resizing", "Rendering"),
        ("convlstm_layers", "Model"),
        ("recurrent_policy_forward", "Policy"),
        ("training_total", "Training"),
        ("simulated_model_update", "Training"),
        ("forward", None),
    ],
)
def test_the_longest_prefix_counts(name: str, expected: str | None) -> None:
    assert category_of(a_section(name), Report(())) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("load_text", "Data"), ("load_image_jpeg", "Images"), ("env_step", None)]
)
def test_categories_of_ones_own_take_the_place_of_the_usual_ones(name: str, expected: str | None) -> None:
    assert category_of(a_section(name), Report((), categories=OWN)) == expected


def test_a_category_of_its_own_counts_before_any_prefix() -> None:
    assert category_of(a_section("env_step", category="Mine"), Report((), categories={"env_": "E"})) == "Mine"
    assert category_of(a_section("env_step"), Report((), categories={"env_": "E"})) == "E"


def test_shares_are_of_own_time() -> None:
    report = Report(
        (
            a_section("training_total", calls=1, mean=10.0, self_s=1.0),
            a_section("env_step", mean=0.06, self_s=6.0),
            a_section("other", mean=0.03, self_s=3.0),
        )
    )
    assert [(c.name, c.self_s, c.share) for c in category_shares(report)] == [
        ("Environment", 6.0, 0.6),
        (NONE, 3.0, pytest.approx(0.3)),
        ("Training", 1.0, 0.1),
    ]


def test_without_any_category_there_are_no_shares() -> None:
    assert category_shares(Report((a_section("x"),))) == []
    assert category_shares(Report(())) == []


def test_no_time_has_no_share() -> None:
    (only,) = category_shares(Report((a_section("env_x", mean=0.0),)))
    assert only.share == 0.0
