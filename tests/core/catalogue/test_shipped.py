"""The root causes that are shipped: each is good by itself, and no two are one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpudebug.core.catalogue import GROUPS, Cause, read_cause
from gpudebug.core.catalogue.signals import said, shows
from gpudebug.core.command import cadence
from gpudebug.edges import catalogue as files
from gpudebug.engine.run import adapters, catalogue

FILES = files.shipped()


@pytest.mark.parametrize("file", FILES, ids=lambda file: Path(file.shown).stem)
def test_a_shipped_cause_is_good(file: files.File) -> None:
    cause = read_cause(file.text, file.shown, group=file.group, frameworks=adapters.known())
    assert cause.group == file.group
    assert cause.sources
    assert cause.gate or cause.interventions
    assert cause.gate or cause.words or cause.knobs
    assert len(shows(cause)) > 5
    assert all(said(condition) for condition in (*cause.requires, *cause.signature))


def test_every_group_has_causes() -> None:
    assert set(catalogue.load(None).groups()) == set(GROUPS)


def test_no_two_causes_are_told_alike() -> None:
    titles = [cause.title.casefold() for cause in catalogue.load(None).causes]
    assert len(titles) == len(set(titles))


def test_expressions_compile_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    for cause in catalogue.load(None).causes:
        for knob in cause.knobs:
            assert all(re.compile(name) for name in knob.names)
    assert not [w for w in recwarn if issubclass(w.category, FutureWarning)]


@pytest.mark.parametrize("cause", catalogue.load(None).causes, ids=lambda cause: cause.id)
def test_a_test_never_switches_off_what_its_user_wants(cause: Cause) -> None:
    """Evaluations, checkpoints and log lines are made rarer by knobs of their own, and some are left."""
    for name, intervention in cause.interventions.items():
        settings = {flag: str(value) for flag, value in intervention.set.items()}
        off = [c for kind in cadence.KINDS for c in cadence.cadences(settings, kind) if c.every <= 0]
        assert not off, f"{cause.id} in {name} switches off {off}"
        assert not [flag for flag in intervention.unset if cadence.kind_of(flag)]


@pytest.mark.parametrize(
    "id",
    ["wide-weights", "no-engine", "denoise-steps", "kernel-bound", "pp-high-res", "pp-augment", "env-few"],
)
def test_what_may_cost_quality_says_when_it_is_hollow(id: str) -> None:
    hollow = catalogue.load(None).cause(id).hollow_if or ""
    assert re.search(r"quality|accuracy|success rate|reward", hollow, re.IGNORECASE)


def test_the_example_for_users_is_good() -> None:
    readme = files.shipped_folder("catalogue").with_name("README.md").read_text("utf-8")
    text = readme.partition("```yaml\n")[2].partition("```")[0]
    found = read_cause(text, "hypotheses/slow-logger.yaml", frameworks=adapters.known())
    assert found.group == "stalls"
