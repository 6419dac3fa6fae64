"""Which root causes a hypothesis tests: by its change, by what it says, or as its author named it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from gpudebug.core.catalogue.model import Cause, Knob
from gpudebug.core.change.intervention import Intervention, SingleChange
from gpudebug.core.diagnosis.model import DiagnosisFacts
from gpudebug.core.diagnosis.odds import equal, number, truth
from gpudebug.core.inside.stacks.shares import pattern
from gpudebug.core.words import SignalValue

NAMED, BY_FLAG, BY_KNOB = 1.0, 0.95, 0.85
BY_TITLE, BY_NAME, BY_TEXT = 0.7, 0.5, 0.35
"""How well a hypothesis tests a cause: the chance that its change would remove it."""
_UNSURE = 0.8
"""Of a change whose present value is unknown."""
_OTHER = 0.6
"""Of what only the words say if the change itself says something else."""
_LESS = 0.5
"""Of causes that fewer words of a hypothesis speak of than of another."""

_STEM = 6
_RARE = 2
"""Letters of a word that tell it apart, and causes that may share it."""
_EVERYWHERE = frozenset(
    {
        *("backwa", "before", "betwee", "comput", "device", "during", "enough", "forwar", "instea", "itself"),
        *("longer", "memory", "needed", "proces", "second", "smalle", "sample", "throug", "traini", "update"),
        *("withou", "writte"),
    }
)
"""Stems that say nothing of a cause: any hypothesis may have them."""
_PART = 5
_IN_ANY_CODE = frozenset(
    {
        *("batch", "class", "devic", "first", "float", "forwa", "input", "itera", "label", "layer", "loade"),
        *("model", "numpy", "optim", "other", "outpu", "range", "retur", "sampl", "tenso", "torch", "train"),
        *("value", "yield", "image", "every", "worke", "param", "times", "lambd", "local", "listc", "while"),
    }
)


class StatedHypothesis(NamedTuple):
    """A hypothesis: what it says, its change (None: none can be read), the cause that its author named."""

    title: str
    text: str = ""
    change: Intervention | None = None
    cause: str | None = None


def causes_of(
    hypothesis: StatedHypothesis,
    causes: Iterable[Cause],
    facts: DiagnosisFacts,
    standing: Mapping[str, SignalValue] | None = None,
    shown: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Return the causes that the hypothesis tests, by id, with how well (0 to 1).

    The cause that its author named is the one, unless the catalogue has none of that id. `standing` are
    values that the program has where neither its command nor what it printed says one: its own defaults;
    `shown` is the code that each cause shows in, as `ranking.shown` tells it: a hypothesis that speaks of the
    same things is about it. A change into the wrong direction tests nothing, whatever the
    words say.
    """
    known = list(causes)
    named = hypothesis.cause
    if named is not None and any(c.id == named for c in known):
        return {named: NAMED}
    values: dict[str, SignalValue] = {**(standing or {}), **facts.printed, **facts.flags}
    by_change: dict[str, float] = {}
    against: set[str] = set()
    for cause in known:
        weight = _of_change(cause, hypothesis.change, facts.framework, values)
        if weight is not None and weight > 0:
            by_change[cause.id] = weight
        elif weight is not None:
            against.add(cause.id)
    spoken = {**_of_code(hypothesis, shown or {}), **_of_words(hypothesis, known)}
    by_words = {k: v for k, v in spoken.items() if k not in against}
    if by_change:
        by_words = {k: v if k in by_change else v * _OTHER for k, v in by_words.items()}
    return {k: _either(by_change.get(k, 0.0), by_words.get(k, 0.0)) for k in sorted({*by_change, *by_words})}


def _either(one: float, other: float) -> float:
    """Two reasons to think so are more than one."""
    return 1.0 - (1.0 - one) * (1.0 - other)


def _of_change(
    cause: Cause, change: Intervention | None, framework: str | None, values: Mapping[str, SignalValue]
) -> float | None:
    """Return how well a change tests the cause; 0 if it goes the wrong way, None if it is another thing."""
    if change is None:
        return None
    found = [w for part in change.changes if (w := _of_part(cause, part, framework, values)) is not None]
    return max(found, default=None)


def _of_part(
    cause: Cause, part: SingleChange, framework: str | None, values: Mapping[str, SignalValue]
) -> float | None:
    if part.kind not in ("set", "unset", "env"):
        return None
    items = [_of_framework(cause, part, framework)]
    items += [_of_knob(knob, part, values) for knob in cause.knobs]
    known = [w for w in items if w is not None]
    return max(known, default=None)


def folded(name: str) -> str:
    return name.lstrip("-+~").replace("-", "_")


def _of_framework(cause: Cause, part: SingleChange, framework: str | None) -> float | None:
    """By what the catalogue changes for this framework: the same flag, to a value on the same side."""
    for name in dict.fromkeys((framework, "env", "any")):
        known = cause.interventions.get(name) if name else None
        if known is None:
            continue
        if part.kind == "unset" and folded(part.name) in map(folded, known.unset):
            return BY_FLAG
        wanted = known.env if part.kind == "env" else known.set
        for flag, value in wanted.items():
            if part.kind != "unset" and folded(flag) == folded(part.name):
                return _toward(value, part.value)
    return None


def _toward(wanted: SignalValue, given: str | None) -> float:
    """Another number than the catalogue's tests the cause too, the opposite of its truth does not."""
    value: SignalValue = True if given is None else given
    one, other = truth(wanted), truth(value)
    if one is not None and other is not None and number(wanted) is None:
        return BY_FLAG if one is other else 0.0
    return BY_FLAG if equal(value, wanted) else BY_KNOB


def _of_knob(knob: Knob, part: SingleChange, values: Mapping[str, SignalValue]) -> float | None:
    name = folded(part.name)
    if not any(_whole(names, name) for names in knob.names):
        return None
    standing = next((v for k, v in values.items() if folded(k).casefold() == name.casefold()), None)
    if knob.direction == "to" and not _to(knob, part.value):
        # Another value than the one that is known to test the cause: unknown, unless it leaves that.
        return 0.0 if standing is not None and _to(knob, str(standing)) else None
    goes = _goes(knob, part, standing)
    return BY_KNOB * _UNSURE if goes is None else BY_KNOB if goes else 0.0


def _to(knob: Knob, value: str | None) -> bool:
    return knob.value is not None and value is not None and equal(value, knob.value)


def _whole(names: str, name: str) -> bool:
    """A name's last dotted part counts as well: `data.num_workers` is `num_workers`."""
    found = pattern(names)
    return bool(found.fullmatch(name) or found.fullmatch(name.rpartition(".")[2]))


def _goes(knob: Knob, part: SingleChange, standing: SignalValue | None) -> bool | None:
    """Tell whether a change of a knob goes where the cause wants it; None if that cannot be known."""
    new: SignalValue | None = None if part.kind == "unset" else True if part.value is None else part.value
    if knob.direction in ("any", "to"):
        return True
    if knob.direction == "off":
        return True if new is None or number(new) == 0 else _not(truth(new))
    if new is None:
        return None
    if knob.direction == "on":
        return truth(new) is not False
    return _moves(new, standing, up=knob.direction == "up")


def _not(value: bool | None) -> bool | None:
    """Tell whether a word such as a mode's name means off is unknown."""
    return None if value is None else not value


def _moves(new: SignalValue, standing: SignalValue | None, *, up: bool) -> bool | None:
    """Tell whether a number rises or falls. Off is 0, on is 1: `--cache=off` lowers it."""
    then, now = _as_number(standing), _as_number(new)
    if now is None:
        return None
    if then is None:
        return False if up and now <= 0 else None
    return now > then if up else now < then


def _as_number(value: SignalValue | None) -> float | None:
    if value is None:
        return None
    found = number(value)
    as_truth = truth(value)
    return found if found is not None or as_truth is None else float(as_truth)


def _of_words(hypothesis: StatedHypothesis, causes: Sequence[Cause]) -> dict[str, float]:
    """By the catalogue's words, and by rare words of its ids and titles: in the hypothesis's title, in the
    names that it changes, in its text. What more expressions speak of goes before what fewer do."""
    texts = (hypothesis.title, _spoken(hypothesis.change), hypothesis.text)
    found: dict[str, tuple[int, ...]] = {}
    for cause in causes:
        counts = tuple(sum(1 for word in cause.words if pattern(word).search(s)) for s in texts)
        if any(counts):
            found[cause.id] = counts
    most = max(found.values(), default=())
    weights = {id: _weight(counts, most) for id, counts in found.items()}
    for id, weight in _of_names(texts, causes).items():
        weights.setdefault(id, weight)
    return weights


def _spoken(change: Intervention | None) -> str:
    """Return the names and words that a change sets, apart: `augment on batch`."""
    if change is None:
        return ""
    parts = [f"{part.name} {part.value or ''}" for part in change.changes if part.kind != "patch"]
    return re.sub(r"[\W_]+", " ", " ".join(parts)).strip()


def _weight(counts: tuple[int, ...], most: tuple[int, ...]) -> float:
    first = next(place for place, count in enumerate(counts) if count)
    weight = (BY_TITLE, BY_NAME, BY_TEXT)[first]
    return weight if counts == most or counts[0] == most[0] > 0 else weight * _LESS


def _of_names(names: tuple[str, ...], causes: Sequence[Cause]) -> dict[str, float]:
    """By stems that few causes' ids and titles have, in title or change."""
    stems = {cause.id: _stems(f"{cause.id.replace('-', ' ')} {cause.title}") for cause in causes}
    common = Counter(stem for own in stems.values() for stem in own)
    spoken = _stems(f"{names[0]} {names[1]}")
    shared = {id: sum(1.0 for stem in own & spoken if common[stem] <= _RARE) for id, own in stems.items()}
    return {id: min(BY_NAME, BY_TEXT * count) for id, count in shared.items() if count}


def _of_code(hypothesis: StatedHypothesis, shown: Mapping[str, str]) -> dict[str, float]:
    """By words of the code, too: `photos` if `to_square(photo)` takes the time."""
    spoken = _parts(f"{hypothesis.title} {_spoken(hypothesis.change)}")
    shared = {id: len(spoken & _parts(code)) for id, code in shown.items()}
    return {id: min(BY_NAME, BY_TEXT * count) for id, count in shared.items() if count}


# What causes and their code say is compared with every hypothesis of a file.
@lru_cache(maxsize=512)
def _parts(text: str) -> frozenset[str]:
    """Return the beginnings of the words of a text or of names such as `CentreClient` and `to_square`."""
    words = re.findall(r"[A-Z]?[a-z]+", text)
    return frozenset(w[:_PART].lower() for w in words if len(w) >= _PART) - _IN_ANY_CODE


@lru_cache(maxsize=512)
def _stems(text: str) -> frozenset[str]:
    """Return the first letters of each word that is long enough to mean something."""
    found = (word[:_STEM] for word in re.findall(r"[a-z]+", text.lower()) if len(word) >= _STEM)
    return frozenset(found) - _EVERYWHERE
