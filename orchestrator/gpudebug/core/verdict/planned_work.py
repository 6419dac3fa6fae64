"""How many evaluations, checkpoints and log lines the runs of a trial have by their settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpudebug.core.change.intervention import Intervention
from gpudebug.core.change.patches.hunks import Patch
from gpudebug.core.command import cadence, command_line
from gpudebug.core.command.synonyms import Synonyms, long_name

_IN_CODE = {
    cadence.EVALUATION: re.compile(r"eval|valid|(?<![a-z])(?:val|test)(?![a-z])", re.I),
    cadence.CHECKPOINT: re.compile(r"sav(?:e|ing)|checkpoint|ckpt|snapshot|state_dict|dump", re.I),
    cadence.LOG: re.compile(r"log|print|report|wandb|tensorboard|summary|stdout", re.I),
}


@dataclass(frozen=True, slots=True)
class SideWork:
    """By kind how many of it each run has over its planned length, by its settings; a kind that is missing is
    not known. `touched` are the kinds whose settings or code the change holds, `in_code` those of the code:
    of these the settings prove nothing."""

    before: tuple[Mapping[str, int], ...] = ()
    after: tuple[Mapping[str, int], ...] = ()
    touched: frozenset[str] = frozenset()
    in_code: frozenset[str] = frozenset()

    def of_runs(self, before: Sequence[bool], after: Sequence[bool]) -> SideWork:
        """Return the same of the runs that are kept."""
        old = tuple(plan for plan, stays in zip(self.before, before, strict=False) if stays)
        new = tuple(plan for plan, stays in zip(self.after, after, strict=False) if stays)
        return SideWork(old, new, self.touched, self.in_code)


def planned(
    argv: Sequence[str], printed: Mapping[str, str], synonyms: Synonyms = (), total_steps: float | None = None
) -> dict[str, int]:
    """How many a run has by its command and by the configuration that it printed, whose last word counts."""
    options = command_line.program_options(argv)
    flags = {long_name(o.name, synonyms): "" if o.value is None else o.value for o in options}
    settings = {**cadence.short(flags), **cadence.short(printed)}
    counts = {kind: cadence.planned(settings, kind, total_steps) for kind in cadence.KINDS}
    return {kind: count for kind, count in counts.items() if count is not None}


def touched(change: Intervention | None, synonyms: Synonyms = ()) -> frozenset[str]:
    """Return the kinds that a change's flags and variables are about, by name."""
    names = [long_name(name, synonyms) for name in change.names] if change is not None else []
    kinds = {cadence.kind_of(name) for name in names}
    kinds |= {kind for kind, words in _IN_CODE.items() if any(map(words.search, names))}
    return frozenset(kind for kind in kinds if kind is not None)


def in_code(patch: Patch | None) -> frozenset[str]:
    """Return the kinds that the code around a patch's changes is about."""
    files = patch.files if patch is not None else ()
    lines = [line.decode("utf-8", "replace") for f in files for hunk in f.hunks for line in hunk.body]
    return frozenset(kind for kind, words in _IN_CODE.items() if any(map(words.search, lines)))
