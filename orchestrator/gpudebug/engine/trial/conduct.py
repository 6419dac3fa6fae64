"""What a trial did beside what its hypothesis says, from the records of its runs and of the baseline's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpudebug.core.change import patches
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.patches.step_loop import touches_count
from gpudebug.core.command import command_line
from gpudebug.core.command.batch import names_batch
from gpudebug.core.evidence.rewritten import spoiling
from gpudebug.core.inside.imported_files import has_package, strays
from gpudebug.core.inside.probe import counts
from gpudebug.core.verdict.gates import TrialSetting
from gpudebug.core.verdict.took_effect import ShownConfiguration, effect_of, moved_knobs
from gpudebug.edges import store
from gpudebug.engine.run.counts import PATCH
from gpudebug.engine.run.environment import differences, recorded
from gpudebug.engine.run.measure import MeasuredRun

NAMED = 3
# Another batch makes another step; another seed another curve.
_STEP_KNOBS = (
    *("batch_size", "per_device_train_batch_size", "train_batch_size", "micro_batch_size", "bs"),
    *("global_batch_size", "gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum_steps"),
    "seed",
)


def with_conduct(
    setting: TrialSetting,
    change: Intervention | None,
    locked: Sequence[str],
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
) -> TrialSetting:
    """`setting` with what the runs show: surroundings, locked knobs that moved, the change's effect.

    `change` is the trial's, None if it is the unchanged workload.
    """
    old, new = [_shown(m) for m in before], [_shown(m) for m in after]
    known = [*(o.name for o in command_line.options(before[0].record.argv)), *before[0].evidence.printed]
    named = tuple(change.locked_by(locked, known)) if change else ()
    moved = moved_knobs([knob for knob in locked if knob not in named], old, new)
    return replace(
        setting,
        locked=(*named, *moved),
        differences=_differences(before, after),
        elsewhere=_elsewhere(before, after),
        effect=effect_of(change, old, new, _touched(after[0])) if change else None,
        other_steps=_other_steps(change, old, new),
        knob=_knob(change, old, new),
        code=change is not None and any(c.kind in ("patch", "code") for c in change.changes),
        touches=_touches(after[0]),
        beyond=counts.beyond_plan(*([(m.record.argv, m.evidence) for m in side] for side in (before, after))),
    )


def _shown(m: MeasuredRun) -> ShownConfiguration:
    evidence = m.evidence
    facts = evidence.probe.facts if evidence.probe is not None else {}
    return ShownConfiguration(
        m.record.argv, evidence.printed, evidence.loaded, m.record.probed is not False, facts
    )


def _touched(run: MeasuredRun) -> tuple[str, ...]:
    """The files that the trial's patch changes."""
    found = _patch(run)
    return found.paths if found is not None else ()


def _touches(run: MeasuredRun) -> str | None:
    """What of the trial's patch touches the printing or the step loop."""
    found = _patch(run)
    return touches_count(found) if found is not None else None


def _patch(run: MeasuredRun) -> patches.Patch | None:
    path = run.folder.path / PATCH
    data = run.patch
    if data is None and path.exists():
        data = store.read_file(path)
    return patches.read(data, str(path)) if data is not None else None


def _knob(
    change: Intervention | None, before: Sequence[ShownConfiguration], after: Sequence[ShownConfiguration]
) -> str | None:
    """The flag or variable that may set how much a step takes: of the change, else one that it moved."""
    named = next((name for name in change.names if counts.like_batch(name)), None) if change else None
    if named is not None:
        return named
    printed = dict.fromkeys(name for run in after for name in run.printed if counts.like_batch(name))
    moved = moved_knobs(tuple(printed), before, after)
    return moved[0] if moved else None


def _differences(before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> tuple[str, ...]:
    """What of code, command and surroundings differs between the first baseline run and any other run."""
    first, others = before[0].record, [m.record for m in (*before[1:], *after)]
    found = [
        f"the baseline run {first.name} was of another {what}"
        for key, what in (("command", "command"), ("tree", "code"))
        for other in others
        if first.identity.get(key, "") != other.identity.get(key, "")
    ]
    found += [what for other in others for what in differences(recorded(first), recorded(other))]
    return tuple(dict.fromkeys((*found, *_written(before, after), *_uncounted(before, after))))


def _written(before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> Iterator[str]:
    """Which code was written while a run was under way: such a run is set aside, so none should be here."""
    known = [m.record.rewritten for m in before if m.record.hypothesis is None]
    for record in (m.record for m in (*before, *after)):
        beside = known if record.hypothesis is not None else ()
        for path in spoiling(record.rewritten or (), beside)[:NAMED]:
            yield f"{path} was written while run {record.name} was under way"


def _uncounted(before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> list[str]:
    """What runs imported beyond the measured code, and that the baseline did not import as it is:
    unknown if the runs did not report their imports."""
    recorded_ones = [m.record.uncounted for m in before if m.record.hypothesis is None]
    if not recorded_ones or None in recorded_ones:
        return []
    known = {each for one in recorded_ones for each in (one or {}).items()}
    found = {
        path: f"{path} was imported, is not part of the measured code (untracked or ignored by git), and was "
        "not so in the baseline"
        for m in (*before, *after)
        for path, held in (m.record.uncounted or {}).items()
        if (path, held) not in known
    }
    more = len(found) - NAMED
    return [*[found[path] for path in sorted(found)[:NAMED]], *([f"{more} more files"] if more > 0 else [])]


def _elsewhere(before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> tuple[str, ...]:
    """What a run imported from another checkout than the one that it tests; else, of the trial, packages of
    the checkout that its interpreter finds in another folder."""
    runs = (*before, *after)
    imports = [path for m in runs if m.evidence.loaded is not None for path in strays(m.evidence.loaded)]
    if imports:
        return tuple(dict.fromkeys(imports))
    found = {
        name: folder
        for m in after
        for name, folder in (m.record.imports or {}).items()
        # What was found before the launch counts unless the run showed otherwise.
        if m.evidence.loaded is None or not has_package(m.evidence.loaded, name)
    }
    return tuple(f"{name} is imported from {folder}" for name, folder in sorted(found.items()))


def _other_steps(
    change: Intervention | None, before: Sequence[ShownConfiguration], after: Sequence[ShownConfiguration]
) -> str | None:
    """Why losses at equal steps are not comparable, as far as the change or the programs show."""
    names = change.names if change else ()
    knob = next((name for name in names if names_batch(name) or command_line.bare_name(name) == "seed"), None)
    if knob is not None:
        return f"the trial changes {knob}"
    moved = moved_knobs(_STEP_KNOBS, before, after)
    return f"the programs show another {moved[0]}" if moved else None
