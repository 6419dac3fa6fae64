"""The answer of `gpudebug compare` as text for people."""

from __future__ import annotations

from collections.abc import Mapping

from gpudebug.core.answers.compare import CompareAnswer, CompareSide
from gpudebug.core.answers.show import ProbeSide
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.across import text
from gpudebug.core.words import counted
from gpudebug.terminal import probe, sections
from gpudebug.terminal.fit import wrap

WIDTH = 80
_LABEL, _COLUMN = 16, 17
# Names shown with their value in `Same`; how many differing packages are listed.
_VALUED = ("compile", "warm-up", "device", "interpreter")
_PACKAGES = 12
_FIGURES = {"throughput": "throughput", "latency": "latency", "wall_time": "wall time"}


def compare(answer: CompareAnswer) -> str:
    """Render a table of A and B, the verdict, the differences and the files."""
    a, b = answer.a, answer.b
    lines = [*_behind("A  ", a.label), *_behind("B  ", b.label)]
    lines += [*(_behind("work: ", answer.work) if answer.work else []), ""]
    lines.append(_row("", f"A, {_runs(a)}", f"B, {_runs(b)}", "speed of B over A"))
    lines.append(_row("gpu_util", _utilisation(a), _utilisation(b)))
    lines += _of_devices(a, b)
    for name, label in _FIGURES.items():
        lines += _figure(name, label, answer)
    lines += _memory("host memory", a.peak_rss_mb, b.peak_rss_mb)
    lines += _memory("device memory", a.peak_device_mb, b.peak_device_mb)
    lines += _energy(a.joules_per_step, b.joules_per_step)
    lines += ["", *wrap(f"Verdict: {_verdict(answer)}", WIDTH, rest="  "), *_inside(a, b), *_sections(answer)]
    lines += _look(answer)
    lines += ["", *_differences(answer), *_same(answer.same)]
    lines += _behind("Unknown: ", ", ".join(answer.unknown)) if answer.unknown else []
    for note in answer.notes:
        lines += _behind("note: ", note)
    lines += ["Files:", *(f"  {f}" for f in answer.files)]
    return "\n".join([*lines, f"Next: {answer.next_command}"] if answer.next_command else lines)


def _runs(side: CompareSide) -> str:
    count = len(side.runs)
    return counted(count, "run")


def _row(label: str, a: str, b: str, ratio: str = "") -> str:
    return f"{label:<{_LABEL}}{a:<{_COLUMN}}{b:<{_COLUMN}}{ratio}".rstrip()


def _utilisation(side: CompareSide) -> str:
    """Return the utilisation, marked if the CPU stands in for a GPU."""
    on_cpu = side.stand_in and side.utilisation is not None
    return numbers.percent(side.utilisation) + (" (CPU)" if on_cpu else "")


def _figure(name: str, label: str, answer: CompareAnswer) -> list[str]:
    a, b = (_values(side, name) for side in (answer.a, answer.b))
    if a is None and b is None:
        return [_row(label, numbers.UNKNOWN, numbers.UNKNOWN)] if name != "latency" else []
    lines = [_row(label, _or_unknown(a, "mean"), _or_unknown(b, "mean"), _ratio(answer, name))]
    if name != "latency" and max(len(answer.a.runs), len(answer.b.runs)) == 1:
        return lines
    for end in ("first", "min", "max") if name == "latency" else ("min", "max"):
        lines.append(
            _row(f"  {end}{' (cold)' if end == 'first' else ''}", _or_unknown(a, end), _or_unknown(b, end))
        )
    return lines


def _values(side: CompareSide, name: str) -> dict[str, str] | None:
    """Return a figure's mean, its ends and a first latency as texts; None if unknown."""
    if name == "throughput":
        rate = side.throughput
        ends = (("mean", rate.mean), ("min", rate.min), ("max", rate.max)) if rate else ()
        return {end: _rate(v, rate.unit) for end, v in ends} if rate else None
    spread = side.latency if name == "latency" else side.wall_time
    if spread is None:
        return None
    first = {"first": numbers.seconds(side.latency.first_s)} if side.latency else {}
    times = (("mean", spread.mean_s), ("min", spread.min_s), ("max", spread.max_s))
    return first | {end: numbers.seconds(v) for end, v in times}


def _rate(value: float, unit: str) -> str:
    """Return a rate that fits into its column; what it counts is in `work:` above."""
    text = numbers.rate(value, unit)
    return text if len(text) < _COLUMN else f"{numbers.number(value)}/s"


def _or_unknown(figure: Mapping[str, str] | None, which: str) -> str:
    return numbers.UNKNOWN if figure is None else figure[which]


def _ratio(answer: CompareAnswer, name: str) -> str:
    ratio = answer.ratios[name]
    if ratio is None:
        return ""
    per = " a step" if ratio.unit == "s/step" else ""
    return f"{times(ratio.value)} ({times(ratio.low)} to {times(ratio.high)}){per}"


def times(value: float | None) -> str:
    """`1.42x`: two decimals near 1, three digits far from it."""
    if value is None:
        return numbers.UNKNOWN
    return f"{value:.2f}x" if 0.1 <= value < 10 else f"{value:.3g}x"


def _of_devices(a: CompareSide, b: CompareSide) -> list[str]:
    """Return the ends of what the devices differ by, if a side has several; of each figure, who is apart."""
    sides = [{one.figure: one for one in side.across} for side in (a, b)]
    util = [side.get("gpu_util") for side in sides]
    if not any(util):
        return []
    rows = [
        _row(
            f"  {end} GPU", *(numbers.percent(getattr(u, end).value) if u else numbers.UNKNOWN for u in util)
        )
        for end in ("least", "most")
    ]
    apart = [
        line
        for label, side in (("A", a), ("B", b))
        for one in side.across
        if one.apart
        for line in _behind(f"  {label}: ", text(one))
    ]
    return rows + apart


def _energy(a: float | None, b: float | None) -> list[str]:
    if a is None and b is None:
        return []
    return [_row("energy a step", *(numbers.number(v, "J") for v in (a, b)))]


def _memory(label: str, a: float | None, b: float | None) -> list[str]:
    if a is None and b is None:
        return []
    return [_row(label, *(numbers.UNKNOWN if v is None else f"{v:.0f} MB" for v in (a, b)))]


def _inside(a: CompareSide, b: CompareSide) -> list[str]:
    """Render what the probes recorded; nothing if neither program was a training."""
    if not (a.probe or b.probe):
        return []
    sides = [
        ProbeSide(part=part, runs=side.runs, figures=side.probe, reason=side.probe_reason)
        for part, side in (("A", a), ("B", b))
    ]
    return ["", *probe.sides(sides)]


def _sections(answer: CompareAnswer) -> list[str]:
    """Render the sections that the programs named, if any."""
    if not answer.sections:
        return []
    return ["", *sections.beside(answer.sections)]


def _look(answer: CompareAnswer) -> list[str]:
    """Say what was seen of the side that is slower."""
    if not answer.look:
        return []
    slower = "A" if answer.verdict == "faster" else "B"
    return ["", f"Why {slower} is slower:", *(line for one in answer.look for line in sections.check(one))]


def _verdict(answer: CompareAnswer) -> str:
    low, high = answer.ratio_ci
    ratio = times(answer.ratio).rstrip("x")
    interval = f"95% CI {times(low).rstrip('x')} to {times(high).rstrip('x')}"
    by = f"by {_FIGURES[answer.figure]}"
    if answer.verdict == "cannot_tell":
        return f"cannot tell: B is {ratio}x as fast as A {by} ({interval}, which includes 1.00)"
    return f"{answer.verdict}: B is {ratio}x as fast as A {by} ({interval})"


def _differences(answer: CompareAnswer) -> list[str]:
    if not answer.differences:
        return ["Differs: nothing known"]
    lines = ["Differs:"]
    ordered = sorted(answer.differences, key=lambda d: not d.matters)
    shown = [d for d in ordered if not d.name.startswith("package ")]
    packages = [d for d in ordered if d.name.startswith("package ")]
    shown += packages[:_PACKAGES]
    width = min(24, max(len(d.name) for d in shown))
    for d in shown:
        text = f"{d.a} -> {d.b}" + ("" if d.matters else "  (does not matter)")
        text += f"  ({d.why})" if d.why and d.matters else ""
        lines += _behind(f"  {d.name:<{width}}  ", text)
    more = len(packages) - _PACKAGES
    return [*lines, f"  and {counted(more, 'more package')} (--json)"] if more > 0 else lines


def _same(same: Mapping[str, str]) -> list[str]:
    """List what is the same, with the values that matter for reading the figures."""
    named = [f"{name} ({value})" if name in _VALUED else name for name, value in same.items()]
    return _behind("Same: ", ", ".join(named)) if named else []


def _behind(head: str, text: str) -> list[str]:
    return wrap(text, WIDTH, head) or [head.rstrip()]
