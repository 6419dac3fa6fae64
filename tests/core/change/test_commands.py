"""Which of the two commands a change is of."""

from __future__ import annotations

import pytest

from gpudebug.core.change.commands import KnownFlags, located, of_server, unknown
from gpudebug.core.change.intervention import parse
from gpudebug.core.change.permits import Allowed
from gpudebug.core.errors import InterventionError

CLIENT = ("python", "ask.py", "--port={port}", "--requests=300")
SERVER = ("python", "serve.py", "--port={port}", "--denoising-steps=4")
VARIABLES = {"OMP_NUM_THREADS": "8"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("--set --denoising-steps=2", "--set server:--denoising-steps=2"),
        ("--set --denoising_steps=2", "--set server:--denoising-steps=2"),
        ("--unset --denoising-steps", "--unset server:--denoising-steps"),
        ("--set --requests=10", "--set --requests=10"),
        ("--set --port=1", "--set --port=1"),
        ("--set --new=1", "--set --new=1"),
        ("--set server:--new=1", "--set server:--new=1"),
        ("--env OMP_NUM_THREADS=1", "--env server:OMP_NUM_THREADS=1"),
        ("--env MKL_NUM_THREADS=1", "--env MKL_NUM_THREADS=1"),
        ("--patch hypotheses/patches/a.patch", "--patch hypotheses/patches/a.patch"),
    ],
)
def test_what_only_the_server_has_is_of_the_server(written: str, meant: str) -> None:
    assert located(parse(written), CLIENT, {}, SERVER, VARIABLES).text == meant
    assert parse(meant).text == meant


def test_each_command_gets_its_part() -> None:
    change = parse(
        "--compound --set --requests=10 --set server:--denoising-steps=2 --env server:OMP_NUM_THREADS=1"
    )
    assert change.apply(CLIENT, {}).argv == ("python", "ask.py", "--port={port}", "--requests=10")
    theirs = of_server(change)
    assert theirs is not None
    made = theirs.apply(SERVER, VARIABLES)
    assert made.argv == ("python", "serve.py", "--port={port}", "--denoising-steps=2")
    assert made.env == {"OMP_NUM_THREADS": "1"}
    assert of_server(parse("--set --requests=10")) is None


def test_changes_of_the_server_are_compared_too() -> None:
    one, two = parse("--set server:--denoising-steps=2"), parse("--set server:--denoising-steps=1")
    assert one.same_effect(one, CLIENT)
    assert not one.same_effect(two, CLIENT)
    assert not one.same_effect(parse("--set --denoising-steps=2"), CLIENT)


def test_a_lock_holds_for_both_commands() -> None:
    assert parse("--set server:--denoising-steps=2").locked_by(["--denoising_steps"]) == ["--denoising_steps"]


@pytest.mark.parametrize("text", ["--env server:PATH=/x", "--env server:GPUDEBUG_RUN=1", "--env server:=1"])
def test_what_no_hypothesis_may_set_is_refused_there_too(text: str) -> None:
    with pytest.raises(InterventionError):
        parse(text)
    with pytest.raises(InterventionError):
        parse("--env server:PYTHONPATH=/x").refuse_forbidden(CLIENT, Allowed())


KNOWN = KnownFlags(("--num-workers", "-j", "optim.lr", "--amp"))


@pytest.mark.parametrize(
    "name", ["--num_workers", "num-workers", "--num-w", "-j", "--optim.lr", "lr", "--no-amp", "+optim.lr"]
)
def test_what_is_known_in_any_spelling(name: str) -> None:
    assert KNOWN.has(name)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("--set --num_wrkers=4", [("--num_wrkers", "--num-workers")]),
        ("--set --prefetch=4", [("--prefetch", None)]),
        ("--unset --anp", [("--anp", "--amp")]),
        ("--set --num_workers=4", []),
        ("--env OMP_NUM_THREADS=1", []),
        ("--patch hypotheses/patches/a.patch", []),
        ("--code", []),
        ("--set server:--x=1", []),
    ],
)
def test_flags_that_nothing_has_with_the_nearest(change: str, found: list[tuple[str, str | None]]) -> None:
    assert list(unknown(parse(change), KNOWN)) == found


def test_a_short_name_is_no_beginning_of_another() -> None:
    assert not KnownFlags(("--amp",)).has("-a")
