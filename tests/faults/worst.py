"""The worst that a file of its size can hold, for each kind of file that others write.

`python -m tests.faults.worst [SHAPE ...]` prints what each costs: CPU seconds and memory of one command on a
file, and on one of twice the size, without those on an empty one.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tests.support.campaigns import GPUDEBUG, environment, make_campaign

from gpudebug.core.samples.row import HEADER

SIZE = 1 << 20
BESIDE = 64 << 20
"""Bytes that a reader may take beside eight times its file."""
TIMES = 8
_GROWS = 3.0
"""What twice the file may cost in CPU: more is no longer linear, by far."""
_SEEN_S = 0.5
"""Less than this is the machine's noise."""


class Cost(NamedTuple):
    """CPU seconds and the most bytes of memory of a process."""

    cpu_s: float
    memory: int


def _event(n: int, **more: object) -> dict[str, object]:
    args = {"device": 0, "stream": 7, "correlation": n}
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": n * 10, "dur": 5}
    return {**event, "args": args, **more}


def _nested(n: int) -> object:
    found: object = 1
    for _ in range(n):
        found = {"a": found}
    return found


Piece = Callable[[int], str]

_TRACE: dict[str, Piece] = {
    "equal": lambda n: json.dumps(_event(n)),
    "names": lambda n: json.dumps(_event(n, name=f"kernel_{n}")),
    "operators": lambda n: json.dumps(_event(n, cat="cpu_op", name=f"op_{n}", tid=n)),
    "devices": lambda n: json.dumps(_event(n, args={"device": n, "stream": n})),
    "streams": lambda n: json.dumps(_event(n, args={"device": 0, "stream": n})),
    "steps": lambda n: json.dumps(_event(n, cat="user_annotation", name=f"ProfilerStep#{n}")),
    "deep": lambda n: json.dumps(_event(n, args=_nested(200))),
    "wide": lambda n: json.dumps(_event(n, args={f"key{i}": i for i in range(n * 100, n * 100 + 100)})),
    "long values": lambda n: json.dumps(_event(n, name="x" * 50_000)),
    "same time": lambda n: json.dumps(_event(0, dur=1 << 40)),
}
_LOG: dict[str, Piece] = {
    "equal": lambda n: "step 1 loss 0.5",
    "steps": lambda n: f"step {n} loss {1 / (n + 1):.4f}",
    "keys": lambda n: f"key{n}: 0.5 other{n}=1e-3",
    "many a line": lambda n: " ".join(f"k{i}={i}.5" for i in range(n, n + 400)),
    "bars": lambda n: f"\r{n % 100}%|####| {n}/100000 [00:0{n % 9}<00:10, 3.2it/s, loss=0.{n}]",
    "tables": lambda n: f"| key_{n} | {n}.5 |",
    "json": lambda n: json.dumps({"step": n, f"metric_{n}": n / 7}),
    "deep": lambda n: json.dumps(_nested(200)),
    "one line": lambda n: "x y=1 " * 20_000,
    "tracebacks": lambda n: (
        f'Traceback (most recent call last):\n  File "a.py", line {n}, in f\nValueError: {n}'
    ),
    "settings": lambda n: f"  setting_{n}: {n}",
}
_SAMPLES: dict[str, Piece] = {
    "equal": lambda n: "1.0,50,,,,0,GPU-1" + "," * (HEADER.count(",") - 6),
    "devices": lambda n: f"{n}.0,50,,,,{n},GPU-{n}" + "," * (HEADER.count(",") - 6),
    "wide": lambda n: "1.0," * 5_000,
    "long values": lambda n: f"{n}.0,50,,,,0,{'G' * 50_000}" + "," * (HEADER.count(",") - 6),
}
_PROGRESS: dict[str, Piece] = {
    "hypotheses": lambda n: (
        f"### Hypothesis {n + 1}: T\n- **Status**: UNTESTED\n- **Intervention**: --set --a={n}\n"
    ),
    "bullets": lambda n: f"- **Own {n}**: text",
    "headings": lambda n: f"## Mine {n}",
    "fences": lambda n: "```" if n % 3 else "text",
    "one line": lambda n: "x" * 100_000,
}


def shapes() -> dict[str, tuple[str, Callable[[Path, int], None]]]:
    """Return what writes each shape: the name of the file, and what fills it up to a size."""
    found: dict[str, tuple[str, Callable[[Path, int], None]]] = {}
    for kind, name, head, between, end, pieces in (
        ("trace", "t.json", '{"traceEvents": [', ",\n", "]}", _TRACE),
        ("log", "train.log", "", "\n", "\n", _LOG),
        ("samples", "s.csv", HEADER, "\n", "\n", _SAMPLES),
        ("progress", "progress/test.md", "## Hypotheses\n\n", "\n", "\n", _PROGRESS),
    ):
        for shape, piece in pieces.items():
            found[f"{kind}: {shape}"] = (name, _filled(head, between, end, piece))
    found["database: rows"] = ("d.sqlite", _database)
    return found


def _filled(head: str, between: str, end: str, piece: Piece) -> Callable[[Path, int], None]:
    def fill(path: Path, size: int) -> None:
        parts, length = [], 0
        for n in count():
            if length >= size:
                break
            parts.append(piece(n))
            length += len(parts[-1]) + 1
        path.write_text(head + between.join(parts) + end)

    return fill


def _database(path: Path, size: int) -> None:
    with sqlite3.connect(path) as c:
        c.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        columns = "start, end, deviceId, streamId, correlationId, shortName"
        c.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({columns})")
        rows = [(n, f"k{n}") for n in range(size // 100)]
        c.executemany("INSERT INTO StringIds VALUES (?, ?)", rows)
        kernels = [(n * 10, n * 10 + 5, n, n, n, n) for n in range(size // 100)]
        c.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?)", kernels)
    c.close()


def cost(folder: Path, shape: str, size: int) -> Cost:
    """Return what one command on a file of this shape and size takes; `size` 0 is the smallest file."""
    name, fill = shapes()[shape]
    words = ["analyze", str(folder / name)]
    if shape.startswith("progress"):
        folder = make_campaign(folder / "repo").folder
        (folder / "progress").mkdir(exist_ok=True)
        words = ["-C", str(folder), "status"]
    fill(folder / name, max(size, 1))
    with open(os.devnull, "wb") as nowhere:
        files = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), fd) for fd in (1, 2)]
        argv = [*GPUDEBUG, *words]
        pid = os.posix_spawn(argv[0], argv, environment(), file_actions=files)
        _, status, used = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise AssertionError(f"{shape}: {os.waitstatus_to_exitcode(status)}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def problems(folder: Path, shape: str, size: int = SIZE) -> tuple[str, list[str]]:
    """Return a line on what a shape costs, and what is wrong with that."""
    none, one, two = (cost(_new(folder, n), shape, size * n) for n in range(3))
    cpu = [max(each.cpu_s - none.cpu_s, 0.0) for each in (one, two)]
    memory = two.memory - none.memory
    line = f"{shape:24}{cpu[0]:8.2f} s{cpu[1]:8.2f} s{memory / 2**20:8.0f} MB"
    wrong = []
    if cpu[1] > _SEEN_S and cpu[1] > _GROWS * cpu[0]:
        wrong.append(f"twice the file takes {cpu[1] / max(cpu[0], 1e-9):.1f} times the CPU")
    if memory > TIMES * 2 * size + BESIDE:
        wrong.append(f"{2 * size >> 20} MB take {memory >> 20} MB of memory")
    return line, wrong


def _new(folder: Path, number: int) -> Path:
    made = folder / str(number)
    made.mkdir()
    return made


def main() -> int:
    bad = 0
    for shape in sys.argv[1:] or shapes():
        with tempfile.TemporaryDirectory(prefix="worst-") as folder:
            line, wrong = problems(Path(folder), shape)
        bad += bool(wrong)
        print(line, *wrong, sep="  ", flush=True)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
