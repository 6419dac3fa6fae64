"""The records on disk: frozen, complete in JSON, and read back by versions that know fewer keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.trials import run, runs, verdict

from gpudebug.core.records import (
    FORMAT_VERSION,
    DeviceEvidence,
    DeviceInfo,
    Estimate,
    Evidence,
    Failure,
    Gate,
    LossEvidence,
    Manifest,
    Record,
    RunRecord,
    Spread,
    UsedRun,
    Verdict,
    Window,
)
from gpudebug.core.words import Outcome, Result, Trend

RUN = RunRecord(
    name="0005-h1",
    campaign="act",
    role="h1",
    hypothesis=1,
    command="python train.py --name 'a b'",
    argv=("python", "train.py", "--name", "a b"),
    cwd=".",
    environment=("OMP_NUM_THREADS",),
    identity={"command": "abc", "tree": "def"},
    packages={"torch": "2.9"},
    devices=(DeviceInfo(index=0, uuid="GPU-1", name="NVIDIA A100", kind="nvml"),),
    start="2026-01-01T00:00:00+00:00",
    outcome=Outcome.CRASHED,
    signal=9,
    failure=Failure(kind="oom_gpu", lines=("CUDA out of memory",)),
)
RECORDS: list[Record] = [
    RUN,
    run(),
    run(None, None, window=None),
    verdict(runs(28, 29), runs(61, 62, rate=11.0)),
    verdict(runs(28, 29), [run(None, None)]).model_copy(
        update={"runs": (UsedRun(name="0005-h1", part="trial", evidence_sha256="0" * 64),)}
    ),
    Manifest(run="0005-h1", files={"run.json": "0" * 64}),
    Window(start_s=3.2, end_s=40.4, samples=186, rule="steps"),
    DeviceEvidence(index=0, uuid="MIG-1", name="A100", reason="Not Supported"),
    DeviceEvidence(index=0, uuid="G", name="A", gpu_util=Spread(mean=1, p5=0, p50=1, p95=2)),
    Estimate(value=1.0),
    Gate(name="delta", value="unknown", threshold="20", result=Result.UNKNOWN, note="why"),
]
IDS = [type(r).__name__ for r in RECORDS]


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_a_record_survives_its_file(record: Record) -> None:
    text = record.model_dump_json()
    assert type(record).model_validate_json(text) == record
    assert type(record).model_validate(json.loads(text)) == record
    assert record.model_dump(mode="json") == json.loads(text)


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_a_record_is_frozen(record: Record) -> None:
    name = next(iter(type(record).model_fields))
    with pytest.raises(ValidationError):
        setattr(record, name, None)


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_keys_of_a_newer_version_are_passed_over(record: Record) -> None:
    data = {**record.model_dump(mode="json"), "of_a_later_version": {"x": 1}}
    assert type(record).model_validate(data) == record


def unknowns(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [u for v in value.values() for u in unknowns(v)]
    if isinstance(value, list):
        return [u for v in value for u in unknowns(v)]
    return [value] if value is None else []


def test_what_is_not_known_is_null_and_never_zero() -> None:
    data = run(None, None, window=None).model_dump(mode="json")
    for key in ("utilisation", "standard_error", "steps_per_s", "progress_per_s", "window", "peak_rss_mb"):
        assert data[key] is None
    assert data["loss"]["first"] is None
    assert unknowns(RUN.model_dump(mode="json"))


SETS = frozenset(
    [
        "format",
        "loss",
        "devices",
        "missing",
        "spark",
        "conditions",
        "printed",
        "restated",
        "batch_flags",
        "logged",
        *("work", "work_notes", "step_flags", "learning", "learning_notes", "ranks", "phases"),
    ]
)


def test_an_empty_record_of_a_run_claims_nothing() -> None:
    evidence = Evidence(run="r", role="h1", outcome=Outcome.COMPLETED)
    assert evidence.loss == LossEvidence()
    assert evidence.loss.trend is Trend.UNKNOWN
    optional = {
        name: getattr(evidence, name)
        for name, field in Evidence.model_fields.items()
        if not field.is_required() and name not in SETS
    }
    assert set(optional.values()) == {None}


@pytest.mark.parametrize(
    ("record", "data"),
    [
        (Evidence, {"run": "r", "role": "h1", "outcome": "FINISHED"}),
        (Evidence, {"run": "r", "role": "h1"}),
        (LossEvidence, {"trend": "UP"}),
        (Gate, {"name": "delta", "value": "1", "threshold": "2", "result": "maybe"}),
        (Window, {"start_s": "soon", "end_s": 3, "samples": 1, "rule": "steps"}),
        (Manifest, {"run": "r", "files": ["run.json"]}),
    ],
)
def test_a_record_that_is_broken_is_refused(record: type[Record], data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        record.model_validate(data)


@pytest.mark.parametrize("record", [RunRecord, Evidence, Verdict, Manifest])
def test_each_file_names_its_format(record: type[Record]) -> None:
    assert record.model_fields["format"].default == FORMAT_VERSION


def test_a_default_is_not_shared_between_records() -> None:
    first, second = (RunRecord(**{**RUN.model_dump(), "packages": {}, "name": n}) for n in "ab")
    first.packages["x"] = "1"
    assert second.packages == {}
    bare = [Evidence(run=n, role="h1", outcome=Outcome.COMPLETED) for n in "ab"]
    bare[0].missing["x"] = "1"
    assert bare[1].missing == {}


def test_a_window_knows_how_long_it_is() -> None:
    assert Window(start_s=3.5, end_s=40.0, samples=1, rule="steps").duration_s == 36.5
