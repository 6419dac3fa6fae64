"""The tests that a change needs."""

from __future__ import annotations

import pytest
from tests.support.touched import ALWAYS, importers, room, selected

ABOVE = {"core/verdict": {"core/compare", "engine/trial"}, "core/words": {"core/verdict"}}
USERS = {"trials": {"tests/core/verdict/test_judge.py"}}


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        (
            "orchestrator/gpudebug/core/verdict/__init__.py",
            {"tests/core/verdict", "tests/core/compare", "tests/engine/trial"},
        ),
        ("orchestrator/gpudebug/core/words.py", {"tests/core/words", "tests/core/verdict"}),
        ("orchestrator/gpudebug/terminal/status.py", {"tests/terminal"}),
        ("tests/core/text/test_units.py", {"tests/core/text/test_units.py"}),
        ("tests/engine/conftest.py", {"tests/engine"}),
        ("tests/support/trials.py", {"tests/core/verdict/test_judge.py"}),
        ("docs/verdicts.md", {"tests/docs"}),
        ("LICENSE", set()),
    ],
)
def test_a_change_needs_its_rooms_and_those_that_import_them(path: str, tests: set[str]) -> None:
    assert selected([path], ABOVE, USERS) == {ALWAYS, *tests}


def test_who_imports_a_room_is_read_from_the_modules() -> None:
    assert room("gpudebug.cli.options") == "cli"
    above = importers()
    assert {"core/compare", "engine/trial"} <= above["core/verdict"]
    assert "core/trainlog" not in above["core/verdict"]
