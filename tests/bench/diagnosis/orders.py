"""Orders in which hypotheses may be tested, each replayed on the same table until one is VALIDATED."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.bench.diagnosis.recording import Recording
from tests.bench.diagnosis.replaying import Replay

from gpudebug.core.campaign.decide import ActionKind

VALIDATED = "VALIDATED"
_SHUFFLES = 2000
# Seed 003's checklist, in its order.
_CHECKLIST = (
    r"eval",
    r"pre-?alloc|numpy buffer|pinned",
    r"batch[ _-]?size",
    r"teacher",
    r"mixed[ _-]?precision|bf16|fp16|amp",
)


@dataclass(frozen=True)
class Cost:
    """Experiments and device-seconds until VALIDATED; of orders without one, all of them."""

    experiments: float
    device_s: float
    found: bool = True


def cost(recording: Recording, order: Sequence[int]) -> Cost:
    """Of testing in this order."""
    seconds = 0.0
    for count, number in enumerate(order, 1):
        seconds += recording.trials[number].device_s
        if recording.trials[number].status == VALIDATED:
            return Cost(count, seconds)
    return Cost(len(order), seconds, found=False)


def chosen(replay: Replay) -> tuple[int, ...]:
    """The order in which `gpudebug next` tests, each decision made with what was found before it."""
    tested: dict[int, str] = {}
    while True:
        replay.show(tested)
        action = replay.decision()
        if action.kind is not ActionKind.TEST or action.hypothesis is None:
            break
        tested[action.hypothesis] = replay.tested(action.hypothesis)
        if replay.recording.trials[action.hypothesis].status == VALIDATED:
            break
    replay.show({})
    return tuple(tested)


def shuffled(recording: Recording, seed: int = 0) -> Cost:
    """The mean over orders drawn at random."""
    draw, numbers = random.Random(seed), sorted(recording.trials)
    costs = [cost(recording, draw.sample(numbers, len(numbers))) for _ in range(_SHUFFLES)]
    return Cost(
        sum(c.experiments for c in costs) / _SHUFFLES,
        sum(c.device_s for c in costs) / _SHUFFLES,
        all(c.found for c in costs),
    )


def by_catalogue(replay: Replay) -> list[int]:
    """By the catalogue's own order of the causes that hypotheses test; those that test none come last."""
    case = replay.case()
    places = {cause.id: place for place, cause in enumerate(case.catalogue.causes)}

    def place(number: int) -> tuple[int, int]:
        matched = case.matches.get(number, {})
        best = max(matched, key=lambda id: (matched[id], -places[id]), default=None)
        return (len(places) if best is None else places[best], number)

    return sorted(replay.recording.trials, key=place)


def by_checklist(replay: Replay) -> list[int]:
    """Seed 003's fixed list, then the rest as they stand in the progress file."""
    return list(_listed(replay))


def _listed(replay: Replay) -> Iterator[int]:
    left = sorted(replay.recording.trials)
    for item in _CHECKLIST:
        for number in [n for n in left if re.search(item, replay.untested[n], re.IGNORECASE)]:
            left.remove(number)
            yield number
    yield from left
