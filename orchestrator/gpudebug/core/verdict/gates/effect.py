"""Whether the change reached the program: what it printed of its configuration, what it imported."""

from __future__ import annotations

from gpudebug.core.records import Gate
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.words import Result

THRESHOLD = "the change reached the program"
ADVICE = "take paths to that other checkout out of the program, its .pth files and PYTHONPATH"


def effect_gate(case: TrialCase) -> Gate:
    """Fails if the program imported another checkout, or printed that it runs without the change."""
    gate = Gate(name="change_in_effect", value=UNKNOWN, threshold=THRESHOLD, result=Result.SKIPPED)
    setting = case.setting
    if setting.elsewhere:
        value = "; ".join(setting.elsewhere)
        return gate.model_copy(update={"value": value, "result": Result.FAIL, "note": ADVICE})
    if setting.effect is None:
        return gate.model_copy(update={"note": "nothing was changed"})
    value = setting.effect.value or UNKNOWN
    return gate.model_copy(
        update={"value": value, "result": setting.effect.result, "note": setting.effect.note}
    )
