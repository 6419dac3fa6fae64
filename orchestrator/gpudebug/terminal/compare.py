"""The answer of `gpudebug compare` as text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpudebug.core.statistics import numbers
from gpudebug.terminal.fit import wrap

Answer = Mapping[str, Any]
WIDTH = 80
_LABEL, _COLUMN = 16, 17
# Of what is the same, the value is shown of these; of packages that differ, this many.
_VALUED = ("compile", "warm-up", "device", "interpreter")
_PACKAGES = 12
_FIGURES = {"throughput": "throughput", "latency": "latency", "wall_time": "wall time"}


def compare(answer: Answer) -> str:
    """A table of A and B, the verdict in a sentence, what else differs, where the files are."""
    a, b = answer["a"], answer["b"]
    lines = [*_behind("A  ", a["label"]), *_behind("B  ", b["label"]), ""]
    lines.append(_row("", f"A, {_runs(a)}", f"B, {_runs(b)}", "speed of B over A"))
    lines.append(_row("gpu_util", _utilisation(a), _utilisation(b)))
    for name, label in _FIGURES.items():
        lines += _figure(name, label, answer)
    lines += _memory("host memory", "peak_rss_mb", a, b) + _memory("device memory", "peak_device_mb", a, b)
    lines += ["", *wrap(f"Verdict: {_verdict(answer)}", WIDTH, rest="  "), *_inside(a, b), *_sections(answer)]
    lines += ["", *_differences(answer), *_same(answer["same"])]
    lines += _behind("Unknown: ", ", ".join(answer["unknown"])) if answer["unknown"] else []
    for note in answer["notes"]:
        lines += _behind("note: ", note)
    return "\n".join([*lines, "Files:", *(f"  {f}" for f in answer["files"])])


def _runs(side: Answer) -> str:
    count = len(side["runs"])
    return f"{count} run{'s' if count != 1 else ''}"


def _row(label: str, a: str, b: str, ratio: str = "") -> str:
    return f"{label:<{_LABEL}}{a:<{_COLUMN}}{b:<{_COLUMN}}{ratio}".rstrip()


def _utilisation(side: Answer) -> str:
    """Of a device that stands in for a GPU, it is said."""
    stands_in = side["stand_in"] and side["utilisation"] is not None
    return numbers.percent(side["utilisation"]) + (" (CPU)" if stands_in else "")


def _figure(name: str, label: str, answer: Answer) -> list[str]:
    a, b = answer["a"][name], answer["b"][name]
    if a is None and b is None:
        return [_row(label, numbers.UNKNOWN, numbers.UNKNOWN)] if name != "latency" else []
    show: Callable[[Answer, str], str] = _rate if name == "throughput" else _time
    lines = [_row(label, _or_unknown(a, show, "mean"), _or_unknown(b, show, "mean"), _ratio(answer, name))]
    if name != "latency" and max(len(answer[side]["runs"]) for side in "ab") == 1:
        return lines
    for end in ("first", "min", "max") if name == "latency" else ("min", "max"):
        lines.append(_row(f"  {end}", _or_unknown(a, show, end), _or_unknown(b, show, end)))
    return lines


def _or_unknown(figure: Answer | None, show: Callable[[Answer, str], str], which: str) -> str:
    return numbers.UNKNOWN if figure is None else show(figure, which)


def _rate(figure: Answer, which: str) -> str:
    return numbers.rate(figure[which], figure["unit"])


def _time(figure: Answer, which: str) -> str:
    return numbers.seconds(figure[f"{which}_s"])


def _ratio(answer: Answer, name: str) -> str:
    found = answer["ratios"][name]
    if found is None:
        return ""
    per = " a step" if found["unit"] == "s/step" else ""
    return f"{times(found['value'])} ({times(found['low'])} to {times(found['high'])}){per}"


def times(value: float) -> str:
    """`1.42x`: two decimals near 1, three digits far from it."""
    return f"{value:.2f}x" if 0.1 <= value < 10 else f"{value:.3g}x"


def _memory(label: str, key: str, a: Answer, b: Answer) -> list[str]:
    if a[key] is None and b[key] is None:
        return []
    return [_row(label, *("unknown" if v is None else f"{v:.0f} MB" for v in (a[key], b[key])))]


def _inside(a: Answer, b: Answer) -> list[str]:
    """What the trainings told of themselves; nothing where neither did, as of programs that train nothing."""
    if not (a["probe"] or b["probe"]):
        return []
    from gpudebug.core.inside.probe.together import side
    from gpudebug.terminal import probe

    return ["", *probe.sides([side(n, [{"run": n, **s}]) for n, s in (("A", a), ("B", b))])]


def _sections(answer: Answer) -> list[str]:
    """The sections that the programs named, where they named any."""
    if not answer["sections"]:
        return []
    from gpudebug.core.answers.probe import SectionMean, SectionRow
    from gpudebug.terminal import sections

    rows = [
        SectionRow(**{**r, **{s: SectionMean(**r[s]) if r[s] else None for s in "ab"}})
        for r in answer["sections"]
    ]
    return ["", *sections.beside(rows)]


def _verdict(answer: Answer) -> str:
    low, high = answer["ratio_ci"]
    ratio = times(answer["ratio"]).rstrip("x")
    interval = f"95% CI {times(low).rstrip('x')} to {times(high).rstrip('x')}"
    by = f"by {_FIGURES[answer['figure']]}"
    if answer["verdict"] == "cannot_tell":
        return f"cannot tell: B is {ratio}x as fast as A {by} ({interval}, which holds 1.00)"
    return f"{answer['verdict']}: B is {ratio}x as fast as A {by} ({interval})"


def _differences(answer: Answer) -> list[str]:
    if not answer["differences"]:
        return ["Differs: nothing that is known"]
    lines = ["Differs:"]
    ordered = sorted(answer["differences"], key=lambda d: not d["matters"])
    shown = [d for d in ordered if not d["name"].startswith("package ")]
    packages = [d for d in ordered if d["name"].startswith("package ")]
    shown += packages[:_PACKAGES]
    width = min(24, max(len(d["name"]) for d in shown))
    for d in shown:
        said = f"{d['a']} -> {d['b']}" + ("" if d["matters"] else "  (does not matter)")
        said += f"  ({d['why']})" if d["why"] and d["matters"] else ""
        lines += _behind(f"  {d['name']:<{width}}  ", said)
    more = len(packages) - _PACKAGES
    return [*lines, f"  and {more} more package{'s' if more > 1 else ''} (--json)"] if more > 0 else lines


def _same(same: Mapping[str, str]) -> list[str]:
    """With its value where that says how the figures are to be read."""
    named = [f"{name} ({value})" if name in _VALUED else name for name, value in same.items()]
    return _behind("Same: ", ", ".join(named)) if named else []


def _behind(head: str, text: str) -> list[str]:
    return wrap(text, WIDTH, head) or [head.rstrip()]
