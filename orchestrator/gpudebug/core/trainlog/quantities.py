"""What a printed name counts of a program's work, at which rate, or what reward: words decide.

Work is what a program processes: steps of an environment, tokens, samples. It is not what it calls an update.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from gpudebug.core.trainlog.names import LONGEST_NAME, phase_of, word_set, words
from gpudebug.core.words import WorkName

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
_SLASH = re.compile(r"/(?=(?:s|secs?|seconds?)\b)", re.I)
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
