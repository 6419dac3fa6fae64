"""Shares, scores and recommendations of sections."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.section_reports import a_section

from gpudebug.core.inside.sections import Report, Section, SectionNode
from gpudebug.core.inside.sections.cost import (
    NONE,
    category_of,
    category_shares,
    hint_for,
    profiled_s,
    recommendations,
    score,
    share,
)
from gpudebug.core.words import short

SCORES = {
    "nothing": (a_section(mean=0.0), 0.0, 0.0),
    "all of the time": (a_section(mean=0.0), 1.0, 40.0),
    "50 ms a call": (a_section(mean=0.05), 0.0, 15.0),
    "a second a call is no more than 100 ms": (a_section(mean=1.0), 0.0, 30.0),
    "50 MB": (a_section(mean=0.0, mem_peak_mb=50.0), 0.0, 7.5),
    "a GB is no more than 100 MB": (a_section(mean=0.0, gpu_peak_mb=1024.0), 0.0, 15.0),
    "everything": (a_section(mean=0.1, mem_peak_mb=100.0, gpu_peak_mb=100.0), 1.0, 100.0),
    "a part of each": (a_section(mean=0.0125, mem_peak_mb=20.0, gpu_peak_mb=40.0), 0.253, 22.87),
}


@pytest.mark.parametrize(("section", "part", "expected"), SCORES.values(), ids=SCORES)
def test_a_score_is_the_weighted_sum(section: Section, part: float, expected: float) -> None:
    assert score(section, part) == pytest.approx(expected)


FIGURES = st.floats(0, 1e6)


@given(FIGURES, st.none() | FIGURES, st.none() | FIGURES, st.floats(0, 1), st.floats(1, 10))
def test_a_score_is_bounded_and_grows_with_each_part(
    mean: float, host: float | None, gpu: float | None, part: float, more: float
) -> None:
    def scored(mean: float, host: float | None, gpu: float | None, part: float) -> float:
        return score(a_section(mean=mean, mem_peak_mb=host, gpu_peak_mb=gpu), part)

    base = scored(mean, host, gpu, part)
    assert 0 <= base <= 100 + 1e-9
    assert scored(mean * more, host, gpu, part) >= base
    assert scored(mean, (host or 0) * more, gpu, part) >= base
    assert scored(mean, host, (gpu or 0) * more, part) >= base
    assert scored(mean, host, gpu, min(1.0, part * more)) >= base


def test_the_profiled_time_is_that_of_the_roots() -> None:
    nested = (a_section("step", mean=0.03, self_s=1.0), a_section("load", mean=0.02))
    roots = (SectionNode("step", 100, 3.5, (SectionNode("load", 100, 2.0),)), SectionNode("save", 1, 0.5))
    assert profiled_s(Report(nested, roots)) == 4.0
    assert profiled_s(Report(nested)) == 3.0
    assert profiled_s(Report(tuple(a_section(n, self_s=0.0) for n in "ab"))) == 2.0
    assert profiled_s(Report(())) == 0.0


@pytest.mark.parametrize(("profiled", "expected"), [(4.0, 0.25), (0.5, 1.0), (0.0, 0.0)])
def test_a_share_is_between_0_and_1(profiled: float, expected: float) -> None:
    assert share(a_section(), profiled) == expected


def levels(*sections: Section, tree: tuple[SectionNode, ...] = ()) -> list[tuple[str, str]]:
    rest = a_section("rest", calls=1000, mean=0.097, self_s=97.0)
    found = recommendations(Report((*sections, rest), tree))
    return [(str(r.level), r.section) for r in found if r.section != "rest"]


def test_only_what_exceeds_a_threshold_is_named() -> None:
    assert levels(a_section("x", mean=0.03, mem_peak_mb=100.0, gpu_peak_mb=100.0)) == []
    assert levels(a_section("x", calls=10, mean=0.1)) == []
    assert levels(a_section("x", calls=10, mean=0.1001)) == [("SLOW", "x")]
    assert levels(a_section("x", mean=0.03, mem_peak_mb=100.1)) == [("MEMORY", "x")]
    assert levels(a_section("x", mean=0.03, gpu_peak_mb=100.1)) == [("GPU MEMORY", "x")]
    assert levels(a_section("x", calls=1000, mean=0.0415)) == []
    assert levels(a_section("x", calls=1000, mean=0.0416)) == [("CRITICAL", "x")]


def test_the_most_pressing_stands_first() -> None:
    first = a_section("first", calls=100, mean=0.6, mem_peak_mb=200.0)
    second = a_section("second", calls=10, mean=0.2, mem_peak_mb=300.0, gpu_peak_mb=101.0)
    assert levels(second, first) == [
        ("CRITICAL", "first"),
        ("SLOW", "first"),
        ("SLOW", "second"),
        ("MEMORY", "first"),
        ("MEMORY", "second"),
        ("GPU MEMORY", "second"),
    ]


def said(*sections: Section, tree: tuple[SectionNode, ...] = ()) -> str:
    return recommendations(Report(sections, tree))[0].text


def test_the_advice_leads_into_what_is_below() -> None:
    step, load = a_section("step", mean=0.05, self_s=1.0), a_section("load", mean=0.04)
    tree = (SectionNode("step", 100, 5.0, (SectionNode("load", 100, 4.0), SectionNode("log", 100, 0.1))),)
    assert said(step, load, tree=tree) == "takes 100.0% of the time: 80% of that in 'load', look there first"


def test_the_advice_follows_the_name_once() -> None:
    only = Report((a_section("data_loading", mean=0.2),))
    critical, slow = (r.text for r in recommendations(only))
    assert "workers" in critical
    assert slow.startswith("takes 200 ms a call, 100 times: ")
    assert "pin memory" not in slow


def test_a_name_that_tells_nothing_has_advice_too() -> None:
    assert said(a_section("zzz")) == (
        "takes 100.0% of the time: split it into sections to see what in it takes so long"
    )


def test_a_recursive_section_is_not_below_itself() -> None:
    tree = (SectionNode("walk", 9, 1.0, (SectionNode("walk", 8, 0.9),)),)
    assert "look there" not in said(a_section("walk"), tree=tree)


@pytest.mark.parametrize(
    ("iterations", "seconds", "rate"),
    [(100, 10.0, 10.0), (None, 10.0, None), (100, None, None), (100, 0.0, None), (0, 10.0, None)],
)
def test_a_rate_needs_iterations_and_their_time(
    iterations: int | None, seconds: float | None, rate: float | None
) -> None:
    assert Report((), iterations=iterations, enabled_s=seconds).iterations_per_s == rate


NAMED = {
    "GPU->CPU": "pinned buffers",
    "gpu_to_cpu": "pinned buffers",
    "h2d_copy": "non_blocking=True",
    "to_device": "non_blocking=True",
    "get_actions.preprocessing": "smaller or fewer images",
    "env_rgb_rendering": "smaller or fewer images",
    "get_actions.action_queue_merge": "ring buffer",
    "rtc.action_merging": "ring buffer",
    "get_actions.postprocessing": "whole batches",
    "simulated_data_collection": "fewer environments",
    "Replay Store": "allocated once",
    "serialise_obs": "serialise less often",
    "checkpoint": "save less often",
    "data_loading": "more workers",
    "robot.get_observation": "lower the resolution",
    "rtc.guidance_computation": "lower its weight",
    "Teacher Total": "leave the teacher out",
    "Student Forward": "mixed precision",
    "get_actions.policy_inference": "mixed precision",
    "convlstm_forward_pass": "mixed precision",
    "optimizer_step": "fused optimizer",
    "Stack+Back": "reuse tensors",
    "env_step": "fewer environments",
    "evaluate": "evaluate less often",
    "logging": "log less often",
}


@pytest.mark.parametrize(("name", "words"), NAMED.items(), ids=NAMED)
def test_a_name_brings_its_advice(name: str, words: str) -> None:
    assert words in (hint_for(name) or "")


@pytest.mark.parametrize("name", ["", "x", "training_total", "step", "logits", "catalog", "🙂", "retrieval"])
def test_a_name_that_says_nothing_brings_none(name: str) -> None:
    assert hint_for(name) is None


def test_a_name_of_any_length_is_quick() -> None:
    assert hint_for("z" * 10_000_000 + "data") is None


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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("forward", "forward"),
        ("get_actions.preprocessing", "get_a…ssing"),
        ("two\nlines", "two?lines"),
        ("\x1b[31mred", "?[31mred"),
        ("", "(no name)"),
    ],
)
def test_a_name_is_shown_on_one_line(name: str, shown: str) -> None:
    assert short(name, 11) == shown


@given(st.text(max_size=80), st.integers(9, 60))
def test_no_name_breaks_a_table(name: str, width: int) -> None:
    shown = short(name, width)
    assert shown.isprintable()
    assert 0 < len(shown) <= width
