"""Whether a change reached the program, by what its command line and its own configuration show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpudebug.core.change.intervention import Intervention, SingleChange
from gpudebug.core.command import command_line, loader_settings
from gpudebug.core.command.synonyms import Synonyms, long_name, names_of
from gpudebug.core.lazy import regex
from gpudebug.core.records import LoadedFiles, RankEvidence
from gpudebug.core.redaction.redact import REDACTED
from gpudebug.core.text.values import finite_number, same_value
from gpudebug.core.verdict import ranks
from gpudebug.core.words import Result


@dataclass(frozen=True, slots=True)
class ChangeEffect:
    """What was found: `value` is what the program shows, None if it shows nothing; `note` says why."""

    result: Result
    value: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ShownConfiguration:
    """What one run shows: its command line, what the program printed or saved of its configuration, and which
    files its processes imported: `loaded` is None if they did not report it, `probed` false if not asked.
    `facts` are what the training process reported (`ProbeEvidence.facts`), `restated` the values in order of
    what the program showed with several (`Evidence.restated`), `synonyms` the options with several names,
    `ranks` what each process of several reported."""

    argv: Sequence[str]
    printed: Mapping[str, str]
    loaded: LoadedFiles | None = None
    probed: bool = True
    facts: Mapping[str, object] = field(default_factory=dict)
    restated: Mapping[str, Sequence[str]] = field(default_factory=dict)
    synonyms: Synonyms = ()
    ranks: Sequence[RankEvidence] = ()


# Too short to tell one option of a program from another.
_SHORTEST_NAME = 2
_NAMED = 3
_NEGATED = regex(r"no[-_]")
# `--config.lr` of ml_collections, `data.init_args.batch_size` of Lightning.
_WRAPPING = regex(r"^(?:config|cfg)\.|(?<=\.)init_args\.")
_DIGIT = regex(r"\d")


def effect_of(
    change: Intervention,
    before: Sequence[ShownConfiguration],
    after: Sequence[ShownConfiguration],
    touched: Sequence[str] = (),
) -> ChangeEffect:
    """What the runs of the trial show of each part of the change; the worst that one of them shows counts.

    `touched` are the files that its patch changes. A part that nothing confirms makes it SKIPPED, with the
    reason.
    """
    found = [_part(part, before, run, touched) for part in change.changes for run in after]
    for result in (Result.FAIL, Result.SKIPPED):
        worst = next((effect for effect in found if effect.result is result), None)
        if worst is not None:
            return worst
    values = dict.fromkeys(effect.value for effect in found if effect.value)
    notes = dict.fromkeys(effect.note for effect in found if effect.note)
    return ChangeEffect(Result.PASS, "; ".join(values), "; ".join(notes) or None)


def moved_knobs(
    locked: Sequence[str], before: Sequence[ShownConfiguration], after: Sequence[ShownConfiguration]
) -> tuple[str, ...]:
    """Return the locked knobs that the programs show with another value in the trial than in the baseline."""
    moved = []
    for knob in locked:
        old, new = shown(before, knob), shown(after, knob)
        if old and new and not same_value(old[1], new[1]):
            moved.append(f"{knob} (shown as {old[1]}, then {new[1]})")
    return tuple(moved)


def shown(runs: Sequence[ShownConfiguration], flag: str) -> tuple[str, str] | None:
    """Return name and value under which the first run that shows the flag does."""
    return next((found for run in runs if (found := _shown_by(run, flag))), None)


def _shown_by(run: ShownConfiguration, flag: str) -> tuple[str, str] | None:
    names = names_of(flag, run.synonyms)
    return next((found for name in names if (found := _lookup(run.printed, name))), None)


def _lookup(printed: Mapping[str, str], flag: str) -> tuple[str, str] | None:
    """Return the entry of this name; else those of which it is the last part, if they agree."""
    wanted = _folded(flag)
    if len(wanted) < _SHORTEST_NAME:
        return None
    names = {name: _folded(name) for name in printed}
    exact = [name for name, folded in names.items() if folded == wanted]
    found = exact or [name for name, folded in names.items() if folded.endswith(f".{wanted}")]
    if not found or any(not same_value(printed[found[0]], printed[name]) for name in found):
        return None
    return found[0], printed[found[0]]


def _folded(name: str) -> str:
    """Return the name in one spelling, without what only the libraries of flags put into it."""
    plain = command_line.bare_name(name).replace("-", "_").replace("/", ".").lower()
    return _WRAPPING.sub("", plain)


def _part(
    part: SingleChange, before: Sequence[ShownConfiguration], run: ShownConfiguration, touched: Sequence[str]
) -> ChangeEffect:
    if part.kind in ("patch", "code"):
        return _code(run, touched)
    missing = _missing_in_command(part, run.argv)
    if missing:
        return ChangeEffect(Result.FAIL, missing)
    behind = ranks.lagging(part, [other.ranks for other in before], run.ranks, run.synonyms)
    if behind is not None:
        return ChangeEffect(Result.FAIL, behind)
    contradicted = _contradicted(part, before, run)
    if contradicted is not None:
        return contradicted
    part = _meant(part, run)
    found = _shown_by(run, part.name)
    of_loader = _of_loader(part, before, run)
    if found is None:
        each = ranks.confirmed(part, run.ranks)
        shown_by_all = ChangeEffect(Result.PASS, each) if each is not None else None
        return of_loader or shown_by_all or ChangeEffect(Result.SKIPPED, note=_unconfirmed(part))
    judged = _judged(part, before, run, *found)
    if of_loader is None or judged.result is of_loader.result:
        return judged
    # What the loader does is no echo of a file.
    if judged.result is Result.FAIL and of_loader.result is Result.PASS:
        return ChangeEffect(Result.PASS, of_loader.value, f"the program prints {': '.join(found)}")
    if judged.result is Result.PASS and of_loader.result is Result.FAIL:
        note = f"the program prints {': '.join(found)}, but {of_loader.value}"
        return ChangeEffect(Result.SKIPPED, note=note)
    return judged


def _meant(part: SingleChange, run: ShownConfiguration) -> SingleChange:
    """`--no-amp` as `amp` set to false, if the program shows that name and not its own."""
    opposite = _NEGATED.sub("", command_line.bare_name(part.name), count=1)
    if part.kind != "set" or part.value is not None or opposite == command_line.bare_name(part.name):
        return part
    if _shown_by(run, part.name) is not None or _shown_by(run, opposite) is None:
        return part
    return part._replace(name=opposite, value="false")


def _contradicted(
    part: SingleChange, before: Sequence[ShownConfiguration], run: ShownConfiguration
) -> ChangeEffect | None:
    """Return what a setting shows that the program gave several values; None if one of them holds.

    Its last word may confirm the change, if the baseline's is another. That it contradicts proves nothing
    where another word confirms.
    """
    names = next((found for name in names_of(part.name, run.synonyms) if (found := _restated(run, name))), [])
    if not names:
        return None
    name, values = names[0], run.restated[names[0]]
    asked = "true" if part.value is None else part.value
    shown_as = f"{name}: {', then '.join(values)}"
    if part.kind != "unset" and len(names) == 1:
        if same_value(asked, values[-1]) and not any(
            same_value(asked, other.restated.get(name, ("",))[-1]) for other in before
        ):
            return ChangeEffect(Result.PASS, shown_as)
        if name in run.printed and not any(same_value(asked, value) for value in values):
            return None
    return ChangeEffect(Result.SKIPPED, note=f"the program contradicts itself: it shows {shown_as}")


def _restated(run: ShownConfiguration, flag: str) -> list[str]:
    wanted = _folded(flag)
    if len(wanted) < _SHORTEST_NAME:
        return []
    exact = [name for name in run.restated if _folded(name) == wanted]
    return exact or [name for name in run.restated if _folded(name).endswith(f".{wanted}")]


def _unconfirmed(part: SingleChange) -> str:
    if part.kind == "env":
        return f"{part.name} is set, but the program does not print its variables"
    state = "not on" if part.kind == "unset" else "on"
    printed = "but the program printed no configuration that confirms it"
    return f"{part.name} is {state} the command line, {printed}"


def _of_loader(
    part: SingleChange, before: Sequence[ShownConfiguration], run: ShownConfiguration
) -> ChangeEffect | None:
    """What the training's own loader shows of a setting that the program does not print; None for nothing."""
    setting = loader_settings.meant(long_name(part.name, run.synonyms))
    values = loader_settings.reported(run.facts, setting) if setting else ()
    if setting is None or not values:
        return None
    old = {value for other in before for value in loader_settings.reported(other.facts, setting)}
    asked = "true" if part.value is None else part.value
    text = f"{setting}: {', '.join(values)} (the training's loader)"
    if part.kind != "unset" and any(same_value(asked, value) for value in values):
        return ChangeEffect(Result.PASS, text)
    if old and not old & set(values):
        return ChangeEffect(Result.PASS, text, None if part.kind == "unset" else f"{asked} was asked for")
    # A batch may be a part, or several, of what a flag says; and what is unset may have been the default.
    if part.kind == "unset" or setting == loader_settings.BATCH or old != set(values):
        return None
    return ChangeEffect(Result.FAIL, f"{part.name}={asked} was asked for, the program has {text}")


def _code(run: ShownConfiguration, touched: Sequence[str]) -> ChangeEffect:
    """Tell whether a process of the run imported a file that the change touches."""
    if run.loaded is None:
        why = "no process reported it" if run.probed else "probe: false in gpudebug.yaml"
        return ChangeEffect(Result.SKIPPED, note=f"the files that the program loaded are unknown: {why}")
    found = sorted(set(touched) & set(run.loaded.files))
    if not found:
        named = _some(touched) if touched else "a file that the change touches"
        return ChangeEffect(Result.SKIPPED, note=f"no process imported {named}")
    return ChangeEffect(Result.PASS, f"{_some(found)} loaded from {run.loaded.tree}")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _missing_in_command(part: SingleChange, argv: Sequence[str]) -> str | None:
    """Return why the command line itself does not hold the change."""
    if part.kind == "env":
        return None
    found = command_line.find(argv, part.name)
    if part.kind == "unset":
        return f"the command still has {part.name}" if found else None
    if not found:
        return f"the command has no {part.name}"
    written, asked = found[-1].value, part.value
    if written is None or asked is None or REDACTED in written or "{" in asked or same_value(asked, written):
        return None
    return f"the command has {part.name}={written}"


def _old(part: SingleChange, before: Sequence[ShownConfiguration]) -> str | None:
    """Return the value that the baseline's command gives."""
    options = command_line.find(before[0].argv, part.name) if before and part.kind != "env" else ()
    if not options:
        return None
    return "true" if options[-1].value is None else options[-1].value


def _judged(
    part: SingleChange, before: Sequence[ShownConfiguration], run: ShownConfiguration, name: str, value: str
) -> ChangeEffect:
    """Return what the program shows as one value, against what was asked for and what the baseline has."""
    text = f"{name}: {value}"
    old = _old(part, before)
    earlier = next((other.printed[name] for other in before if name in other.printed), None)
    if earlier is None and (found := shown(before, part.name)) is not None:
        earlier = found[1]
    still = any(known is not None and same_value(known, value) for known in (old, earlier))
    if part.kind == "unset":
        result = Result.FAIL if still else Result.PASS if earlier is not None else Result.SKIPPED
        return ChangeEffect(result, f"the program shows {text}" if still else text)
    asked = "true" if part.value is None else part.value
    exact = _folded(name) in map(_folded, names_of(part.name, run.synonyms))
    compared = old is not None and earlier is not None
    follows = compared and _is_shown_as(str(old), str(earlier))
    strange = compared and not follows
    if same_value(asked, value):
        if earlier is not None and same_value(asked, earlier) and (strange or not (exact or follows)):
            return ChangeEffect(Result.SKIPPED, note=f"the baseline's program shows {text} as well")
        return ChangeEffect(Result.PASS, text)
    numbers = finite_number(asked) is not None and finite_number(value) is not None
    if not still and not numbers:
        note = f"{part.name}={asked} is shown as {value}"
        return ChangeEffect(Result.SKIPPED if old is None and earlier is None else Result.PASS, text, note)
    if strange and _in_proportion(str(old), str(earlier), asked, value):
        return ChangeEffect(Result.PASS, text, f"{part.name}={asked} is shown as {value}, {old} as {earlier}")
    doubt = _doubt(part, run, name, value, exact or follows, strange)
    if doubt is not None:
        return ChangeEffect(Result.SKIPPED, note=f"the program shows {text}, {doubt}")
    written = part.name if part.value is None else f"{part.name}={part.value}"
    return ChangeEffect(Result.FAIL, f"{written} was asked for, the program shows {text}")


def _is_shown_as(written: str, value: str) -> bool:
    """Tell whether a value is shown as it was written, or as an enumeration's member: `Strategy.STEPS`."""
    return same_value(written, value) or same_value(written, value.rpartition(".")[2])


def _in_proportion(old: str, earlier: str, asked: str, value: str) -> bool:
    """Tell whether what is shown follows what is asked for: a batch as each of several devices gets it."""
    numbers = [finite_number(text) for text in (old, earlier, asked, value)]
    if None in numbers:
        return False
    a, b, c, d = (float(number or 0.0) for number in numbers)
    return a * b * c * d != 0 and math.isclose(a * d, b * c, rel_tol=0.01)


def _doubt(
    part: SingleChange, run: ShownConfiguration, name: str, value: str, its_own: bool, strange: bool
) -> str | None:
    """Return why another value than the one asked for may be no contradiction; None if it is one.

    Programs echo files and defaults that their command line overrides without a word.
    """
    if strange:
        return "which is not what the baseline's command says either"
    if not its_own:
        return "which may be another setting"
    if part.kind == "env" and part.name != name:
        return "which may be another setting than the variable"
    word = part.value is not None and not _DIGIT.search(part.value)
    if word and finite_number(value) is not None:
        return f"which {part.value} may mean"
    if _only_echoes(part, run):
        return "but of other flags, too, not what the command says"
    return None


def _only_echoes(part: SingleChange, run: ShownConfiguration) -> bool:
    """Tell whether the program shows other flags of the command with other values, and none with its own."""
    own = {_folded(name) for name in names_of(part.name, run.synonyms)}
    printed = {_folded(name): value for name, value in run.printed.items()}
    compared = [
        same_value(option.value, printed[_folded(option.name)])
        for option in command_line.program_options(run.argv)
        if option.value is not None and _folded(option.name) not in own and _folded(option.name) in printed
    ]
    return bool(compared) and not any(compared)
