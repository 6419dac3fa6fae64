"""Whether a change reached each rank, by its loader's settings and the variables that its process found."""

from __future__ import annotations

from collections.abc import Sequence

from gpudebug.core.change.intervention import SingleChange
from gpudebug.core.command import loader_settings
from gpudebug.core.command.synonyms import Synonyms, long_name
from gpudebug.core.inside.rank_names import named
from gpudebug.core.records import RankEvidence
from gpudebug.core.text.values import same_value

_OMP = "OMP_NUM_THREADS"
_UNSET = "unset"


def lagging(
    part: SingleChange,
    before: Sequence[Sequence[RankEvidence]],
    ranks: Sequence[RankEvidence],
    synonyms: Synonyms = (),
) -> str | None:
    """Return which ranks still have what they had in the baseline, though others have what was asked for.

    `before` are the ranks of each run of the baseline. None if all have it, if none has, and if nothing shows
    it.
    """
    setting = _setting(part, synonyms)
    if setting is None or part.kind == "unset":
        return None
    asked = "true" if part.value is None else part.value
    reached, behind = 0, []
    for one in ranks:
        values = _values(one, setting)
        old = {
            v for run in before for other in run if other.rank == one.rank for v in _values(other, setting)
        }
        if any(same_value(asked, value) for value in values):
            reached += 1
        elif values and set(values) == old and one.rank is not None:
            behind.append((one.rank, values))
    if not (reached and behind):
        return None
    shown = ", ".join(dict.fromkeys(value for _, values in behind for value in values))
    has = "has" if len(behind) == 1 else "have"
    who = named([rank for rank, _ in behind])
    return f"{part.name}={asked} was asked for, {who} {has} {setting}: {shown}, as in the baseline"


def confirmed(part: SingleChange, ranks: Sequence[RankEvidence]) -> str | None:
    """Say that each rank found the variable as the change sets it; None if one did not, or of others."""
    if part.kind != "env" or part.name != _OMP or not ranks or part.value is None:
        return None
    asked = part.value
    everywhere = all(same_value(asked, value) for one in ranks for value in _values(one, _OMP))
    return f"{_OMP}: {asked} (each of {len(ranks)} ranks)" if everywhere and len(ranks) > 1 else None


def _setting(part: SingleChange, synonyms: Synonyms) -> str | None:
    """What of a rank the flag or variable sets; a batch may be a part, or several, of what a flag says."""
    if part.kind == "env" and part.name == _OMP:
        return _OMP
    found = loader_settings.meant(long_name(part.name, synonyms))
    return None if found == loader_settings.BATCH else found


def _values(one: RankEvidence, setting: str) -> tuple[str, ...]:
    if setting == _OMP:
        return (one.omp if one.omp is not None else _UNSET,)
    return one.loader.get(setting, ())
