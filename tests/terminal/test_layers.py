"""What people read of layer tests and of the difference to a reference."""

from __future__ import annotations

from typing import Any

from gpudebug.terminal.layers import around, layer

ANSWER: dict[str, Any] = {
    "layer": "double-batch",
    "run": "0004-layer-double-batch",
    "device_time_s": 21.25,
    "changed": "--set --batch_size=16",
    "means": "at twice the batch a step takes 1.05 times as long",
    "ratio": 1.9,
    "notes": ["--batch_size is locked: it is changed for this test alone"],
    "next_command": "gpudebug diagnose",
}


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
    unknown = layer({**ANSWER, "ratio": None, "device_time_s": None, "notes": []})
    assert "Samples" not in unknown
    assert unknown.startswith("Layer test double-batch: run 0004-layer-double-batch\n")


def test_a_diagnosis_without_layers_and_reference_adds_nothing() -> None:
    assert around({}) == []
    assert around({"layers": {}, "difference": None}) == []
    assert around({"difference": {"lines": []}}) == []


def test_a_long_list_of_differences_is_cut() -> None:
    found = around(
        {
            "layers": {"quiet": {"means": "it is the same", "runs": ["0002", "0003"]}},
            "difference": {"lines": [f"flag a{n}: 1, reference 2" for n in range(14)]},
        }
    )
    assert found[:3] == [
        "Layer quiet: it is the same (0002, 0003; diagnostic only)",
        "Otherwise than the reference:",
        "  flag a0: 1, reference 2",
    ]
    assert len(found) == 2 + 12 + 1
    assert found[-1] == "  and 2 more, in --json"
