"""All gates of one case, in their order."""

from __future__ import annotations

from tests.support.trials import BASE, GOOD, verdict

from gpudebug.core.words import Result


def test_every_gate_is_printed_in_its_order() -> None:
    found = verdict(BASE, GOOD)
    assert [g.name for g in found.gates] == [
        "outcome",
        "loss",
        "loss_parity",
        "delta",
        "throughput",
        "work_conserved",
        "working_share",
        "side_work",
        "locked_knobs",
        "one_variable",
        "change_in_effect",
        "device_to_itself",
        "environment_parity",
    ]
    assert all(g.value and g.threshold for g in found.gates)
    skipped = [g for g in found.gates if g.result is Result.SKIPPED]
    names = ["loss_parity", "working_share", "side_work", "change_in_effect", "device_to_itself"]
    assert [g.name for g in skipped] == names
    assert all(g.note for g in skipped)
