"""The thread that looks at stacks: what it leaves alone, when it ends, and that it begins again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.probed import needs_torch, probed
from tests.support.sampled import alone, of, part

from gpudebug.core.inside.stacks.shares import share
from gpudebug.edges.devices.queueing import counts_waiting

WITH_MONITORING = ["3.13", pytest.param("3.12", marks=pytest.mark.slow)]

# What `stacks.install` makes of a process, without PyTorch.
WATCHED = """
from gpudebug_probe import sampler as module
from gpudebug_probe.stacks import _Watcher
listens, ranks = [], {"rank": None}
recorder = types.SimpleNamespace(
    refused=False,
    run=os.environ["GPUDEBUG_RECORDS_DIR"],
    listen=lambda: listens.append(1),
    ranks=lambda: ranks,
)
watcher = _Watcher(torch, recorder, time.pthread_getcpuclockid)
os.register_at_fork(before=watcher.pause, after_in_parent=watcher.resume, after_in_child=watcher.anew)
def fork():
    pid = os.fork()
    if not pid: os._exit(0)
    return os.waitpid(pid, 0)[1]
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_garbage_is_collected_in_the_threads_of_the_program(tmp_path: Path, version: str) -> None:
    code = """
met = []
class Loop:
    def __init__(self): self.me = self
    def __del__(self): met.append(get_ident())
watch(); sampler.start()
gc.set_threshold(20, 1, 1)
for _ in range(120):
    Loop(); time.sleep(0.002)
gc.set_threshold(700, 10, 10)
sampler.finish()
print(len(met) > 50, sum(one != get_ident() for one in met), gc.isenabled())
"""
    told = alone(tmp_path, code, interpreter(version))
    assert (told.status, told.out, told.err) == (0, "True 0 True\n", "")
    assert of(told).samples >= 3


def test_a_program_that_collects_nothing_goes_on_so(tmp_path: Path) -> None:
    code = "gc.disable(); watch(); sampler.start(); doze(0.1); sampler.finish(); print(gc.isenabled())"
    told = alone(tmp_path, code)
    assert (told.status, told.out, told.err) == (0, "False\n", "")


def test_looking_ends_once_the_record_is_full_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "probe.jsonl").write_text('{"kind":"beat"}\n' * 20)
    code = """
import _thread
from gpudebug_probe import record, sampler as module
record.STACKS, module.TELL_S = 300, 0.05
watch(); sampler.start()
while not sampler._why or _thread._count(): time.sleep(0.01)
print(frames.known, sampler._seen)
sampler.stop(); sampler.start(); print(_thread._count())
sampler.finish()
"""
    told = alone(tmp_path, code)
    assert (told.status, told.out, told.err) == (0, "{} {}\n0\n", "")
    assert [line["why"] for line in told.of("stacks")] == ["the record has no room for more"]


def test_much_generated_code_is_forgotten_between_two_lines(tmp_path: Path) -> None:
    code = """
from gpudebug_probe import sampler as module
module.MOST_CODES = 5
watch(); sampler.start()
for n in range(30):
    space = {}
    exec(compile(f"def made_{n}(): doze(0.01)", f"file_{n}.py", "exec"), globals(), space)
    space[f"made_{n}"]()
sampler.stop()
print(len(frames.known) <= 8)
sampler.finish()
"""
    told = alone(tmp_path, code)
    assert (told.status, told.out, told.err) == (0, "True\n", "")
    found = of(told)
    assert found.seconds >= 0.1
    assert sum(stack[3] for stack in found.stacks) == pytest.approx(found.seconds, abs=0.01)


def test_a_thread_that_is_held_up_is_waited_for_once_and_begins_again(tmp_path: Path) -> None:
    code = """
import _thread
watcher.seen()
gate, within = _thread.allocate_lock(), []
gate.acquire()
def append(lines):
    within.append(1); gate.acquire()
own, watcher._sampler.record.append_stacks = watcher._sampler.record.append_stacks, append
module.TELL_S = module.STOP_S = 0.05
while not within: time.sleep(0.01)
fork()
# Another fork that waited would wait until nobody does.
module.STOP_S = 1000
fork(); fork()
print(len(listens), _thread._count())
watcher.stepped(1)
gate.release()
while _thread._count(): time.sleep(0.01)
watcher._sampler.record.append_stacks = own
watcher.stepped(2)
while not _thread._count(): time.sleep(0.01)
print(len(listens), _thread._count())
doze(0.2)
watcher.end()
"""
    told = alone(tmp_path, WATCHED + code)
    assert (told.status, told.out, told.err) == (0, "3 1\n4 1\n", "")
    assert part(of(told), stack="doze$") > 0.2


def test_after_an_error_of_ours_nobody_waits_for_the_thread(tmp_path: Path) -> None:
    code = """
watcher.seen()
watcher._sampler._frames.fold = None
time.sleep(0.2)
module.STOP_S = 1000
fork(); fork()
watcher.end()
"""
    told = alone(tmp_path, WATCHED + code)
    assert (told.status, told.err) == (0, "")
    (line,) = told.of("stacks")
    assert "TypeError" in line["why"]


@pytest.mark.parametrize("name", ["start_new_thread", "get_ident", "allocate_lock"])
def test_where_a_library_has_replaced_threads_nobody_looks(tmp_path: Path, name: str) -> None:
    """As gevent does, before PyTorch is imported."""
    first = f"""
import _thread
real = _thread.{name}
class Other:
    def __new__(cls, *args): return real(*args)
_thread.{name} = Other
"""
    code = WATCHED + "watcher.seen(); watcher.stepped(1); doze(0.1); watcher.end()"
    told = alone(tmp_path, code, first=first)
    assert (told.status, told.out, told.err) == (0, "", "")
    (line,) = told.lines
    assert "gevent" in line["why"]


@pytest.mark.parametrize("version", WITH_MONITORING)
def test_a_profile_of_the_users_has_nothing_of_ours(tmp_path: Path, version: str) -> None:
    """Since Python 3.12 cProfile counts the calls of every thread."""
    code = """
import cProfile
profile = cProfile.Profile()
profile.enable()
watcher.seen(); burn(0.1)
profile.disable()
print({e.code.co_name for e in profile.getstats() if hasattr(e.code, "co_name")} & {"_run", "_turn", "fold"})
watcher.end()
watch(); sampler.start(); doze(0.1)
profile.enable()
while not sampler._why: time.sleep(0.01)
profile.disable()
sampler.finish()
"""
    told = alone(tmp_path, WATCHED + code, interpreter(version))
    assert (told.status, told.out, told.err) == (0, "set()\n", "")
    notes = [line["why"] for line in told.of("stacks") if "why" in line]
    assert len(notes) == 2
    assert all("cProfile" in note for note in notes)


def test_a_profile_of_the_thread_itself_is_no_hindrance(tmp_path: Path) -> None:
    if sys.version_info >= (3, 12):
        pytest.skip("cProfile counts every thread here")
    code = "import cProfile\ncProfile.Profile().enable(); watcher.seen(); doze(0.2); watcher.end()"
    assert part(of(alone(tmp_path, WATCHED + code)), stack="doze$") > 0.5


def test_many_threads_are_not_looked_at_one_by_one(tmp_path: Path) -> None:
    code = """
usual, event = sys.getswitchinterval(), threading.Event()
def wait(count):
    threads = [threading.Thread(target=event.wait) for _ in range(count)]
    for thread in threads: thread.start()
    time.sleep(0.15)
    return sys.getswitchinterval() < usual, threads
watch(); sampler.start()
(few, some), (many, others) = wait(5), wait(70)
event.set()
for thread in some + others: thread.join()
sampler.finish()
print(few, many, sys.getswitchinterval() == usual)
"""
    told = alone(tmp_path, code)
    assert (told.status, told.out, told.err) == (0, "True False True\n", "")


def test_who_takes_long_to_look_at_is_looked_at_rarely(tmp_path: Path) -> None:
    code = """
fold = frames.fold
def slow(stack):
    burn(0.005)
    return fold(stack)
frames.fold = slow
watch(); sampler.start(); doze(0.7); sampler.finish()
"""
    found = of(alone(tmp_path, code))
    assert found.samples <= 8
    assert found.seconds > 0.2


def test_each_rank_is_looked_at_and_others_than_rank_0_report_more_rarely(tmp_path: Path) -> None:
    code = """
module.TELL_S = 0.1
ranks["rank"] = RANK
watcher.seen()
for _ in range(8): doze(0.1); watcher.stepped(1)
watcher.end()
"""
    lines = []
    for rank in (0, 1):
        folder = tmp_path / str(rank)
        folder.mkdir()
        told = alone(folder, WATCHED + code.replace("RANK", str(rank)))
        assert part(of(told), stack="doze$") > 0.8
        lines.append(len([line for line in told.lines if line["kind"] == "stacks"]))
    assert lines[1] < lines[0]


def test_of_another_rank_the_loader_workers_are_not_looked_at(tmp_path: Path) -> None:
    code = "ranks['rank'] = 1; watcher.seen('workers'); doze(0.2); watcher.end()"
    assert [line for line in alone(tmp_path, WATCHED + code).lines if line["kind"] == "stacks"] == []


@needs_torch
@pytest.mark.slow
def test_ranks_that_a_program_gives_by_itself_are_known(tmp_path: Path) -> None:
    code = """
import os, time, torch
def train(rank, folder):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/met", rank=rank, world_size=2)
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10):
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        time.sleep(0.02)
    torch.distributed.destroy_process_group()
if __name__ == "__main__":
    torch.multiprocessing.spawn(train, (os.getcwd(),), nprocs=2)
"""
    told = probed(tmp_path / "run", code)
    assert told.status == 0, told.err
    ranks = {line["pid"]: line["rank"] for line in told.of("start")}
    assert sorted(ranks.values()) == [0, 1]
    assert {ranks[line["pid"]] for line in told.of("stacks")} == {0, 1}


@pytest.mark.skipif(not counts_waiting(), reason="the kernel does not count how long threads wait for a CPU")
def test_who_is_kept_from_the_cores_does_not_wait(tmp_path: Path) -> None:
    """Beside others on one core, at a lower priority: what they leave is far below what is wanted."""
    core = max(os.sched_getaffinity(0))
    loop = ["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"]
    busy = [subprocess.Popen(loop) for _ in range(3)]
    code = """
def doze_for(seconds):
    time.sleep(seconds)
watch(); sampler.start()
for _ in range(8):
    burn(0.04); doze_for(0.1)
sampler.stop(); sampler.finish()
"""
    first = f"import os\nos.sched_setaffinity(0, {{{core}}})\nos.nice(5)\n"
    try:
        found = of(alone(tmp_path, code, first=first))
    finally:
        for one in busy:
            one.kill()
            one.wait()
    waited = [share(found, stack=f"train.py:{name}$", state="waiting").value for name in ("burn", "doze_for")]
    ran = share(found, stack="train.py:burn$", state="running").value
    assert ran > 0.4
    assert waited[0] < 0.25 * (waited[0] + ran)
    assert waited[1] > 0.03
