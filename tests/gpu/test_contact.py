"""The first contact with a GPU, rehearsed on stand-ins and a CPU, and its recordings replayed."""

from __future__ import annotations

import gzip
import json
import platform
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.gpu import parts
from tests.gpu.__main__ import contact
from tests.gpu.figures import beside, is_named, look_line, noise, trace_line
from tests.gpu.rehearsal import environment
from tests.support import nvml
from tests.support.campaigns import gpudebug
from tests.support.gpu_bundles import stored_and_derived
from tests.support.places import DATA

from gpudebug.core.statistics.assumed import TABLE

CONTACTS = sorted((DATA / "gpu_bundles" / "contacts").glob("*.tar.gz"))
_ALL = parts.Machine(None, None, None, None, None, "0 a GPU, driver 550")


def rehearsed(folder: Path, *names: str) -> tuple[list[str], Path]:
    """The lines of parts on the stand-ins, and where their recordings were unpacked."""
    argv = [sys.executable, "-m", "tests.gpu", "--rehearse", "-o", str(folder / "out.tar.gz"), *names]
    env = environment(folder)
    done = subprocess.run(argv, cwd=parts.ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), unpacked(folder / "out.tar.gz", folder / "kept")


def unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder


def replayed(kept: Path) -> Iterator[str]:
    """What the recordings of a contact say again, without the GPU."""
    yield from (f"why: {look.name}: {look_line(look)}" for look in sorted((kept / "why").glob("*")))
    yield from (f"trace: {path.name[:5]}: {trace_line(path)}" for path in sorted((kept / "trace").glob("*")))
    if (kept / "baseline.json").exists():
        measured = noise(json.loads((kept / "baseline.json").read_text()))
        # What is assumed may have changed by what was measured.
        yield from (f"assumed: {line.partition(' measured')[0]}" for line in beside(measured))


def said_again(kept: Path, lines: Sequence[str]) -> list[str]:
    """The lines that recordings say again; each was said before, and `analyze` reads what others recorded."""
    again = [*replayed(kept)]
    assert [one for one in again if not any(line.startswith(one) for line in lines)] == []
    for recording in (*kept.glob("nvidia-smi-*"), *kept.glob("trace/*"), *kept.glob("why/*/samples.csv")):
        gpudebug(kept, "analyze", str(recording)).expect(0)
    for bundle in kept.glob(parts.DOCTOR_BUNDLE):
        stored, derived = stored_and_derived(bundle)
        assert stored == derived
    return again


SEEN = {
    "recordings": [rf"nvidia-smi {form}: analyze ok$" for form in parts.FORMS],
    "doctor": [r"1[89] of 19 checks ok$"],
    "tests": [r"[0-9/]+ tests collected"],
    "why": [r"loader: MATCH dl-no-workers "],
    "campaign": [r"utilisation of 4 runs: ", r"Verdict: VALIDATED: ", r"verify: ok$"],
    "trace": [r"eager: [0-9]+ operators, 0 kernels, 0 graphs, busy unknown %; analyze ok$"],
    "sampler": [r"a step takes "],
}
_SHORT = ("recordings", "tests", "why", "trace")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(_SHORT, marks=pytest.mark.slow, id="short"),
        pytest.param(tuple(parts.PARTS), marks=pytest.mark.heavy, id="whole"),
    ],
)
def test_a_rehearsal_runs_and_its_recordings_say_the_same_again(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    lines, kept = rehearsed(tmp_path, *names)
    table = "\n".join(lines)
    assert lines[0].endswith("NVIDIA Stand-in 100, driver 550.54.15 (a rehearsal: no evidence)")
    assert [line for line in lines if re.search(r"failed|status|left out|no (trace|verdict)", line)] == [], (
        table
    )
    for seen in (rf"^{name}: {line}" for name in names for line in SEEN[name]):
        assert re.search(seen, table, re.M), f"{seen}\n{table}"
    again = [line.partition(":")[0] for line in said_again(kept, lines)]
    assert again == ["why", "trace", *["assumed"] * (3 * ("campaign" in names))]
    assert ("assumed: sampler_core: " in table) is ("sampler" in names)
    texts = [path.read_text() for path in kept.rglob("*") if path.is_file() and path.suffix != ".gz"]
    with gzip.open(kept / "trace" / "eager.json.gz", "rt") as trace:
        texts.append(trace.read())
    told = (str(tmp_path), str(parts.ROOT), platform.node(), str(Path.home()))
    assert [name for name in told if any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)] == []


@pytest.mark.parametrize("path", CONTACTS or [None], ids=lambda path: path and path.name.partition(".")[0])
def test_what_a_contact_recorded_says_the_same_again(path: Path | None, tmp_path: Path) -> None:
    assert path is not None, "no contact in tests/data/gpu_bundles/contacts: nothing to replay"
    kept = unpacked(path, tmp_path / "kept")
    assert said_again(kept, (kept / "lines.txt").read_text().splitlines())


def test_recordings_made_up_say_what_is_in_them(tmp_path: Path) -> None:
    look = tmp_path / "why" / "sync"
    look.mkdir(parents=True)
    window = {"start_s": 10.0, "end_s": 40.0}
    run = {"utilisation": 40.0, "standard_error": 1.0, "steps_per_s": 4.0, "window": window}
    (look / "evidence.json").write_text(json.dumps(run))
    (look / "causes.json").write_text(json.dumps([{"id": "sync-item", "probability": 0.8}]))
    begin = {"kind": "begin", "t": 1000.0, "wall": 1e9, "t0": "1000.0", "steps": 0, "busy_s": 0.0}
    own = [{"kind": "step", "t": 1000 + n / 5, "steps": n, "busy_s": 0.07 * n} for n in range(1, 250)]
    (look / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (begin, *own)))
    # The second that begins 1e9 s after 1970, in UTC; 90 % before the window, 45 % in it.
    smi = [f"2001/09/09 01:46:{40 + n}.000, {90 if n < 10 else 45} %\n" for n in range(20)]
    (look / "nvidia-smi.csv").write_text("".join(smi))
    assert look_line(look) == (
        "MATCH sync-item 80 %; utilisation 40 %, by nvidia-smi 45, by events 35; 4 steps/s, its own 5"
    )
    assert noise([run, {**run, "utilisation": 43.0}]) == pytest.approx(
        {"noise_points": 2.1213, "noise_rate": 0.0, "within_points": 1.0}, abs=1e-3
    )
    events = [{"cat": "kernel", "ts": ts, "dur": 30} for ts in (0, 20, 70)]
    events += [{"cat": "cuda_runtime", "name": "cudaGraphLaunch"}, {"cat": "cpu_op", "name": "aten::add"}]
    with gzip.open(tmp_path / "t.json.gz", "wt") as file:
        json.dump({"traceEvents": events}, file)
    assert trace_line(tmp_path / "t.json.gz") == "1 operators, 3 kernels, 1 graphs, busy 80 %"


OLD = "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040)."
_TRAINS = ("recordings", "tests", "why", "campaign", "trace", "sampler")
LACKS: dict[str, tuple[str, list[str], dict[str, str]]] = {
    "no driver": ("", ["--rehearse"], dict.fromkeys(parts.PARTS, "there is no NVIDIA driver here")),
    "a driver that fails": (
        "count=1 init_error=18",
        ["--rehearse"],
        dict.fromkeys(parts.PARTS, "the NVIDIA driver does not answer"),
    ),
    "no PyTorch": (
        "count=1",
        ["--rehearse", "--python=/bin/false"],
        dict.fromkeys(_TRAINS, "no PyTorch in /bin"),
    ),
    "a driver too old for PyTorch": (
        "count=1",
        ["--python={python}"],
        dict.fromkeys(_TRAINS, "PyTorch 2.13.0 sees no GPU (its driver is too old)"),
    ),
    "no nvidia-smi": ("count=1", ["--rehearse"], {"recordings": "no nvidia-smi on the PATH"}),
    "MIG": ("count=1\ngpu 0 mig=2", ["--rehearse"], {"campaign": "is a part (MIG)"}),
    "in use": (
        "count=1\ngpu 0 procs={procs}",
        ["--rehearse"],
        dict.fromkeys(("why", "campaign", "sampler"), "the GPU is in use by process 1"),
    ),
}


@pytest.mark.parametrize("name", LACKS)
def test_what_is_lacking_is_one_line_of_each_part(name: str, tmp_path: Path) -> None:
    script, words, expected = LACKS[name]
    (procs := tmp_path / "procs").write_text("1\n")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho 2.13.0 False\necho '{OLD}' >&2\n")
    python.chmod(0o755)
    env = nvml.standin(tmp_path, script.format(procs=procs)) if script else nvml.no_driver(tmp_path)
    argv = [sys.executable, "-m", "tests.gpu", "-o", str(tmp_path / "o.tar.gz")]
    argv += [*(word.format(python=python) for word in words), *expected]
    env["PATH"] = str(tmp_path)
    done = subprocess.run(argv, cwd=parts.ROOT, env=env, capture_output=True, text=True, check=False)
    lines = dict(line.split(": left out: ") for line in done.stdout.splitlines() if ": left out: " in line)
    assert (done.returncode, [*lines]) == (0, [*expected]), done.stdout + done.stderr
    assert all(text in lines[part] for part, text in expected.items())
    assert len(done.stdout.splitlines()) == 1 + len(expected)


def test_a_part_that_fails_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(kit: parts.Kit) -> Iterator[str]:
        yield "began"
        raise KeyError("x")

    kit = parts.Kit(tmp_path, tmp_path, sys.executable)
    kit.measured["noise_points"] = 2.0
    for part, run in (("why", failing), ("trace", lambda kit: iter(["seen"]))):
        monkeypatch.setitem(parts.PARTS, part, parts.PARTS[part]._replace(run=run))
    lines = [*contact(kit, _ALL._replace(whole="GPU 0 is a part"), ["trace", "campaign", "why"], 60)]
    assert lines[:2] == ["why: began", "why: failed: KeyError: 'x'"] and "trace: seen" in lines
    assert "campaign: left out: GPU 0 is a part" in lines
    assert lines[-1].startswith("assumed: noise_points: 2 pp measured, 4.5 assumed")


@pytest.mark.parametrize(
    ("fault", "cause", "probability", "named"),
    [
        ("loader", "dl-no-workers", 0.4, True),
        ("loader", "sync-item", 0.9, False),
        ("none", "kernel-bound", 0.9, True),
        ("none", "dl-order", 0.29, True),
        ("none", "dl-order", 0.3, False),
    ],
)
def test_a_cause_is_the_planted_one(fault: str, cause: str, probability: float, named: bool) -> None:
    assert is_named(fault, [{"id": cause, "probability": probability}]) is named


def test_each_part_replaces_what_the_table_says_that_it_does() -> None:
    assert {row.by for row in TABLE.values()} - {""} <= set(parts.PARTS)
