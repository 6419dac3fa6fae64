"""What is impossible in a cause: unknown names, conditions that never hold, flags that do not exist.

A condition over evidence that no run has would be unknown for ever, unnoticed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from gpudebug.core.catalogue import model
from gpudebug.core.catalogue.model import (
    GENERAL,
    KINDS,
    CatalogueIntervention,
    Cause,
    Condition,
    Framework,
    Knob,
    Own,
    Share,
    Sign,
    Term,
    words_of,
)
from gpudebug.core.catalogue.signals import SIGNALS
from gpudebug.core.change import intervention as interventions
from gpudebug.core.errors import InterventionError
from gpudebug.core.inside.stacks.shares import LEAST
from gpudebug.core.lazy import regex
from gpudebug.core.text.expressions import Unbounded, bounded
from gpudebug.core.yaml.document import Path, YamlProblem, named, nearest

_SLUG = regex(r"[a-z0-9]+(-[a-z0-9]+)*")
_WHAT = ("signal", "stack", "code", "section", "flag", "printed")
_WATCHED = ("stack", "code")
_COMPARISONS = ("above", "below", "equals", "matches")
# Shares of one thread's time that several threads can exceed.
_ABOVE_ONE = frozenset({"background_data_share"})


def problems(cause: Cause, frameworks: Sequence[Framework] | None = None) -> Iterator[YamlProblem]:
    """Everything that is wrong with a cause of the right shape, in the order of the file's keys.

    Names of frameworks and their flags are checked where `frameworks` are given.
    """
    yield from _head(cause)
    for number, condition in enumerate(cause.requires):
        yield from _condition(condition, ("requires", number))
    for number, sign in enumerate(cause.signature):
        yield from _condition(sign, ("signature", number))
        yield from _weights(sign, ("signature", number))
    for number, share in enumerate(cause.exposed):
        yield from _share(share, ("exposed", number))
    for name, intervention in cause.interventions.items():
        yield from _intervention(name, intervention, frameworks)
    for number, knob in enumerate(cause.knobs):
        yield from _knob(knob, ("knobs", number))
    yield from _expressions(cause.words, ("words",))
    for number, own in enumerate(cause.own_signal):
        yield from _own(own, ("own_signal", number))


def _head(cause: Cause) -> Iterator[YamlProblem]:
    if not _SLUG.fullmatch(cause.id):
        yield YamlProblem(("id",), f"id: {cause.id!r} is no id", "write small letters, digits and dashes")
    for key in ("title", "explanation", "fix"):
        if not getattr(cause, key).strip():
            yield YamlProblem((key,), f"{key} is empty", f"write {key}: …")
    if "\n" in cause.title.strip():
        yield YamlProblem(("title",), "title: expected one line", "write the rest into explanation")
    for kind, odds in cause.prior.items():
        if kind not in (*KINDS, "default"):
            near = nearest(kind, (*KINDS, "default"))
            yield YamlProblem(
                ("prior", kind),
                f"prior.{kind} is not a kind of workload",
                f"write {near}" if near else f"write one of {', '.join((*KINDS, 'default'))}",
                key=True,
            )
        if not (odds >= 0 and math.isfinite(odds)):
            yield YamlProblem(("prior", kind), f"prior.{kind}: expected odds of 0 or above", "write 1")
    if not cause.signature and not cause.requires:
        yield YamlProblem((), "no sign: no evidence could ever support it", "add signature: …", missing=True)


def _term(term: Term, path: Path) -> Iterator[YamlProblem]:
    given = [key for key in _WHAT if getattr(term, key) is not None]
    if not given:
        yield YamlProblem(
            path, f"{named(path)} reads nothing", f"add one of {', '.join(_WHAT)}, such as signal: gpu_util"
        )
    elif len(given) > 1 and set(given) != set(_WATCHED):
        yield YamlProblem(path, f"{named(path)} reads {' and '.join(given)}", f"keep {given[0]} alone")
    if term.signal is not None and term.signal not in SIGNALS:
        yield _unknown_signal(term.signal, (*path, "signal"))
    for key in (*_WHAT[1:], "unless"):
        expression = getattr(term, key)
        if expression is not None:
            yield from _expression(expression, (*path, key))
    watched = [key for key in given if key in _WATCHED]
    for key in ("phase", "state", "unless", "of"):
        if key in term.model_fields_set and not watched:
            yield YamlProblem(
                (*path, key), f"{named((*path, key))} goes with stack or code alone", f"drop {key}", key=True
            )


def _unknown_signal(name: str, path: Path) -> YamlProblem:
    near = nearest(name, SIGNALS)
    return YamlProblem(
        path,
        f"{named(path)}: {name!r} is evidence that no run has",
        f"write {near}" if near else "gpudebug catalogue --signals lists what runs record",
    )


def _condition(condition: Condition, path: Path) -> Iterator[YamlProblem]:
    yield from _term(condition, path)
    given = [key for key in _COMPARISONS if getattr(condition, key) is not None]
    name = named(path)
    if not given:
        yield YamlProblem(path, f"{name} compares with nothing", f"add one of {', '.join(_COMPARISONS)}")
    elif len(given) > 1 and given != ["above", "below"]:
        yield YamlProblem(path, f"{name} compares by {' and '.join(given)}", "keep one of them")
    elif len(given) > 1 and (condition.above or 0.0) >= (condition.below or 0.0):
        yield YamlProblem(
            path, f"{name} never holds: above {condition.above:g} and below {condition.below:g}", "swap them"
        )
    else:
        yield from _comparable(condition, given[0], path)
    if condition.matches is not None:
        yield from _expression(condition.matches, (*path, "matches"))


def _comparable(condition: Condition, by: str, path: Path) -> Iterator[YamlProblem]:
    """Tell whether the figure is one that the comparison can be true of."""
    here, value = (*path, by), condition.equals
    if condition.flag is not None or condition.printed is not None:
        return
    unit = SIGNALS[condition.signal].unit if condition.signal in SIGNALS else None
    if unit == "yes":
        if not isinstance(value, bool):
            yield _mismatch(here, condition.signal, "is true or false", "equals: true, or equals: false")
    elif unit == "word":
        if by != "matches" and not isinstance(value, str):
            yield _mismatch(here, condition.signal, "is a word", "equals: WORD, or matches: EXPRESSION")
    elif unit is not None or condition.signal is None:
        figure = condition.signal or next((k for k in _WHAT if getattr(condition, k)), "it")
        if by == "matches" or isinstance(value, (bool, str)):
            yield _mismatch(here, figure, "is a number", "above: or below:")
        elif unit in ("share", None) and figure not in _ABOVE_ONE:
            yield from _of_share(condition, figure, path)


def _mismatch(path: Path, figure: str | None, what: str, write: str) -> YamlProblem:
    return YamlProblem(path, f"{named(path)} never holds: {figure} {what}", f"write {write}")


def _of_share(condition: Condition, figure: str, path: Path) -> Iterator[YamlProblem]:
    for key in ("above", "below", "equals"):
        number = getattr(condition, key)
        if isinstance(number, (int, float)) and not 0 <= number <= 1:
            yield YamlProblem(
                (*path, key),
                f"{named((*path, key))}: {figure} is a share from 0 to 1, found {number:g}",
                f"write {number / 100:g}" if 1 < number <= 100 else "write a share such as 0.2",
            )


def _weights(sign: Sign, path: Path) -> Iterator[YamlProblem]:
    for key in ("weight", "otherwise"):
        yield from _positive(getattr(sign, key), (*path, key))


def _positive(number: float, path: Path) -> Iterator[YamlProblem]:
    if not (number > 0 and math.isfinite(number)):
        yield YamlProblem(path, f"{named(path)}: expected a number above 0, found {number:g}", "write 1")


def _share(share: Share, path: Path) -> Iterator[YamlProblem]:
    yield from _term(share, path)
    yield from _positive(share.times, (*path, "times"))
    if share.within is not None and share.within not in SIGNALS:
        yield _unknown_signal(share.within, (*path, "within"))
    unit = SIGNALS[share.signal].unit if share.signal in SIGNALS else "share"
    if unit in ("yes", "word") or share.flag is not None or share.printed is not None:
        yield YamlProblem(path, f"{named(path)} is not a share of the time", "write signal: data_wait_share")
    elif unit == "%" and share.times > 0.01:
        yield YamlProblem(path, f"{named(path)}: {share.signal} is in percent", "add times: 0.01")


def _intervention(
    name: str, intervention: CatalogueIntervention, frameworks: Sequence[Framework] | None
) -> Iterator[YamlProblem]:
    path: Path = ("interventions", name)
    framework = next((f for f in frameworks or () if f.name == name), None)
    if frameworks is not None and framework is None and name not in GENERAL:
        known = (*(f.name for f in frameworks), *GENERAL)
        near = nearest(name, known)
        yield YamlProblem(
            path,
            f"interventions: {name!r} is not a framework that gpudebug knows",
            f"write {near}" if near else f"write one of {', '.join(known)}",
            key=True,
        )
    mechanical = bool(intervention.set or intervention.unset or intervention.env)
    if not mechanical and not (intervention.code or "").strip():
        yield YamlProblem(
            path, f"{named(path)} changes nothing", "write one of set, unset, env or code", key=True
        )
    if name == "env" and (intervention.set or intervention.unset):
        yield YamlProblem(path, "interventions.env sets flags", "write env: {NAME: VALUE}", key=True)
    if mechanical:
        try:
            interventions.from_options(**words_of(intervention))
        except InterventionError as e:
            yield YamlProblem(path, f"{named(path)}: {e.message}", e.next or "write --set FLAG=VALUE")
    yield from _versions(intervention, framework, path)


def _versions(
    intervention: CatalogueIntervention, framework: Framework | None, path: Path
) -> Iterator[YamlProblem]:
    range_ = intervention.versions
    if range_ is None:
        return
    try:
        model.bounds(range_)
    except ValueError as e:
        yield YamlProblem((*path, "versions"), f"{named(path)}.versions: {e}", "write versions: '>=0.4,<0.6'")
        return
    for name in (*intervention.set, *intervention.unset):
        flag = framework.flags.get(name) if framework else None
        if framework is None or flag is None:
            continue
        if flag.since and not flag.formerly and model.reaches_below(range_, flag.since):
            yield _lacks(path, framework, name, f"before {flag.since}", f">={flag.since}")
        if flag.until and model.reaches_from(range_, flag.until):
            yield _lacks(path, framework, name, f"from {flag.until} on", f"<{flag.until}")


def _lacks(path: Path, framework: Framework, flag: str, when: str, range_: str) -> YamlProblem:
    return YamlProblem(
        (*path, "versions"),
        f"{named(path)}: {framework.title} has no {flag} {when}",
        f"write versions: '{range_}'",
    )


def _knob(knob: Knob, path: Path) -> Iterator[YamlProblem]:
    if not knob.names:
        yield YamlProblem((*path, "names"), f"{named(path)} names no option", "write names: [num_?workers]")
    yield from _expressions(knob.names, (*path, "names"))
    if knob.direction == "to" and knob.value is None:
        yield YamlProblem(path, f"{named(path)} goes to no value", "add value: …")
    if knob.factor is not None:
        yield from _positive(knob.factor, (*path, "factor"))
        if (knob.direction == "up" and knob.factor < 1) or (knob.direction == "down" and knob.factor > 1):
            yield YamlProblem(
                (*path, "factor"),
                f"{named(path)} goes {knob.direction} by a factor of {knob.factor:g}",
                f"write factor: {1 / knob.factor:g}" if knob.factor > 0 else "write factor: 2",
            )


def _own(own: Own, path: Path) -> Iterator[YamlProblem]:
    if own.signal not in SIGNALS:
        yield _unknown_signal(own.signal, (*path, "signal"))
    elif SIGNALS[own.signal].unit == "word":
        yield YamlProblem(
            (*path, "signal"), f"{named(path)}: {own.signal} is a word", "name a figure that moves"
        )


def _expressions(patterns: Iterable[str], path: Path) -> Iterator[YamlProblem]:
    for number, pattern in enumerate(patterns):
        yield from _expression(pattern, (*path, number))


def _expression(pattern: str, path: Path) -> Iterator[YamlProblem]:
    try:
        bounded(pattern, least=LEAST)
    except Unbounded as e:
        yield YamlProblem(path, f"{named(path)}: {pattern!r} {e}", "write it with fewer repeats")
    except (re.error, OverflowError, RecursionError) as e:
        yield YamlProblem(
            path, f"{named(path)}: {pattern!r} is no expression: {e}", "mend the regular expression"
        )
    else:
        if not pattern:
            yield YamlProblem(path, f"{named(path)} is empty and matches everything", "write an expression")
