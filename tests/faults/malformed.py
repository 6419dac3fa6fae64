"""Malformed files: whatever stands in one, a command answers with a documented exit status, in time.

Each input is a sound file of a campaign, or of the kinds that `analyze` takes, made unsound by a few draws
from a table of mutations. The command runs in this process, as a user's would but for the start.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.rig import DOCUMENTED
from tests.faults.story import foreign
from tests.support.campaigns import environment
from tests.support.probe_lines import training
from tests.support.section_reports import report, section

SLOWEST_S = 20.0
Mutation = Callable[[random.Random, bytes], bytes]
TOKENS = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\n\n",
    b"\x1b]0;x\x07",
    b"\xe2\x80\xae",
    b"\xed\xa0\x80",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 400,
    b"-1",
    b"0",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"[" * 2000,
    b'{"a":' * 500,
    b"&a [*a, *a]",
    b"*b",
    b"!!python/object:os.system x",
    b"[redacted]",
    b"```",
    b"### Hypothesis 1: again",
    b"- **Status**: VALIDATED",
    b"## Baselines",
    b"<<<<<<< HEAD",
    b"../../etc/passwd",
    b"%s%n{0}",
    b"=1+1",
    b"\\u0000",
    b"'",
    b'"',
    b"#",
    b": ",
    b",,,,",
    b"x" * 70000,
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x" * 5000,
    "\x1b[2J",
    "\ud800",
    [],
    [[]],
    {},
    {"": None},
    [None] * 50,
    "../..",
    "VALIDATED",
    "1e999",
)


def _cut(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _without(draw: random.Random, data: bytes) -> bytes:
    a, b = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    return data[:a] + data[b:]


def _twice(draw: random.Random, data: bytes) -> bytes:
    a, b = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    return data[:b] + data[a:]


def _with(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(TOKENS) + data[at:]


def _over(draw: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    at = draw.randrange(len(data))
    return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]


def _lines(draw: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"".join(lines)


def _value(draw: random.Random, data: bytes) -> bytes:
    """One value of a JSON document, or the name of one, is another."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _with(draw, data)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in (
            list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        ):
            places.append((node, key))
            walk(node[key])

    walk(document)
    if not places:
        return json.dumps(draw.choice(VALUES)).encode("utf-8", "surrogatepass")
    node, key = draw.choice(places)
    kind = draw.randrange(4)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[draw.choice(("format", "x", "", "files", "status"))] = node.pop(key)
    else:
        node[key] = draw.choice(VALUES)
    return json.dumps(document).encode("utf-8", "surrogatepass")


ANY: tuple[Mutation, ...] = (_cut, _without, _twice, _with, _over, _lines)
JSON: tuple[Mutation, ...] = (*ANY, _value, _value, _value, _value)
READING = (("status",), ("verify",), ("show", "1"), ("status", "--json"), ("report", "--markdown"))


@dataclass(frozen=True)
class Kind:
    """A kind of file: where it lies in the campaign, how it is mutated, what then reads it."""

    name: str
    file: str
    commands: tuple[tuple[str, ...], ...]
    mutations: tuple[Mutation, ...] = ANY


KINDS = (
    Kind(
        "progress file",
        "progress/test.md",
        (*READING, ("diagnose",), ("propose", "--title", "T", "--set", "--lr=7")),
    ),
    Kind("configuration", "gpudebug.yaml", (("status",), ("verify",), ("doctor",))),
    *(
        Kind(name, f"runs/0003-h1/{name}", READING, JSON)
        for name in ("run.json", "evidence.json", "manifest.json")
    ),
    Kind("verdict", "runs/0005-baseline-workload/verdict.json", READING, JSON),
    Kind("baseline's record", "runs/0001-baseline-workload/run.json", (*READING, ("next",)), JSON),
    Kind("baseline's evidence", "runs/0001-baseline-workload/evidence.json", (*READING, ("diagnose",)), JSON),
    Kind(
        "samples",
        "runs/0003-h1/samples.csv",
        (("analyze", "runs/0003-h1/samples.csv"), ("verify",), ("show", "1")),
    ),
    Kind("log", "runs/0003-h1/train.log", (("analyze", "runs/0003-h1/train.log"), ("verify",))),
    Kind("probe record", "runs/0003-h1/probe.jsonl", (("verify",), ("diagnose",))),
    Kind("trace", "trace.json", (("analyze", "trace.json"),), JSON),
    Kind("section report", "sections.json", (("analyze", "sections.json"),), JSON),
    Kind(
        "patch",
        "hypotheses/patches/p.patch",
        (("propose", "--title", "P", "--patch", "hypotheses/patches/p.patch"),),
    ),
    Kind("own cause", "hypotheses/own.yaml", (("diagnose",), ("catalogue",), ("catalogue", "own"))),
)

_TRACE = {
    "traceEvents": [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": 1,
            "tid": 1,
            "ts": 10,
            "dur": 50,
            "args": {"External id": 1},
        },
        {
            "ph": "X",
            "cat": "kernel",
            "name": "gemm",
            "pid": 0,
            "tid": 7,
            "ts": 70,
            "dur": 40,
            "args": {"device": 0, "stream": 7},
        },
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": "ProfilerStep#1",
            "pid": 1,
            "tid": 1,
            "ts": 0,
            "dur": 200,
        },
    ]
}
_OWN = Path(__file__).resolve().parents[2] / "hypotheses" / "catalogue"


def prepare(stage: Path, folder: Path) -> None:
    """Make a campaign in `folder` that holds a file of each kind, from the story's stage of one verdict."""
    shutil.copytree(stage, folder, symlinks=True)
    (folder / "trace.json").write_text(json.dumps(_TRACE))
    (folder / "sections.json").write_text(json.dumps(report(section("load"), section("step", mean=0.03))))
    patches = folder / "hypotheses" / "patches"
    patches.mkdir(parents=True, exist_ok=True)
    first, second = (folder / "train.py").read_text().splitlines()[:2]
    (patches / "p.patch").write_text(
        f"--- a/train.py\n+++ b/train.py\n@@ -1,2 +1,3 @@\n {first}\n+import sys\n {second}\n"
    )
    own = next(_OWN.rglob("dl-storage.yaml")).read_text()
    (folder / "hypotheses" / "own.yaml").write_text(own.replace("id: dl-storage", "id: own"))
    for run in (folder / "runs").glob("0*"):
        (run / "probe.jsonl").write_text(training(steps=30, per_step={"fetches": 1}))
        seal(run)


def seal(run: Path) -> None:
    """Write a run's manifest anew, as whoever forges a run would."""
    manifest = run / "manifest.json"
    found = json.loads(manifest.read_text())
    names = [str(p.relative_to(run)) for p in run.rglob("*") if p.is_file() and p != manifest]
    found["files"] = {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in sorted(names)}
    manifest.write_text(json.dumps(found))


@dataclass(frozen=True)
class Found:
    """A violation, with the input that shows it."""

    kind: str
    words: tuple[str, ...]
    number: int
    problem: str
    data: bytes


def run(stage: Path, folder: Path, points: int, seed: int, minutes: float = 60.0) -> tuple[int, list[Found]]:
    """Run that many inputs; how many were run, and each violation."""
    repository = folder / "repo"
    prepare(stage, repository)
    draw, found, until = random.Random(seed), list[Found](), time.monotonic() + 60 * minutes
    theirs = foreign(repository)
    sound = {kind.file: (repository / kind.file).read_bytes() for kind in KINDS}
    keep = {name: (repository / name).read_bytes() for name in ("progress/test.md", "gpudebug.yaml")}
    for number in range(points):
        if time.monotonic() > until:
            return number, found
        kind = draw.choice(KINDS)
        data = sound[kind.file]
        for _ in range(draw.choice((1, 1, 2, 4))):
            data = draw.choice(kind.mutations)(draw, data)
        path = repository / kind.file
        path.write_bytes(data)
        manifest = path.parent / "manifest.json"
        sealed = manifest.read_bytes() if path.parent.parent.name == "runs" else None
        if sealed and path != manifest and draw.random() < 0.7:
            seal(path.parent)
        words = draw.choice(kind.commands)
        began = time.monotonic()
        status, text = call(repository, words)
        problem = None
        if status not in DOCUMENTED or "Traceback" in text:
            problem = f"exit status {status}: {text[-2000:]}"
        elif time.monotonic() - began > SLOWEST_S:
            problem = f"took {time.monotonic() - began:.0f} s"
        elif words[0] not in ("propose", "next") and path.read_bytes() != data:
            problem = "the file was changed by a command that only reads"
        path.write_bytes(sound[kind.file])
        if sealed and path != manifest:
            manifest.write_bytes(sealed)
        for name, content in keep.items():
            (repository / name).write_bytes(content)
        if problem is None and (number % 50 == 0 or number == points - 1) and foreign(repository) != theirs:
            problem = "the user's files changed"
        if problem:
            found.append(Found(kind.name, words, number, problem, data))
    return points, found


def call(repository: Path, words: tuple[str, ...]) -> tuple[int, str]:
    """Exit status and output of a command in this process; of a defect the traceback as well."""
    from gpudebug.cli import run as command

    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), _argv(words):
        status = command(["--debug", "-C", str(repository), *words])
    return status, output.buffer.getvalue().decode(errors="replace")  # type: ignore[attr-defined]


@contextlib.contextmanager
def _argv(words: tuple[str, ...]) -> Iterator[None]:
    before, sys.argv = sys.argv, ["gpudebug", *words]
    try:
        yield
    finally:
        sys.argv = before


def main(points: int, seed: int, minutes: float, log: Path) -> int:
    """Run a series and append its sum, and each violation, to `log`."""
    import os

    from tests.faults import story

    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        stages = story.tell(Path(folder))
        made = {**environment(), "TMPDIR": folder}
        os.environ.clear()
        os.environ.update(made)
        tempfile.tempdir = folder
        count, found = run(stages["tested"], Path(folder) / "malformed", points, seed, minutes)
    with log.open("a") as f:
        for each in found:
            f.write(
                json.dumps({"seed": seed, **vars(each), "data": each.data.decode("latin-1")[:4000]}) + "\n"
            )
        f.write(json.dumps({"seed": seed, "inputs": count, "violations": len(found)}) + "\n")
    for each in found[:20]:
        print(f"{each.kind}, input {each.number}, {' '.join(each.words)}: {each.problem}")
    print(f"seed {seed}: {count} inputs, {len(found)} violations")
    return 1 if found else 0
