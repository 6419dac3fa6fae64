"""What `status` lists of hypotheses: of many those that matter, what they cost, how their runs went."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

import pytest
from tests.support.answers import read
from tests.support.campaigns import Campaign
from tests.support.statuses import hypothesis, judged, multiply, row
from tests.support.tampering import reseal, rewrite

from gpudebug.core.answers.status import HypothesisRow, RunSpark
from gpudebug.engine.status import listing
from gpudebug.engine.status.status import status


def run(seconds: float | None = 10.0, ago: float = 100.0, **more: Any) -> dict[str, Any]:
    return {"duration_s": seconds, "ago": ago, "devices": [{"uuid": "CPU", "name": "x"}], **more}


def ended(record: Any) -> Any:
    """The same with its end, so long ago."""
    if record is None:
        return None
    end = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=record["ago"])
    return {"end": end.isoformat(timespec="seconds"), **record}


@pytest.mark.parametrize(
    ("records", "cost", "age"),
    [
        ([], None, None),
        ([run()], 10.0, 100),
        ([run(10.04, 500), run(5.0, 50), run(2.0, 70)], 17.0, 50),
        # Under way, imported, of a clock that was ahead.
        ([run(), run(None, end=None)], 10.0, 100),
        ([run(devices=[])], None, 100),
        ([run(ago=-1000)], 10.0, 0),
        # Not what gpudebug writes, or not here at all.
        ([run(end="yesterday")], 10.0, None),
        ([run(end="2026-01-01T00:00:00")], 10.0, None),
        ([run(float("nan"))], None, 100),
        ([run(10**400)], None, 100),
        ([run(), None], None, None),
    ],
)
def test_cost_and_age(records: list[Any], cost: float | None, age: int | None) -> None:
    found = listing.spent([ended(record) for record in records])
    assert found.cost_s == cost
    assert found.age_s == (None if age is None else pytest.approx(age, abs=2))
    assert (found.ended is None) is (age is None)


def test_few_are_all_shown_in_the_files_order() -> None:
    told = [row(n) for n in (7, 3, *range(10, 10 + listing.SHOWN - 2))]
    assert listing.shown(told, None) == [h.number for h in told]


def test_of_many_what_happens_now_then_what_helps_then_what_was_tested_last() -> None:
    told = [judged(n, "REJECTED", age_s=n) for n in range(1, 901)]
    told += [hypothesis(n) for n in range(901, 951)]
    told += [judged(951, age_s=10**6), judged(952, verified=False, age_s=None)]
    told += [hypothesis(960, "TESTING")]
    found = listing.shown([read(HypothesisRow, h) for h in told], 940)
    assert found == [*range(1, listing.SHOWN - 2), 940, 951, 960]


def test_of_many_that_wait_the_first() -> None:
    told = [row(n) for n in range(1, 100)]
    assert listing.shown(told, 99) == [*range(1, listing.SHOWN), 99]


@pytest.mark.parametrize(
    ("spark", "sound"),
    [
        ([], True),
        ([0, 12.5, 100.0], True),
        ([800.0] * 40, True),
        ([1.0] * 41, False),
        ([float("nan")], False),
        ([float("inf")], False),
        ([-1.0], False),
        ([10**400], False),
        (["1"], False),
        ("▁▂", False),
        (None, False),
    ],
)
def test_a_spark_that_is_not_what_we_write_is_none(spark: object, sound: bool) -> None:
    assert listing.spark_of({"spark": spark}) == (spark if sound else None)
    assert listing.spark_of({}) is None


def test_every_figure_of_the_table_is_in_the_json(told: Campaign) -> None:
    answer = told.json("status")
    helps, waits = answer["hypotheses"]
    records = {
        name: json.loads((told.folder / "runs" / name / "run.json").read_text()) for name in told.runs()
    }
    made = [r for r in records.values() if r["hypothesis"] == 1]
    assert helps["loss"] == "CONVERGING"
    assert helps["cost_s"] == pytest.approx(sum(r["duration_s"] for r in made), abs=0.1)
    assert helps["ended"] == max(r["end"] for r in made)
    assert helps["age_s"] >= 0
    assert [spark["run"] for spark in helps["sparks"]] == ["0003-h1", "0004-h1"]
    for spark in helps["sparks"]:
        evidence = json.loads((told.folder / "runs" / spark["run"] / "evidence.json").read_text())
        assert spark["spark"] == evidence["spark"] and 10 < len(spark["spark"]) <= 40
    assert [waits[key] for key in ("loss", "cost_s", "ended", "age_s", "sparks")] == [None] * 4 + [[]]
    workload = answer["baselines"]["workload"]
    assert [s["run"] for s in workload["sparks"]] == workload["runs"]
    assert workload["cost_s"] + helps["cost_s"] == pytest.approx(
        answer["budget"]["device_time_used_s"], abs=0.2
    )
    budget = answer["budget"]
    assert budget["hypotheses_left"] == budget["hypotheses"] - budget["hypotheses_used"]
    left = budget["device_time_s"] - budget["device_time_used_s"]
    assert budget["device_time_left_s"] == pytest.approx(left, abs=0.1)
    assert answer["shown"] == [1, 2]


def test_runs_that_cannot_be_read_are_named_and_the_rest_is_told(told: Campaign) -> None:
    run, other = (told.folder / "runs" / name for name in ("0003-h1", "0004-h1"))
    (run / "evidence.json").write_bytes(b"{\xff")
    answer = told.json("status")
    first, second = answer["hypotheses"][0]["sparks"]
    assert first == {"run": run.name, "spark": None}
    assert second["run"] == other.name and second["spark"]
    assert f"unreadable evidence: {run.name}" in told.run("status").expect(0).out
    for record in (told.folder / "runs").glob("*/run.json"):
        rewrite(record, end="yesterday")
    found = told.json("status")["hypotheses"][0]
    assert (found["ended"], found["age_s"]) == (None, None) and found["cost_s"] > 0
    (run / "run.json").write_text("{")
    found = status(told.folder).hypotheses[0]
    assert found.sparks[0] == RunSpark(run=run.name, spark=None) and found.cost_s is None


def test_a_loss_that_nobody_could_tell_is_null(told: Campaign) -> None:
    (verdict,) = (told.folder / "runs").glob("*/verdict.json")
    rewrite(verdict, loss="UNKNOWN")
    reseal(verdict.parent)
    told.progress.write_text(told.text.replace("  - Loss: CONVERGING", "  - Loss: UNKNOWN"))
    found = told.json("status")["hypotheses"][0]
    assert (found["verified"], found["loss"]) == (True, None)
    assert re.search(r"x +unknown +\d", told.run("status").out)


def test_only_so_many_runs_are_read(told: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    multiply(told, 5)
    monkeypatch.setattr(listing, "DRAWN", 3)
    monkeypatch.setattr(listing, "SHOWN", 5)
    found = status(told.folder)
    assert len(found.shown) == 5
    drawn = {h.number: len(h.sparks) for h in found.hypotheses if h.sparks}
    assert sum(drawn.values()) == 3 and drawn.keys() <= set(found.shown)


def test_a_campaign_of_many_hypotheses_stays_readable(told: Campaign) -> None:
    multiply(told, 40)
    told.config.write_text(told.config.read_text() + "budget: {hypotheses: 100}\n")
    answer = told.json("status")
    assert len(answer["hypotheses"]) == 42 and all(h["verified"] for h in answer["hypotheses"][2:])
    assert len(answer["shown"]) == listing.SHOWN and 2 in answer["shown"]
    text = told.run("status").expect(0).out
    assert "  …  and 12 more (12 VALIDATED): gpudebug status --json\n" in text
    assert len(text.splitlines()) < 4 * listing.SHOWN + 60


@pytest.mark.slow
def test_a_thousand_hypotheses_with_runs(told: Campaign) -> None:
    multiply(told, 1000)
    answer = told.json("status")
    assert len(answer["hypotheses"]) == 1002
    assert sum(h["sparks"] is not None for h in answer["hypotheses"]) == listing.SHOWN
    assert len(told.run("status", env={"COLUMNS": "40"}).expect(0).out.splitlines()) < 400
