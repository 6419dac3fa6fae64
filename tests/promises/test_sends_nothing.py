"""gpudebug sends nothing: no process of a campaign connects elsewhere, and no module could."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.campaigns import gpudebug, make_repository
from tests.test_architecture import MODULES, Module, within

# In every process with a site module: gpudebug, the training, what they start.
HOOK = """\
import json, os, sys

def look(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.bind"):
        seen = args[1] if isinstance(args[1], str) else list(args[1])[:1]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "subprocess.Popen", "os.exec"):
        seen = os.fsdecode(args[0] or "") or None
    else:
        return
    line = json.dumps([event, seen]) + "\\n"
    fd = os.open(os.environ["SEEN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode())
    os.close(fd)

sys.addaudithook(look)
"""
LOCAL = ("localhost", "127.0.0.1", "::1", ["localhost"], ["127.0.0.1"], ["::1"])
TRAINING = """\
import time

for step in range(40):
    time.sleep(0.02)
    print(f"step {step} loss {1 / (step + 1):.4f}", flush=True)
"""
# Why each may use sockets; the addresses in them are `localhost` or pairs of descriptors.
MAY = {
    "gpudebug.edges.launcher.link": "a pair of sockets to the warden",
    "gpudebug.edges.launcher.follower": "asks the server of the workload on localhost",
    "gpudebug.edges.launcher.warden.spawn": "a pair of sockets to the training",
    "gpudebug.edges.launcher.warden.serving": "waits for the server of the workload on localhost",
    "gpudebug.edges.clusters.shared": "the name of this host",
    "gpudebug.mcp.server": "serves standard input and output by asyncio",
}
CLIENTS = (
    *(
        "socket",
        "ssl",
        "http",
        "urllib.request",
        "smtplib",
        "ftplib",
        "poplib",
        "imaplib",
        "xmlrpc",
        "asyncio",
    ),
    *("requests", "httpx", "aiohttp", "urllib3", "websockets", "grpc"),
)


def test_no_process_of_a_campaign_connects_elsewhere(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo", {"train.py": TRAINING})
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    seen = tmp_path / "seen"
    env = {"PYTHONPATH": str(tmp_path / "hook"), "SEEN": str(seen)}
    for words in (
        ("doctor",),
        ("init", "--command", "python train.py"),
        ("next",),
        ("why", "--for", "1s", "--", "python", "train.py"),
        ("status",),
        ("report",),
        ("verify",),
        ("clean", "--all", "--yes"),
    ):
        done = gpudebug(folder, *words, env=env, close_fds=True)
        assert done.status != 3, done.err
    # One that does is seen.
    other = [sys.executable, "-c", "import socket; socket.getaddrinfo('192.0.2.1', 80)"]
    subprocess.run(other, env={**os.environ, **env, "SEEN": str(tmp_path / "other")}, check=True)
    assert json.loads((tmp_path / "other").read_text()) == ["socket.getaddrinfo", "192.0.2.1"]
    events = [json.loads(line) for line in seen.read_text().splitlines()]
    started = {Path(str(name)).name for event, name in events if event in ("subprocess.Popen", "os.exec")}
    assert "git" in started
    assert {name.rstrip("0123456789.") for name in started} <= {"git", "python", "nvidia-smi", "sh", ""}
    assert [event for event in events if event[0].startswith("socket.") and event[1] not in LOCAL] == []


def _networking(module: Module) -> bool:
    return any(within(one.module, *CLIENTS) for one in module.imports)


def test_only_these_modules_could() -> None:
    assert {module.name for module in MODULES if _networking(module)} == MAY.keys()
    for name in MAY:
        module = next(one for one in MODULES if one.name == name)
        calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
        connected = [
            node for node in calls if ast.unparse(node.func).endswith(("create_connection", ".connect"))
        ]
        assert all(ast.unparse(node.args[0]).startswith("('localhost', ") for node in connected)
