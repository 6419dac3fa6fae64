"""A campaign's noise, sweeps, expected figures and A/A run as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpudebug.core.answers.status import DetectableFigure, ExpectedFigure, FlagSweep, Resolution, SweepValue
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.level import POINTS
from gpudebug.core.statistics.metrics import Metric
from gpudebug.core.words import counted
from gpudebug.terminal.fit import Screen, coloured

if TYPE_CHECKING:
    # A tenth of what `status` takes, which shows the noise too.
    from gpudebug.core.answers.next import RecordedAA

_FEWER = "lengthen runs (protocol: run_for), or raise it"
# The columns of a sweep's row without its value.
_BESIDE_VALUE = 69


def resolution(answer: Resolution) -> list[str]:
    """Render the run-to-run noise, the effect that a trial can detect, and the runs that confirm the goal."""
    figures = [f for f in answer.figures if f.sd is not None]
    if not figures:
        return []
    spread = ", ".join(f"{_sd(f, f.sd)} of {f.figure}" for f in figures)
    own = all(f.own_sd is not None and f.runs >= POINTS.runs for f in figures)
    lines = [f"Noise    {spread} {'from run to run (' if own else '(mostly assumed: '}{_count(answer)})"]
    if answer.left == 0:
        lines.append("Detectable effect: none, the device time is used up")
    else:
        limit = f" with the {_runs(answer.left or 0)} that device time is left for" if answer.limited else ""
        effects = ", ".join(f"{_amount(f, f.told)} of {f.figure}" for f in figures)
        lines.append(f"Detectable effect (80 % power): {effects}{limit}")
    lines.append(f"Runs needed to confirm {'; '.join(_needs(f, answer.max_runs) for f in figures)}")
    if any(f.goal_runs is None or f.goal_runs.trial > answer.max_runs for f in figures):
        lines.append(f"  above max_runs ({answer.max_runs}): {_FEWER}")
    return lines


def _sd(figure: DetectableFigure, sd: float | None) -> str:
    if sd is None:
        return numbers.UNKNOWN
    return f"{sd:.1f}pp" if figure.unit == "pp" else f"{100 * sd:.1f}%"


def _count(answer: Resolution) -> str:
    runs = answer.baseline_runs + answer.fresh_runs + answer.aa_runs
    return f"{_runs(runs)}, {answer.aa_runs} of them A/A" if answer.aa_runs else _runs(runs)


def _runs(count: int) -> str:
    return counted(count, "run")


def _amount(figure: DetectableFigure, effect: float | None) -> str:
    if effect is None:
        return numbers.UNKNOWN
    return f"{effect:.1f}pp" if figure.unit == "pp" else f"{effect:.2f}x"


def _needs(figure: DetectableFigure, max_runs: int) -> str:
    """`20pp of gpu_util: 7`, the baseline's fresh ones among them."""
    goal = f"{figure.goal:g}pp" if figure.unit == "pp" else f"{round(figure.goal, 3):g}x"
    runs = figure.goal_runs
    if runs is None:
        return f"{goal} of {figure.figure}: more than a trial can have"
    text = f"{goal} of {figure.figure}: {runs.total}"
    return text if runs.trial <= max_runs else f"{text} ({runs.trial} of the change)"


def sweeps(rows: Sequence[FlagSweep], here: Screen) -> list[str]:
    """Render a table for each sweep: a line a value, or a sentence on a narrow screen."""
    lines: list[str] = []
    for sweep in rows:
        current = f" (now {sweep.standing})" if sweep.standing is not None else ""
        lines += ["", *here.wrapped(f"Sweep of {sweep.parameter}{current}", here.columns)]
        width = max(5, *(len(str(row.value)) for row in sweep.rows))
        measured = max(len(row.measured or "") + 2 for row in sweep.rows)
        if width + _BESIDE_VALUE + measured > here.columns:
            lines += [line for row in sweep.rows for line in _sweep_sentence(row, here)]
            continue
        lines.append(f"  {'value':<{width}}    H  {'status':<12}  {'change':<34}  throughput".rstrip())
        lines += [_sweep_row(row, width) for row in sweep.rows]
    return lines


def _sweep_sentence(row: SweepValue, here: Screen) -> list[str]:
    parts = (
        f"H {row.hypothesis} {row.status}",
        _change(row),
        _ratio(row) and f"throughput {_ratio(row)}",
        row.measured,
    )
    value = here.cut(str(row.value), here.columns // 2)
    return here.labelled(f"  {value}: ", ", ".join(filter(None, parts)))


def _sweep_row(row: SweepValue, width: int) -> str:
    status = coloured(row.status, 12)
    return (
        f"  {row.value!s:<{width}}  {row.hypothesis:>3}  {status}  {_change(row):<34}  {_ratio(row):<10}  "
        f"{row.measured or ''}"
    ).rstrip()


def _ratio(row: SweepValue) -> str:
    return "" if row.throughput_ratio is None else f"{row.throughput_ratio:.2f}x"


def _change(row: SweepValue) -> str:
    if row.verified is False:
        return "UNVERIFIED"
    for value, bounds, text in (
        (row.delta_pp, row.delta_ci, numbers.points),
        (row.improvement, row.improvement_ci, numbers.factor),
    ):
        if value is not None:
            low, high = bounds or (None, None)
            return text({"value": value, "low": low, "high": high})
    return ""


def expected(rows: Sequence[ExpectedFigure]) -> list[str]:
    return [f"Expected {_expectation(row)}" for row in rows]


def _expectation(row: ExpectedFigure) -> str:
    metric = Metric(row.figure)
    low, high = row.range
    measured = numbers.figure(metric, row.measured)
    phase = f" in phase {row.phase}" if row.phase is not None else ""
    text = f"{row.figure}{phase} {low:g} to {high:g} ({row.device}), measured {measured}"
    return f"{text}: {row.note or row.standing}"


def aa(answer: RecordedAA) -> str:
    """Render `baseline --aa`."""
    against = f"{_runs(len(answer.runs))} against the {len(answer.baseline_runs)} of the baseline"
    lines = [f"A/A of workload: {against}, with nothing changed"]
    lines += [f"  note: {note}" for note in answer.notes]
    lines += [f"  advice: {line}" for line in answer.advice]
    lines.append(f"Found    {answer.metric} {answer.difference or numbers.UNKNOWN}")
    ratio, (low, high) = answer.throughput_ratio, answer.throughput_ci or (None, None)
    estimate = None if ratio is None else {"value": ratio, "low": low, "high": high}
    lines[-1] += f", throughput {numbers.factor(estimate)}"
    if answer.resolution:
        lines += resolution(answer.resolution)
    lines.append(f"Verdict  {coloured(str(answer.verdict))}: {answer.why}")
    if answer.verdict == "VALIDATED":
        lines.append("  This is a false verdict: do not trust this campaign's verdicts on this machine.")
    return "\n".join([*lines, f"Next: {answer.next_command}"])
