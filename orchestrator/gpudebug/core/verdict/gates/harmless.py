"""Whether a step that takes in fewer elements, or trains fewer weights, did the same work all the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gpudebug.core.inside.probe import counts
from gpudebug.core.records import Evidence
from gpudebug.core.statistics.same_losses import same
from gpudebug.core.verdict.gates.case import TrialCase
from gpudebug.core.verdict.gates.parity import agrees

SAME = 1.02
"""Elements that reach parameters, of other looks at the same program."""
LEAST, MOST = 0.8, 1.1
"""The share of what the model is given that reaches parameters: below, some was not seen to, as in compiled
code; above, it is blown up first, so that equal sizes prove nothing."""


def harmless(case: TrialCase, moved: counts.Moved) -> str | None:
    """Why fewer elements or weights are the same work: nothing of what is missing can change the result.

    None if nothing shows that, and for any other count.
    """
    if moved.name not in (counts.INPUTS, counts.WEIGHTS):
        return None
    # Losses that the change itself prints prove nothing of it.
    own = case.setting.prints
    before, after = ([e.loss.begin for e in side] for side in (case.before, case.after))
    alike = same([*before, *after])
    if alike and not own:
        return "both sides print the same losses at their first steps"
    if moved.name == counts.WEIGHTS:
        return None
    reached = [_reached(e) for e in case.before], [_reached(e) for e in case.after]
    # Of a program that repeats its losses to the digit, other ones are of other input: another frame, say.
    other = alike is False and same(before)
    if _same_reached(*reached) and not other:
        return "as many elements reach the parameters as before"
    if case.setting.redundant and not own and not _fewer_reached(*reached) and agrees(case):
        return f"{case.setting.redundant} is about input that is never read, and the losses agree"
    return None


def unread(case: TrialCase) -> bool:
    """Tell whether the losses show that what a flag drops is never read."""
    return agrees(case) or same([e.loss.begin for e in (*case.before, *case.after)]) is True


Reach = tuple[float, float]
"""Elements that the model is given, and those that reach a parameter."""


def _reached(e: Evidence) -> Reach | None:
    """By the probe's looks at the run; None if it had none, or saw nothing reach a parameter."""
    inside = counts.counted(e)
    record = inside.facts.get("input") if inside is not None else None
    if not isinstance(record, Mapping):
        return None
    given, reached = record.get("given"), record.get("reached")
    if not isinstance(given, (int, float)) or not isinstance(reached, (int, float)):
        return None
    return (given, reached) if math.isfinite(given + reached) and given > 0 and reached > 0 else None


def _same_reached(before: Sequence[Reach | None], after: Sequence[Reach | None]) -> bool:
    """Tell whether what is missing never reached a parameter, by all runs."""
    old, new = [one for one in before if one], [one for one in after if one]
    if not old or len(old) + len(new) < len(before) + len(after):
        return False
    reached = [one[1] for one in (*old, *new)]
    whole = all(LEAST <= there / given <= MOST for given, there in new)
    return whole and max(reached) <= SAME * min(reached)


def _fewer_reached(before: Sequence[Reach | None], after: Sequence[Reach | None]) -> bool:
    """Tell whether a run of the trial was seen to have fewer elements reach its parameters."""
    old, new = [one[1] for one in before if one], [one[1] for one in after if one]
    return bool(old and new) and min(new) * SAME < min(old)
