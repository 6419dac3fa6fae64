"""What `catalogue` answers: the causes by group, one of them in full, or the evidence that they read."""

from __future__ import annotations

from dataclasses import dataclass

from gpudebug.core.answers.answer import Answer


@dataclass(frozen=True, kw_only=True)
class ListedCause:
    """A cause with the sign that speaks most for it. `gate` needs no run, `own` is the user's."""

    id: str
    title: str
    shows: str
    gate: bool
    own: bool


@dataclass(frozen=True, kw_only=True)
class CauseGroup:
    """The causes of one group."""

    group: str
    causes: tuple[ListedCause, ...]


@dataclass(frozen=True, kw_only=True)
class CatalogueAnswer(Answer):
    """`catalogue`: each group with its causes; `count` is how many there are in these."""

    groups: tuple[CauseGroup, ...]
    count: int
    next_command: str


@dataclass(frozen=True, kw_only=True)
class CauseSign:
    """A condition in words; it multiplies the odds by `weight` if it holds, else by `otherwise`."""

    says: str
    weight: float
    otherwise: float


@dataclass(frozen=True)
class OfferHere:
    """One way to test the cause in the campaign's command: a `change` in `propose`'s syntax that was tried on
    it, or the `instructions` for writing it. `by` is a framework's name, `any`, `knob` or `env`."""

    change: str | None
    instructions: str | None
    by: str
    note: str | None


@dataclass(frozen=True, kw_only=True)
class OffersHere:
    """What tests the cause in the campaign's command. `framework` is null if none is recognised; `refused`
    says why other changes are not offered."""

    framework: str | None
    offers: tuple[OfferHere, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FrameworkTest:
    """What tests the cause in one framework, of the `versions` for which it holds (null: all)."""

    framework: str
    title: str
    change: str | None
    code: str | None
    versions: str | None
    note: str | None


@dataclass(frozen=True, kw_only=True)
class CauseKnob:
    """Options of other programs, as regular expressions, and where to turn them."""

    names: tuple[str, ...]
    direction: str


@dataclass(frozen=True, kw_only=True)
class CauseAnswer(ListedCause, Answer):
    """`catalogue ID`: all of one cause.

    `prior` are odds by kind of workload, `default` for the others. `here` is null outside of a campaign;
    `layer` names the layer test that bounds the cause.
    """

    group: str | None
    explanation: str
    prior: dict[str, float]
    requires: tuple[str, ...]
    signs: tuple[CauseSign, ...]
    exposed: tuple[str, ...]
    here: OffersHere | None
    tests: tuple[FrameworkTest, ...]
    knobs: tuple[CauseKnob, ...]
    layer: str | None
    fix: str
    own_signal: tuple[str, ...]
    hollow_if: str | None
    sources: tuple[str, ...]
    file: str
    next_command: str


@dataclass(frozen=True, kw_only=True)
class ReadSignal:
    """Evidence that conditions read; `said` is its sentence, with `{}` for the value in its `unit`."""

    name: str
    unit: str
    said: str
    source: str


@dataclass(frozen=True, kw_only=True)
class SignalsAnswer(Answer):
    """`catalogue --signals`."""

    signals: tuple[ReadSignal, ...]
    next_command: str
