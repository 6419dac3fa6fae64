"""The sampler of another node of a job: the program that a step runs there once, beside the training's own.

What it is told and says is a JSON line each, or several of a long one (`core.cluster.node_reports`); all
nodes of the step are told the same, and each answer names its `node`. An order with a `setting` asks which
devices that means there: `{"ready": true, "device": {...}, "devices": [...]}`. One with `nodes` has its file
and its device sampled:

1. `{"ready": true, "clock": [S, S, S]}`: its monotonic clock, by a touch of its file (`clock`);
2. from the caller `{"t0": {"n1": S}}`, the launch on each node's own clock; a node that is not in it ends;
3. every `COUNT_S` seconds `{"counted": {...}, "elapsed": S}`, all of its file so far, S since the launch;
4. once standard input is closed one last row, and `{"notes": {...}, "counted": {...}}`.

What goes wrong is said as `{"error": {...}}`; its status is always 0, since a scheduler may end the other
nodes' for it. It ends with its standard input, and so with the caller.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gpudebug.core.cluster.node_reports import lines_of
from gpudebug.core.errors import DeviceError
from gpudebug.core.text.shell_words import isolated_argv
from gpudebug.edges import opener
from gpudebug.edges.sampler import (
    Notes,
    Opener,
    OrderLines,
    SamplerOrder,
    Sampling,
    TreeOpener,
    as_json,
    deadline,
    first_order,
    heard,
    package_folders,
)
from gpudebug.edges.sampler.csvfile import Changed, CsvFile

TRIES = 5
COUNT_S = 2.0
COUNT_SHARE = 0.01
"""Of a long run that share of it lies between two counts, so that there are some hundred of them at most."""
Say = Callable[[dict[str, Any]], None]


def node_command() -> tuple[str, ...]:
    """Return the argument list that runs it, as `sampler.command` has that of the first node's."""
    statement = (
        "from gpudebug.edges import devices; from gpudebug.edges.sampler import onnode; "
        "sys.exit(onnode.main(devices.resolve, devices.open_device, devices.ProcessTree))"
    )
    return isolated_argv(sys.executable, package_folders(), statement)


def clock(fd: int) -> tuple[float, float, float]:
    """This node's monotonic clock by a file that is touched on the file system of all nodes: when that was,
    within how many seconds, and the file's time then."""
    best = (0.0, float("inf"), 0.0)
    for _ in range(TRIES):
        before = time.monotonic()
        os.utime(fd)
        stamp = os.fstat(fd).st_mtime
        after = time.monotonic()
        best = min(best, ((before + after) / 2, (after - before) / 2, stamp), key=lambda touch: touch[1])
    return best


def main(resolve: Callable[..., Any], open_device: Opener, open_tree: TreeOpener) -> int:
    """Serve one order over standard input and output."""
    lines, text = first_order()
    if text is None:
        return 0
    order = json.loads(text)
    node = os.environ.get(str(order["variable"]), "")
    say = partial(_say_as, node)
    try:
        if "setting" in order:
            found = resolve(order["setting"], os.environ)
            say({"ready": True, "device": found.spec, "devices": list(found.devices)})
        elif node in order["nodes"]:
            _sample({**order, **order["nodes"][node]}, node, lines, say, open_device, open_tree)
    except (DeviceError, OSError, Changed) as error:
        say({"error": as_json(error)})
    return 0


def _sample(
    order: Mapping[str, Any],
    node: str,
    lines: OrderLines,
    say: Say,
    open_device: Opener,
    open_tree: TreeOpener,
) -> None:
    known = {name: order[name] for name in SamplerOrder._fields if name in order}
    asked = SamplerOrder(**known)
    tree = open_tree(os.getpid(), [os.getpid()], False, marker=asked.marker)
    with deadline(asked.hang):
        device = open_device(asked.device, tree)
    fd = opener.descriptor(asked.csv, os.O_WRONLY)
    try:
        touch = clock(fd)
    finally:
        os.close(fd)
    file = CsvFile(Path(asked.csv), resume=False)
    notes = Notes(asked, device, tree, None)
    say({"ready": True, "clock": touch})
    text = lines.next()
    launched = json.loads(text)["t0"] if text is not None else {}
    if node not in launched:
        return
    tree.start(None)
    with deadline(asked.hang):
        device.start(None)
    t0 = float(launched[node])
    Sampling(asked, device, tree, file, notes, say, SeldomCounts(say, t0)).run(t0, lines)


class SeldomCounts:
    """Says now and then what was counted: all that is believed of a file whose sampler says no last word."""

    def __init__(self, say: Say, t0: float) -> None:
        self._say = say
        self._t0 = t0
        self._due = COUNT_S

    def __call__(self, message: dict[str, object]) -> None:
        elapsed = time.monotonic() - self._t0
        if elapsed >= self._due and heard():
            self._say({**message, "elapsed": round(elapsed, 3)})
            self._due = elapsed + max(COUNT_S, COUNT_SHARE * elapsed)


def _say_as(node: str, message: dict[str, object]) -> None:
    for line in lines_of(node, message):
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
