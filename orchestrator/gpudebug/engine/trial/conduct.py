"""What a trial did beside what its hypothesis says, from the records of its runs and of the baseline's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from gpudebug.core.change import patches
from gpudebug.core.change.commands import of_server
from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.patches.effect import changed_lines, prints, settings_of, touches_count
from gpudebug.core.command import command_line
from gpudebug.core.command.batch import names_batch
from gpudebug.core.command.synonyms import names_of
from gpudebug.core.inside.imported_files import has_package, spoiling, strays
from gpudebug.core.inside.probe import counts
from gpudebug.core.records import Evidence
from gpudebug.core.verdict.gates.setting import SideWork, TrialSetting, in_code, planned, touched
from gpudebug.core.verdict.ranks import set_by_code, set_by_flags
from gpudebug.core.verdict.took_effect import ChangeEffect, ShownConfiguration, effect_of, moved_knobs
from gpudebug.core.verdict.unlike import finds_cache, unlike
from gpudebug.core.words import Result
from gpudebug.edges import store
from gpudebug.engine.run.counts import PATCH
from gpudebug.engine.run.environment import differences, recorded
from gpudebug.engine.run.job import MeasuredRun
from gpudebug.engine.run.prepare import fresh_folder_advice

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
    synonyms = after[0].record.synonyms or ()
    whole = change.spelled(before[0].record.argv, synonyms) if change else None
    change = whole.without_prefix if whole else None
    known = [*(o.name for o in command_line.options(before[0].record.argv)), *before[0].evidence.printed]
    named = tuple(change.locked_by(locked, known, synonyms)) if change else ()
    resized = _resized(after[0])
    moved = moved_knobs([knob for knob in locked if knob not in named], old, new)
    other_work = _unlike(before, after, change)
    return replace(
        setting,
        locked=(*named, *moved),
        differences=_differences(before, after, other_work),
        shared=_shared((*before, *after)),
        of_ranks=_of_ranks(whole, after[0]),
        other_work=bool(other_work),
        elsewhere=_elsewhere(before, after),
        effect=_effect(whole, before, after) if whole else None,
        other_steps=_other_steps(change, old, new),
        knob=_knob(change, old, new, resized),
        code=change is not None and any(c.kind in ("patch", "code") for c in change.changes),
        settings_alone=bool(resized),
        touches=_touches(after[0]),
        prints=_prints(after[0]),
        redundant=after[-1].record.redundant,
        side_work=SideWork(
            tuple(map(_planned, before)),
            tuple(map(_planned, after)),
            touched(change, synonyms),
            in_code(_patch(after[0])),
        ),
        planned_steps=_planned_steps(before),
        beyond=counts.beyond_plan(*([(m.record.argv, m.evidence) for m in side] for side in (before, after))),
    )


def _of_ranks(change: Intervention | None, trial: MeasuredRun) -> frozenset[str]:
    """Return what of ranks the change may set: a server's is none of the training's."""
    if change is None:
        return frozenset()
    own = [part for part in change.changes if not part.of_server and part.kind != "patch"]
    patch = _patch(trial)
    lines = [line for each in patch.files for line in changed_lines(each)] if patch is not None else []
    return set_by_flags(word for part in own for word in part.words) | set_by_code(lines)


def _shared(runs: Sequence[MeasuredRun]) -> tuple[str, ...]:
    """Return each other campaign that measured on the runs' cores, and beside which of them."""
    others = sorted({other for m in runs for other in m.record.shared or ()})
    return tuple(
        f"{other} beside {', '.join(m.folder.name for m in runs if other in (m.record.shared or ()))}"
        for other in others[:NAMED]
    )


def _planned_steps(before: Sequence[MeasuredRun]) -> float | None:
    """Return the least that a run's command plans; None if one does not say."""
    plans = [counts.planned(m.record.argv) for m in before]
    known = [plan[1] for plan in plans if plan is not None]
    return min(known) if len(known) == len(plans) else None


def _effect(
    change: Intervention, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]
) -> ChangeEffect:
    """Return what the runs show of the change, each part by the command that it is of; the worst counts."""
    theirs = of_server(change)
    if theirs is None:
        sides = [_shown(m) for m in before], [_shown(m) for m in after]
        return effect_of(change, *sides, _touched(after[0]))
    found = [effect_of(theirs, [_shown(m, True) for m in before], [_shown(m, True) for m in after])]
    ours = tuple(part for part in change.changes if not part.of_server)
    if ours:
        found.append(_effect(Intervention(ours, change.compound), before, after))
    order = (Result.FAIL, Result.SKIPPED, Result.PASS)
    return min(found, key=lambda effect: order.index(effect.result))


def _shown(m: MeasuredRun, server: bool = False) -> ShownConfiguration:
    evidence = m.evidence
    facts = evidence.probe.facts if evidence.probe is not None else {}
    return ShownConfiguration(
        m.record.server.argv if server and m.record.server is not None else m.record.argv,
        evidence.printed,
        evidence.loaded,
        m.record.probed is not False,
        facts,
        evidence.restated,
        m.record.synonyms or (),
        () if server else evidence.ranks,
    )


def _planned(m: MeasuredRun) -> dict[str, int]:
    evidence = m.evidence
    return planned(m.record.argv, evidence.printed, m.record.synonyms or (), evidence.total_steps)


def _touched(run: MeasuredRun) -> tuple[str, ...]:
    """Return the files that the trial's patch changes."""
    found = _patch(run)
    return found.paths if found is not None else ()


def _touches(run: MeasuredRun) -> str | None:
    """Return what of the trial's patch touches the printing or the step loop."""
    found = _patch(run)
    return touches_count(found) if found is not None else None


def _prints(run: MeasuredRun) -> bool:
    """Tell whether the trial's patch touches the loss or the printing."""
    found = _patch(run)
    return found is not None and prints(found)


def _patch(run: MeasuredRun) -> patches.Patch | None:
    path = run.folder.path / PATCH
    data = run.patch
    if data is None and path.exists():
        data = store.read_file(path)
    return patches.read(data, str(path)) if data is not None else None


def _resized(run: MeasuredRun) -> tuple[str, ...]:
    """The settings that the trial's patch changes, if these are all that it changes and set a step's size."""
    found = _patch(run)
    names = (settings_of(found) if found is not None else None) or ()
    return names if all(map(counts.like_batch, names)) else ()


def _knob(
    change: Intervention | None,
    before: Sequence[ShownConfiguration],
    after: Sequence[ShownConfiguration],
    resized: Sequence[str],
) -> str | None:
    """Return the flag, variable or setting that may set how much a step takes: of the change, else one that
    it moved."""
    named = next(_like(counts.like_batch, change, after), next(iter(resized), None))
    if named is not None:
        return named
    printed = dict.fromkeys(name for run in after for name in run.printed if counts.like_batch(name))
    moved = moved_knobs(tuple(printed), before, after)
    return moved[0] if moved else None


def _like(
    asked: Callable[[str], bool], change: Intervention | None, after: Sequence[ShownConfiguration]
) -> Iterator[str]:
    """The names in the change of which this holds, or of which it holds by another name of the option."""
    synonyms = after[0].synonyms
    for name in change.names if change else ():
        if any(map(asked, names_of(name, synonyms))):
            yield name


def _differences(
    before: Sequence[MeasuredRun],
    after: Sequence[MeasuredRun],
    other_work: Sequence[str],
) -> tuple[str, ...]:
    """What of code, command, surroundings and work differs between the first baseline run and any other."""
    first, others = before[0].record, [m.record for m in (*before[1:], *after)]
    found = [
        f"the baseline run {first.name} was of another {what}"
        for key, what in (("command", "command"), ("tree", "code"))
        for other in others
        if first.identity.get(key, "") != other.identity.get(key, "")
    ]
    found += [what for other in others for what in differences(recorded(first), recorded(other))]
    found += other_work
    return tuple(dict.fromkeys((*found, *_written(before, after), *_uncounted(before, after))))


def _unlike(
    before: Sequence[MeasuredRun], after: Sequence[MeasuredRun], change: Intervention | None
) -> list[str]:
    """Runs that did other work: of the baseline those made beside the trial, too, and of the trial those
    that differ from its own first one."""
    first = [m.evidence for m in before if m.record.hypothesis is None] or [before[0].evidence]
    found = [
        (m, unlike(m.evidence, first) or _finds(m, first)) for m in before if m.record.hypothesis is not None
    ]
    caches = change is not None and any(
        c.kind in ("patch", "code") or "cach" in " ".join(c.words) for c in change.changes
    )
    for place, m in enumerate(after):
        why = unlike(m.evidence, first, changed=True) or (None if caches else _finds(m, first))
        beside = [other.evidence for other in after[:place]]
        found.append((m, why or unlike(m.evidence, beside)))
    return [
        f"run {m.record.name}: {why}; {fresh_folder_advice(m.record.argv)}"
        for m, why in found
        if why is not None
    ]


def _finds(m: MeasuredRun, recorded: Sequence[Evidence]) -> str | None:
    """Say that a run found a cache that no recorded run had, as theirs had to make it."""
    line = finds_cache(m.evidence, recorded)
    return None if line is None else f"it found a cache that the baseline's runs did not ({line})"


def _written(before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> Iterator[str]:
    """Which code was written while a run was under way: such a run is set aside, so none should be here."""
    known = [m.record.rewritten for m in before if m.record.hypothesis is None]
    for record in (m.record for m in (*before, *after)):
        beside = known if record.hypothesis is not None else ()
        for path in spoiling(record.rewritten or (), beside)[:NAMED]:
            yield f"{path} was written while run {record.name} was under way"


def _uncounted(before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]) -> list[str]:
    """Return what runs imported beyond the measured code, and that the baseline did not import as it is:
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
    """Return what a run imported from another checkout than the one that it tests; else, of the trial,
    packages of the checkout that its interpreter finds in another folder."""
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
    """Return why losses at equal steps are not comparable, as far as the change or the programs show."""
    knob = next(_like(lambda n: names_batch(n) or command_line.bare_name(n) == "seed", change, after), None)
    if knob is not None:
        return f"the trial changes {knob}"
    moved = moved_knobs(_STEP_KNOBS, before, after)
    return f"the programs show another {moved[0]}" if moved else None
