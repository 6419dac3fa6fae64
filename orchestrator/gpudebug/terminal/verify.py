"""The answer of `gpudebug verify` as text for people: a line a finding, the totals last."""

from __future__ import annotations

import json
import os
from typing import Any

from gpudebug.core.answers.verify import AbsentEvidence, Mismatch, VerifyAnswer
from gpudebug.core.statistics import numbers
from gpudebug.terminal.fit import short

_LONGEST = 160


def verify(answer: VerifyAnswer) -> str:
    """List each problem with file and line, what is absent or was not checked, notes, the totals."""
    root = answer.root
    lines = [_problem(p, root) for p in answer.problems]
    lines += [f"evidence absent: {_absent(a)}" for a in answer.absent]
    lines += [f"not checked: {_beside(line, root)}" for line in answer.unchecked]
    lines += [f"note: {line}" for line in answer.notes]
    return "\n".join([*lines, _totals(answer)])


def _problem(p: Mismatch, root: str) -> str:
    place = _beside(p.file, root) + (f":{p.line}" if p.line else "")
    values = f"expected {_value(p.expected, numbers.UNKNOWN)}, found {_value(p.found, 'nothing')}"
    if os.path.basename(p.file) == p.field:
        values = f" ({values})" if (p.expected, p.found) != (None, None) else ""
        return f"{place}: {_of(p)}{p.why}{values}"
    if p.why and p.expected is None:
        values = f"found {_value(p.found, 'nothing')}"
    return f"{place}: {_of(p)}{p.field}: {values}" + (f" ({p.why})" if p.why else "")


def _of(p: Mismatch | AbsentEvidence) -> str:
    if p.hypothesis is not None:
        return f"hypothesis {p.hypothesis}: "
    return f"baseline {p.baseline}: " if p.baseline else ""


def _value(value: Any, absent: str) -> str:
    if value is None:
        return absent
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return short(text, _LONGEST)


def _beside(text: str, root: str) -> str:
    """Make paths in the campaign relative to its folder."""
    return text.replace(root.rstrip(os.sep) + os.sep, "")


def _absent(a: AbsentEvidence) -> str:
    runs = ", ".join(f"runs/{name}" for name in a.runs)
    return f"{_of(a)}{runs}"


def _totals(answer: VerifyAnswer) -> str:
    checked = answer.checked
    done = ", ".join(
        (
            _count(len(checked.baselines), "baseline"),
            _count(len(checked.hypotheses), "verdict"),
            _count(len(checked.runs), "run"),
            _count(checked.files, "file"),
        )
    )
    if answer.ok and not (checked.baselines or checked.hypotheses or checked.runs or checked.files):
        return "OK: nothing to verify yet: no run has been recorded"
    if answer.ok:
        return f"OK: {done}: every figure follows from the evidence"
    if answer.problems:
        return f"{_count(len(answer.problems), 'problem')} in {done}"
    if answer.absent and not checked.runs:
        return "UNKNOWN: no evidence to check against was found; copy runs/ from where it was recorded"
    return f"UNKNOWN: {done}: nothing differs, not all could be checked"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
