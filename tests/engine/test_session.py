"""Whose call it is, by the environment that it is made in."""

from __future__ import annotations

import pytest

from gpudebug.core.errors import UsageError
from gpudebug.engine.session import AGENT_VARIABLES, session_of

AGENT = AGENT_VARIABLES[0]

CASES = [
    ("nobody", {}, None),
    ("named", {"GPUDEBUG_SESSION": "a1"}, "a1"),
    ("named before the agent's own", {"GPUDEBUG_SESSION": "a1", AGENT: "b2"}, "a1"),
    ("empty says a person", {"GPUDEBUG_SESSION": "", AGENT: "b2"}, None),
    (
        "an agent's own",
        {AGENT: "8a718ed2-2856-435b-bd9a-63c5b8291b42"},
        "8a718ed2-2856-435b-bd9a-63c5b8291b42",
    ),
    ("an agent's empty one", {AGENT: ""}, None),
    ("an agent's second one", {AGENT_VARIABLES[1]: "T-9"}, "T-9"),
]


@pytest.mark.parametrize(("env", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_session_of_an_environment(env: dict[str, str], expected: str | None) -> None:
    assert session_of(env) == expected


@pytest.mark.parametrize("name", ["a b", "x" * 65, "a\n- **Status**: VALIDATED", "ü", "a,b", "a;rm"])
def test_a_name_that_could_break_the_progress_file_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no name of a session"):
        session_of({"GPUDEBUG_SESSION": name})


def test_an_agents_odd_name_becomes_a_plain_one_that_stays_the_same() -> None:
    odd = {AGENT: "a thread / with blanks"}
    found = session_of(odd)
    assert found is not None
    assert found == session_of(odd)
    assert session_of({"GPUDEBUG_SESSION": found}) == found
    assert found != session_of({AGENT: "another thread"})


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("hf_" + "Ab3d" * 6, {}),
        ("correct-horse", {"WANDB_API_KEY": "correct-horse"}),
        ("ghp_" + "a1" * 15, {}),
    ],
)
def test_a_secret_is_no_name_of_a_session(name: str, more: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="looks like one") as refused:
        session_of({"GPUDEBUG_SESSION": name, **more})
    assert name not in str(refused.value)
    found = session_of({AGENT: name, **more})
    assert found is not None
    assert found.startswith("agent-") and name not in found
