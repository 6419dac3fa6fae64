"""A campaign's status as text for people: every line fits the screen, no number is ever cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gpudebug.core.answers.answer import PhaseFigures
from gpudebug.core.answers.status import (
    AcceptedWorth,
    BaselineRow,
    OrderSource,
    PinnedSettings,
    RecordedAt,
    StatusAnswer,
    UnlistedVerdict,
)
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import shown, text
from gpudebug.core.words import counted
from gpudebug.terminal.fit import Screen, screen
from gpudebug.terminal.hypotheses import drawn, hypotheses, sweeps

_GOAL = 2
_SETTINGS = 4
# More devices or verdicts than this are counted, not listed.
_NAMED = 2
# With less room beside its name, a baseline's figures are below it.
_BESIDE, _INDENT = 44, 5


def status(answer: StatusAnswer) -> str:
    here = screen()
    parts = [
        _head(answer, here),
        [line for role, b in answer.baselines.items() if b for line in _baseline(role, b, here)],
        _noise(answer, here),
        _together(answer.together, here),
        [*hypotheses(answer, here), *sweeps(answer, here)],
        _ahead(answer, here),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _head(answer: StatusAnswer, here: Screen) -> list[str]:
    goal = here.labelled("Goal     ", answer.goal, _GOAL) if answer.goal.strip() else []
    played = "replayed: " if answer.device.replayed else ""
    seen = f"{played}{_devices(answer.device.devices)} [device: {answer.device.setting}]"
    return [
        *here.labelled("Campaign ", answer.campaign),
        *goal,
        *here.labelled("Device   ", seen),
        *_settings(answer.settings, here),
        *_unlisted(answer.unlisted, here),
    ]


def _settings(pinned: PinnedSettings, here: Screen) -> list[str]:
    """Render how gpudebug.yaml differs from the pinned settings; nothing if it does not."""
    if not (pinned.differences or pinned.problem):
        return []
    text = pinned.problem or f"not what is pinned: {'; '.join(pinned.differences)}"
    return here.labelled("Settings ", f"{text}; see gpudebug settings", _SETTINGS)


def _unlisted(verdicts: Sequence[UnlistedVerdict], here: Screen) -> list[str]:
    """List verdicts in runs/ that are missing from the progress file."""
    if not verdicts:
        return []
    names = [f"runs/{u.run} (hypothesis {u.hypothesis}, {u.status})" for u in verdicts[:_NAMED]]
    more = f" and {len(verdicts) - _NAMED} more" if len(verdicts) > _NAMED else ""
    text = f"{', '.join(names)}{more} {'is' if len(verdicts) == 1 else 'are'} not in the progress file"
    return here.labelled("Verdicts ", f"{text}; see gpudebug verify", _SETTINGS)


def _devices(devices: Sequence[Mapping[str, Any]]) -> str:
    if len(devices) <= _NAMED:
        return ", ".join(f"{d['name']} ({d['uuid']})" for d in devices) or "not used yet"
    return ", ".join(f"{count} x {name}" for name, count in Counter(d["name"] for d in devices).items())


def _baseline(role: str, b: BaselineRow, here: Screen) -> list[str]:
    label = f"Baseline {role:<10} "
    beside = here.columns - len(label) >= _BESIDE
    indent = " " * (len(label) if beside else _INDENT)
    lines = here.labelled(label, _measured(b)) if beside else [label.rstrip()]
    lines += [] if beside else here.labelled(indent, _measured(b))
    lines += [indent + line for line in here.sparks(drawn(b), here.columns - len(indent))]
    lines += here.labelled(f"{indent}work: ", b.work_text) if b.work_text else []
    lines += [line for one in _phases(b.phases) for line in here.labelled(f"{indent}phase ", one)]
    lines += [line for one in shown(b.across) for line in here.labelled(f"{indent}devices: ", text(one))]
    lines += [line for note in b.device_notes for line in here.labelled(f"{indent}devices: ", note)]
    for advice in b.advice:
        lines += here.labelled(f"{indent}advice: ", advice)
    return lines


def _phases(rows: Sequence[PhaseFigures]) -> list[str]:
    if not rows:
        return []
    # Records take longer to load than all else of `status`.
    from gpudebug.core.statistics import phases

    return [phases.text(row) for row in rows]


def _measured(b: BaselineRow) -> str:
    """Format a baseline's figures, their age and what is wrong with them."""
    if not b.valid and not b.runs and not b.gpu_util_text:
        return str(b.why)
    own = f"{b.metric_text}, gpu_util " if b.metric_text else ""
    figure = b.gpu_util_text or numbers.percent(b.gpu_util)
    rate = b.throughput_text or numbers.UNKNOWN
    text = f"{own}{figure}, {rate}, loss {b.loss or numbers.UNKNOWN}"
    if b.age_s is not None:
        text += f", {numbers.span(b.age_s)} ago"
    if b.replayed:
        text += ", replayed"
    if not b.verified:
        text += "  UNVERIFIED"
    if b.valid:
        return text
    return f"{text}  [stale: {b.why}]" if b.verified else f"{text}  [{b.why}]"


def _together(worth: AcceptedWorth | None, here: Screen) -> list[str]:
    """Render what the accepted changes are worth together."""
    if worth is None:
        return []
    text = worth.text or f"{numbers.UNKNOWN}: {worth.why}"
    text += f", throughput {worth.throughput}" if worth.throughput else ""
    notes = [line for note in worth.notes for line in here.labelled("   note: ", note)]
    return [*here.labelled("Together ", text), *notes]


def _noise(answer: StatusAnswer, here: Screen) -> list[str]:
    """Render the detectable effect, and the figures expected of the baselines."""
    if not (answer.resolution or answer.expected):
        return []
    from gpudebug.terminal import noise

    lines = noise.resolution(answer.resolution) if answer.resolution else []
    lines += noise.expected(answer.expected)
    return [line for text in lines for line in here.labelled(text[:9], text[9:])]


def _ahead(answer: StatusAnswer, here: Screen) -> list[str]:
    """Render the target, the budget and what `next` would do."""
    budget, after = answer.budget, answer.next
    left, total = map(numbers.duration, (budget.device_time_left_s, budget.device_time_s))
    rest = (
        f"{budget.hypotheses_left} of {counted(budget.hypotheses, 'hypothesis', 'hypotheses')} and "
        f"{left} of {total} device time "
        f"left ({budget.hypotheses_used} tested, {numbers.duration(budget.device_time_used_s)} used)"
    )
    lines = [
        *here.labelled("Target   ", answer.target_text),
        *here.labelled("Budget   ", rest),
        *_next(f"{after.action}: {after.why}", here),
        *_order(answer.order, here),
        *_recorded(answer.recorded, here),
    ]
    if answer.allocation:
        lines += here.labelled("Cluster  ", answer.allocation)
    if answer.progress:
        from gpudebug.terminal.live import progress

        lines += here.labelled("Progress ", progress(answer.progress))
    return lines


def _order(order: OrderSource | None, here: Screen) -> list[str]:
    """Render when the order of untested hypotheses was recorded, and from which baseline."""
    if order is None:
        return []
    age = numbers.UNKNOWN if order.age_s is None else f"{numbers.span(order.age_s)} ago"
    runs = [f"runs/{name}" for name in order.baseline]
    made = f", from {', '.join(runs[:_NAMED])}{', …' if len(runs) > _NAMED else ''}" if runs else ""
    return here.labelled("Order    ", f"recorded by {order.by} {age}{made}")


def _recorded(record: RecordedAt | None, here: Screen) -> list[str]:
    """Render the age of recorded figures; nothing if the evidence was read."""
    if record is None:
        return []
    age = numbers.UNKNOWN if record.age_s is None else f"{numbers.span(record.age_s)} ago"
    return here.labelled("Figures  ", f"as recorded {age}; gpudebug verify proves them")


def _next(text: str, here: Screen) -> list[str]:
    """Render what `next` would do; if that takes several lines, a command in it has its own."""
    label = "Next     "
    lines = here.labelled(label, text)
    if len(lines) == 1:
        return lines
    lines = []
    while text:
        before, colon, after = text.partition(": gpudebug ")
        command, _, text = after.partition("; ")
        lines += here.labelled(label, before + ":" * bool(colon))
        label = " " * len(label)
        lines += [f"{label}gpudebug {here.line(command)}"] if colon else []
    return lines
