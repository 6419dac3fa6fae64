"""Nothing that was there before a run is overwritten unnoticed: real programs, each with its way to write."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, Done, environment, gpudebug, make_campaign, wait_for
from tests.support.interpreters import VERSIONS, interpreter

from gpudebug.edges import launcher

THEIRS = "what somebody trained for a week"
STOPPED, NAMED, PASSED = "stopped", "named", "passed"

# Of libraries that the tests do not have: what calls them is as they have it, and they write natively.
LIBRARIES = {
    "safetensors/__init__.py": "from native import write\n"
    "def serialize_file(data, filename, metadata=None):\n    write(filename, data)\n",
    "h5py/__init__.py": "from . import h5f\n",
    "h5py/h5f.py": "from native import write\ndef create(name, flags=2):\n    write(name, b'new')\n",
    "native.py": """\
import ctypes, os
def write(path, data, mode=b"w"):
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fopen(os.fsencode(path), mode))
    libc.fwrite(data, 1, len(data), file)
    libc.fclose(file)
""",
}
SAVING = """
import os, runpy
os.makedirs('out', exist_ok=True)
with open('out/model.pt', 'w') as file:
    file.write('of a run')
runpy.run_path('train.py', run_name='__main__')
"""
START = """\
import logging, os, pathlib, pickle, shutil, sqlite3, subprocess, sys, tempfile
import native
step = 0
print("step 1 loss 0.5", flush=True)
"""

# How a program writes `best.pt`, which was there, and what comes of it.
WAYS = {
    "open": ("open('best.pt', 'w').write('new')", STOPPED),
    "open of bytes, to read too": ("open(b'best.pt', 'w+b')", STOPPED),
    "os.open": ("os.write(os.open('best.pt', os.O_WRONLY | os.O_CREAT), b'new')", STOPPED),
    "pathlib": ("pathlib.Path('best.pt').write_text('new')", STOPPED),
    "pickle": ("pickle.dump([1], open('best.pt', 'wb'))", STOPPED),
    "shutil.copy": ("open('x', 'w').write('new'); shutil.copy('x', 'best.pt')", STOPPED),
    "shutil.rmtree": ("shutil.rmtree('.')", STOPPED),
    "os.replace, as zarr does": ("open('x', 'w').write('new'); os.replace('x', 'best.pt')", STOPPED),
    "os.remove": ("os.remove('best.pt')", STOPPED),
    "os.truncate": ("os.truncate('best.pt', 0)", STOPPED),
    "its own log": ("logging.basicConfig(filename='best.pt', filemode='w')", STOPPED),
    "through a link": ("os.symlink('best.pt', 'last.pt'); open('last.pt', 'w')", STOPPED),
    "errors are caught": ("try:\n    open('best.pt', 'w')\nexcept BaseException:\n    pass", STOPPED),
    "a backup is kept once": (
        "for _ in 'ab':\n    os.replace('best.pt', 'old.pt')\n    open('best.pt', 'w').write('new')",
        STOPPED,
    ),
    "a subprocess": ("subprocess.run([sys.executable, '-c', \"open('best.pt', 'w')\"])", STOPPED),
    "a fork": ("os.fork() or open('best.pt', 'w'); os.wait()", STOPPED),
    "safetensors": ("import safetensors; safetensors.serialize_file(b'new', 'best.pt')", STOPPED),
    "h5py": ("import h5py; h5py.h5f.create(b'best.pt')", STOPPED),
    "numpy": ("import numpy; numpy.ones(3).tofile('best.pt')", STOPPED),
    "numpy.memmap": ("import numpy; numpy.memmap('best.pt', 'u1', 'w+', shape=9)", STOPPED),
    "torch.save by path": ("import torch; torch.save([1], 'best.pt')", STOPPED),
    "torch.save by file": ("import torch; torch.save([1], open('best.pt', 'wb'))", STOPPED),
    "C++": ("native.write('best.pt', b'new')", NAMED),
    "a shell": ("subprocess.run('echo new > best.pt', shell=True)", NAMED),
    "opened to be read too": ("open('best.pt', 'r+').write('new')", NAMED),
    "sqlite3": ("sqlite3.connect('best.db').execute('drop table a').connection.commit()", NAMED),
    "only read": ("open('best.pt', 'r+').read(); sqlite3.connect('best.db').execute('select 1')", PASSED),
    "added to": ("open('best.pt', 'a').write('more'); native.write('b.log', b'more', b'a')", PASSED),
    "its own files, again and again": (
        "for _ in 'abc':\n    open('n.tmp', 'w').write('new')\n    os.replace('n.tmp', 'n.pt')\n"
        "native.write('c', b'1'); os.remove('c'); os.makedirs('t/u'); open('t/u/v', 'w'); shutil.rmtree('t')",
        PASSED,
    ),
    "a subprocess's, and then its own": (
        "subprocess.run('echo 1 > made', shell=True); open('made', 'w').write('2')",
        PASSED,
    ),
    "caches": ("open('.cache.json', 'w'); open('cache/x', 'w'); open('x.cache', 'w')", PASSED),
    "a temporary file": (
        "tempfile.NamedTemporaryFile(dir='.').write(b'new'); open('/dev/null', 'w')",
        PASSED,
    ),
    "a lock that was empty": ("os.open('a.lock', os.O_RDWR | os.O_CREAT | os.O_TRUNC)", PASSED),
    "it is moved out of the way": ("shutil.move('best.pt', 'kept.pt'); open('best.pt', 'w')", PASSED),
    "ten thousand files": ("for n in range(10_000):\n    open('n%d' % n, 'w').write('new')", PASSED),
}
NEEDS = {
    "numpy": "numpy",
    "numpy.memmap": "numpy",
    "torch.save by path": "torch",
    "torch.save by file": "torch",
}


def _prepared(folder: Path, code: str) -> Path:
    """A folder of somebody's, older than any run, with a program that writes."""
    for name, text in LIBRARIES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "train.py").write_text(START + code + "\n")
    (folder / "best.pt").write_text(THEIRS)
    for name in ("b.log", ".cache.json", "cache/x", "x.cache"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("line\n")
    (folder / "a.lock").touch()
    import sqlite3

    with sqlite3.connect(folder / "best.db") as database:
        database.execute("create table a (b)")
    database.close()
    time.sleep(0.02)
    return folder


def sampled(folder: Path, *words: str, **more: str) -> Done:
    command = ("--", sys.executable, "train.py") if "--" not in words else ()
    return gpudebug(folder, "sample", "--device=cpu:1", "-o", "s.csv", *words, *command, env=more)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_ways_to_write(tmp_path: Path, way: str) -> None:
    if way in NEEDS and importlib.util.find_spec(NEEDS[way]) is None:
        pytest.skip(f"needs {NEEDS[way]}")
    code, becomes = WAYS[way]
    folder = _prepared(tmp_path, code)
    done = sampled(folder)
    found = folder / ("best.db" if "sqlite3" in way else "best.pt")
    if becomes == STOPPED:
        done.expect(125)
        kept = folder / "old.pt" if "backup" in way else found
        assert kept.read_text() == THEIRS
        assert "was there before this run, and the program was stopped before it overwrote it" in done.err
        assert "--overwrite" in done.err
        assert str(kept) in done.err or "rmtree" in way
        return
    done.expect(0)
    assert ("rewritten while the run was under way" in done.err) == (becomes == NAMED), done.err
    assert (str(found) in done.err) == (becomes == NAMED)
    if becomes == PASSED and found.exists() and "moved" not in way:
        assert found.read_text().startswith(THEIRS)


@pytest.mark.slow
def test_what_an_earlier_run_wrote_is_no_ones_until_somebody_writes_it(tmp_path: Path) -> None:
    folder = _prepared(tmp_path, "open('out.pt', 'w').write('of a run')")
    sampled(folder).expect(0)
    sampled(folder).expect(0)
    (folder / "out.pt").write_text("of a week")
    assert "out.pt" in sampled(folder).expect(125).err
    assert (folder / "out.pt").read_text() == "of a week"
    sampled(folder, "--overwrite").expect(0)
    assert (folder / "out.pt").read_text() == "of a run"
    sampled(folder).expect(0)


@pytest.mark.slow
def test_the_setting_that_moves_it_is_named(tmp_path: Path) -> None:
    place = "os.environ.get('model_results', sys.argv[-1] if sys.argv[1:] else 'outputs')"
    folder = _prepared(tmp_path, f"open({place} + '/a.pt', 'w')")
    for name in ("out", "results", "outputs/.hydra"):
        (folder / name).mkdir(parents=True)
    for name in ("out", "results", "outputs"):
        (folder / name / "a.pt").write_text(THEIRS)
    # As a Hydra app leaves it: where its results go no word of the command says.
    (folder / "outputs/.hydra/hydra.yaml").write_text("hydra: {}\n")
    for words, more, told in (
        (("--save_to", "out"), {}, "(--save_to=out/{run} in the command)"),
        (("out",), {}, "(out/{run} for out in the command)"),
        ((), {"model_results": str(folder / "results")}, "set model_results to another folder"),
        ((), {}, "(hydra.run.dir=…/{run} in the command)"),
    ):
        done = sampled(folder, "--", sys.executable, "train.py", *words, **more)
        assert told in done.expect(125).err


@pytest.mark.slow
def test_a_campaign_stops_with_nothing_recorded_and_goes_on_once_a_person_allows_it(tmp_path: Path) -> None:
    campaign, model = _saving_campaign(tmp_path)
    model.parent.mkdir()
    model.write_text(THEIRS)
    before = campaign.text if campaign.progress.exists() else None
    error = campaign.json("next", status=1)["error"]
    assert (error["code"], error["file"]) == ("overwrite", str(model))
    assert model.read_text() == THEIRS
    assert (campaign.text if campaign.progress.exists() else None) == before
    error = campaign.json("next", "--overwrite", status=1, env={"GPUDEBUG_SESSION": "a"})["error"]
    assert (error["code"], model.read_text()) == ("session", THEIRS)
    campaign.json("next", "--overwrite")
    assert model.read_text() == "of a run"
    # What a run of ours wrote is in the way of none of the next ones.
    campaign.propose("--set --work=0.1")
    assert campaign.json("next")["action"] == "tested"
    model.write_text(THEIRS)
    campaign.propose("--set --work=0.15")
    assert campaign.json("next", status=1)["error"]["code"] == "overwrite"
    assert campaign.statuses()[1] == "UNTESTED"


def _saving_campaign(folder: Path) -> tuple[Campaign, Path]:
    """A campaign of a training that saves to the same file in each run, and that file."""
    command = f"{sys.executable} save.py --lr=0.1 --work=0.2"
    campaign = make_campaign(folder / "repo", command=command, files={"save.py": SAVING})
    return campaign, campaign.folder / "out" / "model.pt"


@pytest.mark.slow
def test_what_a_run_saved_is_in_no_ones_way_after_a_kill(tmp_path: Path) -> None:
    campaign, model = _saving_campaign(tmp_path)
    process = campaign.start("next")
    wait_for(model.exists)
    process.kill()
    process.wait()
    assert campaign.json("next")["action"] == "recovered"
    assert campaign.json("next")["action"] == "recorded_baseline"


@pytest.mark.parametrize("version", VERSIONS)
def test_each_python_is_stopped_and_goes_on_else(tmp_path: Path, version: str) -> None:
    records = tmp_path / "records"
    records.mkdir()
    (tmp_path / "mine").write_text(THEIRS)
    spec = f"stop\n{time.time_ns()}\n{tmp_path / 'earlier'}\n+{tmp_path}"
    kept = {"GPUDEBUG_KEEP": spec, "GPUDEBUG_RECORDS_DIR": str(records), "GPUDEBUG_PROBE": "0"}
    code = """
import os, pathlib, shutil, sqlite3
for n in "ab":
    pathlib.Path("new").write_text(n); shutil.copy("new", "copy"); os.replace("copy", "last")
os.makedirs("tree/below"); pathlib.Path("tree/below/x").touch(); shutil.rmtree("tree")
sqlite3.connect("x.db").execute("create table a (b)")
print(open("new").read(), os.path.exists("tree"), flush=True)
pathlib.Path("mine").unlink()
"""
    python, env = interpreter(version), launcher.inject(environment(kept))
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"b False\n"), done.stderr
    assert b"mine" in (records / launcher.STOPPED).read_bytes()
    assert (tmp_path / "mine").read_text() == THEIRS


@pytest.mark.slow
@pytest.mark.parametrize("where", ["read-only", "full"])
def test_a_place_that_cannot_be_written_is_the_programs_own_failure(tmp_path: Path, where: str) -> None:
    path = "/proc/sys/kernel/random/boot_id" if where == "read-only" else "/dev/full"
    folder = _prepared(tmp_path, f"with open({path!r}, 'w') as file: file.write('new')")
    done = sampled(folder).expect(1)
    assert "OSError: [Errno 28]" in done.out if where == "full" else "Error: [Errno" in done.out
    assert "--overwrite" not in done.err


def _as_others() -> None:
    """Without what lets root read everything: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, capabilities(7)."""
    libc, drop = ctypes.CDLL(None), 24
    for capability in (1, 2):
        libc.prctl(drop, capability, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0, 0o600])
def test_a_folder_that_may_not_be_looked_into_is_in_no_ones_way(tmp_path: Path, mode: int) -> None:
    folder = _prepared(tmp_path, "open('best.pt', 'w')")
    (folder / "volume" / "below").mkdir(parents=True)
    (folder / "volume").chmod(mode)
    words = ("sample", "--device=cpu:1", "-o", "s.csv", "--", sys.executable, "train.py")
    done = gpudebug(folder, *words, preexec_fn=_as_others)
    (folder / "volume").chmod(0o700)
    assert "was there before this run" in done.expect(125).err
    assert "volume" not in done.err


def test_nobody_sees_that_writing_is_watched(tmp_path: Path) -> None:
    code = """
import io, inspect
assert pickle.loads(pickle.dumps([open, os.open, os.replace])) == [open, os.open, os.replace]
assert open is io.open and open.__name__ == "open" and inspect.signature(open).parameters["opener"]
assert os.open in os.supports_dir_fd and shutil.rmtree.avoids_symlink_attacks
with open(os.open("fd", os.O_CREAT | os.O_RDWR), "w") as file: file.write("x")
with open("opened", "w", opener=lambda path, flags: os.open(path, flags)): pass
os.rename(src="opened", dst="renamed"); os.unlink(path="renamed")
at = os.open(".", os.O_RDONLY); os.close(os.open("below", os.O_CREAT | os.O_WRONLY, 0o640, dir_fd=at))
os.replace("below", "beside", src_dir_fd=at, dst_dir_fd=at); os.unlink("beside", dir_fd=at)
missing = lambda: os.open("no", 0)
for call in (lambda: open("no"), lambda: open("best.pt", "x"), lambda: open("fd", "q"), missing):
    try: call()
    except (OSError, ValueError) as error: print(type(error).__name__)
"""
    folder = _prepared(tmp_path, code)
    sampled(folder).expect(0)
    printed = (folder / "s.log").read_text().splitlines()[1:]
    assert printed == ["FileNotFoundError", "FileExistsError", "ValueError", "FileNotFoundError"]
    assert stat.S_ISREG(os.lstat(folder / "best.pt").st_mode)
