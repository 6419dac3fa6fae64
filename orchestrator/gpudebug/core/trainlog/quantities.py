"""What a printed name counts of a program's work, at which rate, or what reward: words decide.

Work is what a program processes: steps of an environment, tokens, samples. It is not what it calls an update.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from gpudebug.core.lazy import regex
from gpudebug.core.trainlog.names import LONGEST_NAME, phase_of, words
from gpudebug.core.trainlog.origin import NO_RANKS, RankPlaces, find_ranks
from gpudebug.core.trainlog.shape import COARSE, label_of, next_phase, tokens_of, without_marks
from gpudebug.core.trainlog.text import Span
from gpudebug.core.words import WorkName, word_set

ENVIRONMENT_STEPS, TOKENS, SAMPLES = WorkName.ENVIRONMENT_STEPS, WorkName.TOKENS, WorkName.SAMPLES

_ENVIRONMENT = word_set("env envs environment environments agent agents")
_ENV_NOUN = word_set("step steps frame frames interaction interactions interacts transitions")
_TIMESTEP = word_set("timestep timesteps")
_FRAME = word_set("frame frames")
_TOKEN = word_set("token tokens tok toks")
_SAMPLE = word_set("sample samples example examples sequences images")
_SEEN = word_set(
    "seen consumed processed trained total num n cumulative lifetime collected done sampled so far"
)
_REWARD = word_set("reward rewards rew return returns ret")
_COUNT_FILLER = (
    _ENVIRONMENT
    | _ENV_NOUN
    | _TIMESTEP
    | _TOKEN
    | _SAMPLE
    | _SEEN
    | word_set("train training time global overall current number of the count input all steps ntokens")
)
_REWARD_FILLER = _REWARD | word_set(
    "mean median avg average critic episode episodes episodic ep total cumulative rollout train training "
    "runners sampler results undiscounted running smoothed moving last charts info "
    "perf time iter step env score current the of raw"
)
_PER_SECOND = word_set("s sec secs second seconds")
_DEVICES = word_set("gpu gpus device devices rank chip")
_SLASH = regex(r"/(?=(?:s|secs?|seconds?)\b)", re.I)
_RATE_FILLER = (
    _COUNT_FILLER
    | _PER_SECOND
    | _DEVICES
    | word_set("per throughput rate speed avg average mean perf performance and policy inference computation")
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """`kind`: count, rate or reward. `unit` is what is counted, empty of a reward and of a rate whose unit
    the rest of the log decides. `tier` orders names of one kind, 0 the plainest; `phase` is train, val or
    empty."""

    kind: str
    unit: str = ""
    tier: int = 0
    phase: str = ""


def quantity(name: str, unit: str = "") -> Quantity | None:
    """Return what a name (digits zeroed) with the unit behind its number is; None if it is none of these."""
    return _quantity(name, unit.lower()) if len(name) <= LONGEST_NAME else None


@lru_cache(maxsize=4096)
def _quantity(name: str, unit: str) -> Quantity | None:
    parts = words(_SLASH.sub(" per ", name))
    bag = frozenset(parts)
    phase = phase_of(parts)
    if unit and "/" in unit:
        return _printed_rate(bag, unit, phase)
    if unit == "sps":
        return Quantity("rate", ENVIRONMENT_STEPS, 0, phase)
    if not parts or unit == "%":
        return None
    return _rate(parts, bag, phase) or _count(parts, bag, phase) or _reward(bag, phase)


def _printed_rate(bag: frozenset[str], unit: str, phase: str) -> Quantity | None:
    """Return a rate by its unit: `19541 tok/s`, `Computation: 50000 steps/s`."""
    counted, _, per = unit.partition("/")
    if per not in _PER_SECOND:
        return None
    noun = counted.rstrip("s")
    if noun in ("tok", "token"):
        return Quantity("rate", TOKENS, 0, phase)
    if (
        noun in ("frame", "timestep", "fp")
        or noun.startswith("env")
        or (noun == "step" and "computation" in bag)
    ):
        return Quantity("rate", ENVIRONMENT_STEPS, 0, phase)
    return None


def _rate(parts: list[str], bag: frozenset[str], phase: str) -> Quantity | None:
    if parts[-1:] == ["sps"] or parts == ["fps"] or (parts[0] == "fps" and bag <= _RATE_FILLER | {"fps"}):
        # Of `fps step`, `fps step and policy inference` and `fps total` the last is of the whole training.
        whole = len(parts) == 1 or "total" in bag or parts[-1] == "sps"
        return Quantity("rate", ENVIRONMENT_STEPS, 0 if whole else 1, phase)
    if parts in (["tps"], ["wps"]):
        return Quantity("rate", TOKENS, 1, phase)
    if not ("per" in bag and bag & _PER_SECOND) or not bag <= _RATE_FILLER:
        return None
    if bag & _TOKEN:
        return Quantity("rate", TOKENS, 0, phase)
    if bag & _TIMESTEP or bag & _FRAME or (bag & _ENVIRONMENT and bag & _ENV_NOUN):
        return Quantity("rate", ENVIRONMENT_STEPS, 0, phase)
    # `Steps per second` is of the environment where the log is of one.
    return Quantity("rate", "", 1, phase) if bag & {"steps"} else None


def _count(parts: list[str], bag: frozenset[str], phase: str) -> Quantity | None:
    if not bag <= _COUNT_FILLER or "per" in bag or parts[-1] in ("time", "times"):
        return None
    if bag & _ENVIRONMENT and bag & _ENV_NOUN:
        tier = 1 if "trained" in bag or bag & {"agent", "agents"} else 0
        return Quantity("count", ENVIRONMENT_STEPS, tier, phase)
    if bag & _TIMESTEP or (bag & {"frames"} and not bag & _SAMPLE):
        return Quantity("count", ENVIRONMENT_STEPS, 0, phase)
    if bag == {"total", "steps"}:
        return Quantity("count", ENVIRONMENT_STEPS, 2, phase)
    if bag & {"tokens", "toks", "ntokens"}:
        return Quantity("count", TOKENS, 0, phase)
    if bag & _SAMPLE and bag & _SEEN:
        return Quantity("count", SAMPLES, 0, phase)
    return None


def _reward(bag: frozenset[str], phase: str) -> Quantity | None:
    if not bag & _REWARD or not bag <= _REWARD_FILLER | word_set("val valid validation eval evaluation test"):
        return None
    mean = bag & {"mean", "median", "avg", "average", "episodic", "ep", "episode", "smoothed", "running"}
    return Quantity("reward", "", 0 if mean else 1, phase)


_OF_WORK = regex(
    r"rew|return|EpRet|interact|\btok|tokens|[sS][pP][sS]\b|samples|examples|[wt]ps\b|fps|frames|steps|timestep",
    re.I,
)
_LOWER = ("m", "b", "t")
"""Of counts and rates, as PufferLib's dashboard shortens them: millions, and more."""
_WORK_UNIT = regex(
    r" ?((?:env[ _]?)?(?:tok|token|frame|timestep|step)s?/s(?:ec(?:ond)?)?|([kMG]?)sps)\b(?!['\"]?\s*[:=])",
    re.I,
)
_NEXT_VALUE = regex(r" +[-+.]?0")
_INDEX = regex(r"\[\(0+, '?[-+]?[0.]+")
"""Of a list by policy, `[(0, '1.5')]`: the first number says whose the second is."""


@dataclass(frozen=True, slots=True)
class LoggedQuantity:
    """One number of a line that is of work or a reward. `named` is the place of a name that holds digits."""

    quantity: Quantity
    name: str
    named: Span | None
    value: Span


@dataclass(frozen=True, slots=True)
class QuantityLine:
    """All of one skeleton; `ranks` is where the process that printed it names itself."""

    found: tuple[LoggedQuantity, ...]
    ranks: RankPlaces = NO_RANKS


def read_quantities(skeleton: str) -> QuantityLine | None:
    """Return the quantities of a skeleton; None if it has none."""
    if not _OF_WORK.search(skeleton):
        return None
    text, ranks = find_ranks(skeleton)
    found = tuple(_found(without_marks(text)[0]))
    return QuantityLine(found, ranks) if found else None


def _found(text: str) -> list[LoggedQuantity]:
    found: list[LoggedQuantity] = []
    at = 0
    phase = ""
    table = text.lstrip()[:1] == "|"
    held: tuple[str, list[str], str, Span | None] | None = None
    for token in tokens_of(text):
        key, prefix, style, span = held or label_of(text[at : token.start], at, table)
        held = None
        if _INDEX.match(text, max(0, token.start - 2)):
            held, at = (key, prefix, style, span), token.unit_end
            continue
        phase = next_phase([*prefix, key], phase)
        shortened = token.unit in (*COARSE, *_LOWER)
        behind = _WORK_UNIT.match(text, token.unit_end if shortened else token.end)
        if behind and key and _NEXT_VALUE.match(text, behind.end()):
            behind = None  # `loss 3.1 tok/s 51200`: the name of what comes next.
        unit = token.unit
        if behind:
            unit = "sps" if behind[2] is not None else behind[1]
        what = quantity(key, unit)
        if what is None and style == " " and text[token.end - 1] in "nNfFyY":
            continue
        at = token.unit_end
        if what is not None:
            end = token.unit_end if shortened else token.end
            if behind and behind[2]:
                end = behind.end(2)  # `2.05 ksps` is 2.05 k.
            what = replace(what, phase=what.phase or phase)
            name = unit if unit.lower() == "sps" else " ".join(key.split()) or unit
            found.append(LoggedQuantity(what, name, span, (token.start, end)))
    return found
