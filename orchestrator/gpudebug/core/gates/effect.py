"""Whether the change reached the program: what it printed of its configuration, what it imports."""

from __future__ import annotations

from gpudebug.core.gates.case import UNKNOWN, Case
from gpudebug.core.models import Gate
from gpudebug.core.words import Result

THRESHOLD = "the change reached the program"


def effect_gate(case: Case) -> Gate:
    """Fails where the program imports another checkout, or printed that it runs without the change."""
    gate = Gate(name="change_in_effect", value=UNKNOWN, threshold=THRESHOLD, result=Result.SKIPPED)
    setting = case.setting
    if setting.elsewhere:
        return gate.model_copy(update={"value": "; ".join(setting.elsewhere), "result": Result.FAIL})
    if setting.effect is None:
        return gate.model_copy(update={"note": "nothing was changed"})
    value = setting.effect.value or UNKNOWN
    return gate.model_copy(
        update={"value": value, "result": setting.effect.result, "note": setting.effect.note}
    )
