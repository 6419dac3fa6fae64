from __future__ import annotations

from typing import Any

import pytest
from tests.support.diagnoses import cause, facts

from gpudebug.core.change import intervention
from gpudebug.core.diagnosis.tested_causes import StatedHypothesis, causes_of

WORKERS = r"(num_?|n_)?(data_?)?(loader_)?workers"
NO_WORKERS = cause(
    "dl-no-workers",
    interventions={"lerobot": {"set": {"num_workers": 4}}, "any": {"code": "Give it workers."}},
    knobs=[{"names": [WORKERS], "direction": "up", "value": 4}],
    words=[r"\bno workers\b", r"loads? .*main process"],
)
MANY_WORKERS = cause(
    "dl-oversubscribed",
    interventions={"env": {"env": {"OMP_NUM_THREADS": "1"}}},
    knobs=[{"names": [WORKERS], "direction": "down"}, {"names": ["threads"], "direction": "down"}],
    words=["oversubscri"],
)
DEBUG = cause("debug-mode", knobs=[{"names": ["anomaly|detect_anomaly"], "direction": "off"}])
AMP = cause(
    "no-amp",
    interventions={"hf_trainer": {"set": {"bf16": True}}},
    knobs=[
        {"names": ["amp|bf16|half"], "direction": "on"},
        {"names": ["dtype"], "direction": "to", "value": "bf16"},
    ],
    words=["mixed precision"],
)
HORIZON = cause("short-horizon", knobs=[{"names": [".*horizon"], "direction": "any"}])
ALL = (NO_WORKERS, MANY_WORKERS, DEBUG, AMP, HORIZON)


def matched(change: str, title: str = "", known: Any = None, **more: Any) -> dict[str, float]:
    said = StatedHypothesis(
        title, more.pop("text", ""), intervention.parse(change) if change else None, more.pop("cause", None)
    )
    return causes_of(said, ALL, known or facts(flags={"workers": "2"}), **more)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("--set --workers=8", {"dl-no-workers"}),
        ("--set --workers=0", {"dl-oversubscribed"}),
        ("--set --num-workers=8", {"dl-no-workers", "dl-oversubscribed"}),
        ("--set --data.num_workers=8", {"dl-no-workers", "dl-oversubscribed"}),
        ("--set --num_workers=0", {"dl-oversubscribed"}),
        ("--env OMP_NUM_THREADS=1", {"dl-oversubscribed"}),
        ("--set --anomaly=off", {"debug-mode"}),
        ("--set --anomaly=on", set()),
        ("--set --anomaly=sometimes", {"debug-mode"}),
        ("--unset --detect-anomaly", {"debug-mode"}),
        ("--set --amp", {"no-amp"}),
        ("--set --amp=false", set()),
        ("--set --dtype=bf16", {"no-amp"}),
        ("--set --dtype=fp32", set()),
        ("--set --rtc.execution_horizon=30", {"short-horizon"}),
        ("--compound --set --workers=8 --set --amp", {"dl-no-workers", "no-amp"}),
        ("--set --lr=0.1", set()),
        ("--code", set()),
        ("", set()),
    ],
)
def test_which_causes_a_change_tests(change: str, expected: set[str]) -> None:
    assert set(matched(change)) == expected


def test_the_frameworks_own_flag_is_the_surest() -> None:
    lerobot = facts(framework="lerobot")
    assert matched("--set --num_workers=4", known=lerobot)["dl-no-workers"] >= 0.95
    assert matched("--set --num_workers=4")["dl-no-workers"] < 0.85
    trainer = facts(framework="hf_trainer")
    assert matched("--set --bf16=true", known=trainer) == {"no-amp": 0.95}
    assert matched("--set --bf16=false", known=trainer) == {}


def test_a_known_value_is_surer_than_an_unknown_one_wherever_it_stands() -> None:
    unknown = matched("--set --workers=8", known=facts())["dl-no-workers"]
    for known, standing in [
        (facts(flags={"workers": "2"}), {}),
        (facts(printed={"workers": "2"}), {}),
        (facts(), {"workers": "2"}),
    ]:
        assert matched("--set --workers=8", known=known, standing=standing)["dl-no-workers"] > unknown


def test_words_speak_where_the_change_says_nothing_and_the_title_before_the_text() -> None:
    title = matched("--code", "Batches: it loads in the main process")
    text = matched("--code", "The wait", text="Maybe it has no workers")
    assert title["dl-no-workers"] > text["dl-no-workers"] > 0
    assert matched("--set --lr=1", "Use mixed precision") == {"no-amp": pytest.approx(0.7)}


def test_words_of_another_cause_count_less_beside_a_change_and_those_of_its_own_more() -> None:
    found = matched("--set --workers=8", "Mixed precision")
    assert found["dl-no-workers"] > found["no-amp"]
    both = matched("--set --workers=8", "There are no workers")["dl-no-workers"]
    assert both > found["dl-no-workers"]


def test_words_do_not_turn_a_change_around() -> None:
    assert "dl-no-workers" not in matched("--set --workers=0", "There are no workers")


def test_more_words_speak_louder() -> None:
    found = matched("--code", "It has no workers and loads in the main process; mixed precision?")
    assert found["dl-no-workers"] > found["no-amp"]


def test_the_cause_that_the_author_named_is_the_one() -> None:
    assert matched("--set --workers=0", "Mixed precision", cause="debug-mode") == {"debug-mode": 1.0}
    assert matched("--set --workers=8", cause="gone") == matched("--set --workers=8") != {}


def test_a_rare_word_of_a_cause_is_a_hint_and_a_common_one_is_not() -> None:
    assert matched("--set --oversubscription_guard=1") == {"dl-oversubscribed": pytest.approx(0.5)}
    assert matched("--set --horizons_kept=1", "A short horizon") == {"short-horizon": pytest.approx(0.35)}
    assert matched("--set --lr=1", "The training is slow in the forward and in the backward") == {}


def test_a_hypothesis_that_speaks_of_the_code_that_takes_the_time_is_about_its_cause() -> None:
    code = {"dl-no-workers": "to_square return pad(photo, side)", "no-amp": "CentreClient.download"}
    found = matched("--set --kept=squares", "Squares are made of full photos", shown=code)
    assert found == {"dl-no-workers": pytest.approx(0.5)}
    assert matched("--set --archive=mirror", "Recordings come from the centre", shown=code) == {
        "no-amp": 0.35
    }
    assert (
        matched("--set --lr=1", "Each batch of the training", shown={"no-amp": "train for batch in loader"})
        == {}
    )
