"""How an agent talks to gpudebug: by the shell, or by the protocol with the SDK's own client."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.bench.agents.program import Idea
from tests.support.campaigns import GPUDEBUG, environment

PATIENCE_S = 1800
_OF_STATUS = {0: "measured", 4: "stop", 5: "turn", 6: "busy", 7: "stop"}


class Said(NamedTuple):
    """An answer: `action` is measured, running, turn, stop, busy or error; `text` is all that was read."""

    action: str
    text: str


class Face(Protocol):
    """`characters` counts what was written and read so far; `transcript` has it."""

    characters: int
    transcript: list[str]

    def next(self, *, detach: bool = False) -> Said: ...
    def wait(self, seconds: int) -> Said: ...
    def propose(self, idea: Idea) -> Said: ...
    def status(self) -> Said: ...


class _Counted:
    def __init__(self) -> None:
        self.characters = 0
        self.transcript: list[str] = []

    def count(self, written: str, read: str) -> None:
        self.characters += len(written) + len(read)
        self.transcript += [f"> {written}", read.rstrip()]


class CliFace(_Counted):
    """The commands as an agent's shell runs them."""

    def __init__(self, folder: Path, session: str) -> None:
        super().__init__()
        self._folder = folder
        self._env = environment({"GPUDEBUG_SESSION": session})

    def run(self, *words: str) -> Said:
        done = subprocess.run(
            [*GPUDEBUG, *words],
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        text = done.stdout + done.stderr
        self.count(" ".join(["gpudebug", *words]), text)
        running = done.returncode == 0 and text.startswith("Running:")
        return Said("running" if running else _OF_STATUS.get(done.returncode, "error"), text)

    def next(self, *, detach: bool = False) -> Said:
        return self.run("next", *(["--detach"] if detach else []))

    def wait(self, seconds: int) -> Said:
        return self.run("wait", "--for", f"{seconds}s")

    def propose(self, idea: Idea) -> Said:
        flags = [word for flag in idea.flags for word in ("--set", flag)]
        about = ("--title", idea.title, "--description", idea.description, "--method", idea.method)
        return self.run("propose", *about, *flags)

    def status(self) -> Said:
        return self.run("status")


class McpFace(_Counted):
    """The tools; what a run reports while it goes on is not for the model, and not counted."""

    def __init__(self, client: Any, portal: Any) -> None:
        super().__init__()
        self._client = client
        self._portal = portal

    def call(self, tool: str, **arguments: Any) -> Said:
        result = self._portal.call(self._client.call_tool, tool, arguments)
        text = "".join(part.text for part in result.content)
        self.count(f"{tool} {json.dumps(arguments)}", text)
        answer = json.loads(text)
        if result.is_error:
            return Said("busy" if answer["error"]["code"] == "busy" else "error", text)
        action = {"propose": "turn", "implement": "turn", "tested": "measured", "recovered": "measured"}
        named = str(answer.get("action", "measured"))
        return Said(action.get(named, "measured" if named.startswith("recorded") else named), text)

    def next(self, *, detach: bool = False) -> Said:
        return self.call("next", **({} if detach else {"detach": False}))

    def wait(self, seconds: int) -> Said:
        return self.call("wait", seconds=seconds)

    def propose(self, idea: Idea) -> Said:
        return self.call(
            "propose",
            title=idea.title[:200],
            description=idea.description,
            method=idea.method,
            set=list(idea.flags),
        )

    def status(self) -> Said:
        return self.call("status")


@contextmanager
def opened(face: str, folder: Path, session: str) -> Iterator[Face]:
    """A face of this name, `cli` or `mcp`, for one session in `folder`."""
    if face == "cli":
        yield CliFace(folder, session)
        return
    from anyio.from_thread import start_blocking_portal
    from mcp import Client, StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=GPUDEBUG[0],
        args=[*GPUDEBUG[1:], "mcp"],
        cwd=folder,
        env=environment({"GPUDEBUG_SESSION": session}),
    )
    with (
        open(os.devnull, "w") as silent,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            Client(stdio_client(server, errlog=silent), read_timeout_seconds=PATIENCE_S)
        ) as client,
    ):
        yield McpFace(client, portal)
