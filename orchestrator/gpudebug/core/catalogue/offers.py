"""What would test a cause in one program: changes that gpudebug can make by itself, then what to write."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpudebug.core.answers.catalogue import OfferHere
from gpudebug.core.catalogue import model
from gpudebug.core.catalogue.frameworks import FoundFramework, locks_of, synonyms_of
from gpudebug.core.catalogue.knobs import CurrentOption, is_hands, meant, standing, turned, within
from gpudebug.core.catalogue.model import CatalogueIntervention, Cause, Flag, Framework, written
from gpudebug.core.catalogue.program import Kind, OwnFlag, Program, folded
from gpudebug.core.change import intervention as interventions
from gpudebug.core.change.intervention import Intervention, SingleChange
from gpudebug.core.change.permits import NOTHING_MORE, Allowed
from gpudebug.core.command import cadence, command_line
from gpudebug.core.command.cadence import PlannedLength
from gpudebug.core.command.synonyms import Synonyms
from gpudebug.core.errors import InterventionError, NoEffect
from gpudebug.core.lazy import regex

_OFF_UNLESS_SET = frozenset({"CUDA_LAUNCH_BLOCKING", "TORCH_SHOW_CPP_STACKTRACES"})
"""Variables that change nothing at `0` where they are not set."""
_SETTING = regex(r"\b([a-z]\w*)=(\d{1,4})\b")
_MOSTLY = 0.5
"""Of the time that shows a cause: what its change needs has to take so much of it."""
SeenCalls = Sequence[tuple[frozenset[str], float]]
"""What takes the time that shows a cause: the words of each call, with its seconds."""


class Offers(NamedTuple):
    """The offers, best first, and why others are not offered: a line each."""

    offers: tuple[OfferHere, ...]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownCommand:
    """A command with what is known of it: variables of its own, framework, its version, its source, and the
    calls that show the cause that is to be tested, if stacks do."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    found: FoundFramework | None = None
    version: str | None = None
    program: Program | None = None
    calls: SeenCalls = ()

    @property
    def synonyms(self) -> Synonyms:
        return synonyms_of(self.found, self.program)

    @property
    def options(self) -> dict[str, CurrentOption]:
        variables = self.found.framework.variables if self.found else {}
        own = {folded(name): OwnFlag(name, n, "int", variable=True) for name, n in variables.items()}
        own |= self.program.options if self.program else {}
        return standing(self.argv, self.env, own, self.synonyms)


def interventions_for(
    cause: Cause,
    command: KnownCommand,
    *,
    cores: float | None = None,
    locked: Sequence[str] = (),
    allowed: Allowed = NOTHING_MORE,
    printed: Mapping[str, str] | None = None,
    total_steps: float | None = None,
) -> Offers:
    """Return what would test the cause in the command.

    Mechanical ones come first: the framework's, that of any program, knobs that the command or its source
    has, then variables. A change that the command has already, whose flags this version of the
    framework lacks or that touches a locked knob is not offered. Of workers, threads or processes no more are
    asked for than `cores`; None is no limit. `printed` is the configuration that the program printed and
    `total_steps` its length: evaluations, checkpoints and log lines are made so rare that some remain.
    """
    options, synonyms = command.options, command.synonyms
    shown = cadence.short(printed or {})
    options = {key: _as_shown(key, option, shown) for key, option in options.items()}
    given = {key: str(option.value) for key, option in options.items() if option.value is not None}
    plan = cadence.length({**shown, **given}, total_steps)
    case = _CauseOnCommand(cause, command, options, locked, [], allowed, synonyms, plan, shown, cores)
    changes = [*case.of_interventions(), *case.of_knobs(), *case.of_variables()]
    kept: list[OfferHere] = []
    for offer in changes:
        asked = interventions.parse(offer.change or "")
        if not any(
            asked.same_effect(interventions.parse(k.change or ""), command.argv, command.env) for k in kept
        ):
            kept.append(offer)
    return Offers((*kept, *case.written()), tuple(dict.fromkeys(case.refused)))


@dataclass(frozen=True)
class _CauseOnCommand:
    cause: Cause
    command: KnownCommand
    options: Mapping[str, CurrentOption]
    locked: Sequence[str]
    refused: list[str]
    allowed: Allowed
    synonyms: Synonyms
    plan: PlannedLength
    shown: Mapping[str, str]
    cores: float | None = None

    def own(self) -> CatalogueIntervention | None:
        """Return the catalogue on this framework or its base, with no more hands than there are cores."""
        found = self._own()
        if found is None:
            return None
        fitting = {
            name: within(int(value), self.cores) if isinstance(value, float) and is_hands(name) else value
            for name, value in found.set.items()
        }
        return found.model_copy(update={"set": fitting})

    def _own(self) -> CatalogueIntervention | None:
        """Return the catalogue on this framework, where it holds for this version, or else on its base."""
        if self.command.found is None:
            return None
        framework, of = self.command.found.framework, self.cause.interventions
        intervention = of.get(framework.name)
        if intervention is None:
            # The version that is known is not that of the base's package.
            return of.get(framework.base) if framework.base is not None else None
        holds = intervention.versions
        if holds and self.command.version and not model.within(self.command.version, holds):
            self.refused.append(f"{self.command.found.framework.title} {self.command.version} is not {holds}")
            return None
        return intervention

    def of_interventions(self) -> Iterator[OfferHere]:
        own, general = self.own(), self.cause.interventions.get("any")
        if own is not None and self.command.found is not None:
            yield from self._of_framework(own, self.command.found)
        if general is not None and (general.set or general.unset or general.env) and self._used(general):
            yield from self._tried(_changes(general), "any", general.note)

    def _of_framework(self, own: CatalogueIntervention, found: FoundFramework) -> Iterator[OfferHere]:
        framework = found.framework
        if not (own.set or own.unset or own.env):
            return
        names = self._names((*own.set, *own.unset), framework)
        if not names and not own.env:
            return
        if not all(self._taken(name, found) for name in names.values()):
            return
        if self._beyond(own):
            return
        bare = {folded(flag) for flag in framework.bare}
        set_ = {
            self._through(names[name], framework): value for name, value in own.set.items() if name in names
        }
        if None in set_ or sum("=" in name for name in set_ if name) > 1:
            return
        renamed = own.model_copy(
            update={
                "set": set_,
                "unset": tuple(names[name] for name in own.unset if name in names),
            }
        )
        yield from self._tried(_changes(renamed, bare), framework.name, own.note)

    def _taken(self, name: str, found: FoundFramework) -> bool:
        """Tell whether the command takes an option of the framework."""
        if folded(name) in self.options:
            return True
        return found.takes_flags and folded(name) not in map(folded, found.framework.arguments)

    def _through(self, name: str, framework: Framework) -> str | None:
        """An option as the command takes it: `--cfg-options=a.b` of `a.b`, which stands behind that option.

        None if that option is in the command with others behind it: a word at the end would be theirs.
        """
        through = framework.through
        option = self.options.get(folded(name))
        if option is not None and not option.given:
            # As the program itself spells it.
            return option.name
        if through is None or "." not in name or option is not None:
            return name
        dashed = [o for o in command_line.program_options(self.command.argv) if o.style != "override"]
        if not any(folded(option.name) == folded(through) for option in dashed):
            return f"--{through}={name}"
        return name if folded(dashed[-1].name) == folded(through) else None

    def _beyond(self, own: CatalogueIntervention) -> bool:
        """Tell whether a knob of the cause is already further than the intervention would set it."""
        for name, value in own.set.items():
            option = self.options.get(folded(name))
            knob = next((k for k in self.cause.knobs if meant(k, folded(name))), None)
            if option is None or knob is None or knob.direction not in ("up", "down"):
                continue
            probe = knob.model_copy(update={"value": value, "factor": None})
            if option.value is not None and not list(turned([probe], {folded(name): option}, None)):
                return True
        return False

    def _names(self, names: Iterable[str], framework: Framework) -> dict[str, str]:
        """Return what this version calls the options that it has."""
        found = {name: self._name(name, framework) for name in names}
        return {name: now for name, now in found.items() if now is not None}

    def _name(self, name: str, framework: Framework) -> str | None:
        """Return what this version calls an option; None if it has none, and that is noted."""
        flag = framework.flags.get(name, Flag())
        former = flag.formerly
        if former and (folded(former) in self.options or (self.command.version and self._before(flag.since))):
            return former
        lacks = None
        if flag.since and self._before(flag.since):
            lacks = f"the flag exists since {flag.since}"
        elif flag.until and self.command.version and not self._before(flag.until):
            lacks = f"the flag was removed in {flag.until}"
        if lacks:
            self.refused.append(f"{framework.title} {self.command.version} has no {name}: {lacks}")
        return None if lacks else name

    def _before(self, version: str | None) -> bool:
        return bool(version and self.command.version and model.compare(self.command.version, version) < 0)

    def of_knobs(self) -> Iterator[OfferHere]:
        # What the command or the program sets decides, and comes before a default of the framework's.
        rarer = {**self.options, **{k: v for k, v in self._defaults().items() if k not in self.options}}
        of_all = (
            turned([knob], rarer if knob.side_work else self.options, self.cores, self.plan, self.refused)
            for knob in self.cause.knobs
        )
        for change in (change for changes in of_all for change in changes):
            yield from self._tried(change, "knob")

    def _defaults(self) -> dict[str, CurrentOption]:
        """Return the framework's options that say how often, where neither command nor program has them."""
        found = self.command.found
        if found is None or not found.takes_flags:
            return {}
        options = {}
        for name, every in found.framework.every.items():
            now = self._name(name, found.framework)
            if now is None or folded(now) in map(folded, found.framework.arguments):
                continue
            kind: Kind = "int" if every == int(every) else "float"
            name_ = self._through(now, found.framework)
            if name_ is None:
                continue
            option = CurrentOption(name_, written(every), kind, given=False)
            options[folded(now)] = _as_shown(folded(now), option, self.shown)
        return options

    def of_variables(self) -> Iterator[OfferHere]:
        variables = self.cause.interventions.get("env")
        if variables is not None and variables.env and self._used(variables):
            yield from self._tried(_changes(variables), "env", variables.note)

    def _used(self, offer: CatalogueIntervention) -> bool:
        """Tell whether the time goes where the change works; without stacks that show it, whether command,
        printed configuration or source name what it needs."""
        command, needs = self.command, frozenset(offer.needs)
        if not needs:
            return True
        total = math.fsum(seconds for _, seconds in command.calls)
        if total:
            taken = math.fsum(seconds for words, seconds in command.calls if words & needs)
            used = taken >= _MOSTLY * total
        else:
            uses = command.program.uses if command.program else ()
            named = (*command.argv, *command.env, *self.shown, *self.options, *uses)
            used = any(module in word.lower() for word in named for module in needs)
        if not used:
            self.refused.append(f"{_changes(offer)} needs {' or '.join(offer.needs)}, which is not seen here")
        return used

    def _tried(self, change: str, by: str, note: str | None = None) -> Iterator[OfferHere]:
        """Yield the offer, of as much of the change as does something to this command."""
        try:
            asked = interventions.parse(change).spelled(self.command.argv, self.synonyms)
            reasons = {part: self._idle(part) for part in asked.changes}
            kept = tuple(part for part, idle in reasons.items() if idle is None)
            made = Intervention(kept, compound=len(kept) > 1)
            if kept:
                made.apply(self.command.argv, self.command.env, self.allowed)
        except InterventionError as e:
            self.refused.append(f"{e.message}; {e.next}" if e.next and "allow_" in e.next else e.message)
            return
        flags = [option.name for option in command_line.options(self.command.argv)]
        same = locks_of(self.command.argv, self.command.found, self.command.program, self.locked, made.names)
        locked = made.locked_by(self.locked, flags, same)
        if locked:
            self.refused.append(f"{made.text} touches {', '.join(locked)}, which is locked")
        elif kept:
            yield OfferHere(made.text, None, by, note)
        else:
            self.refused.extend(idle for idle in reasons.values() if idle)

    def _idle(self, part: SingleChange) -> str | None:
        """Return why a part of a change would do nothing; None if it does something."""
        off = part.kind == "env" and part.name in _OFF_UNLESS_SET and part.value == "0"
        if off and part.name not in self.command.env:
            return f"{part.name} is not set"
        try:
            Intervention((part,)).apply(self.command.argv, self.command.env, self.allowed)
        except NoEffect as e:
            return e.message
        return None

    def written(self) -> Iterator[OfferHere]:
        """Return the instructions for code: this framework's, then any program's."""
        own = self.own() or CatalogueIntervention(set=self._rarer_in_code())
        if self.command.found is not None:
            text = own.code or self._in_code(own, self.command.found)
            if text:
                yield OfferHere(
                    None, self._fitting(text.strip()), self.command.found.framework.name, own.note
                )
        for name in ("any", "env"):
            general = self.cause.interventions.get(name)
            if general is not None and general.code:
                yield OfferHere(None, self._fitting(general.code.strip()), name, general.note)

    def _fitting(self, code: str) -> str:
        """Return instructions that ask for no more hands than there are cores."""
        return _SETTING.sub(
            lambda m: f"{m[1]}={within(int(m[2]), self.cores)}" if is_hands(m[1]) else m[0], code
        )

    def _rarer_in_code(self) -> dict[str, str | float | bool]:
        """Return the framework's options that say how often, made rarer, where they are arguments in code."""
        found = self.command.found
        if found is None or found.takes_flags:
            return {}
        settings = {name: str(value) for name, value in found.settings.items() if value is not None}
        plan = cadence.length(settings)
        asked: dict[str, str | float | bool] = {}
        for name, default in found.framework.every.items():
            key = folded(name)
            knob = next((k for k in self.cause.knobs if k.side_work and k.factor and meant(k, key)), None)
            kind = cadence.kind_of(key)
            if knob is None or knob.factor is None or kind is None or found.passes(key.rpartition(".")[2]):
                continue
            every = cadence.number(settings.get(key.rpartition(".")[2], "")) or default
            wanted = cadence.rarer(key, every, kind, knob.factor, plan)
            if wanted is not None:
                asked[name] = int(wanted) if wanted >= 1 else wanted
        return asked

    def _in_code(self, own: CatalogueIntervention, found: FoundFramework) -> str | None:
        """Return the framework's options as arguments in the program that hands them over itself."""
        names = self._names(own.set, found.framework)
        if not names or all(self._taken(name, found) for name in names.values()):
            return None
        settings = ", ".join(
            f"{folded(name).rpartition('.')[2]}={_python(own.set[key])}" for key, name in names.items()
        )
        return f"In {found.path or 'the program'}, set {settings}{_where(names, found.framework)}."


def _where(names: Iterable[str], framework: Framework) -> str:
    """Return the calls in a program's code that take these arguments."""
    own = {framework.callees.get(folded(name)) for name in names}
    called = {name for name in own if name} or {n.rpartition(".")[2] for n in framework.configured_by}
    if not called:
        return ""
    classes = all(name[0].isupper() for name in called)
    return f" where {' or '.join(sorted(called))} is {'made' if classes else 'called'}"


def _as_shown(key: str, option: CurrentOption, shown: Mapping[str, str]) -> CurrentOption:
    """Return an option that the command does not set, as the program shows it: a file may set it."""
    value = shown.get(cadence.folded(key))
    known = value is not None and not option.given and cadence.kind_of(key) is not None
    return option._replace(value=value) if known else option


def _changes(intervention: CatalogueIntervention, bare: set[str] | frozenset[str] = frozenset()) -> str:
    """Return the intervention in `propose`'s words; options in `bare` stand without a value."""
    sets = [
        name if folded(name) in bare and value is True else f"{name}={written(value)}"
        for name, value in intervention.set.items()
    ]
    # A bare flag says by its dashes that it is one; others follow the command's own style.
    dashed = [f"--{name}" if "=" not in name and not name.startswith("-") else name for name in sets]
    size = len(intervention.set) + len(intervention.unset) + len(intervention.env)
    return interventions.from_options(
        set=dashed,
        unset=list(intervention.unset),
        env=[f"{name}={value}" for name, value in intervention.env.items()],
        compound=size > 1,
    ).text


def _python(value: str | float | bool) -> str:
    return repr(value) if isinstance(value, (str, bool)) else written(value)
