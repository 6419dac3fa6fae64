"""The processes above this one: what they were started with, which coding agent each is, and whether it is
a client of `gpudebug mcp`.

Read from /proc, a few files a process: the variables are those of its start, which no descendant changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from gpudebug.edges.proc import children, read_process, words

# The programs that coding agents are, by their own names; one that people work in as well does not count.
AGENTS = frozenset(
    {
        *(
            "claude",
            "codex",
            "gemini",
            "qwen",
            "cursor-agent",
            "aider",
            "opencode",
            "amp",
            "goose",
            "copilot",
        ),
        *("crush", "droid", "auggie", "kiro-cli", "openhands", "cline"),
    }
)
# Their first word that is no option is the program.
_INTERPRETERS = ("node", "bun", "deno", "python", "pypy")
_MODULES = ("gpudebug", "gpudebug.__main__")
LOOP = "loop"
"""What a child of `gpudebug loop` is called that no variable names."""
UNSEEN = "unseen"
"""The agent of a process on the way up that cannot be read: what is above it may be anything."""
_SERVER = "mcp"
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish")
# Programs that only start another one, which is the client's then.
_LAUNCHERS = frozenset(
    {"env", "uv", "uvx", "pipx", "npx", "npm", "timeout", "conda", "micromamba", "pixi", "poetry"}
)
_LAUNCHED_BELOW = 2
_MOST_CHILDREN = 1000


class AncestorProcess(NamedTuple):
    """A process: `env` has its variables that name sessions and runs, `agent` is the agent that it is.

    `started` is its start in the kernel's ticks: with the number it is this process for ever. `server` is
    the first `gpudebug mcp` that it started and that still serves it, with those above that one.
    """

    pid: int
    started: str
    env: dict[str, str]
    agent: str | None = None
    server: tuple[AncestorProcess, ...] = ()


def chain(names: frozenset[str]) -> tuple[AncestorProcess, ...]:
    """This process and those above it, the nearest first, with their variables of these names."""
    if not _shows_us():
        return (AncestorProcess(os.getpid(), "0", {}, UNSEEN),)
    return tuple(
        process._replace(server=_chain(server, names)) if (server := _server_of(process.pid)) else process
        for process in _chain(os.getpid(), names)
    )


def _shows_us() -> bool:
    """Tell whether /proc is that of this PID namespace: another one's numbers mean other processes."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def _chain(pid: int, names: frozenset[str]) -> tuple[AncestorProcess, ...]:
    found = list(_up(pid, names))
    below_loop = [_verb(argv) == LOOP for _, argv in found[1:]]
    return tuple(
        process._replace(agent=LOOP) if loop and process.agent is None else process
        for (process, _), loop in zip(found, [*below_loop, False], strict=True)
    )


def _server_of(pid: int) -> int | None:
    """Return the oldest `gpudebug mcp` that a process started, itself or by a launcher; None if it has none.

    A shell in which a person works is no client.
    """
    argv = _words(pid, "cmdline")
    by_hand = bool(argv) and _is_shell(argv) and not _runs_other(argv)
    return None if by_hand else min(_servers_below(pid, _LAUNCHED_BELOW), default=None)


def _servers_below(pid: int, deep: int) -> Iterator[int]:
    for child in children(pid)[:_MOST_CHILDREN]:
        argv = _words(child, "cmdline")
        if _verb(argv) == _SERVER:
            yield child
        elif deep and argv and (_base(argv[0]) in _LAUNCHERS or (_is_shell(argv) and _runs_other(argv))):
            yield from _servers_below(child, deep - 1)


def _is_shell(argv: list[str]) -> bool:
    return _base(argv[0]).lstrip("-") in _SHELLS


def _runs_other(argv: list[str]) -> bool:
    """Tell whether a shell was started for a command or a script, not for a person."""
    words = [word for word in argv[1:] if word]
    return any(not word.startswith("-") or (not word.startswith("--") and "c" in word) for word in words)


def _up(pid: int, names: frozenset[str]) -> Iterator[tuple[AncestorProcess, list[str]]]:
    """This process and those above it to the first of the PID namespace, or to one whose parent is outside
    of it; the last is `UNSEEN` if that end cannot be reached."""
    passed, below = set[int](), 0
    while pid > 0:
        found = None if pid in passed else read_process(pid)
        if found is not None:
            argv = _words(pid, "cmdline")
            agent = _agent(found.name, argv)
            yield AncestorProcess(pid, str(found.start), _variables(pid, names), agent), argv
            passed.add(pid)
            below, pid = pid, found.parent
            continue
        if _hidden(pid):
            return
        child = read_process(below)
        if child is None or child.parent == pid or child.parent in passed:
            yield AncestorProcess(pid, "0", {}, UNSEEN), []
            return
        # What it left has another parent by now.
        pid = child.parent


def _hidden(pid: int) -> bool:
    """Tell whether a process is another user's that /proc does not show (`hidepid`): sshd, slurmstepd."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return not os.path.exists(f"/proc/{pid}")
    except OSError:
        return False
    return False


def _words(pid: int, name: str) -> list[str]:
    return words(pid, name) or []


def _variables(pid: int, names: frozenset[str]) -> dict[str, str]:
    found = (word.partition("=") for word in _words(pid, "environ"))
    return {name: value for name, equals, value in found if equals and name in names}


def _agent(name: str, argv: list[str]) -> str | None:
    """Return the agent that a process is, by its name, or by the program that its interpreter runs."""
    known = [name, _base(argv[0])] if argv else [name]
    if any(_base(word).startswith(_INTERPRETERS) for word in known):
        known += [_base(word) for word in argv[1:] if word and not word.startswith("-")][:1]
    return next((word for word in known if word in AGENTS), None)


def _verb(argv: list[str]) -> str | None:
    """The command that this process is, however it was started, if it is gpudebug and not what started it."""
    words = iter(_own_words(argv))
    for word in words:
        if word == "-C":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _own_words(argv: list[str]) -> list[str]:
    """Return gpudebug's arguments, if this process's program is gpudebug; else nothing."""
    if argv and _base(argv[0]) == "gpudebug":
        return argv[1:]
    if not argv or not _base(argv[0]).startswith(("python", "pypy")):
        return []
    words = iter(argv[1:])
    for word in words:
        if not word.startswith("-"):
            return list(words) if _base(word.removesuffix("/__main__.py")) == "gpudebug" else []
        letters = "" if word.startswith("--") else word[1:]
        # Single letters may stand together: -Im.
        taking = next((i for i, letter in enumerate(letters) if letter in "cmXW"), None)
        if taking is None:
            continue
        value = letters[taking + 1 :] or next(words, "")
        if letters[taking] in "cm":
            return list(words) if letters[taking] == "m" and value in _MODULES else []
    return []


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1]
