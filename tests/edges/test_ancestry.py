"""The processes above this one, as /proc shows them."""

from __future__ import annotations

import os

import pytest

from gpudebug.edges import ancestry
from gpudebug.engine.campaign.session import NAMES


def test_this_very_process_is_the_first_of_its_chain() -> None:
    found = ancestry.chain(NAMES)
    assert [p.pid for p in found[:2]] == [os.getpid(), os.getppid()]
    assert len({p.pid for p in found}) == len(found)


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
    assert ancestry._is_loop(words.split()) is loop


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
