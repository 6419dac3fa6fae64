"""The table of a campaign's hypotheses as text for people, laid out for the screen that shows it.

On a wide screen each has a row; else a line of its status and title above one of its figures, aligned on 80
columns and named on fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from gpudebug.core.answers.status import BaselineRow, HypothesisRow, StatusAnswer
from gpudebug.core.statistics import numbers
from gpudebug.core.statistics.metrics import GPU_UTIL, Metric
from gpudebug.core.words import counted
from gpudebug.terminal.fit import Screen, coloured, in_colour, width

# `status` shows its table with this module, and loads no record that these name.
if TYPE_CHECKING:
    from gpudebug.core.answers.hypotheses import (
        AcceptAnswer,
        ExportAnswer,
        ExportedHypothesis,
        ReleaseAnswer,
        ReopenAnswer,
    )
    from gpudebug.core.answers.next import StopAnswer, SubmitAnswer
    from gpudebug.core.answers.setup import SettingsAnswer
    from gpudebug.core.answers.verify import CheckAnswer

# Lines of a reason; `show` has all of it.
_REASON = 3
_STATUS = len("INCONCLUSIVE")
# With less room a title has a line of its own; with that much, its figures are beside it.
_NARROW, _WIDE = 24, 44
# A title column is never wider: its figures would be too far away.
_WIDEST = 88
_GAP = "  "
_HEADS = ("throughput", "loss", "cost", "age")


class HypothesisCells(NamedTuple):
    """One hypothesis as strings.

    `figures` are delta, throughput, loss, cost and age, empty if nothing ran; `sparks` the runs' utilisation,
    oldest first.
    """

    number: str
    status: str
    title: str
    figures: tuple[str, ...]
    notes: list[str]
    sparks: list[Sequence[float]]


class Grid(NamedTuple):
    """A table of cells that fit, each a list of lines; empty `heads` are not shown."""

    heads: list[list[str]]
    rows: list[list[list[str]]]


def hypotheses(answer: StatusAnswer, here: Screen) -> list[str]:
    """Render the table and a count of what it leaves out."""
    shown = set(answer.shown)
    rows = [row_of(h, answer.metric) for h in answer.hypotheses if h.number in shown]
    if not rows:
        return ["No hypotheses yet."]
    delta = "delta" if answer.metric == GPU_UTIL else here.cut(answer.metric, _NARROW)
    table = grid(rows, here, (f"{delta} (95% CI)", *_HEADS))
    lines = _with_rich(table) if here.terminal else _plain(table)
    others = [h.status for h in answer.hypotheses if h.number not in shown]
    rest = Counter(answer.rest or others)
    if rest:
        counts = ", ".join(f"{count} {word}" for word, count in rest.items())
        left_out = f"and {rest.total()} more ({counts}): gpudebug status --json"
        lines += here.labelled(f"{here.ellipsis:>3}{_GAP}", left_out)
    return lines


def row_of(h: HypothesisRow, metric: str) -> HypothesisCells:
    """Format one hypothesis of a campaign whose metric is `metric`."""
    return HypothesisCells(str(h.number), h.status, h.title, _figures(h), _notes(h, metric), drawn(h))


def _figures(h: HypothesisRow) -> tuple[str, ...]:
    if not h.verified and h.cost_s is None:
        return ()
    ratio, cost, age = h.throughput_ratio, h.cost_s, h.age_s
    # A figure that is not measured yet is empty, not unknown.
    unknown = numbers.UNKNOWN if h.verified else ""
    return (
        _delta(h) or unknown,
        unknown if ratio is None else f"{ratio:.2f}x",
        h.loss or unknown,
        unknown if cost is None else numbers.span(cost),
        unknown if age is None else numbers.span(age),
    )


def _delta(h: HypothesisRow) -> str:
    if h.delta_pp is not None:
        return numbers.points(_estimate(h.delta_pp, h.delta_ci))
    if h.improvement is not None:
        return numbers.factor(_estimate(h.improvement, h.improvement_ci))
    return ""


def _estimate(value: float, bounds: Sequence[float | None] | None) -> dict[str, float | None]:
    low, high = bounds or (None, None)
    return {"value": value, "low": low, "high": high}


def _notes(h: HypothesisRow, metric: str) -> list[str]:
    notes = []
    if h.verified is False:
        notes.append(f"UNVERIFIED {h.claimed or ''}")
    elif h.why and h.status != "VALIDATED" and not h.why.startswith("delta:"):
        notes.append(h.why)
    elif h.problem:
        notes.append(h.problem)
    if h.claim:
        session = h.claim.session
        notes.append(f"claimed by {f'session {session}' if session else 'a person'} since {h.claim.since}")
    notes += h.doubts
    if h.status == "VALIDATED" and h.throughput_source == "log":
        notes.append("throughput by the program's own word: no probe counted its steps")
    if h.accepted:
        notes.append("accepted: its change is part of the workload")
    elif h.accepted_by_hand:
        notes.append(f"Accepted by hand, UNVERIFIED: it changes nothing; next: gpudebug accept {h.number}")
    if h.metric not in (None, metric):
        notes.append(f"judged by {h.metric}")
    broken = [s.run for s in h.sparks or () if s.spark is None]
    if broken and h.verified is not False:
        notes.append(f"unreadable evidence: {', '.join(broken)}")
    return notes


def drawn(row: HypothesisRow | BaselineRow) -> list[Sequence[float]]:
    """Return the utilisation of the runs that have any."""
    return [s.spark for s in row.sparks or () if s.spark]


def grid(rows: Sequence[HypothesisCells], here: Screen, heads: Sequence[str]) -> Grid:
    """Lay out the rows for a screen, each cell cut or wrapped to its width; `heads` name the figures."""
    number = max(3, *(len(row.number) for row in rows))
    body = here.columns - number - len(_GAP)
    figures = [[f.replace("95% CI ", "") for f in row.figures] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *filter(None, figures), strict=True)]
    taken = sum(widths) + len(_GAP) * len(widths)
    room = body - _STATUS - len(_GAP) - taken
    head: list[list[str]]
    if room >= _WIDE:
        room = min(room, _WIDEST)
        cells = [
            _beside(row, f or [""] * len(heads), room, here) for row, f in zip(rows, figures, strict=True)
        ]
        head = [["status"], ["hypothesis"], *([text] for text in heads)]
    elif taken - len(_GAP) <= body:
        lines = [_aligned(f, widths) for f in figures]
        cells = [_stacked(row, line, body, here) for row, line in zip(rows, lines, strict=True)]
        above = _aligned(heads, widths) if any(figures) else []
        head = [[f"{'status':<{_STATUS}}{_GAP}hypothesis", *above]]
    else:
        metric = heads[0].removesuffix(" (95% CI)")
        cells = [_stacked(row, _named(row, metric, body, here), body, here) for row in rows]
        head = []
    numbered = [[[row.number.rjust(number)], *c] for row, c in zip(rows, cells, strict=True)]
    return Grid([["H".rjust(number)], *head] if head else [], numbered)


def _beside(row: HypothesisCells, figures: Sequence[str], columns: int, here: Screen) -> list[list[str]]:
    """Return the cells of a row with a column for each figure."""
    title = [here.cut(row.title, columns), *_below(row, columns, here)]
    return [[coloured(row.status, _STATUS)], title, *([figure] for figure in figures)]


def _stacked(row: HypothesisCells, figures: list[str], columns: int, here: Screen) -> list[list[str]]:
    """Return the one cell of a row whose figures have lines of their own."""
    status = coloured(row.status, _STATUS)
    room = columns - _STATUS - len(_GAP)
    if room >= _NARROW:
        title = [f"{status}{_GAP}{here.cut(row.title, room)}"]
    else:
        title = [status, here.cut(row.title, columns)]
    return [[*title, *figures, *_below(row, columns, here)]]


def _aligned(figures: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Align figures in their columns, as one line; no line without figures."""
    return [_GAP.join(map(str.ljust, figures, widths)).rstrip()] if figures else []


def _named(row: HypothesisCells, metric: str, columns: int, here: Screen) -> list[str]:
    """List the figures, each with its name; points of utilisation need none."""
    if not row.figures:
        return []
    delta, ratio, loss, cost, age = row.figures
    named = {
        delta if "pp" in delta else f"{metric} {delta}": delta,
        f"throughput {ratio}": ratio,
        f"loss {loss}": loss,
        f"cost {cost}": cost,
        f"{age} ago": age,
    }
    pieces = [text for text, figure in named.items() if figure]
    lines = [""]
    for text in (*(f"{piece}," for piece in pieces[:-1]), pieces[-1]):
        joined = f"{lines[-1]} {text}".lstrip()
        if len(joined) <= columns:
            lines[-1] = joined
        else:
            lines += here.wrapped(text, columns)
    return [line for line in lines if line]


def _below(row: HypothesisCells, columns: int, here: Screen) -> list[str]:
    notes = [line for note in row.notes for line in here.wrapped(note, columns, _REASON)]
    return notes + here.sparks(row.sparks, columns)


def _plain(table: Grid) -> list[str]:
    """Render a table as aligned lines."""
    rows = [table.heads, *table.rows] if table.heads else table.rows
    # The last column needs no width.
    widths = [max(width(line) for cell in column for line in cell) for column in zip(*rows, strict=True)][:-1]
    lines = []
    for row in rows:
        for parts in zip_longest(*row, fillvalue=""):
            padded = (part + " " * (w - width(part)) for part, w in zip(parts, widths, strict=False))
            lines.append(_GAP.join([*padded, parts[-1]]).rstrip())
    return lines


def _with_rich(table: Grid) -> list[str]:
    """Render the same for a terminal, in colour if it has colours."""
    from io import StringIO

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), show_header=False)
    for _ in table.rows[0]:
        made.add_column(no_wrap=True)
    if table.heads:
        made.add_row(*(Text.assemble(("\n".join(head), "bold")) for head in table.heads))
    for row in table.rows:
        made.add_row(*(Text.from_ansi("\n".join(cell)) for cell in row))
    # The cells fit the screen already; so wide a console cuts none of them.
    console = Console(
        file=StringIO(),
        width=10_000,
        force_terminal=True,
        color_system="standard" if in_colour() else None,
    )
    with console.capture() as shown:
        console.print(made)
    return [line.rstrip() for line in shown.get().split("\n")[:-1]]


def sweeps(answer: StatusAnswer, here: Screen) -> list[str]:
    """Render the sweeps of the hypotheses that the table shows."""
    if not answer.sweeps:
        return []
    from gpudebug.terminal import noise

    lines = []
    for sweep in answer.sweeps:
        rows = [row for row in sweep.rows if row.hypothesis in answer.shown]
        if not rows:
            continue
        lines += noise.sweeps([replace(sweep, rows=rows)], here)
        if len(rows) < len(sweep.rows):
            lines.append(f"  {here.ellipsis} and {len(sweep.rows) - len(rows)} more values")
    return lines


def accept(answer: AcceptAnswer) -> str:
    lines = [f"{_capital(answer.why)}.", f"Change: {answer.intervention}"]
    code = ", in the code with its patch" if "--patch" in (answer.intervention or "") else ""
    lines.append(f"From now on run{code}: {answer.command}")
    return _closed(lines, answer.next_command, answer.notes)


def settings(answer: SettingsAnswer) -> str:
    """List the pinned settings, a line each, and what changed since."""
    notes = ["every run is replayed: recordings are the device"] if answer.replayed else []
    if answer.action == "pinned":
        head = f"Pinned the settings of gpudebug.yaml for campaign {answer.campaign}."
        changed = [f"changed: {line}" for line in answer.differences] or (
            ["Nothing has changed."] if answer.was_pinned else [f"  {line}" for line in answer.lines]
        )
        return _closed([head, *changed], answer.next_command, notes)
    problem = [answer.problem] if answer.problem else []
    if not answer.pinned:
        head = f"Nothing is pinned yet for campaign {answer.campaign}; gpudebug.yaml has:"
    else:
        head = f"Pinned for campaign {answer.campaign} on {answer.when}:"
    body = [*problem, head, *(f"  {line}" for line in answer.lines)]
    if answer.pinned:
        body.append(
            "gpudebug.yaml has the same." if not answer.differences else "Changed in gpudebug.yaml since:"
        )
        body += [f"  {line}" for line in answer.differences]
    return _closed(body, answer.next_command, notes)


def reopen(answer: ReopenAnswer) -> str:
    if answer.already:
        return _closed([f"{_capital(answer.why)}."], answer.next_command)
    lines = [f"Hypothesis {answer.hypothesis} is UNTESTED again: {answer.why}"]
    if answer.earlier_runs:
        lines.append(f"Kept: {', '.join('runs/' + name for name in answer.earlier_runs)}")
    return _closed(lines, answer.next_command)


def release(answer: ReleaseAnswer) -> str:
    return _closed([f"{_capital(answer.why)}."], answer.next_command)


def submit(answer: SubmitAnswer) -> str:
    """Print the script alone, for a file or a pipe; else what became of the job."""
    if answer.script is not None:
        return answer.script.rstrip("\n")
    return _closed([f"{_capital(answer.why)}."], answer.next_command)


def stop(answer: StopAnswer) -> str:
    return _closed([f"{_capital(answer.why)}."], answer.next_command)


def export(answer: ExportAnswer) -> str:
    """List the hypotheses, and last the combined figure, which is not their sum."""
    lines = [f"wrote {file}" for file in answer.files]
    lines += [_alone(h) for h in answer.hypotheses]
    combined = answer.combined
    if combined.text is None:
        lines.append(f"Together: unknown: {combined.why}")
    else:
        twice = Metric(combined.metric).throughput
        rate = f", throughput {combined.throughput}" if combined.throughput and not twice else ""
        lines.append(f"Together, as measured: {combined.text}{rate}")
    return _closed(lines, answer.next_command, answer.notes)


def checked(answer: CheckAnswer) -> str:
    """Say first whether the gain was kept, then by which runs."""
    sides = f"{counted(len(answer.runs_after), 'run')} with, {len(answer.runs_before)} without"
    how = (
        f"{sides}, in turn" if answer.paired else f"{counted(len(answer.runs_after), 'run')}, one side alone"
    )
    head = f"{answer.result.replace('_', ' ').upper()}: {answer.why}."
    return _closed([head, f"Compared with {answer.of}; {how}."], None, answer.notes)


def _alone(h: ExportedHypothesis) -> str:
    where = h.patch or ("its patch is in the checkout already" if h.in_checkout else "no patch")
    return f"hypothesis {h.number}: {h.title}\n    alone {h.improvement}, {h.intervention} ({where})"


def _closed(lines: Sequence[str], next_command: str | None, notes: Sequence[str] = ()) -> str:
    command = [f"Next: {next_command}"] if next_command else []
    return "\n".join([*lines, *(f"note: {note}" for note in notes), *command])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
