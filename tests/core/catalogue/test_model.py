"""Versions and ranges of them, by their numbers."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.support.places import DATA

from gpudebug.core.catalogue import Framework, frameworks, read_framework
from gpudebug.core.catalogue.frameworks import FoundFramework
from gpudebug.core.catalogue.model import (
    CatalogueIntervention,
    bounds,
    compare,
    derived,
    numbers,
    reaches_below,
    reaches_from,
    text_of,
    within,
    written,
)
from gpudebug.core.catalogue.offers import KnownCommand, Offers, interventions_for
from gpudebug.core.catalogue.program import Program, look
from gpudebug.core.change import intervention
from gpudebug.core.diagnosis import layer_flags
from gpudebug.core.errors import CatalogueError
from gpudebug.core.evidence.work import candidates
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.words import WorkName
from gpudebug.engine.run import adapters, catalogue

VERSION = st.lists(st.integers(0, 99), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@pytest.mark.parametrize(
    ("a", "b", "order"),
    [
        ("4.39.0", "4.39", 0),
        ("4.4", "4.39", -1),
        ("4.39.0.dev0", "4.38.2", 1),
        ("2.13.0+cu128", "2.13", 0),
        ("0.6.2rc1", "0.6.2", 0),
        ("v1.2", "1.2", 0),
        ("new", "0", 0),
    ],
)
def test_versions_are_ordered_by_their_numbers(a: str, b: str, order: int) -> None:
    assert (compare(a, b), compare(b, a)) == (order, -order)


@given(VERSION, VERSION)
def test_the_order_is_that_of_the_numbers(a: str, b: str) -> None:
    left, right = (list(map(int, v.split("."))) for v in (a, b))
    size = max(len(left), len(right))
    padded = [part + [0] * (size - len(part)) for part in (left, right)]
    assert compare(a, b) == (padded[0] > padded[1]) - (padded[0] < padded[1])
    assert within(a, f">={a}") and within(a, f"<={a}") and not within(a, f"<{a}")


@pytest.mark.parametrize(
    ("version", "range_", "holds"),
    [
        ("0.5", ">=0.4,<0.6", True),
        ("0.6.0", ">=0.4, <0.6", False),
        ("0.3", ">=0.4", False),
        ("0.4", "!=0.4", False),
        ("0.4", "==0.4.0", True),
        ("0.5", ">0.4", True),
    ],
)
def test_a_range_holds_some(version: str, range_: str, holds: bool) -> None:
    assert within(version, range_) is holds


@pytest.mark.parametrize("text", ["new", ">=", "0.4", ">=0.4 <0.5", "", ">=0.4,"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a range of versions"):
        bounds(text)


@pytest.mark.parametrize(
    ("range_", "below", "beyond"),
    [
        (">=0.6", False, True),
        ("<0.6", True, False),
        (">=0.4", True, True),
        ("==0.5", True, False),
        ("<=0.6", True, True),
    ],
)
def test_how_far_a_range_reaches(range_: str, below: bool, beyond: bool) -> None:
    assert (reaches_below(range_, "0.6"), reaches_from(range_, "0.6")) == (below, beyond)


def test_what_is_no_version_has_no_numbers() -> None:
    assert (numbers("unknown"), numbers("1.2rc1")) == (None, (1, 2))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (4.0, "4"),
        (4, "4"),
        (0.5, "0.5"),
        (1e-3, "0.001"),
        (1e20, "1e+20"),
        ("a b", "a b"),
    ],
)
def test_values_are_written_as_a_person_would(value: str | float | bool, text: str) -> None:
    assert written(value) == text


@pytest.mark.parametrize(
    ("intervention", "text"),
    [
        (CatalogueIntervention(set={"num_workers": 4.0}), "--set num_workers=4"),
        (CatalogueIntervention(set={"a": True}, unset=("b",)), "--compound --set a=true --unset b"),
        (CatalogueIntervention(env={"OMP_NUM_THREADS": "1"}), "--env OMP_NUM_THREADS=1"),
        (CatalogueIntervention(code="write it"), None),
    ],
)
def test_a_change_in_the_syntax_of_propose(intervention: CatalogueIntervention, text: str | None) -> None:
    assert text_of(intervention) == text


KEYS = frozenset({"commands", "offers", "advice", "log", "head", "counts"})
"""What a record of a framework says."""
KNOWN = {framework.name: framework for framework in adapters.known()}

TEXT = """\
name: mine
title: Mine
programs: [mine-train]
marks: {flags: [a, b]}
log: {flag: log_every, default: 50}
flags:
  fast: {since: '2.0'}
"""


def test_a_file_says_a_framework() -> None:
    found = read_framework(TEXT, "mine.yaml")
    assert (found.programs, found.marks.needs, found.flags["fast"].since) == (("mine-train",), 2, "2.0")


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("programs", "progams", 3, "unknown key progams"),
        ("since", "sinse", 7, "unknown key flags.fast.sinse"),
        ("default: 50", "default: often", 5, "log.default: expected a whole number"),
        ("name: mine", "name: other", 1, "but the file is named 'mine'"),
        ("title: Mine\n", "", 1, "title is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, line: int, said: str) -> None:
    with pytest.raises(CatalogueError, match=said) as e:
        read_framework(TEXT.replace(old, new), "mine.yaml")
    assert e.value.line == line


@pytest.mark.parametrize("framework", adapters.known(), ids=lambda framework: framework.name)
def test_a_shipped_framework_is_whole(framework: Framework) -> None:
    assert framework.programs or framework.marks.flags or framework.imports
    assert set(framework.parses) <= set(framework.imports) or framework.imports
    assert all(flag.since or flag.until for flag in framework.flags.values())
    bounds = [b for flag in framework.flags.values() for b in (flag.since, flag.until) if b]
    assert all(numbers(bound) for bound in bounds)
    assert framework.sources
    assert framework.unit in (None, *WorkName)


def test_a_framework_takes_the_options_of_its_base() -> None:
    base = read_framework(TEXT + "every: {save_every: 10}\nbare: [c]\n", "mine.yaml")
    own = read_framework("name: upon\ntitle: Upon\nbase: mine\nbare: [d]\nimports: [upon]\n", "upon.yaml")
    upon = derived([base, own])[1]
    assert (upon.every, upon.bare, upon.programs) == ({"save_every": 10}, ("d",), ())
    assert upon.log == base.log
    assert "fast" not in upon.flags
    with pytest.raises(KeyError):
        derived([own])


@dataclass(frozen=True)
class Recorded:
    """A recorded command line of a framework, with what it is read as."""

    name: str
    says: dict[str, Any]

    @property
    def argv(self) -> list[str]:
        return shlex.split(self.says["command"])

    @property
    def program(self) -> Program | None:
        source = self.says.get("source")
        return look("train.py", [source]) if source else None

    @property
    def found(self) -> FoundFramework:
        found = frameworks.find(self.argv, adapters.known(), self.program)
        assert found is not None, "not recognised"
        return found

    def offers(self, cause: str, version: str | None) -> Offers:
        return interventions_for(
            catalogue.load(None).cause(cause),
            KnownCommand(self.argv, found=self.found, version=version, program=self.program),
        )


def _read(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text("utf-8"))
    assert set(found) <= KEYS
    return dict(found)


RECORDS = {path.stem: _read(path) for path in sorted((DATA / "frameworks").glob("*.yaml"))}
COMMANDS = [Recorded(name, says) for name, record in RECORDS.items() for says in record["commands"]]
FIRST = {name: Recorded(name, record["commands"][0]) for name, record in RECORDS.items()}
OFFERS = [(name, offer) for name, record in RECORDS.items() for offer in record.get("offers", ())]


@pytest.mark.parametrize("recorded", COMMANDS, ids=lambda r: f"{r.name}: {r.says['command'][:40]}")
def test_a_recorded_command_is_recognised(recorded: Recorded) -> None:
    found = recorded.found
    assert (found.framework.name, found.takes_flags) == (recorded.name, recorded.says.get("flags", True))
    if recorded.says.get("steps") is not None:
        assert frameworks.steps_of(recorded.argv, adapters.known()) == recorded.says["steps"]


@pytest.mark.parametrize(
    "recorded", [r for r in COMMANDS if "quiet" in r.says], ids=lambda recorded: recorded.name
)
def test_a_recorded_command_is_silenced(recorded: Recorded) -> None:
    command = layer_flags.KnownCommand(recorded.argv, found=recorded.found, program=recorded.program)
    made = layer_flags.quiet(command, told=True)
    assert made.text == " ".join(recorded.says["quiet"].split())
    assert made.apply(recorded.argv, {}).argv != tuple(recorded.argv)


@pytest.mark.parametrize(
    ("name", "says"), OFFERS, ids=[f"{name}: {o['cause']} {o.get('version', '')}" for name, o in OFFERS]
)
def test_a_recorded_command_is_offered_a_change(name: str, says: dict[str, Any]) -> None:
    recorded = COMMANDS[[c.name for c in COMMANDS].index(name) + says.get("number", 0)]
    offers = recorded.offers(says["cause"], says.get("version")).offers
    changes = [offer.change for offer in offers if offer.change]
    if "code" in says:
        assert any(says["code"] in (offer.instructions or "") for offer in offers)
        return
    assert (changes or [None])[0] == says["change"]
    if "applied" in says:
        assert says["applied"] in intervention.parse(changes[0] or "").apply(recorded.argv, {}).argv


@pytest.mark.parametrize("name", [name for name, record in RECORDS.items() if "advice" in record])
def test_a_recorded_command_is_told_to_log_more_often(name: str) -> None:
    recorded = FIRST[name]
    advice = frameworks.log_advice(recorded.argv, adapters.known(), program=recorded.program)
    assert advice is not None
    assert advice.text.startswith(RECORDS[name]["advice"])


@pytest.mark.parametrize("name", [name for name, record in RECORDS.items() if "counts" in record])
def test_what_a_recorded_log_counts(name: str) -> None:
    record, reader = RECORDS[name], LogReader()
    reader.feed(record.get("head", "").encode(), 0.5)
    for i in range(1, 13):
        text = record["log"].format(i=i, count=4096 * i, loss=3 / i)
        reader.feed(text.encode(), float(i))
    log = reader.summary(0)
    found, _ = candidates(
        log,
        None,
        steps_per_s=log.steps_per_s,
        steps_by=log.rate_source,
        progress_per_s=log.progress_per_s,
        samples_per_s=None,
        samples_by=None,
    )
    assert found[0].unit == record["counts"]


def test_every_framework_that_has_a_base_or_a_checked_version_is_recorded() -> None:
    assert {name for name, known in KNOWN.items() if known.checked or known.base} <= set(RECORDS)
