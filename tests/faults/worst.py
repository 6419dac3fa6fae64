"""The worst that a file of its size can hold, for each kind of file that others write.

`python -m tests.faults.worst [SHAPE ...]` prints what each costs: CPU seconds and memory of one command on a
file, and on one of twice the size, without those on an empty one. What no command reads alone is read by its
reader in a process of its own.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tests.support import monitors, section_reports
from tests.support.campaigns import GPUDEBUG, environment, make_campaign
from tests.support.nsys import SCHEMA, shared_pages

from gpudebug.core.samples.row import HEADER

SIZE = 1 << 20
BESIDE = 64 << 20
"""Bytes that a reader may take beside eight times its file."""
TIMES = 8
_GROWS = 3.0
"""What twice the file may cost in CPU: more is no longer linear, by far."""
_SEEN_S = 0.5
"""Less than this is the machine's noise."""


BEYOND = {
    "samples: short rows": "a row of four bytes takes 400 in memory",
    "dmon: rows": "a row of 18 bytes takes 900 in memory",
}
"""Shapes that are known to take more memory than they may."""


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
Fill = Callable[[Path, int], None]

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
_TICK = "2025/07/27 01:48:27.{:03}, {}, {}, {}, {}"
_MONITOR: dict[str, Piece] = {
    "rows": lambda n: _TICK.format(n % 1000, 0, 50, 300, n),
    "devices": lambda n: _TICK.format(0, n, 50, 300, n),
    "backwards": lambda n: _TICK.format(999 - n % 1000, 0, 50, 300, n),
    "headers": lambda n: ", ".join(monitors.QUERY) if n % 2 else _TICK.format(0, 0, 50, 300, n),
    "columns change": lambda n: ", ".join(monitors.QUERY[: 3 + n % 3]),
}
_DMON: dict[str, Piece] = {
    "rows": lambda n: f"{n % 8}  300 60 - 50 10",
    "devices": lambda n: f"{n}  300 60 - 50 10",
}
_PROGRESS: dict[str, Piece] = {
    "hypotheses": lambda n: (
        f"### Hypothesis {n + 1}: T\n- **Status**: UNTESTED\n- **Intervention**: --set --a={n}\n"
    ),
    "bullets": lambda n: f"- **Own {n}**: text",
    "headings": lambda n: f"## Mine {n}",
    "fences": lambda n: "```" if n % 3 else "text",
    "one line": lambda n: "x" * 100_000,
    "short headings": lambda n: "# a",
    "baselines": lambda n: "### Baseline: workload",
}
_SECTIONS: dict[str, Piece] = {
    "sections": lambda n: json.dumps(section_reports.section(f"s{n}")),
    "empty lists": lambda n: "[]",
    "small objects": lambda n: '{"a":0}',
    "long names": lambda n: json.dumps(section_reports.section(f"s{n}" * 10_000)),
}
_TREE: dict[str, Piece] = {
    "wide": lambda n: json.dumps(section_reports.node("a", 1, 0.1)),
    "deep": lambda n: json.dumps(_chain(90)),
}
_PROBE: dict[str, Piece] = {
    "beats": lambda n: f'{{"kind":"beat","pid":1,"t":{n},"steps":{n},"counters":{{}}}}',
    "counters": lambda n: json.dumps(
        {"kind": "beat", "pid": 1, "t": n, "steps": n, "counters": {f"c{n}_{i}": 1 for i in range(500)}}
    ),
    "buckets": lambda n: json.dumps(
        {"kind": "beat", "pid": 1, "t": n, "steps": n, "hist": {str(i): 1 for i in range(1000)}}
    ),
    "processes": lambda n: json.dumps({"kind": "start", "pid": n, "t": 1, "t0": 0, "version": 1}),
    "facts": lambda n: json.dumps(
        {"kind": "facts", "pid": 1, "facts": {f"f{i}": [i] * 9 for i in range(99)}}
    ),
    "stacks": lambda n: json.dumps(
        {
            "kind": "stacks",
            "pid": 1,
            "t": n + 1,
            "t0": 0,
            "of": "training",
            "since": n,
            "s": 1.0,
            "cpu": 0.5,
            "n": 40,
            "frames": [f"a{n}_{i}.py:f" for i in range(200)],
            "stacks": [["data", [i, i // 2], 7, 0.5, 0.4, 20] for i in range(200)],
        }
    ),
}
_JSONL: dict[str, Piece] = {
    "rows": lambda n: f'{{"a":{n}}}',
    "keys": lambda n: json.dumps({f"k{n}_{i}": i for i in range(500)}),
    "deep": lambda n: json.dumps(_nested(200)),
}
_CSV: dict[str, Piece] = {
    "rows": lambda n: "1",
    "columns": lambda n: ",".join(f"k{n}_{i}" for i in range(5_000)),
    "quote": lambda n: '"1',
}


def _chain(depth: int) -> dict[str, object]:
    found = section_reports.node("a", 1, 0.1)
    for _ in range(depth):
        found = section_reports.node("a", 1, 0.1, found)
    return found


def _records(record: Callable[[int], bytes]) -> Fill:
    def fill(path: Path, size: int) -> None:
        parts, length = [], 0
        while length < size:
            parts.append(record(len(parts)))
            length += len(parts[-1]) + 7
        path.write_bytes(monitors.wandb(parts))

    return fill


_WANDB: dict[str, Callable[[int], bytes]] = {
    "history": lambda n: monitors.history(n, loss=n / 7),
    "keys": lambda n: monitors.history(n, **{f"k{n}_{i}": i for i in range(100)}),
    "stats": lambda n: monitors.stats(1.7e9 + n, gpu__0__gpu=50),
    "devices": lambda n: monitors.stats(1.7e9 + n, **{f"gpu__{i}__gpu": 50 for i in range(1000)}),
    "small fields": lambda n: b"\x10\x01" * 10_000,
    "lists": lambda n: monitors.history(n, a=[[]] * 10_000),
}


def shapes() -> dict[str, tuple[str, Fill]]:
    """Return what writes each shape: the name of the file, and what fills it up to a size."""
    found: dict[str, tuple[str, Fill]] = {}
    start = '{"kind":"start","pid":1,"t":1,"t0":0,"version":1}\n'
    a_report = json.dumps(section_reports.report())
    for kind, name, head, between, end, pieces in (
        ("trace", "t.json", '{"traceEvents": [', ",\n", "]}", _TRACE),
        ("log", "train.log", "", "\n", "\n", _LOG),
        ("samples", "s.csv", HEADER, "\n", "\n", _SAMPLES),
        ("samples", "s.csv", "elapsed,gpu_util\n", "\n", "\n", {"short rows": lambda n: "1,2"}),
        ("nvidia-smi", "n.csv", ", ".join(monitors.QUERY) + "\n", "\n", "\n", _MONITOR),
        ("dmon", "d.txt", "# gpu pwr gtemp mtemp sm mem\n# Idx W C C % %\n", "\n", "\n", _DMON),
        ("progress", "progress/test.md", "## Hypotheses\n\n", "\n", "\n", _PROGRESS),
        ("sections", "r.json", a_report[: a_report.index('"sections": [') + 13], ",\n", "]}", _SECTIONS),
        ("section tree", "r.json", a_report[: a_report.index('"tree": [') + 9], ",\n", "]}", _TREE),
        ("probe", "probe.jsonl", start, "\n", "\n", _PROBE),
        ("metrics.jsonl", "metrics.jsonl", "", "\n", "\n", _JSONL),
        ("metrics.csv", "metrics.csv", "step\n", "\n", "\n", _CSV),
    ):
        for shape, piece in pieces.items():
            found[f"{kind}: {shape}"] = (name, _filled(head, between, end, piece))
    for shape, record in _WANDB.items():
        found[f"wandb: {shape}"] = ("run-1.wandb", _records(record))
    for shape, process in (("rows", lambda n: 7), ("processes", lambda n: n)):
        found[f"database: {shape}"] = ("d.sqlite", partial(_database, process=process))
    found["database: shared pages"] = ("d.sqlite", lambda path, size: shared_pages(path, max(size, 10_000)))
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


def _database(path: Path, size: int, process: Callable[[int], int]) -> None:
    with sqlite3.connect(path) as c:
        for table in ("StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"):
            c.execute(f"CREATE TABLE {table} ({SCHEMA[table]})")
        count = size // 100
        c.executemany("INSERT INTO StringIds VALUES (?, ?)", [(n, f"k{n}") for n in range(count)])
        times = [(n * 10, n * 10 + 5, n % 16, n, n, process(n) << 24, n, n) for n in range(count)]
        c.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?)", times)
    c.close()


def _read_probe(path: Path) -> object:
    from gpudebug.core.inside import probe, stacks
    from gpudebug.core.inside.attached.record import read_attached

    text = path.read_text()
    return probe.read_probe(text), stacks.read_stacks(text), read_attached(text)


def _read_jsonl(path: Path) -> object:
    from gpudebug.core.trainlog.written_tables import read_jsonl

    return read_jsonl(path.read_text())


def _read_csv(path: Path) -> object:
    from gpudebug.core.trainlog.written_tables import read_csv

    return read_csv(path.read_text())


READERS: dict[str, Callable[[Path], object]] = {
    "probe": _read_probe,
    "metrics.jsonl": _read_jsonl,
    "metrics.csv": _read_csv,
}


def cost(folder: Path, shape: str, size: int) -> Cost:
    """Return what one command on a file of this shape and size takes; `size` 0 is the smallest file."""
    name, fill = shapes()[shape]
    kind = shape.partition(":")[0]
    argv = [*GPUDEBUG, "analyze", str(folder / name)]
    if kind in READERS:
        argv = [sys.executable, "-m", "tests.faults.worst", "--read", kind, str(folder / name)]
    if kind == "progress":
        folder = make_campaign(folder / "repo").folder
        (folder / "progress").mkdir(exist_ok=True)
        argv = [*GPUDEBUG, "-C", str(folder), "status"]
    fill(folder / name, max(size, 1))
    with open(os.devnull, "wb") as nowhere:
        files = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), fd) for fd in (1, 2)]
        pid = os.posix_spawn(argv[0], argv, environment(), file_actions=files)
        _, status, used = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in ((0,) if kind in READERS else (0, 1)):
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
    if sys.argv[1:2] == ["--read"]:
        READERS[sys.argv[2]](Path(sys.argv[3]))
        return 0
    bad = 0
    for shape in shapes():
        if sys.argv[1:] and not any(shape.startswith(wanted) for wanted in sys.argv[1:]):
            continue
        with tempfile.TemporaryDirectory(prefix="worst-") as folder:
            line, wrong = problems(Path(folder), shape)
        bad += bool(wrong)
        print(line, *wrong, sep="  ", flush=True)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
