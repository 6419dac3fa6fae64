"""What a training process writes of itself, on every Python: the recorder alone, driven by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import environment
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.probed import PROBE, Told, lines_of

# A recorder as `import torch` makes it, of a PyTorch that has nothing.
SETUP = f"""
import sys, os, types
sys.path.append({str(PROBE)!r})
from gpudebug_probe.recorder import Recorder
torch = types.SimpleNamespace(__version__="9.1")
recorder = Recorder(os.environ["GPUDEBUG_RECORDS_DIR"], torch)
def train(steps=3):
    for _ in range(steps):
        recorder.begin()
        recorder.iteration()
"""
LARGEST, RESERVE = 4 << 20, 256 << 10


def record(folder: Path, code: str, *, python: str = sys.executable, **env: str) -> Told:
    run = folder / "run"
    run.mkdir(exist_ok=True)
    (folder / "train.py").write_text(SETUP + code)
    done = subprocess.run(
        [python, "train.py"],
        cwd=folder,
        env=environment({"GPUDEBUG_RECORDS_DIR": str(run), "GPUDEBUG_T0": "12.5", **env}),
        capture_output=True,
        text=True,
        check=False,
    )
    return Told(done.returncode, done.stdout, done.stderr, lines_of(run))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_process_that_trains_tells_from_its_first_step_to_its_end(tmp_path: Path, version: str) -> None:
    code = """
print(os.getpid(), os.getppid(), recorder.on)
recorder.add("early")
recorder.facts["compile"] = True
recorder.before_beat(lambda: recorder.counters.update(cpu_s=1.25))
recorder.on_step(lambda count: recorder.counters.update(seen=count))
recorder.begin(); print(recorder.on)
recorder.sites["a.py", 3, "item", "cpu"] = [2, 0.75]
train(3)
recorder.optimizers[0] = 3
"""
    told = record(tmp_path, code, python=interpreter(version), RANK="1", LOCAL_RANK="0", WORLD_SIZE="2")
    pid, parent, before = told.out.split()[:3]
    assert (told.status, told.err, before, told.out.split()[3]) == (0, "", "False", "True")
    assert told.kinds == ["start", "beat", "facts", "sites", "end", "facts", "sites"]
    start, beat, facts, sites, end, *_ = told.lines
    assert {line["pid"] for line in told.lines} == {int(pid)}
    assert len({line["host"] for line in told.lines}) == 1
    assert [line["t"] for line in told.lines] == sorted(line["t"] for line in told.lines)
    where = ("node", "boot", "cores", "affinity", "visible", "omp", "slurm_cpus")
    assert {
        name: value for name, value in start.items() if name not in ("kind", "pid", "host", "t", *where)
    } == {
        "version": 1,
        "ppid": int(parent),
        "t0": 12.5,
        "rank": 1,
        "local_rank": 0,
        "world_size": 2,
        "argv0": "train.py",
        "python": end_of(version, start["python"]),
        "torch": "9.1",
        "met": None,
    }
    assert start["node"]
    assert start["cores"] <= (os.cpu_count() or 0)
    assert (beat["steps"], beat["hist"], beat["counters"]) == (1, {}, {"early": 1, "cpu_s": 1.25, "seen": 1})
    assert facts["facts"] == {"compile": True}
    assert sites["sites"] == [["a.py", 3, "item", "cpu", 2, 0.75]]
    assert (end["steps"], end["opt"], end["counters"]["seen"]) == (3, {"0": 3}, 3)
    assert sum(end["hist"].values()) == 2
    assert (tmp_path / "run" / "probe.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"])
def test_launchers_have_names_of_their_own_for_a_local_rank(tmp_path: Path, name: str) -> None:
    start = record(tmp_path, "train(1)", **{name: "3", "SLURM_PROCID": "5"}).lines[0]
    # Tasks of Slurm are no ranks of one training until they have found each other.
    assert (start["rank"], start["local_rank"], start["world_size"]) == (None, 3, None)


def end_of(version: str, full: str) -> str:
    """`full`, if it is one of `version`."""
    return full if full.startswith(f"{version}.") else version


@pytest.mark.parametrize("version", VERSIONS)
def test_a_step_falls_into_its_bucket(tmp_path: Path, version: str) -> None:
    """floor(32 * log2(seconds / 1e-6)): a sleep of 50 ms is in one of the buckets around 499."""
    code = "import time\nfor _ in range(3): train(1); time.sleep(0.05)"
    hist = record(tmp_path, code, python=interpreter(version)).end["hist"]
    assert sum(hist.values()) == 2
    assert all(499 <= int(bucket) <= 499 + 3 * 32 for bucket in hist)


def test_a_process_that_does_not_train_tells_nothing(tmp_path: Path) -> None:
    told = record(tmp_path, "recorder.facts['a'] = 1; recorder.add('n')")
    assert (told.status, told.lines, os.listdir(tmp_path / "run")) == (0, [], [])


TOLD = ["start", "beat", "facts", "end", "facts"]
# Code, exit status, the kinds that are told.
ENDS: dict[str, tuple[str, int, list[str]]] = {
    "the end of the program": ("", 0, TOLD),
    "sys.exit": ("sys.exit(3)", 3, TOLD),
    "an exception": ("raise ValueError", 1, TOLD),
    "Ctrl-C": (
        "import time; os.kill(os.getpid(), 2); time.sleep(5)",
        -signal.SIGINT,
        TOLD,
    ),
    "SIGKILL": ("os.kill(os.getpid(), 9)", -signal.SIGKILL, ["start", "beat", "facts"]),
    "SIGTERM": ("os.kill(os.getpid(), 15)", -signal.SIGTERM, ["start", "beat", "facts"]),
    "os._exit": ("os._exit(4)", 4, ["start", "beat", "facts"]),
    "a fork that does not train": ("os.fork() and os.wait()", 0, TOLD),
    "standard streams closed": ("[os.close(n) for n in range(3)]", 0, TOLD),
    "every descriptor closed": ("os.closerange(0, 64)", 0, TOLD),
    "another folder": ("os.chdir('/')", 0, TOLD),
}


@pytest.mark.parametrize(("code", "status", "kinds"), ENDS.values(), ids=ENDS)
def test_each_end_of_a_training(tmp_path: Path, code: str, status: int, kinds: list[str]) -> None:
    told = record(tmp_path, "recorder.facts['a'] = 1\ntrain()\n" + code)
    assert (told.status, told.kinds) == (status, kinds)


FORKED = {
    # How a child comes to be, and that it ends in the way that is usual there.
    "os.fork": "pid = os.fork()\nif not pid:\n    child(); sys.exit()\nos.waitpid(pid, 0)\n",
    "multiprocessing, forked": (
        "import multiprocessing as m\np = m.get_context('fork').Process(target=child); p.start(); p.join()\n"
    ),
}


@pytest.mark.parametrize("version", ["3.8", "3.13"])
@pytest.mark.parametrize("fork", FORKED.values(), ids=FORKED)
def test_a_forked_child_that_trains_tells_of_itself_alone(tmp_path: Path, fork: str, version: str) -> None:
    code = f"""
def child():
    recorder.facts["of"] = "child"
    train(2)
recorder.on_begin(lambda: print("begins", flush=True))
recorder.facts["of"] = "parent"
recorder.add("n", 7)
train(5)
recorder.sites["a.py", 1, "item", "cpu"] = [1, 1.0]
{fork}
"""
    told = record(tmp_path, code, python=interpreter(version))
    assert (told.status, told.out, told.err) == (0, "begins\nbegins\n", "")
    parent, child = told.of("start")
    assert child["ppid"] == parent["pid"] != child["pid"]
    by_pid = {line["pid"]: line for line in told.of("end")}
    assert by_pid[parent["pid"]]["steps"] == 5
    assert (by_pid[child["pid"]]["steps"], by_pid[child["pid"]]["counters"]) == (2, {})
    assert [line["pid"] for line in told.of("sites")] == [parent["pid"]]
    facts = {line["pid"]: line["facts"]["of"] for line in told.of("facts")}
    assert facts == {parent["pid"]: "parent", child["pid"]: "child"}


def test_a_child_of_the_one_that_trains_is_off_until_it_trains(tmp_path: Path) -> None:
    told = record(
        tmp_path, "train()\nif not os.fork(): print(recorder.on, recorder.counters); sys.exit()\nos.wait()"
    )
    assert told.out == "False {}\n"
    assert told.kinds.count("start") == told.kinds.count("end") == 1


def test_a_loaders_worker_never_begins(tmp_path: Path) -> None:
    code = """
worker = types.ModuleType("torch.utils.data._utils.worker")
worker._worker_info = object()
sys.modules[worker.__name__] = worker
train()
print(recorder.on)
"""
    told = record(tmp_path, code)
    assert (told.out, told.lines) == ("False\n", [])


# time.monotonic is replaced, so that days pass in a second: what is tested is arithmetic.
LONG = """
import gpudebug_probe.recorder as module
class Clock:
    now = 1000.0
    @classmethod
    def monotonic(cls): return cls.now
    time = monotonic
module.time = Clock
recorder.counters.update({f"counter_{n}_s": 123456.789012 for n in range(20)})
recorder.on_step(lambda count: recorder.facts.update(count=count))
def days(count, step):
    for _ in range(int(count * 86400 / step)):
        recorder.begin()
        Clock.now += step
        recorder.iteration()
"""


def test_beats_come_every_half_second_and_of_other_ranks_every_two(tmp_path: Path) -> None:
    first, other = tmp_path / "first", tmp_path / "other"
    for folder in (first, other):
        folder.mkdir()
    code = LONG + "days(30 / 86400, 0.125)"
    assert [beat["steps"] for beat in record(first, code, RANK="0").of("beat")] == list(range(1, 241, 4))
    assert [beat["steps"] for beat in record(other, code, RANK="3").of("beat")] == list(range(1, 241, 16))
    # A step that takes longer than that has a beat of its own.
    slow = record(first, LONG + "days(30 / 86400, 3)").of("beat")[-10:]
    assert [beat["steps"] for beat in slow] == list(range(1, 11))


@pytest.mark.parametrize(("seconds", "told_at"), [(0.4, 1), (2, 9), (9, 25), (15, 81)])
def test_what_is_killed_has_told_its_facts_not_long_before(
    tmp_path: Path, seconds: float, told_at: int
) -> None:
    told = record(tmp_path, LONG + f"days({seconds} / 86400, 0.125)\nos._exit(4)")
    assert told.facts == {"count": told_at}


def test_the_file_of_a_long_run_stays_below_its_limit_and_is_told_all_along(tmp_path: Path) -> None:
    told = record(tmp_path, LONG + "days(3, 0.5)")
    size = (tmp_path / "run" / "probe.jsonl").stat().st_size
    assert size <= LARGEST
    counts = [line["steps"] for line in told.of("beat")]
    # The first minutes are told at full resolution, and no gap is longer than a twentieth of what is past.
    assert counts[:300] == list(range(1, 301))
    gaps = [(later - earlier) / later for earlier, later in pairwise(counts[300:])]
    assert max(gaps) < 0.05
    assert told.end["steps"] == 3 * 86400 * 2
    assert told.facts["count"] == told.end["steps"]
    assert sum(sum(line["hist"].values()) for line in [*told.of("beat"), told.end]) == told.end["steps"] - 1


def test_many_processes_share_the_limit_and_each_tells_its_end(tmp_path: Path) -> None:
    code = LONG + "[os.fork() for _ in range(3)]\ndays(0.5, 0.5)\n"
    code += "while True:\n    try: os.wait()\n    except ChildProcessError: break\n"
    told = record(tmp_path, code)
    assert (told.status, told.err) == (0, "")
    assert (tmp_path / "run" / "probe.jsonl").stat().st_size <= LARGEST
    assert [line["steps"] for line in told.of("end")] == [86400] * 8


def test_a_full_record_takes_no_more_beats_but_the_end(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "probe.jsonl"
    path.write_text("\n" * (LARGEST - RESERVE))
    (tmp_path / "train.py").write_text(SETUP + "recorder.facts['a'] = 1\ntrain()")
    env = environment({"GPUDEBUG_RECORDS_DIR": str(tmp_path / "run")})
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=env, check=True)
    assert [json.loads(line)["kind"] for line in path.read_text().split()] == ["start", "end", "facts"]


def test_of_very_many_sites_twenty_are_written(tmp_path: Path) -> None:
    code = """
recorder.begin()
for n in range(1000):
    recorder.sites["a.py", n, "item", "cpu"] = [1, 1.0 if n == 4 else 0.001]
recorder.sites["(other)", 0, "(other)", ""] = [4000, 4.0]
"""
    told = record(tmp_path, code)
    (sites,) = [line["sites"] for line in told.of("sites")]
    assert len(sites) == 20
    assert sites[0][:2] == ["(other)", 0]
    assert sites[1] == ["a.py", 4, "item", "cpu", 1, 1.0]


# What makes an error of ours, the code that does, and what `off` says.
FAULTS = {
    "at the end of an iteration": ("recorder.on_step(lambda count: 1 / 0)", "ZeroDivisionError"),
    "before a beat": ("recorder.before_beat(lambda: {}['x'])", "KeyError: 'x'"),
    "as it begins": ("recorder.on_begin(lambda: [][1])", "IndexError"),
    "a fact that is no JSON": ("recorder.facts[(1, 2)] = 3", "TypeError"),
    "a PyTorch that raises": (
        "torch.distributed = types.SimpleNamespace(is_available=lambda: 1 / 0)",
        "Zero",
    ),
}


@pytest.mark.parametrize(("code", "why"), FAULTS.values(), ids=FAULTS)
def test_an_error_of_ours_switches_off_and_is_noted(tmp_path: Path, code: str, why: str) -> None:
    told = record(tmp_path, f"{code}\nrecorder.on_end(lambda: print('ended'))\ntrain()\nprint(recorder.on)")
    assert (told.status, told.err, told.out) == (0, "", "ended\nFalse\n")
    (off,) = told.of("off")
    assert off["why"].startswith(why)
    assert ".py:" in off["why"]
    assert told.kinds[-1] == "off"


def test_what_fails_at_exit_is_kept_from_the_training(tmp_path: Path) -> None:
    told = record(
        tmp_path, "recorder.on_end(lambda: 1 / 0)\nrecorder.on_end(lambda: print('second'))\ntrain()"
    )
    assert (told.status, told.out, told.err, told.kinds) == (0, "second\n", "", TOLD)


def test_what_fails_before_the_last_line_leaves_it_as_it_was(tmp_path: Path) -> None:
    told = record(tmp_path, "recorder.before_beat(lambda: recorder.steps == 3 and 1 / 0)\ntrain()")
    assert (told.status, told.err, told.end["steps"]) == (0, "", 3)


def test_off_is_for_good(tmp_path: Path) -> None:
    told = record(
        tmp_path, "train()\nrecorder.off('first')\nrecorder.off('second')\ntrain()\nprint(recorder.on)"
    )
    assert (told.out, [line["why"] for line in told.of("off")]) == ("False\n", ["first"])
    assert told.of("end") == []


def _no_folder(run: Path) -> None:
    run.rmdir()


def _folder_in_its_place(run: Path) -> None:
    (run / "probe.jsonl").mkdir()


def _fifo_in_its_place(run: Path) -> None:
    os.mkfifo(run / "probe.jsonl")


def _link_in_its_place(run: Path) -> None:
    (run / "probe.jsonl").symlink_to(run.parent / "elsewhere.txt")


def _device_that_is_full(run: Path) -> None:
    run.rmdir()
    run.mkdir()
    (run / "probe.jsonl").symlink_to("/dev/full")


SPOILS: list[Any] = [
    _no_folder,
    _folder_in_its_place,
    _fifo_in_its_place,
    _link_in_its_place,
    _device_that_is_full,
]


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_record_that_cannot_be_written_is_no_trouble(tmp_path: Path, spoil: Any) -> None:
    run = tmp_path / "run"
    run.mkdir()
    spoil(run)
    (tmp_path / "train.py").write_text(SETUP + "train()\nprint(recorder.on)")
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env=environment({"GPUDEBUG_RECORDS_DIR": str(run)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    assert not (tmp_path / "elsewhere.txt").exists()


def test_a_disk_that_fills_up_switches_it_off(tmp_path: Path) -> None:
    """A limit on the size of files stands for it: a write beyond comes back short, the next one fails."""
    code = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))
train()
recorder.facts["long"] = "x" * 1000
recorder._next_beat = 0
train(2)
print(recorder.on)
"""
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "train.py").write_text(SETUP + code)
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env=environment({"GPUDEBUG_RECORDS_DIR": str(run)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    assert json.loads((run / "probe.jsonl").read_text().splitlines()[0])["kind"] == "start"


def test_many_processes_write_whole_lines(tmp_path: Path) -> None:
    code = "[os.fork() for _ in range(4)]\nfor _ in range(50): recorder._next_beat = 0; train(1)\n"
    code += "while True:\n    try: os.wait()\n    except ChildProcessError: break\n"
    told = record(tmp_path, code)
    assert len({line["pid"] for line in told.of("end")}) == 16
    assert len(told.of("beat")) == 16 * 50
