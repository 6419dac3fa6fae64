"""What a workload does otherwise than the reference that is known to be good: flags, and what was measured.

It costs no run. A cause that both share explains nothing; one that only the workload has is worth a look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpudebug.core.answers.diagnosis import FromReference, OtherFigure, OtherFlag, OtherProgram
from gpudebug.core.catalogue.signals import SIGNALS, Signal
from gpudebug.core.compare.checklist import NAMING
from gpudebug.core.diagnosis.facts import flags_of, words_of
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.odds import value
from gpudebug.core.text.values import same_value
from gpudebug.core.words import SignalValue

NOT_SET = "not set"
LEAST_POINTS = 5.0
"""Shares and percentages that lie closer together than this, in points, are the same (a judgement)."""
LEAST_RATIO = 1.25
"""So are other figures whose ratio is below this."""

# What another signal says already, what is no doing of the training's, and how much was seen.
_SAID_OTHERWISE = frozenset(
    {
        *("device_idle_share", "cores_busy_share", "loader_workers_over_cores", "threads_over_cores"),
        *("foreign_procs", "foreign_cpu", "probe_steps", "stacks_s", "loss_points"),
    }
)


def difference(
    workload_argv: Sequence[str],
    reference_argv: Sequence[str],
    workload: DiagnosisFacts | None = None,
    reference: DiagnosisFacts | None = None,
) -> FromReference:
    """Return what differs between two commands and between the facts of their runs, if both are known.

    Names of outputs and runs do not count. Figures come in the order of the signals.
    """
    mine, theirs = (" ".join(words_of(argv)) for argv in (workload_argv, reference_argv))
    program = OtherProgram(mine, theirs) if mine != theirs else None
    flags = tuple(_flags(flags_of(workload_argv), flags_of(reference_argv)))
    figures = tuple(_figures(workload, reference)) if workload and reference else ()
    lines = [f"program: {program.workload}, reference {program.reference}"] if program else []
    lines += [f"flag {f.name}: {_shown(f.workload)}, reference {_shown(f.reference)}" for f in flags]
    lines += map(_line, figures)
    return FromReference(program=program, flags=flags, figures=figures, lines=tuple(lines))


def _flags(mine: Mapping[str, str | bool], theirs: Mapping[str, str | bool]) -> Iterator[OtherFlag]:
    for name in dict.fromkeys((*mine, *theirs)):
        if name.rpartition(".")[2].lower() in NAMING or _same_flag(mine.get(name), theirs.get(name)):
            continue
        yield OtherFlag(name, mine.get(name), theirs.get(name))


def _same_flag(mine: str | bool | None, theirs: str | bool | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return mine is theirs or same_value(str(mine), str(theirs))


def _figures(workload: DiagnosisFacts, reference: DiagnosisFacts) -> list[OtherFigure]:
    return [
        OtherFigure(name, signal.unit, mine, theirs)
        for name, signal in SIGNALS.items()
        if signal.source not in ("reference", "layer", "command", "host")
        and name not in _SAID_OTHERWISE
        and (mine := workload.signals.get(name)) is not None
        and (theirs := reference.signals.get(name)) is not None
        and not _close(signal, mine, theirs)
    ]


def _close(signal: Signal, mine: SignalValue, theirs: SignalValue) -> bool:
    if isinstance(mine, (bool, str)) or isinstance(theirs, (bool, str)):
        return mine == theirs
    if signal.unit in ("share", "%"):
        return abs(mine - theirs) * (100 if signal.unit == "share" else 1) < LEAST_POINTS
    least, most = sorted((abs(mine), abs(theirs)))
    return mine == theirs or (least > 0 and most / least < LEAST_RATIO and mine * theirs > 0)


def _shown(found: str | bool | None) -> str:
    return NOT_SET if found is None else "set" if found is True else str(found)


def _line(figure: OtherFigure) -> str:
    mine, theirs = value(figure.workload, figure.unit), value(figure.reference, figure.unit)
    return f"{SIGNALS[figure.name].said.format(mine)}, reference {theirs}"
