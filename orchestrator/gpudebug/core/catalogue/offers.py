"""What would test a cause in one program: changes that gpudebug can make by itself, then what to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudebug.core.catalogue.model import Cause
from gpudebug.core.catalogue.program import Program
from gpudebug.core.frameworks import Found


class Offer(NamedTuple):
    """One way to test a cause: a `change` in `propose`'s syntax that was tried on the command, or else
    `instructions` for whoever writes it. `by` is what offers it: a framework's name, `any`, `knob`, `env`."""

    change: str | None
    instructions: str | None
    by: str
    note: str | None = None


class Offers(NamedTuple):
    """The offers, best first, and why others are none: a line each."""

    offers: tuple[Offer, ...]
    refused: tuple[str, ...] = ()


def interventions_for(
    cause: Cause,
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    found: Found | None = None,
    version: str | None = None,
    program: Program | None = None,
    cores: float | None = None,
    locked: Sequence[str] = (),
) -> Offers:
    """What would test the cause in the command `argv` with the variables `env` of its own.

    `found` is its framework, `version` of its package where that is known, `program` what its source says.
    Mechanical ones come first: the framework's, that of any program, knobs that the command or its source
    has, then variables. A change that the command has already, whose flags this version of the framework
    lacks or that touches a locked knob is not offered. Options that mean workers or threads rise to `cores`
    at most, unless the cause waits.
    """
    raise NotImplementedError
