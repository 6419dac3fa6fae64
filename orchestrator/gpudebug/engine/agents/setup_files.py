"""The settings of coding agents: written where there are none, shown where there are, and checked."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpudebug.core.agents import instructions as known
from gpudebug.core.agents.setups import PROGRAMS, SETUPS, SetupFile
from gpudebug.core.answers.setup import DoctorCheck
from gpudebug.core.errors import GpudebugError
from gpudebug.edges import store
from gpudebug.engine.agents.instructions import prepare


def write(root: Path, agents: Iterable[str], session: str | None) -> tuple[list[str], list[str]]:
    """Return the files that were written for these agents, and notes on those that are not as they should be.

    A file that is there belongs to others and stays as it is; a session grants itself no permission.
    """
    written, notes = list[str](), list[str]()
    wanted = {file.path: file for name in agents for file in SETUPS.get(name, ())}
    for file in wanted.values():
        path = root / file.path
        text = _text(root, path)
        if text is not None and file.held_by(text):
            continue
        if session is not None:
            notes.append(f"{path} is for a person to write: gpudebug init --agent")
        elif text is not None:
            notes.append(f"{path} is there and stays as it is; add to it: {file.line}")
        else:
            store.make_folder(path.parent)
            store.replace_file(path, file.text.encode(), root=root, expected=None)
            written.append(str(path))
    return written, notes


def _text(root: Path, path: Path) -> str | None:
    """None if there is no such file. StoreError if a link leads out of `root`."""
    if not store.resolve_inside(path, root).exists():
        return None
    return store.read_file(path, follow=True).decode("utf-8", "replace")


def checks(root: Path, name: str) -> Iterator[DoctorCheck]:
    """Tell whether an agent finds gpudebug, its instructions, its permissions and its server."""
    agent = known.agent(name)
    again = f"gpudebug init --agent {agent.name}"
    yield _program(agent.name)
    found = shutil.which("gpudebug")
    yield (
        DoctorCheck("gpudebug", "ok", found)
        if found
        else DoctorCheck("gpudebug", "failed", "not on PATH", "install it where the agent's shell finds it")
    )
    yield _server()
    yield _instructions(root, agent, again)
    for file in SETUPS.get(agent.name, ()):
        yield _setup(root, file, again)
    if agent.note:
        yield DoctorCheck("note", "warning", agent.note)


def _program(name: str) -> DoctorCheck:
    program = PROGRAMS.get(name)
    if program is None:
        return DoctorCheck("agent", "ok", f"{name}: any program that reads its file")
    path = shutil.which(program, path=os.environ.get("PATH"))
    if path is None:
        return DoctorCheck("agent", "warning", f"{program} is not on PATH", f"install {program}")
    return DoctorCheck("agent", "ok", path)


def _server() -> DoctorCheck:
    if importlib.util.find_spec("mcp") is None:
        return DoctorCheck("mcp", "warning", "the server is not installed", "pip install 'gpudebug[mcp]'")
    return DoctorCheck("mcp", "ok", "gpudebug mcp can be started")


def _instructions(root: Path, agent: known.AgentInstructions, again: str) -> DoctorCheck:
    try:
        [made] = prepare(root, [agent])
    except GpudebugError as e:
        return DoctorCheck("instructions", "failed", e.message, e.next)
    if made.old is None:
        return DoctorCheck("instructions", "failed", f"{made.path} is missing", again)
    if made.old != made.new:
        return DoctorCheck("instructions", "failed", f"{made.path} has no part of this version's", again)
    return DoctorCheck("instructions", "ok", str(made.path))


def _setup(root: Path, file: SetupFile, again: str) -> DoctorCheck:
    path = root / file.path
    try:
        text = _text(root, path)
    except GpudebugError as e:
        return DoctorCheck(file.path, "failed", e.message, e.next)
    if text is None:
        return DoctorCheck(file.path, "failed", "missing", again)
    if not file.held_by(text):
        return DoctorCheck(file.path, "failed", "lacks what gpudebug needs", f"add to it: {file.line}")
    return DoctorCheck(file.path, "ok", "permissions, time limits and server are there")
