"""What people read of layer tests and of the difference to a reference."""

from __future__ import annotations

from dataclasses import replace

from tests.support.answers import read
from tests.terminal.test_diagnose import ANSWER as DIAGNOSIS

from gpudebug.core.answers.diagnosis import DiagnoseAnswer, FromReference, LayerAnswer, LayerResult
from gpudebug.terminal.layers import around, layer

ANSWER = LayerAnswer(
    campaign="act",
    role="layer-double_batch",
    layer="double-batch",
    run="0004-layer-double-batch",
    runs=("0004-layer-double-batch",),
    baseline_runs=("0001-baseline-workload",),
    device_time_s=21.25,
    changed="--set --batch_size=16",
    means="at twice the batch a step takes 1.05 times as long",
    ratio=1.9,
    step_ratio=0.95,
    notes=("--batch_size is locked: it is changed for this test alone",),
    why="asked for",
    next_command="gpudebug diagnose",
    files=(),
)
PLAIN = read(DiagnoseAnswer, DIAGNOSIS)
NO_DIFFERENCE = FromReference(program=None, flags=(), figures=(), lines=())


def test_a_layer_test_says_what_it_did_what_it_means_and_that_it_is_no_fix() -> None:
    assert layer(ANSWER).splitlines() == [
        "Layer test double-batch: run 0004-layer-double-batch, 21.2 s of the device",
        "changed  --set --batch_size=16",
        "means    At twice the batch a step takes 1.05 times as long.",
        "         Samples a second: 1.90 times the baseline's.",
        "note     --batch_size is locked: it is changed for this test alone",
        "It shows where to look and is not a fix: no hypothesis, baseline or verdict uses this run.",
        "Next: gpudebug diagnose",
    ]
    unknown = layer(replace(ANSWER, ratio=None, device_time_s=None, notes=()))
    assert "Samples" not in unknown
    assert unknown.startswith("Layer test double-batch: run 0004-layer-double-batch\n")


def test_a_diagnosis_without_layers_and_reference_adds_nothing() -> None:
    assert around(PLAIN) == []
    assert around(replace(PLAIN, difference=NO_DIFFERENCE)) == []


def test_a_long_list_of_differences_is_cut() -> None:
    lines = tuple(f"flag a{n}: 1, reference 2" for n in range(14))
    quiet = LayerResult("quiet", "0003", ("0002", "0003"), 1.0, 1.0, "--set", "it is the same")
    found = around(replace(PLAIN, layers={"quiet": quiet}, difference=replace(NO_DIFFERENCE, lines=lines)))
    assert found[:3] == [
        "Layer quiet: it is the same (0002, 0003; diagnostic only)",
        "Differs from the reference:",
        "  flag a0: 1, reference 2",
    ]
    assert len(found) == 2 + 12 + 1
    assert found[-1] == "  and 2 more, in --json"
