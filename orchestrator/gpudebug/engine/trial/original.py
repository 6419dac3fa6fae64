"""The workload without any accepted change, run in turn with the baseline that has them all.

What was accepted is worth the difference of the two: measured at one time, under one load. Both sides of one
recording have the same `paired` in run.json.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpudebug.core.campaign import accepted_changes
from gpudebug.core.config import Config
from gpudebug.core.errors import DeviceError, GitError
from gpudebug.core.text.values import short_digest
from gpudebug.core.verdict.unlike import fills_cache, is_cold, unlike
from gpudebug.core.words import AS_PLANNED
from gpudebug.edges import git, store
from gpudebug.engine.campaign import worktrees
from gpudebug.engine.campaign.baselines import identity
from gpudebug.engine.campaign.campaign import History, Loaded, MeasuredCode, Records, Setup
from gpudebug.engine.campaign.files import read_config
from gpudebug.engine.campaign.worktrees import WorkingTree
from gpudebug.engine.run.around import surroundings_of
from gpudebug.engine.run.job import Bench, MeasuredRun, PreparedRun, replanned
from gpudebug.engine.run.planned import plan_after
from gpudebug.engine.run.prepare import Cycle, job_of, stored_run
from gpudebug.engine.trial.reuse import newest, reusable
from gpudebug.engine.trial.unmodified import BaselineFailed, run_once

ROLE = "original"
CHECK = "check"
NAME = "workload without the accepted changes"
MOST_UNLIKE = 2
"""Runs that did other work than the first one, after which no more are made."""


@dataclass
class Originals:
    """The runs without the accepted changes of one recording; `ended` says why no more of them are made,
    `others` are those that did other work than the first one, with why."""

    cycle: Cycle
    place: WorkingTree
    bench: Bench
    job: PreparedRun
    made: list[MeasuredRun] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)
    ended: str | None = None

    @property
    def runs(self) -> list[MeasuredRun]:
        """Those that count."""
        return warm(self.made)

    def lacks(self, wanted: int) -> bool:
        return self.ended is None and len(self.runs) < wanted

    def turn(self, beside: int) -> bool:
        """Tell whether its run is the next one, with so many of the baseline made.

        The sides begin in turn (ABBA), so that a steady drift of the machine favours neither.
        """
        own = len(self.made)
        return self.ended is None and (own < beside or (own == beside and own % 2 == 0))

    def run(self) -> None:
        """One more run. One that cannot be had ends the contrast, not the baseline beside it."""
        loaded, made = self.cycle.loaded, self.made
        job = replanned(self.job, plan_after(loaded.setup.config, made)) if made else self.job
        try:
            measured = run_once(self.place, self.bench, NAME, job, made)
        except (BaselineFailed, DeviceError) as e:
            self.ended = e.message
            return
        why = unlike(measured.evidence, [m.evidence for m in made])
        if why is None:
            made.append(measured)
            return
        self.others.append((measured.folder.name, why))
        if len(self.others) >= MOST_UNLIKE:
            self.ended = f"its runs are not alike: run {measured.folder.name}: {why}"


def warm(runs: list[MeasuredRun]) -> list[MeasuredRun]:
    """Return the runs without a first one that met a cold page cache, or that made what the others found."""
    evidence = [m.evidence for m in runs]
    return runs[1:] if is_cold(evidence) or fills_cache(evidence) else runs


def recording_of(loaded: Loaded, role: str) -> str | None:
    """Return what the runs of both sides of the recording that comes next have in common; None if nothing is
    accepted, or nothing can run without it."""
    if role != "workload" or not loaded.code.stack or there_already(loaded.setup, loaded.code):
        return None
    entry = loaded.entries.document.baseline(role)
    of = json.dumps([loaded.history.identities[role], newest(entry.runs if entry else ())], sort_keys=True)
    return short_digest(of.encode("utf-8", "surrogateescape"))


def originals(cycle: Cycle, bench: Bench, paired: str | None) -> Originals | None:
    """What is run beside the baseline in the recording `paired`; sealed runs of a cut-off one included."""
    if paired is None:
        return None
    loaded, side = cycle.loaded, other_side(cycle, bench, paired)
    entry = loaded.entries.document.baseline("workload")
    found = reusable(
        loaded.setup,
        loaded.history.records,
        ROLE,
        newer_than=newest(entry.runs if entry else ()),
        surroundings=surroundings_of(bench, side.job),
        identity=side.job.code.identity,
    )
    side.made += [m for m in found if m.record.paired == paired and m.evidence.outcome in AS_PLANNED]
    return side


def other_side(cycle: Cycle, bench: Bench, paired: str) -> Originals:
    """What runs without any accepted change in the recording `paired`, of which nothing is made yet."""
    loaded = cycle.loaded
    plain, place = read_config(loaded.setup.workspace), _place(cycle)
    own = identity(loaded.setup.workspace, plain, plain.workload, loaded.code.tree)
    job = replace(job_of(cycle, plain.workload, ROLE, ROLE, own, place), paired=paired)
    return Originals(cycle, place, bench, job)


def _place(cycle: Cycle) -> WorkingTree:
    """Where they run: where the baseline does if no patch is accepted, else in a worktree as that does."""
    if not cycle.loaded.code.patches:
        return cycle.place
    return cycle.stack.enter_context(worktrees.place_of_original(cycle.setup, cycle.loaded.code))


def in_command(workspace: store.Workspace, code: MeasuredCode) -> tuple[int, ...]:
    """Return the accepted hypotheses of which gpudebug.yaml has a flag or variable by now. Reads only."""
    plain: Config = read_config(workspace)
    return accepted_changes.already(plain.workload, code.stack, plain.allowed)


def there_already(setup: Setup, code: MeasuredCode) -> tuple[int, ...]:
    """The accepted hypotheses whose change gpudebug.yaml or the checkout has by now: nothing runs without.

    For commands that run something: git keeps the base that patches are looked for in.
    """
    found = set(in_command(setup.workspace, code))
    patched = [step.hypothesis for step in code.stack if step.intervention.patch is not None]
    if code.patches:
        try:
            top, base = setup.checkout.top, worktrees.checkout_base(setup, code).commit
        except GitError:
            return tuple(sorted(found))
        first = git.first_there(top, base, code.patches)
        for place, (number, patch) in enumerate(zip(patched, code.patches, strict=False)):
            if place < first or git.already_there(top, base, patch):
                found.add(number)
    return tuple(sorted(found))


def beside_baseline(setup: Setup, history: History) -> list[MeasuredRun]:
    """Return the runs without the accepted changes that were made beside the baseline of now; none if there
    are none, or one of them cannot be read."""
    runs = history.baselines["workload"].runs
    paired = history.records.get(runs[0], {}).get("paired") if runs else None
    return _made_for(setup, history.records, str(paired)) if paired else []


def _made_for(setup: Setup, records: Records, paired: str) -> list[MeasuredRun]:
    names = [
        name
        for name, record in records.items()
        if (record.get("role"), record.get("paired")) == (ROLE, paired)
        and record.get("campaign") == setup.config.campaign
        and not record.get("set_aside")
        and setup.workspace.run(name).intact("run.json", "evidence.json")
    ]
    found = [stored_run(setup.workspace, name) for name in names]
    return warm([m for m in found if m.evidence.outcome in AS_PLANNED])


def named(runs: Sequence[MeasuredRun]) -> tuple[str, ...]:
    return tuple(m.folder.name for m in runs)
