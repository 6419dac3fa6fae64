"""Whose call it is, by this process's variables and by the processes above it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import environment

from gpudebug.core.errors import UsageError
from gpudebug.edges import ancestry
from gpudebug.edges.ancestry import AncestorProcess
from gpudebug.engine.campaign.session import AGENT_VARIABLES, Chain, caller_of, served_session, session_of

AGENT = AGENT_VARIABLES[0]
CODEX = AGENT_VARIABLES[1]


def below(*processes: tuple[dict[str, str], str | None]) -> Chain:
    """This process below these, the nearest first."""
    above = [AncestorProcess(100 - n, f"7{n}", dict(env), agent) for n, (env, agent) in enumerate(processes)]
    return lambda: [AncestorProcess(os.getpid(), "1", {}), *above]


SHELL: tuple[dict[str, str], str | None] = ({}, None)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, None),
        ({"GPUDEBUG_SESSION": "a1"}, "a1"),
        ({"GPUDEBUG_SESSION": "a1", AGENT: "b2"}, "a1"),
        ({AGENT: "8a718ed2-2856-435b-bd9a-63c5b8291b42"}, "8a718ed2-2856-435b-bd9a-63c5b8291b42"),
        ({AGENT: ""}, None),
        ({CODEX: "T-9"}, "T-9"),
    ],
)
def test_below_nobody_the_variables_decide(env: dict[str, str], expected: str | None) -> None:
    assert session_of(env, below(SHELL)) == expected


@pytest.mark.parametrize(
    ("env", "above", "expected"),
    [
        ({"GPUDEBUG_SESSION": "b"}, [SHELL, ({"GPUDEBUG_SESSION": "a"}, None)], "a"),
        ({}, [SHELL, ({"GPUDEBUG_SESSION": "a"}, None)], "a"),
        ({"GPUDEBUG_SESSION": ""}, [({"GPUDEBUG_SESSION": "a"}, None)], "a"),
        (
            {"GPUDEBUG_SESSION": "c"},
            [({"GPUDEBUG_SESSION": "b"}, None), ({"GPUDEBUG_SESSION": "a"}, "claude")],
            "a",
        ),
        ({"GPUDEBUG_SESSION": "", AGENT: "x"}, [SHELL], "x"),
        ({"GPUDEBUG_SESSION": "b", AGENT: "x"}, [({}, "claude")], "x"),
        ({"GPUDEBUG_SESSION": "b"}, [SHELL, ({}, "gemini"), SHELL], "gemini-99-71"),
        ({AGENT: "x", CODEX: "y"}, [({}, "gemini")], "gemini-100-70"),
        ({AGENT: "y"}, [({AGENT: "x"}, None), ({}, "claude")], "x"),
        ({}, [({}, ancestry.LOOP)], "loop-100-70"),
        ({}, [({"GPUDEBUG_SESSION": "not a name"}, None)], None),
    ],
)
def test_no_process_takes_another_name_than_what_is_above_it(
    env: dict[str, str], above: list[tuple[dict[str, str], str | None]], expected: str | None
) -> None:
    assert session_of(env, below(*above)) == expected


def beside_a_server(server_env: dict[str, str], agent: str | None = None, own: bool = False) -> Chain:
    """This process below a client of `gpudebug mcp`; `own`: this process is that server."""
    client = AncestorProcess(7, "70", {}, agent)
    server = AncestorProcess(os.getpid() if own else 8, "80", server_env)
    serving = client._replace(server=(server, client))
    return lambda: [server if own else AncestorProcess(os.getpid(), "90", {}), serving]


@pytest.mark.parametrize(
    ("server_env", "agent", "expected"),
    [
        ({}, None, "mcp-8-80"),
        ({"GPUDEBUG_SESSION": "a1"}, None, "a1"),
        ({}, "claude", "claude-7-70"),
        ({"GPUDEBUG_SESSION": "not a name"}, None, "mcp-8-80"),
    ],
)
@pytest.mark.parametrize("mine", [{}, {"GPUDEBUG_SESSION": "b"}, {AGENT: "x"}])
def test_what_a_client_runs_beside_its_server_is_the_same_session(
    mine: dict[str, str], server_env: dict[str, str], agent: str | None, expected: str
) -> None:
    found = caller_of(mine, beside_a_server(server_env, agent))
    assert found.session == expected
    assert found.why == "process 7 is the client of `gpudebug mcp`, process 8"


@pytest.mark.parametrize(
    ("env", "agent", "expected"),
    [
        ({}, None, "mcp-{}-80"),
        ({"GPUDEBUG_SESSION": "a1"}, None, "a1"),
        ({}, "gemini", "gemini-7-70"),
    ],
)
def test_the_server_names_its_session_as_what_is_beside_it_does(
    env: dict[str, str], agent: str | None, expected: str
) -> None:
    assert served_session(env, beside_a_server(env, agent, own=True)) == expected.format(os.getpid())


def test_a_server_refuses_a_session_that_is_no_name() -> None:
    with pytest.raises(UsageError):
        served_session({"GPUDEBUG_SESSION": "not a name"}, beside_a_server({}, own=True))


def test_what_runs_in_a_training_is_no_person() -> None:
    found = caller_of({}, below(SHELL, ({"GPUDEBUG_RUN": "/x/runs/0001-h1"}, None)))
    assert str(found.session).startswith("run-")
    assert "GPUDEBUG_RUN of process 99" in found.why


def test_the_process_that_makes_a_caller_a_session_is_named() -> None:
    assert caller_of({}, below(SHELL, ({}, "aider"))).why == "process 99 is aider"


@pytest.mark.parametrize("name", ["a b", "x" * 65, "a\n- **Status**: VALIDATED", "ü", "a,b", "a;rm"])
def test_a_name_that_could_break_the_progress_file_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a session name"):
        session_of({"GPUDEBUG_SESSION": name}, below())


def test_an_agents_odd_name_becomes_a_plain_one_that_stays_the_same() -> None:
    odd = {AGENT: "a thread / with blanks"}
    found = session_of(odd, below())
    assert found is not None
    assert found == session_of(odd, below())
    assert session_of({"GPUDEBUG_SESSION": found}, below()) == found
    assert found != session_of({AGENT: "another thread"}, below())


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
        session_of({"GPUDEBUG_SESSION": name, **more}, below())
    assert name not in str(refused.value)
    found = session_of({AGENT: name, **more}, below())
    assert found is not None
    assert found.startswith("agent-") and name not in found


ASK = "from gpudebug.engine.campaign.session import caller_of; print(caller_of())"


def asked(*words: str, env: dict[str, str | None] | None = None) -> str:
    done = subprocess.run(words, env=environment(env), capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_real_processes_are_recognised_by_what_they_were_started_with() -> None:
    renamed = f"GPUDEBUG_SESSION=b env -u NOTHING '{sys.executable}' -c '{ASK}'; true"
    assert "session='a'" in asked("sh", "-c", renamed, env={"GPUDEBUG_SESSION": "a"})
    emptied = f"env -i '{sys.executable}' -c '{ASK}'; true"
    assert "session='a'" in asked("sh", "-c", emptied, env={"GPUDEBUG_SESSION": "a"})
    assert "session=None" in asked(sys.executable, "-c", ASK)
    assert "session=None" in asked(sys.executable, "-c", ASK, env={"GPUDEBUG_SESSION": ""})


def test_no_number_of_processes_in_between_makes_a_person(tmp_path: Path) -> None:
    deep = tmp_path / "deep.sh"
    below = 'sh "$0" $(($1 - 1)) "$2" "$3"'
    deep.write_text(f'if [ "$1" -gt 0 ]; then {below}; else env -i "$2" -c "$3"; fi; true\n')
    said = asked("sh", str(deep), "80", sys.executable, ASK, env={"GPUDEBUG_SESSION": "a"})
    assert "session='a'" in said


@pytest.mark.parametrize("above", [[SHELL, ({}, ancestry.UNSEEN)], [({}, ancestry.UNSEEN)]])
def test_a_way_up_that_cannot_be_seen_makes_a_session(above: list[tuple[dict[str, str], str | None]]) -> None:
    found = caller_of({}, below(*above))
    assert found.session is not None and found.session.startswith("unseen-")
    assert session_of({}, below(*above)) == found.session
    assert "cannot be seen" in found.why
    assert caller_of({"GPUDEBUG_SESSION": "a"}, below(*above)).session == "a"


def test_a_coding_agent_is_recognised_by_its_own_name(tmp_path: Path) -> None:
    agent = tmp_path / "gemini"
    agent.write_text(
        f"#!{sys.executable}\nimport subprocess, sys\nsubprocess.run(sys.argv[1:], check=True)\n"
    )
    agent.chmod(0o755)
    said = asked(str(agent), sys.executable, "-c", ASK, env={"GPUDEBUG_SESSION": ""})
    assert "session='gemini-" in said and "is gemini" in said
