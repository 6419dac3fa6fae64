"""`gpudebug compare A B`: two runs that were recorded, or two commands run in turn."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from gpudebug.core.answers.compare import CompareAnswer, CompareSide, SpeedRatio
from gpudebug.core.compare import checklist, compared_run, faster, slower
from gpudebug.core.compare.compared_run import ComparedRun
from gpudebug.core.compare.faster import SpeedAnswer, SpeedComparison, SpeedFigure
from gpudebug.core.compare.sides import side as shown_side
from gpudebug.core.config.parser import counted_in, run_for_in
from gpudebug.core.config.schema import split_command
from gpudebug.core.errors import InterruptedRun, StoreError, UsageError
from gpudebug.core.inside.sections import beside
from gpudebug.core.records import Evidence, Manifest, RunRecord
from gpudebug.core.redaction.redact import REDACTED, Redactor, sensitive_variable
from gpudebug.core.statistics.units import AUTO
from gpudebug.core.text import shell_words
from gpudebug.core.verdict import work as units
from gpudebug.core.verdict.run_plan import RunPlan
from gpudebug.edges import launcher, store
from gpudebug.engine.campaign.campaign import Setup
from gpudebug.engine.campaign.files import REPLAYED_NOTE, replayed
from gpudebug.engine.campaign.load import load
from gpudebug.engine.campaign.session import persons_only
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun, RunLimits, replanned
from gpudebug.engine.run.live_line import Report
from gpudebug.engine.run.measure import measure
from gpudebug.engine.run.prepare import claim_of, devices_held, lone_bench, remarks
from gpudebug.engine.run.traces import slowed
from gpudebug.engine.tools.compared import ComparedSide, asked_of, latency_of, refuse_incomplete
from gpudebug.engine.trial.unmodified import by_the_user

PAIRS = 2
_RUN = re.compile(r"[0-9]{4,9}-[a-z][\w.-]*")
_HYPOTHESIS = re.compile(r"[hH]?([0-9]{1,3})")
_ROLES = {"baseline": "workload", "workload": "workload", "reference": "reference"}
_READ = ("run.json", "evidence.json", "train.log")
_LINE = 200


@dataclass(frozen=True)
class _SideCommand:
    """A or B as something to run. `variables` are those that stand before the program."""

    letter: str
    text: str
    bench: Bench
    job: PreparedRun
    variables: Mapping[str, str]


class ComparedHow(NamedTuple):
    """How two commands are measured: `pairs` times each, `interval` and `timeout` in seconds.

    `run_for` says when gpudebug ends a command, as in a campaign.
    """

    pairs: int | None = None
    warm_up: bool = False
    interval: float = 0.2
    device: str = "auto"
    timeout: float | None = None
    run_for: str = "auto"


def compare(
    directory: Path,
    a: str,
    b: str,
    report: Report,
    how: ComparedHow,
    *,
    commands_allowed: bool = False,
    work: str = AUTO,
) -> CompareAnswer:
    """Say whether B is faster than A, and what else differs between them.

    A and B are each a run (name or folder), `baseline`, `reference` or the number of a hypothesis, for all
    its runs; or both are commands, run in turn as `how` says. In a campaign these go to its runs/,
    else to the first free `compare-N` in `directory`. A session runs none, unless `commands_allowed`.
    `work` is the unit that throughput counts.
    """
    unit, wanted = counted_in(work), run_for_in(how.run_for)
    stored = [_stored(directory, text) for text in (a, b)]
    if stored[0] is not None and stored[1] is not None:
        if how.pairs or how.warm_up or how.timeout or wanted:
            raise UsageError(
                "--runs, --warm-up, --run-for and --timeout go with two commands", next="leave them out"
            )
        _refuse_same(stored[0], stored[1])
        return _answer(_read_side(stored[0]), _read_side(stored[1]), (), unit)
    if stored[0] is not None or stored[1] is not None:
        kinds = ["a command" if one is None else "a recorded run" for one in stored]
        raise UsageError(
            f"A is {kinds[0]} and B is {kinds[1]}: they would not be measured alike",
            next="compare two runs, or two commands in quotes",
        )
    if not commands_allowed:
        persons_only("running a command", "gpudebug compare takes recorded runs of runs/")
    root = store.find_root(directory)
    commands = [_command(directory, letter, text, how, report) for letter, text in (("a", a), ("b", b))]
    if (text := compared_run.announced(wanted)) is not None:
        remarks(report)(text)
    sides = _run_in_turn(directory, root, commands, how.pairs or PAIRS, how.warm_up, wanted)
    notes = compared_run.ended([run.record for side in sides for run in side.runs])
    return _answer(*sides, (*notes, *_remarks(commands, how.warm_up)), unit)


def compare_recorded(directory: Path, a: str, b: str) -> CompareAnswer:
    """`compare` of runs of this campaign, by their names: nothing is run, and no path is followed."""
    sides = []
    for text in (a, b):
        side = None if "/" in text else _stored(directory, text)
        if side is None:
            raise UsageError(
                f"{text[:_LINE]!r} names no recorded run",
                next="name a run of runs/, baseline, reference, or a hypothesis by its number",
            )
        sides.append(side)
    _refuse_same(sides[0], sides[1])
    return _answer(_read_side(sides[0]), _read_side(sides[1]), ())


def _stored(directory: Path, text: str) -> ComparedSide | None:
    """Return the recorded runs that `text` names, not yet read; None if it is a command."""
    if not text.strip():
        return None
    if text in _ROLES:
        return _baseline(directory, _ROLES[text])
    if named := _HYPOTHESIS.fullmatch(text):
        return _trial(directory, int(named[1]))
    path = directory / text
    if os.path.isfile(path / "run.json"):
        return ComparedSide(text, (_folder(path),))
    root = store.find_root(directory)
    if root is not None and "/" not in text and os.path.isdir(root / "runs" / text):
        return ComparedSide(text, (_folder(root / "runs" / text),))
    if os.path.isdir(path):
        raise StoreError("is not a run: it has no run.json", file=str(path), next="name a folder of runs/")
    if _RUN.fullmatch(path.name) and not os.path.isfile(path):
        raise StoreError("the run is missing", file=str(path), next="name a folder of runs/")
    return None


def _folder(path: Path) -> store.RunFolder:
    return store.RunFolder(path, Redactor().redact)


def _baseline(directory: Path, role: str) -> ComparedSide:
    """Return all runs of a baseline."""
    loaded = load(directory)
    entry = loaded.entries.document.baseline(role)
    return _of_campaign(loaded.setup, f"baseline of the {role}", entry.runs if entry else ())


def _trial(directory: Path, number: int) -> ComparedSide:
    """Return all runs of a hypothesis's trial, without those of the baseline beside it."""
    loaded = load(directory)
    entry = next((h for h in loaded.entries.document.hypotheses if h.number == number), None)
    names = [
        n
        for n in (entry.runs if entry else ())
        if loaded.history.records.get(n, {}).get("role") == f"h{number}"
    ]
    title = f": {entry.title}" if entry else ""
    return _of_campaign(loaded.setup, f"hypothesis {number}{title}", names)


def _of_campaign(setup: Setup, label: str, names: Sequence[str]) -> ComparedSide:
    if not names:
        raise StoreError(f"{label}: no recorded runs", file=str(setup.progress_path), next="gpudebug status")
    return ComparedSide(label, tuple(_folder(setup.workspace.run(name).path) for name in names))


def _refuse_same(a: ComparedSide, b: ComparedSide) -> None:
    both = {f.path.resolve() for f in a.folders} & {f.path.resolve() for f in b.folders}
    if both:
        name = min(path.name for path in both)
        raise UsageError(f"run {name} is on both sides", next="name two different runs")


def _read_side(side: ComparedSide) -> ComparedSide:
    return replace(side, runs=tuple(_read(folder) for folder in side.folders))


def _read(folder: store.RunFolder) -> ComparedRun:
    """Return a sealed and completed run. StoreError if its records are missing, altered or not ours."""
    if not folder.sealed:
        raise StoreError("is an unfinished run", file=str(folder.path), next="compare a run that completed")
    try:
        sealed = Manifest.model_validate(folder.read("manifest.json")).files
        record = RunRecord.model_validate(folder.read("run.json"))
        evidence = Evidence.model_validate(folder.read("evidence.json"))
    except ValueError:
        raise StoreError(
            "its records are not what gpudebug writes", file=str(folder.path), next="name another run"
        ) from None
    for name in _READ:
        if name in sealed and (not folder.has(name) or sealed[name] != store.file_digest(folder.path / name)):
            raise StoreError(
                "was altered after the run was sealed",
                file=str(folder.path / name),
                next="name another run, or record it again",
            )
    refuse_incomplete(folder, evidence)
    return ComparedRun(record, evidence, latency_of(folder), asked=asked_of(record))


def _command(
    directory: Path,
    letter: str,
    text: str,
    how: ComparedHow,
    report: Report,
) -> _SideCommand:
    """Return a command, its program and its device found before anything runs."""
    try:
        variables, rest = shell_words.leading_assignments(text)
        argv = split_command(rest)
    except shell_words.ShellSyntaxError as e:
        raise UsageError(
            f"{letter.upper()}: {e}",
            next="put a whole command in quotes, or into sh -c",
        ) from None
    env = {**os.environ, **variables}
    launcher.find_command(argv, str(directory), env)
    bench = lone_bench(directory, how.device, env, directory, how.interval, report)
    job = PreparedRun(
        label=f"compare-{letter}",
        role="compare",
        argv=argv,
        cwd=directory,
        env=env,
        env_names=tuple(sorted(variables)),
        limits=RunLimits(how.timeout),
    )
    return _SideCommand(letter, text, bench, job, variables)


def _run_in_turn(
    directory: Path,
    root: Path | None,
    commands: Sequence[_SideCommand],
    pairs: int,
    warm_up: bool,
    run_for: float | str | None,
) -> tuple[ComparedSide, ComparedSide]:
    """A B A B …, each run in a folder of its own, sealed. Whether the first of A is ended decides for all."""
    with ExitStack() as held:
        workspace = store.Workspace(root or _new_folder(directory))
        fds: tuple[int, ...] = ()
        if root is not None:
            fds = (held.enter_context(claim_of(workspace, "gpudebug compare")).fd,)
        benches = held.enter_context(devices_held([c.bench for c in commands], directory, "gpudebug compare"))
        ready = [
            replace(c, bench=replace(b, workspace=workspace, hold_fds=(*fds, *b.hold_fds)))
            for c, b in zip(commands, benches, strict=True)
        ]
        for command in ready if warm_up else ():
            workspace.discard(_once(command, compared_run.plan(run_for)).folder)
        found: dict[str, list[MeasuredRun]] = {c.letter: [] for c in ready}
        for command in ready * pairs:
            plan = compared_run.plan(run_for, [m.evidence for m in found["a"][:1]])
            found[command.letter].append(_once(command, plan))
    a, b = (_measured_side(c, found[c.letter]) for c in ready)
    return a, b


def _new_folder(directory: Path) -> Path:
    path = next(p for n in itertools.count(1) if not os.path.lexists(p := directory / f"compare-{n}"))
    store.make_folder(path)
    store.copy_into(path / store.IGNORED, store.IGNORES)
    return path


def _once(command: _SideCommand, plan: RunPlan | None) -> MeasuredRun:
    """One sealed run that completed. CompareFailed or InterruptedRun else; its folder stays."""
    measured = measure(command.bench, replanned(command.job, plan))
    command.bench.workspace.seal(measured.folder)
    if by_the_user(measured):
        raise InterruptedRun(f"run {measured.folder.name} was interrupted", file=str(measured.folder.path))
    refuse_incomplete(measured.folder, measured.evidence, f" of {command.letter.upper()}")
    return measured


def _measured_side(command: _SideCommand, measured: Sequence[MeasuredRun]) -> ComparedSide:
    redactor = Redactor(command.job.env, command.job.argv)
    shown = {
        name: REDACTED if sensitive_variable(name) else redactor.redact(value)
        for name, value in command.variables.items()
    }
    runs = tuple(
        ComparedRun(m.record, m.evidence, latency_of(m.folder), shown, asked_of(m.record)) for m in measured
    )
    words = [f"{name}={value}" for name, value in shown.items()]
    return ComparedSide(" ".join([*words, runs[0].record.command]), tuple(m.folder for m in measured), runs)


def _remarks(commands: Sequence[_SideCommand], warm_up: bool) -> list[str]:
    remarks = []
    if commands[0].text == commands[1].text:
        remarks.append("A and B are the same command: the ratio shows what noise does")
    if not warm_up:
        remarks.append("the first run of A may have been cold (page cache, compiled kernels): see --warm-up")
    return [*remarks, *dict.fromkeys(note for c in commands for note in c.bench.notes)]


def _answer(a: ComparedSide, b: ComparedSide, remarks: tuple[str, ...], unit: str = AUTO) -> CompareAnswer:
    found = faster.compare(a.runs, b.runs, unit)
    calls = (found.timed.a, found.timed.b) if found.timed else ((), ())
    sides = [
        shown_side(
            s.label,
            s.runs,
            other_batch=found.other_batch,
            unit=found.work,
            replayed=_played_back(s),
            calls=rates,
        )
        for s, rates in zip((a, b), calls, strict=True)
    ]
    evidence = [[run.evidence for run in side.runs] for side in (a, b)]
    sections = beside(*evidence)
    notes = (*_replays(sides), *found.notes, *remarks, *slowed(itertools.chain(*evidence)))
    return CompareAnswer(
        ratio=found.ratio.value,
        ratio_ci=(found.ratio.low, found.ratio.high),
        verdict=str(found.answer),
        figure=str(found.figure.name),
        ratios={str(figure.name): _ratio(figure) for figure in found.figures},
        a=sides[0],
        b=sides[1],
        sections=sections,
        differences=tuple(found.checklist.differences),
        same=found.checklist.same,
        unknown=tuple(found.checklist.unknown),
        notes=notes,
        files=tuple(str(folder.path) for folder in (*a.folders, *b.folders)),
        work=units.text(found.work) if found.work else None,
        look=slower.look(found, a.runs, b.runs, sections),
        next_command=_next(found, a, b),
    )


def _next(found: SpeedComparison, a: ComparedSide, b: ComparedSide) -> str | None:
    """Return the command that shows the methods of the side that is much slower."""
    if not slower.asks(found, a.runs):
        return None
    runs = (a if found.answer is SpeedAnswer.FASTER else b).runs
    return f"gpudebug sample --methods MODULE:CLASS -- {checklist.command_of(runs[0].record)}"


def _played_back(side: ComparedSide) -> bool | None:
    """Tell whether a run of this side was played back; None if unknown."""
    pairs = zip(side.runs, side.folders, strict=True)
    found = [replayed(run.record.model_dump(mode="json"), folder) for run, folder in pairs]
    return True if any(found) else None if None in found else False


def _replays(sides: Sequence[CompareSide]) -> list[str]:
    letters = " and ".join(letter for letter, side in zip("AB", sides, strict=True) if side.replayed)
    return [f"{letters}: {REPLAYED_NOTE}"] if letters else []


def _ratio(figure: SpeedFigure) -> SpeedRatio | None:
    return SpeedRatio(**figure.ratio.model_dump(), unit=figure.unit) if figure.ratio else None
