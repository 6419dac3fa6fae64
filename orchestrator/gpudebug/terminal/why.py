"""The answer of `gpudebug why` as text for people: at most twelve lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from gpudebug.core.answers.diagnosis import (
    AttachedLook,
    BusyPlace,
    DiagnosedCause,
    RunPhases,
    StepParts,
    WhyAnswer,
    gained,
)
from gpudebug.core.answers.sample import SampledDevice
from gpudebug.core.answers.status import FigureAcross
from gpudebug.core.diagnosis.run_phases import START_UP
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import apart_text, text
from gpudebug.core.statistics.phases import text as named
from gpudebug.core.words import AS_PLANNED
from gpudebug.terminal import devices
from gpudebug.terminal.fit import screen, short, wrap

MOST_LINES = 12
_MOST_APART = 2
"""Further figures by which a device is apart."""
_MUCH = 0.05
"""Of the planned time: a phase that costs less is not worth a word."""
_NAMED_PHASES = 3
_PLACES = 2
_PROBLEM = 5
_A_CAUSE = 2
_RANKS = 2
_LIKELY = 0.03
_WIDEST = 120
_INDENT = "   "


def why(answer: WhyAnswer) -> str:
    """Render the answer; what does not fit is in the folder and in `--json`."""
    head = [_head(answer), *_devices(answer.devices if answer.window else (), answer.across)]
    above = [*_step(answer.step), *_job(answer), *_ranks(answer)]
    below = [*_aside(answer), f"Next  {answer.next_command}"]
    likely = [] if answer.abstains else [c for c in answer.causes if c.probability >= _LIKELY]
    left = MOST_LINES - len(head) - len(above) - len(below)
    # How long phases took stands in the place of a cause only if one of them costs much.
    phases = _phases(answer.phases)
    changes = answer.phases is not None and bool(answer.phases.named or answer.phases.named_reason)
    if phases and (
        changes or _costs_much(answer.phases) or left > _A_CAUSE * min(len(likely), max(1, left // _A_CAUSE))
    ):
        head, left = [*head, *phases], left - len(phases)
    shown = likely[: max(1, left // _A_CAUSE)]
    causes = [line for place, cause in enumerate(shown, 1) for line in _cause(place, cause)]
    return "\n".join([*[*head, *above, *causes][: MOST_LINES - len(below)], *below])


def _cut(text: str, indent: str = "", keep: int = 0) -> str:
    """One line of at most the screen's columns; its first `keep` characters stay whatever that takes."""
    here = screen()
    widest = min(here.columns, _WIDEST) if here.terminal else _WIDEST
    return short(f"{indent}{here.line(text)}", max(widest, len(indent) + keep))


def _head(answer: WhyAnswer) -> str:
    took = numbers.duration(answer.duration_s) if answer.duration_s else numbers.UNKNOWN
    rate = answer.throughput.steps_per_s
    speed = f", {numbers.number(rate, 'steps/s')}" if rate is not None else ""
    kind = answer.framework or (answer.kind if answer.kind != "other" else "a program")
    ended = answer.outcome if answer.outcome not in AS_PLANNED else ""
    if ended:
        ended = f"{ended} ({answer.why}), " if answer.why else f"{ended}, "
    seen = (
        f"steady from {answer.window.start_s:.0f} to {answer.window.end_s:.0f} s{speed}"
        if answer.window
        else "no steady window"
    )
    return _cut(f"{ended}{took} of {kind}, {seen}: {answer.command}")


def _devices(rows: Sequence[SampledDevice], across: Sequence[FigureAcross]) -> list[str]:
    """Return a line each, or of many the mean, and the least, median and most."""
    if len(rows) <= devices.FEW:
        return [_cut(line) for line in devices.devices(rows)]
    known = [d.gpu_util.mean for d in rows if d.gpu_util is not None]
    if not known:
        return [_cut(f"{len(rows)} devices: gpu_util unknown: {rows[0].reason}")]
    mean = sum(known) / len(known)
    return [
        f"{len(rows)} devices: gpu_util {mean:.1f}% (least {min(known):.0f}, most {max(known):.0f}"
        + (f"; {len(rows) - len(known)} unknown)" if len(known) < len(rows) else ")")
        + "".join(apart_text(one) for one in across if one.figure == "gpu_util"),
        *[_cut(text(one)) for one in across if one.figure != "gpu_util" and one.apart][:_MOST_APART],
    ]


def _costs_much(phases: RunPhases | None) -> bool:
    return phases is not None and phases.most_share is not None and phases.most_share >= _MUCH


def _phases(phases: RunPhases | None) -> list[str]:
    if phases is None:
        return []
    spans = {START_UP: phases.start_up_s, "first steps": phases.first_steps_s, "steady": phases.steady_s}
    text = ", ".join(f"{name} {numbers.duration(seconds)}" for name, seconds in spans.items())
    within = ", ".join(f"{name} {100 * part:.0f}%" for name, part in phases.within.items())
    most = ""
    if _costs_much(phases):
        most = f"; most: {phases.most}, {100 * (phases.most_share or 0.0):.0f}% of the plan"
    lines = [_cut(f"Phases: {text}{f' ({within})' if within else ''}{most}")]
    for one in phases.named[:_NAMED_PHASES]:
        most_of = phases.named_places.get(one.name)
        lines.append(_cut(named(one) + (f"; {_where(most_of)}" if most_of else ""), _INDENT))
    lines += [_cut(phases.named_reason, _INDENT)] if phases.named_reason else []
    place = phases.start_up_place
    if most and phases.most == START_UP and place is not None:
        by = f", called by {phases.start_up_caller}" if phases.start_up_caller else ""
        lines.append(_cut(f"Start-up: {_where(place)}{by}"))
    return lines


def _where(place: BusyPlace) -> str:
    return f"{100 * place.share:.0f}% {place.state} {place.site} {place.function}"


def _step(step: StepParts) -> list[str]:
    lines = []
    if step.shares:
        parts = [f"{name.replace('_', ' ')} {100 * share:.0f}%" for name, share in step.shares.items()]
        took = numbers.of_step(step.time_s, step.median_s, step.pauses)
        lines.append(_cut(f"A step{took}: {', '.join(parts)}"))
    if step.places:
        lines.append(_cut(f"Most time: {'; '.join(map(_where, step.places[:_PLACES]))}"))
    return lines


def _ranks(answer: WhyAnswer) -> list[str]:
    """Of a training with several processes which one the others wait for."""
    if answer.ranks is None:
        return []
    first, *more = devices.ranks(answer.ranks)[1 : 1 + _RANKS]
    straggler = answer.ranks.straggler
    read = [_cut(straggler.line, _INDENT)] if straggler and straggler.line else []
    return [_cut(first), *read, *map(_cut, more)]


def _job(answer: WhyAnswer) -> list[str]:
    if answer.attached is None:
        return []
    missing = (wrap(line, _WIDEST, rest=_INDENT)[:_PROBLEM] for line in unseen(answer.attached))
    seen = [_cut(line) for line in (job(answer.attached), *ranks(answer.attached))]
    return [*seen, *chain.from_iterable(missing)]


def _cause(place: int, cause: DiagnosedCause) -> list[str]:
    ceiling = _ceiling(cause)
    test = cause.hypothesis
    head = f"{place}. {cause.id} {100 * cause.probability:.0f}% likely{ceiling}: {cause.title}"
    because = f" ({cause.for_[0]})" if cause.for_ else ""
    if test.change:
        # What is to be typed is never cut.
        shown = f"try {test.change}"
        return [_cut(head), _cut(f"{shown}{because}", _INDENT, keep=len(shown) + 1)]
    how = test.instructions or test.refused or "write down how to test it"
    return [_cut(head), _cut(f"try {how}{because}", _INDENT)]


def _ceiling(cause: DiagnosedCause) -> str:
    if cause.ceiling_ratio is None:
        return ", gain unknown"
    points = f", +{cause.ceiling_pp:.1f}pp" if cause.ceiling_pp is not None else ""
    most = gained(cause.ceiling_ratio)
    return f", {'maybe' if most.startswith('over') else 'at most'} {most}{points}"


def _aside(answer: WhyAnswer) -> list[str]:
    """Return what kept the look from seeing the training, or why no cause is named; and the first remark."""
    lines = []
    if answer.problem:
        lines += wrap(answer.problem, _WIDEST, rest=_INDENT)[:_PROBLEM]
    elif answer.abstains:
        lines.append(_cut(f"No cause is named: {answer.abstains}"))
    lines += [_cut(f"Note: {note}") for note in answer.notes[:1]]
    return lines


_SMALL = 0.05
_FEW = 3
_NAMED = 2


def job(look: AttachedLook) -> str:
    """Its processes, what its main thread does, and what looking took."""
    parts = [_who(look), *_main(look), *_cost(look)]
    return f"Job {look.pid}: {'; '.join(parts)}"


def ranks(look: AttachedLook) -> list[str]:
    """Return which ranks spend their time elsewhere than most do; nothing if none does."""
    known = [one for one in look.processes if one.get("of") in ("training", "rank") and one.get("place")]
    places = Counter(str(one["place"]) for one in known)
    if len(known) < _FEW or len(places) < 2:
        return []
    (usual, times), *_ = places.most_common(1)
    odd = [one for one in known if one["place"] != usual]
    if times <= len(known) / 2:
        return []
    named = [f"rank {one.get('rank')} {_share(one)}{one['place']}" for one in odd[:_NAMED]]
    more = f" and {len(odd) - _NAMED} more" if len(odd) > _NAMED else ""
    return [f"Ranks: {times} of {len(known)} mostly in {usual}; {', '.join(named)}{more}"]


def _share(process: Mapping[str, object]) -> str:
    share = _number(process, "place_share")
    return f"{100 * share:.0f}% in " if share is not None else "in "


def unseen(look: AttachedLook) -> list[str]:
    """Return why there are no stacks, and what to do about that; nothing if there are."""
    main = next((one for one in look.processes if one.get("of") == "training"), {})
    known = {"Stacks unknown": main.get("why"), "To see them": main.get("allow")}
    return [f"{name}: {text}" for name, text in known.items() if text]


def _who(look: AttachedLook) -> str:
    kinds = [str(one.get("of")) for one in look.processes]
    ranks = kinds.count("rank") + 1 if "rank" in kinds else 0
    cores = [number for one in look.processes if (number := _number(one, "cores")) is not None]
    found = [f"{ranks} ranks"] if ranks else []
    count, kind = (look.members, "Python process") if look.members else (len(cores), "process")
    if count:
        found.append(f"{count} {kind}{'es' if count > 1 else ''}")
    if cores:
        part = "" if len(cores) == count else f"{len(cores)} of them "
        found.append(f"{part}{sum(cores):.2f} cores")
    return ", ".join(found) or "nothing was seen of it"


def _main(look: AttachedLook) -> list[str]:
    """Return the main thread's time, and what of the kernel's counters is worth a word."""
    main = next((one for one in look.processes if one.get("of") == "training"), None)
    if main is None:
        return []
    names = {"main_running": "runs", "main_ready": "waits for a core", "disk_wait": "waits for a disk"}
    known = {text: _number(main, name) for name, text in names.items()}
    shares = [
        f"{text} {100 * share:.0f}%"
        for text, share in known.items()
        if share is not None and (share >= _SMALL or text == "runs")
    ]
    rates = {"read_mb_s": "reads {:.0f} MB/s", "write_mb_s": "writes {:.0f} MB/s"}
    rates |= {"major_faults_s": "{:.0f} page faults/s", "swap_mb": "{:.0f} MB in swap"}
    more = [text.format(value) for name, text in rates.items() if (value := _number(main, name) or 0) >= 1]
    return [f"its thread {', '.join([*shares, *more])}"] if shares or more else []


def _cost(look: AttachedLook) -> list[str]:
    return [f"looking took {100 * look.cost:.1f}% of a core"] if look.cost is not None else []


def _number(process: Mapping[str, object], name: str) -> float | None:
    value = process.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
