"""A diagnosis and its layer tests as text for people: each likely cause with its evidence and its test."""

from __future__ import annotations

from collections.abc import Iterator

from gpudebug.core.answers.diagnosis import DiagnoseAnswer, DiagnosedCause, LayerAnswer, gained
from gpudebug.core.answers.sample import RanksFinding
from gpudebug.core.diagnosis.odds import number
from gpudebug.core.evidence.devices import mean_misleads
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import LEAST, WORKING
from gpudebug.core.words import counted
from gpudebug.terminal import devices
from gpudebug.terminal.devices import failure
from gpudebug.terminal.fit import wrap

_SHOWN = 3
_WIDTH = 100
_LIKELY = 0.03


def diagnose(answer: DiagnoseAnswer) -> str:
    """Render the answer; improbable causes are left out."""
    lines = [_head(answer), *_beside(answer), ""]
    if answer.failure:
        lines += [*(one for line in failure(answer.failure) for one in wrap(line, _WIDTH, rest="  ")), ""]
    if answer.abstains:
        lines += [*wrap(f"No cause is named: {answer.abstains}.", _WIDTH), ""]
    lines += [*_ranks(answer.ranks), ""] if answer.ranks else []
    for gate in answer.gates:
        facts = f" ({'; '.join(gate.for_)})" if gate.for_ else ""
        lines += wrap(f"Known without a run: {gate.id}: {gate.title}{facts}", _WIDTH, rest="  ")
    lines += [""] if answer.gates else []
    shown = [c for c in answer.causes if c.probability >= _LIKELY][: 1 if answer.abstains else _SHOWN]
    for place, cause in enumerate(shown, 1):
        lines += [*_cause(place, cause, answer), ""]
    for line in answer.no_help:
        lines += [*wrap(f"Note: {line}", _WIDTH, rest="  "), ""]
    beside = around(answer)
    lines += [*(one for line in beside for one in wrap(line, _WIDTH, rest="  ")), ""] if beside else []
    for missing in answer.missing:
        lines += wrap(
            f"Missing: {missing.what} ({missing.why}). To get it: {missing.next}", _WIDTH, rest="  "
        )
    lines += [""] if answer.missing else []
    lines.append(f"Next     {answer.next_command}")
    return "\n".join(lines)


def _head(answer: DiagnoseAnswer) -> str:
    runs = answer.runs
    kind = f"{answer.kind} workload" + (f", {answer.framework}" if answer.framework else "")
    if not runs:
        name = answer.campaign or "This command"
        return f"{name} has no baseline yet: {kind}, known by its command alone"
    count = f" ({counted(len(runs), 'run')})" if answer.campaign else ""
    device = ", the CPU stands in for a GPU" if answer.stand_in else ""
    util = numbers.percent(answer.gpu_util)
    return f"Diagnosis of {answer.campaign or runs[0]}{count}: {kind}, gpu_util {util}{device}"


def _beside(answer: DiagnoseAnswer) -> list[str]:
    """Return what the devices show beside each other, whatever it costs."""
    known = answer.facts.get("awaited_device")
    share = number(answer.facts.get("working_share"))
    notes = (known, mean_misleads(answer.gpu_util, share, awaited=known is not None))
    return [line for note in notes if note for line in wrap(f"Devices: {note}", _WIDTH, rest="  ")]


def _ranks(found: RanksFinding) -> Iterator[str]:
    for line in devices.ranks(found):
        yield from wrap(line, _WIDTH, rest="  ")
    for fact in devices.facts(found):
        yield from wrap(fact, _WIDTH, "   for      ")
    if found.straggler and found.straggler.line:
        yield from wrap(found.straggler.line, _WIDTH, "   line     ")


def _cause(place: int, cause: DiagnosedCause, answer: DiagnoseAnswer) -> Iterator[str]:
    yield f"{place}. {cause.id}  {100 * cause.probability:.0f}%  {cause.title}"
    for fact in cause.for_:
        yield from wrap(fact, _WIDTH, "   for      ")
    for fact in cause.against:
        yield from wrap(fact, _WIDTH, "   against  ")
    if cause.line and not any(cause.line in fact for fact in cause.for_):
        yield from wrap(cause.line, _WIDTH, "   line     ")
    yield f"   ceiling  {_ceiling(cause, answer)}"
    yield from _test(cause)


_OF = {LEAST: " of the least busy GPU", WORKING: " of the working share"}


def _ceiling(cause: DiagnosedCause, answer: DiagnoseAnswer) -> str:
    if cause.ceiling_ratio is None:
        return "unknown: its share of the time was not measured"
    rate = cause.ceiling_steps_per_s
    faster = f"{gained(cause.ceiling_ratio)} steps/s" + (f", to {numbers.rate(rate)}" if rate else "")
    if cause.ceiling_pp is not None:
        of = _OF.get(str(answer.facts.get("telling_devices")), "")
        return f"+{cause.ceiling_pp:.1f}pp{of}, to {numbers.percent(cause.expected_util)}; {faster}"
    if answer.gpu_util is None:
        return f"{faster}; gpu_util is not known"
    return f"{faster}; utilisation cannot show it" + (" on the CPU" if answer.stand_in else "")


def _test(cause: DiagnosedCause) -> Iterator[str]:
    test = cause.hypothesis
    cost = f" ({numbers.duration(test.cost_s)} of the device)" if test.cost_s else ""
    if test.number is not None:
        yield from wrap(f"hypothesis {test.number}: {test.title}{cost}", _WIDTH, "   test     ")
        return
    if test.refused:
        after = f": {test.command}" if test.command else ""
        yield from wrap(f"none is left: {test.refused}{after}", _WIDTH, "   test     ")
        return
    change = test.change or ("code to be written" if test.instructions else None)
    action = ", ".join(text for text in (test.command, change) if text) or "write down how to test it"
    yield from wrap(f"{action}{cost}", _WIDTH, "   test     ")


_MOST = 12
DIAGNOSTIC = "It shows where to look and is not a fix: no hypothesis, baseline or verdict uses this run."


def layer(answer: LayerAnswer) -> str:
    """Render `diagnose --layer`."""
    took = answer.device_time_s
    cost = f", {numbers.duration(took)} of the device" if took is not None else ""
    lines = [
        f"Layer test {answer.layer}: run {answer.run}{cost}",
        f"changed  {answer.changed}",
        f"means    {answer.means[:1].upper()}{answer.means[1:]}.",
    ]
    if answer.layer == "double-batch" and answer.ratio is not None:
        lines.append(f"         Samples a second: {answer.ratio:.2f} times the baseline's.")
    lines += [f"note     {note}" for note in answer.notes]
    return "\n".join([*lines, DIAGNOSTIC, f"Next: {answer.next_command}"])


def around(answer: DiagnoseAnswer) -> list[str]:
    """List layer tests and differences from the reference, a line each; long lists are cut."""
    lines = [
        f"Layer {name}: {test.means} ({', '.join(test.runs)}; diagnostic only)"
        for name, test in answer.layers.items()
    ]
    differences = answer.difference.lines if answer.difference else ()
    if differences:
        more = [f"and {len(differences) - _MOST} more, in --json"] if len(differences) > _MOST else []
        lines += ["Differs from the reference:", *(f"  {line}" for line in (*differences[:_MOST], *more))]
    return lines
