"""The processes above this one, as /proc shows them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.campaigns import killed_at_the_end

from gpudebug.edges import ancestry
from gpudebug.edges.proc import ProcessStat
from gpudebug.engine.campaign.session import NAMES


def test_this_very_process_is_the_first_of_its_chain() -> None:
    found = ancestry.chain(NAMES)
    assert [p.pid for p in found[:2]] == [os.getpid(), os.getppid()]
    assert len({p.pid for p in found}) == len(found)


def process(pid: int, parent: int) -> ProcessStat:
    return ProcessStat(pid, "sh", "S", parent, False, 0.0, 0.0, 7, 1.0)


def way_up(monkeypatch: pytest.MonkeyPatch, *known: list[ProcessStat]) -> list[tuple[int, str | None]]:
    """Which processes are found above process 10; of what a number is read twice, the second is later."""
    left = {found[0].pid: [*found] for found in known}

    def read(pid: int) -> ProcessStat | None:
        found = left.get(pid)
        return None if not found else found.pop(0) if len(found) > 1 else found[0]

    monkeypatch.setattr(ancestry, "read_process", read)
    return [(each.pid, each.agent) for each, _ in ancestry._up(10, frozenset())]


def test_the_way_up_ends_where_the_namespace_does_else_it_is_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = 2**22 + 1  # No Linux has a process of this number.
    assert way_up(monkeypatch, [process(10, 1)], [process(1, 0)]) == [(10, None), (1, None)]
    assert way_up(monkeypatch, [process(10, 0)]) == [(10, None)]
    circle = way_up(monkeypatch, [process(10, 11)], [process(11, 10)])
    assert circle == [(10, None), (11, None), (10, ancestry.UNSEEN)]
    assert way_up(monkeypatch, [process(10, gone)]) == [(10, None), (gone, ancestry.UNSEEN)]
    adopted = way_up(monkeypatch, [process(10, gone), process(10, 1)], [process(1, 0)])
    assert adopted == [(10, None), (1, None)]


@pytest.mark.parametrize(
    ("words", "loop"),
    [
        ("/usr/bin/python3 /home/me/bin/gpudebug loop --agent claude", True),
        ("python -m gpudebug -C x loop --agent claude", True),
        ("/v/bin/python -I -X dev -Wd /v/bin/gpudebug loop -C x --agent claude", True),
        ("python -Im gpudebug --json loop --agent claude", True),
        ("python3.12 -mgpudebug.__main__ loop --agent claude", True),
        ("python /src/gpudebug/__main__.py -C loop loop", True),
        ("gpudebug loop --agent claude", True),
        ("gpudebug next", False),
        ("gpudebug -C loop next", False),
        ("python -m gpudebug propose --title loop", False),
        ("vim loop", False),
        ("python train.py gpudebug loop", False),
        ("python -m train gpudebug loop", False),
        ("python -c gpudebug loop", False),
        ("timeout 8h gpudebug loop --agent claude", False),
        ("sudo -u me gpudebug loop --agent claude", False),
        ("uv run gpudebug loop --agent claude", False),
        ("bash x.sh gpudebug loop --agent claude", False),
        ("sh -c gpudebug loop --agent x", False),
        ("", False),
    ],
)
def test_the_loop_is_known_by_its_command(words: str, loop: bool) -> None:
    assert (ancestry._verb(words.split()) == ancestry.LOOP) is loop


@pytest.mark.parametrize(
    ("words", "other"),
    [
        ("bash", False),
        ("-bash", False),
        ("bash -l -i", False),
        ("zsh --login", False),
        ("bash -c id", True),
        ("sh -lc id", True),
        ("bash agent.sh", True),
    ],
)
def test_a_shell_of_a_person_is_told_from_one_that_runs_a_command(words: str, other: bool) -> None:
    assert ancestry._is_shell(words.split())
    assert ancestry._runs_other(words.split()) is other


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like `gpudebug mcp`, started by the words of the parameter."""
    program = tmp_path / "gpudebug"
    program.write_text("import sys\nprint(flush=True)\nsys.stdin.read()\n")
    words = [word.format(python=sys.executable, program=program) for word in request.param]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with killed_at_the_end(process):
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        yield process


@pytest.mark.parametrize(
    "server",
    [
        ("{python}", "{program}", "-C", "x", "mcp"),
        ("sh", "-c", "{python} {program} mcp; true"),
        ("env", "A=1", "sh", "-c", "{python} {program} mcp; true"),
    ],
    indirect=True,
    ids=["itself", "by a shell", "by two"],
)
def test_the_client_of_a_server_is_the_process_that_started_it(server: subprocess.Popen[bytes]) -> None:
    client = ancestry.chain(NAMES)[0]
    assert client.server
    assert os.getpid() in {process.pid for process in client.server[1:]}
    assert not any(above.server for above in ancestry.chain(NAMES)[1:])


@pytest.mark.parametrize(
    "server",
    [
        ("{python}", "{program}", "next"),
        ("{python}", "-c", "import subprocess as s; s.run(['{python}', '{program}', 'mcp'])"),
    ],
    indirect=True,
    ids=["another command", "the client's own child"],
)
def test_what_serves_another_or_nobody_makes_no_client(server: subprocess.Popen[bytes]) -> None:
    assert ancestry.chain(NAMES)[0].server == ()


@pytest.mark.parametrize(
    ("name", "words", "agent"),
    [
        ("claude", "claude", "claude"),
        ("node", "/usr/bin/node --no-warnings /usr/local/bin/gemini -p x", "gemini"),
        ("python3", "python3 /v/bin/aider --yes", "aider"),
        ("MainThread", "/usr/bin/node /usr/local/bin/qwen", "qwen"),
        ("bash", "bash claude", None),
        ("vim", "vim codex", None),
        ("python3", "python3 train.py claude", None),
        ("cursor", "/opt/cursor", None),
    ],
)
def test_which_process_is_an_agent(name: str, words: str, agent: str | None) -> None:
    assert ancestry._agent(name, words.split()) == agent
