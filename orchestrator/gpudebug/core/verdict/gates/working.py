"""Whether the devices work more, or are only busier: power beside utilisation."""

from __future__ import annotations

from gpudebug.core.records import Gate
from gpudebug.core.verdict.gates.case import UNKNOWN, TrialCase
from gpudebug.core.verdict.gates.devices import on_one_scale
from gpudebug.core.verdict.gates.figures import throughput_result, utilisations
from gpudebug.core.verdict.gates.rates import mean
from gpudebug.core.verdict.gates.throughput import surely_fails
from gpudebug.core.words import Result

NAME = "working_share"
ROSE = 1.0
"""Points of utilisation: the driver's resolution."""
FELL = 0.03
"""Of the working share, which is read from power that varies by a few per cent from run to run."""
THRESHOLD = "work a second rises if utilisation rises and the working share falls"

_UNDECIDED = "utilisation rises, the devices work less, and whether work a second rises is not decided"


def working_gate(case: TrialCase) -> Gate:
    """Fails if utilisation rises by waiting alone. Skipped if power is missing in a run.

    Unknown while the runs do not decide whether work a second rises: more of them may.
    """
    gate = Gate(name=NAME, value=UNKNOWN, threshold=THRESHOLD, result=Result.SKIPPED)
    runs = (*case.before, *case.after)
    shares = on_one_scale(runs)
    busy = [mean(utilisations(side)) for side in (case.before, case.after)]
    if None in shares or None in busy:
        reason = next((e.working_reason for e in runs if e.working_reason), "its levels are unknown")
        return gate.model_copy(update={"note": f"power does not show work in every run: {reason}"})
    known = [share for share in shares if share is not None]
    before, after = mean(known[: len(case.before)]), mean(known[len(case.before) :])
    assert before is not None and after is not None
    assert busy[0] is not None and busy[1] is not None
    value = f"{before:.0%} to {after:.0%} of the time"
    gate = gate.model_copy(update={"value": value, "result": Result.PASS})
    if busy[1] - busy[0] <= ROSE or before - after <= FELL:
        return gate
    if case.ratio is None:
        note = "utilisation rises, the devices work less, and work a second is unknown"
        return gate.model_copy(update={"result": Result.UNKNOWN, "note": note})
    if throughput_result("better", case.ratio) is Result.PASS:
        return gate
    if surely_fails("better", case):
        return gate.model_copy(update={"result": Result.FAIL, "note": "they are busier by waiting"})
    return gate.model_copy(update={"result": Result.UNKNOWN, "note": _UNDECIDED})
