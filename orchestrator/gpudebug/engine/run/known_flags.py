"""The options that a workload's program is known to have, whoever says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gpudebug.core.catalogue import Framework
from gpudebug.core.change.commands import KnownFlags
from gpudebug.core.command import command_line
from gpudebug.core.command.synonyms import kind_of
from gpudebug.core.config import Config, Workload
from gpudebug.engine.run import adapters


def known_flags(root: Path, workload: Workload, printed: Iterable[str] = ()) -> KnownFlags:
    """By its command, its source, the configuration that it `printed` and its framework's adapter."""
    known = adapters.of(root, workload)
    program, framework = known.program, known.framework
    written = [option.name for option in command_line.options(workload.argv())]
    own = [f for f in program.options.values() if not f.variable] if program else []
    sourced = [name for flag in own for name in (flag.name, *flag.others)]
    theirs = [f"--{name}" for name in _of_framework(framework)] if framework else []
    return KnownFlags((*written, *sourced, *printed, *theirs))


def idle_locks(root: Path, config: Config) -> list[str]:
    """Locked flags that the program does not have, as far as its source or framework is known."""
    known = known_flags(root, config.workload)
    program = adapters.of(root, config.workload)
    if not (program.framework or (program.program and program.program.options)):
        return []
    notes = []
    for knob in config.locked:
        if known.has(knob):
            continue
        same = [name for name in known.names if kind_of(knob) and kind_of(name) == kind_of(knob)]
        near = known.nearest(knob)
        instead = f"{same[0]} is locked in its place" if same else f"the nearest is {near}" if near else ""
        notes.append(f"locked: the program has no {knob}" + (f"; {instead}" if instead else ""))
    return notes


def of_catalogue(root: Path, workload: Workload) -> tuple[str, ...]:
    """Return the options by which the catalogue tests causes in the workload's framework."""
    from gpudebug.engine.run import catalogue

    framework = adapters.of(root, workload).framework
    if framework is None:
        return ()
    names = (framework.name, framework.base)
    tests = (cause.interventions.get(n) for cause in catalogue.load(root).causes for n in names if n)
    return tuple(f"--{flag}" for test in tests if test for flag in (*test.set, *test.unset))


def _of_framework(framework: Framework) -> Iterator[str]:
    yield from (*framework.output, *framework.steps, *framework.locked, *framework.bare, *framework.every)
    yield from (*framework.flags, *framework.short, *framework.short.values(), *framework.marks.flags)
    yield from (flag.formerly for flag in framework.flags.values() if flag.formerly)
    yield from (*framework.quiet.set, *framework.quiet.unset)
    yield from (flag.flag for flag in (framework.log, framework.batch) if flag is not None)
