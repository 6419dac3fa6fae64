"""Sections as text for people: a report, two side by side, and those of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpudebug.core.answers.sections import Check, SectionNode, SectionsAnswer, SectionsComparison, SideSection
from gpudebug.core.answers.show import SectionRow
from gpudebug.core.statistics import numbers
from gpudebug.core.words import counted, short
from gpudebug.terminal.fit import wrap

Document = Mapping[str, Any]
WIDTH = 100
# Rows of a table on a terminal; a file holds all of them.
ROWS = 40
_LEAST_NAME, _LONGEST_NAME = 30, 48
_COLUMNS = (("Calls", 9), ("Total(s)", 11), ("Avg(s)", 11), ("Min(s)", 11), ("Max(s)", 11))
_PEAKS = ("Mem Peak(MB)", "GPU Peak(MB)")
_SHOWN_OF_A_RUN, _SHOWN_BESIDE = 5, 8


def sections(answer: SectionsAnswer, *, whole: bool = False) -> str:
    """Render one report, or several merged.

    Unless `whole`, long tables end after `ROWS` rows and count the rest.
    """
    most = max(ROWS, len(answer.sections), len(answer.recommendations)) if whole else ROWS
    parts = [
        [head(answer)],
        _summary(answer, most),
        _bottlenecks(answer),
        _recommendations(answer, most),
        _categories(answer),
        _tree(answer, whole),
        [line for note in answer.notes for line in _behind("note: ", note)],
    ]
    if answer.comparison:
        parts.append(_comparison(answer.comparison, most))
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def head(answer: SectionsAnswer) -> str:
    """Summarise in one line: the file, its processes and time, and the largest section."""
    count, ranked = answer.processes, answer.rank is not None
    who = f"{count} processes" if count > 1 else f"rank {answer.rank}" if ranked else "one process"
    parts = [f"{answer.file}: sections of {who}", f"{numbers.number(answer.profiled_s, 's')} profiled"]
    if answer.iterations:
        parts.append(counted(answer.iterations, "iteration"))
    if answer.iterations_per_s is not None:
        parts.append(f"{numbers.number(answer.iterations_per_s, 'iterations/s')}")
    if answer.warmup:
        parts.append(f"{answer.warmup} of warm-up left out")
    if answer.sections:
        first = answer.sections[0]
        parts.append(f"most in {short(first.name, 40)} ({100 * first.share:.1f}%)")
    return ", ".join(parts)


def _name_width(names: Sequence[str]) -> int:
    return max(_LEAST_NAME, min(max(map(len, names), default=0), _LONGEST_NAME))


def _summary(answer: SectionsAnswer, most: int) -> list[str]:
    rows = answer.sections[:most]
    if not rows:
        return []
    width = _name_width([r.name for r in rows])
    titles = "".join(f"{title:>{size}}" for title, size in _COLUMNS)
    heading = f"{'Operation':<{width}}{titles}" + "".join(f"{title:>14}" for title in _PEAKS)
    lines = ["PROFILING SUMMARY:", "-" * len(heading), heading, "-" * len(heading)]
    for r in rows:
        values = (
            str(r.calls),
            f"{r.total_s:.3f}",
            *(f"{v:.6f}" for v in (r.mean_s, r.min_s, r.max_s)),
        )
        cells = "".join(f" {v:>{size - 1}}" for v, (_, size) in zip(values, _COLUMNS, strict=True))
        peaks = "".join(f"{_peak(peak):>14}" for peak in (r.mem_peak_mb, r.gpu_peak_mb))
        lines.append(f"{short(r.name, width):<{width}}{cells}{peaks}")
    return lines + _more(len(answer.sections) - len(rows))


def _peak(value: float | None) -> str:
    return numbers.UNKNOWN if value is None else f"{value:.1f}"


def _more(count: int) -> list[str]:
    return [f"… and {count} more (--output and --detailed write them all)"] if count > 0 else []


def _bottlenecks(answer: SectionsAnswer) -> list[str]:
    by_name = {r.name: r for r in answer.sections}
    rows = [by_name[name] for name in answer.bottlenecks]
    if not rows:
        return []
    width = _name_width([r.name for r in rows])
    rule = "-" * (width + 30)
    lines = ["TOP 10 BOTTLENECKS:", rule]
    lines += [f"{'Operation':<{width}} {'Score':<9}{'Time%':<8}{'Avg(ms)':<10}{'Calls':<9}".rstrip(), rule]
    for r in rows:
        figures = f"{r.score:<9.1f}{100 * r.share:<8.1f}{_ms(r.mean_s):<10}{r.calls:<9}"
        lines.append(f"{short(r.name, width):<{width}} {figures}".rstrip())
    return lines


def _ms(seconds: float) -> str:
    """Milliseconds with one decimal, more below 1 ms."""
    value = 1000 * seconds
    return f"{value:.1f}" if value >= 1 or value == 0 else f"{value:.2g}"


def _recommendations(answer: SectionsAnswer, most: int) -> list[str]:
    rows = answer.recommendations
    lines = [
        line
        for r in rows[:most]
        for line in _behind(f"  {r.level:<11} ", f"{short(r.section, _LONGEST_NAME)} {r.text}")
    ]
    return ["RECOMMENDATIONS:", *lines, *_more(len(rows) - most)] if lines else []


def _categories(answer: SectionsAnswer) -> list[str]:
    rows = answer.categories
    width = max((len(short(r.name, 30)) for r in rows), default=0)
    lines = [f"  {short(r.name, 30):<{width}} {100 * r.share:6.1f}%  {r.self_s:.3f} s" for r in rows]
    return ["CATEGORIES (own time, what is below a section left out):", *lines] if rows else []


def _tree(answer: SectionsAnswer, whole: bool) -> list[str]:
    """Render each section below its parent, with its share of the parent's time."""
    nodes = list(_walk(answer.tree, 0, None))
    if not any(depth for _, depth, _ in nodes):
        return []
    shown = nodes if whole else nodes[:ROWS]
    slowest = max(range(len(nodes)), key=lambda i: _own(nodes[i][0]))
    labels = [f"{'  ' * (depth + 1)}{short(node.name, _LONGEST_NAME)}" for node, depth, _ in shown]
    width = max(map(len, labels))
    lines = []
    for i, (label, (node, _, above)) in enumerate(zip(labels, shown, strict=True)):
        part = _part(node.total_s / above) if above else ""
        mean = f"{_ms(node.total_s / node.calls)} ms" if node.calls else ""
        line = f"{label:<{width}} {node.total_s:>11.3f} s {part:>7} {node.calls:>9} x {mean:>11}"
        lines.append(line.rstrip() + ("  <-- BOTTLENECK" if i == slowest else ""))
    return ["TREE (total, share of the section above, calls, mean):", *lines, *_more(len(nodes) - len(shown))]


def _part(share: float) -> str:
    """Format a share; concurrent tasks can take longer together than their parent."""
    return f"{100 * share:.1f}%" if share < 10 else f"{share:.0f}x"


def _walk(
    nodes: Sequence[SectionNode], depth: int, above: float | None
) -> Iterator[tuple[SectionNode, int, float | None]]:
    for node in sorted(nodes, key=lambda n: (-n.total_s, n.name)):
        yield node, depth, above
        yield from _walk(node.children, depth + 1, node.total_s)


def _own(node: SectionNode) -> float:
    return float(node.total_s - sum(child.total_s for child in node.children))


def _comparison(answer: SectionsComparison, most: int) -> list[str]:
    a, b = answer.a, answer.b
    lines = ["SIDE BY SIDE (ms a call):", *_behind("  A  ", a.label), *_behind("  B  ", b.label), ""]
    rows = answer.sections[:most]
    width = _name_width([r.name for r in rows])
    titles = "".join(f"{f'{letter} {what}':>10}" for letter in "AB" for what in ("mean", "min", "max"))
    lines.append(f"{'Operation':<{width}}{titles}  speed of B")
    for r in rows:
        cells = "".join(f" {ms:>9}" for side in (r.a, r.b) for ms in _times_of(side))
        ratio = f"  {_times(r.ratio)}" if r.ratio is not None else ""
        lines.append(f"{short(r.name, width):<{width}}{cells}{ratio}")
    lines += _more(len(answer.sections) - most)
    rates = [numbers.number(side.iterations_per_s, "iterations/s") for side in (a, b)]
    lines += ["", f"Throughput: A {rates[0]}, B {rates[1]}", *_behind("Verdict: ", _verdict(answer))]
    if answer.advice:
        lines += ["", f"WHY {answer.advice[0].level} IS SLOWER:"]
        lines += [line for one in answer.advice for line in _behind("  ", one.text)]
    return [*lines, "", "CHECKLIST:", *(line for c in answer.checklist for line in check(c))]


def _times_of(side: SideSection | None) -> tuple[str, ...]:
    if side is None:
        return (numbers.UNKNOWN,) * 3
    return _ms(side.mean_s), _ms(side.min_s), _ms(side.max_s)


def check(one: Check) -> list[str]:
    """Render a question with what is known of it."""
    mark = " " if one.answer is None else "!" if one.concern else "x"
    lines = _behind(f"  [{mark}] ", one.question)
    return lines if one.answer is None else lines + _behind("      ", one.answer)


def _verdict(answer: SectionsComparison) -> str:
    figure = answer.figure
    if answer.ratio is None or answer.ratio_ci is None or figure is None:
        return f"cannot tell: {answer.why}"
    by = "throughput" if figure == "throughput" else f"the mean time of {short(figure, 40)}"
    low, high = (_times(bound) for bound in answer.ratio_ci)
    result = f"B is {_times(answer.ratio)} as fast as A by {by} (95% CI {low} to {high}"
    if answer.verdict == "cannot_tell":
        return f"cannot tell: {result}, which includes 1.00x); compare several reports of each"
    return f"{answer.verdict}: {result})"


def _times(value: float | None) -> str:
    if value is None:
        return numbers.UNKNOWN
    return f"{value:.2f}x" if 0.1 <= value < 10 else f"{value:.3g}x"


def of_run(evidence: Document | None) -> list[str]:
    """Render a run's first sections, or why it has none."""
    if not evidence:
        return []
    rows = evidence["sections"][:_SHOWN_OF_A_RUN]
    if not rows:
        why = [line for note in evidence["notes"] for line in _behind("  note: ", note)]
        return [f"sections {numbers.UNKNOWN}", *why]
    more = f", the first {len(rows)}" if evidence["count"] > len(rows) else ""
    lines = [f"sections {evidence['count']}, {numbers.number(evidence['profiled_s'], 's')} profiled{more}:"]
    width = max(len(short(r["name"], 40)) for r in rows)
    for r in rows:
        figures = f"{100 * r['share']:5.1f}%  {_ms(r['mean_s'])} ms a call, {r['calls']} calls"
        lines.append(f"  {short(r['name'], 40):<{width}} {figures}")
    return lines


def beside(rows: Sequence[SectionRow], parts: tuple[str, str] = ("A", "B")) -> list[str]:
    """Render two sides' sections: mean milliseconds a call, and the speed of B over A."""
    if not rows:
        return []
    lines = [f"{'sections, mean a call':<33}{parts[0]:<12}{parts[1]:<12}speed of {parts[1]} over {parts[0]}"]
    for r in rows[:_SHOWN_BESIDE]:
        means = [numbers.UNKNOWN if s is None else f"{_ms(s.mean_s)} ms" for s in (r.a, r.b)]
        ratio = _times(r.ratio) if r.ratio is not None else ""
        lines.append(f"  {short(r.name, 30):<31}{means[0]:<12}{means[1]:<12}{ratio}".rstrip())
    left = len(rows) - _SHOWN_BESIDE
    return [*lines, f"  and {left} more (--json)"] if left > 0 else lines


def _behind(head: str, text: str) -> list[str]:
    return wrap(text, WIDTH, head)
