"""Which files a process leaves, and which it does not: ranks, forks, spawns, folders that refuse."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.support.profiled import by_name, run

from gpudebug.training.profiling import exits
from gpudebug.training.profiling.exits import ProfilerEnvironment

WORK = """
for _ in range(12):
    with profile_section("work"): pass
"""


def left(folder: Path) -> dict[str, Any]:
    """The reports in a folder: name to document; nothing half-written beside them."""
    found = {p.name: p.read_text() for p in folder.iterdir() if p.suffix not in (".py", "")}
    return {name: json.loads(text) for name, text in found.items()}


def test_the_environment_enables_and_writes_without_code(tmp_path: Path) -> None:
    done = run("import os; os.chdir('/')\n" + WORK, tmp_path, env={"GPUDEBUG_PROFILE": "my.json"})
    assert (done.out, done.err) == ("", "")
    (report,) = left(tmp_path).values()
    assert list(left(tmp_path)) == ["my.json"]
    assert report["format"] == "gpudebug-sections" and report["version"] == 1
    assert by_name(report)["work"]["calls"] == 12


@pytest.mark.parametrize("value", ["", "0"])
def test_an_empty_variable_enables_nothing(tmp_path: Path, value: str) -> None:
    run(WORK + "\nassert not get_profiler().enabled", tmp_path, env={"GPUDEBUG_PROFILE": value})
    assert left(tmp_path) == {}


def test_a_run_folder_gets_the_report_of_what_the_code_enabled(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    env = {"GPUDEBUG_RUN_DIR": str(folder)}
    run(WORK, tmp_path, env=env)
    assert left(folder) == {}
    run("enable_profiling(report='own.json')\n" + WORK, tmp_path, env=env)
    assert list(left(folder)) == ["sections.json"]
    assert left(folder)["sections.json"] == left(tmp_path)["own.json"]
    run(
        "enable_profiling()\n" + WORK, tmp_path, env={**env, "GPUDEBUG_PROFILE": "sections.json", "RANK": "3"}
    )
    assert set(left(folder)) == {"sections.json", "sections.rank3.json"}
    assert left(folder)["sections.rank3.json"]["rank"] == 3


def test_nothing_recorded_is_written_only_where_the_code_asked(tmp_path: Path) -> None:
    launched = {"GPUDEBUG_RUN_DIR": str(tmp_path), "GPUDEBUG_PROFILE": "sections.json"}
    run("import gpudebug; gpudebug.profile_section", tmp_path, env=launched)
    assert left(tmp_path) == {}
    run("enable_profiling()", tmp_path, env=launched)
    (report,) = left(tmp_path).values()
    assert report["sections"] == []
    assert "no section was ever executed" in report["notes"][0]


def test_nothing_is_written_where_nobody_asked(tmp_path: Path) -> None:
    run("enable_profiling()\n" + WORK, tmp_path)
    assert left(tmp_path) == {}


def test_a_program_that_fails_still_leaves_its_report(tmp_path: Path) -> None:
    code = "with profile_section('outer'):\n    raise SystemExit(3)"
    run(code, tmp_path, env={"GPUDEBUG_PROFILE": "r.json"}, status=3)
    assert by_name(left(tmp_path)["r.json"])["outer"]["errors"] == 1
    code = "profile_section('open').__enter__()\nwith profile_section('x'): pass\nraise KeyError"
    done = run(code, tmp_path, env={"GPUDEBUG_PROFILE": "r.json"}, status=1)
    assert left(tmp_path)["r.json"]["open"] == ["open"]
    assert done.err.rstrip().endswith("KeyError")


@pytest.mark.parametrize("below_a_file", [False, True], ids=["read_only", "below_a_file"])
def test_a_folder_that_refuses_is_one_warning_line(tmp_path: Path, below_a_file: bool) -> None:
    folder = tmp_path / "run"
    folder.write_text("a file") if below_a_file else folder.mkdir(mode=0o555)
    # Root may write anywhere: it becomes nobody, and has loaded before what nobody may not read.
    nobody = "import os, json\nif not os.getuid(): os.setresuid(65534, 65534, 65534)"
    code = f"{WORK}\nget_profiler().report()\n{'' if below_a_file else nobody}"
    for part in (tmp_path, *tmp_path.parents[:2]):
        part.chmod(0o755)
    done = run(code, tmp_path, env={"GPUDEBUG_RUN_DIR": str(folder), "GPUDEBUG_PROFILE": "sections.json"})
    (line,) = done.err.splitlines()
    assert line.startswith(f"gpudebug: no report of sections: {folder}/sections.json: ")
    assert done.out == ""
    if not below_a_file:
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("value", ["often", "-3", "²", "1.5"])
def test_a_wrong_number_in_the_environment_is_one_warning_line(tmp_path: Path, value: str) -> None:
    done = run(WORK, tmp_path, env={"GPUDEBUG_PROFILE_SUMMARY": value, "RANK": value})
    said = f"gpudebug: GPUDEBUG_PROFILE_SUMMARY takes a whole number of iterations, not {value!r}\n"
    assert (done.out, done.err) == ("", said)


def test_a_working_folder_that_is_gone(tmp_path: Path) -> None:
    code = """
    import os, subprocess, sys
    os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
    child = "from gpudebug import *\\nwith profile_section('x'): pass\\nprint('went on')"
    sys.exit(subprocess.call([sys.executable, "-c", child], env={**os.environ, "GPUDEBUG_PROFILE": "r.json"}))
    """
    done = run(code, tmp_path)
    assert done.out == "went on\n"
    assert len(done.err.splitlines()) == 1 and done.err.startswith("gpudebug: no report of sections: ")


PARENT = """
import {imports}
def child(*_):
    for _ in range(3):
        with profile_section("child"): pass
    {child}
if __name__ == "__main__":
    with profile_section("parent"): pass
    {parent}
"""
FORK = "pid = os.fork()\n    if not pid: child(); sys.exit(0)\n    os.waitpid(pid, 0)"
PROCESS = (
    "p = multiprocessing.get_context('{}').Process(target=child); p.start(); p.join(); assert not p.exitcode"
)
CHILDREN = {
    "fork": (FORK, "os, sys"),
    "multiprocessing_fork": (PROCESS.format("fork"), "os, multiprocessing"),
    "multiprocessing_spawn": (PROCESS.format("spawn"), "os, multiprocessing"),
}


@pytest.mark.parametrize("how", CHILDREN)
@pytest.mark.parametrize("rank", [None, "0"])
def test_a_child_never_touches_its_parents_report(tmp_path: Path, how: str, rank: str | None) -> None:
    parent, imports = CHILDREN[how]
    code = PARENT.format(parent=parent, imports=imports, child="pass")
    env = {"GPUDEBUG_RUN_DIR": str(tmp_path), "GPUDEBUG_PROFILE": "sections.json"}
    run(code, tmp_path, env={**env, **({"RANK": rank} if rank else {})})
    (report,) = left(tmp_path).values()
    assert set(by_name(report)) == {"parent"}


@pytest.mark.parametrize("how", CHILDREN)
def test_a_child_that_is_a_rank_of_its_own_leaves_its_own(tmp_path: Path, how: str) -> None:
    parent, imports = CHILDREN[how]
    code = PARENT.format(parent=parent, imports=imports, child="os.environ['RANK'] = '2'")
    run(
        code,
        tmp_path,
        env={"GPUDEBUG_RUN_DIR": str(tmp_path), "GPUDEBUG_PROFILE": "sections.json", "RANK": "0"},
    )
    found = left(tmp_path)
    assert {name: list(by_name(report)) for name, report in found.items()} == {
        "sections.json": ["parent"],
        "sections.rank2.json": ["child"],
    }
    assert (found["sections.json"]["rank"], found["sections.rank2.json"]["rank"]) == (0, 2)


SPAWNED = """
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader

class Data:
    def __len__(self): return 4
    def __getitem__(self, i):
        with profile_section("in_worker"): return i

def main(rank):
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    with profile_section("train"):
        assert len(list(DataLoader(Data(), num_workers=1))) == 4
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(main, nprocs=2)
"""


@pytest.mark.slow
def test_ranks_that_pytorch_spawned_leave_a_report_each(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = tmp_path / "run"
    folder.mkdir()
    env = {"GPUDEBUG_RUN_DIR": str(folder), "GPUDEBUG_PROFILE": "sections.json"}
    run(SPAWNED.replace("{folder}", str(tmp_path)), tmp_path, env=env)
    assert {name: list(by_name(report)) for name, report in left(folder).items()} == {
        "sections.json": ["train"],
        "sections.rank1.json": ["train"],
    }


@pytest.mark.parametrize(
    ("path", "rank", "expected"),
    [
        ("/r/sections.json", None, "/r/sections.json"),
        ("/r/sections.json", 0, "/r/sections.json"),
        ("/r/sections.json", 12, "/r/sections.rank12.json"),
        ("/r.d/report", 1, "/r.d/report.rank1"),
    ],
)
def test_the_name_of_a_ranks_report(path: str, rank: int | None, expected: str) -> None:
    assert exits.of_rank(path, rank) == expected


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "r.json"
    exits.write(str(path), {"name": "\udcff é"})
    assert json.loads(path.read_text()) == {"name": "\udcff é"}
    for document in ({"x": float("nan")}, {"x": object()}):
        with pytest.raises((TypeError, ValueError)):
            exits.write(str(path), document)
    assert json.loads(path.read_text()) == {"name": "\udcff é"}
    assert os.listdir(path.parent) == ["r.json"]


def test_only_a_file_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "old.json").write_text("old")
    for name, target in (("pipe.json", "pipe"), ("link.json", "old.json"), ("null.json", os.devnull)):
        (tmp_path / name).symlink_to(target)
    for name in ("pipe", "pipe.json", "null.json"):
        with pytest.raises(OSError, match="not a file that a report could replace"):
            exits.write(str(tmp_path / name), {})
    exits.write(str(tmp_path / "link.json"), {})
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "old.json").read_text()) == {}


def test_a_home_folder_is_one(tmp_path: Path) -> None:
    run(WORK, tmp_path, env={"GPUDEBUG_PROFILE": "~/r.json", "HOME": str(tmp_path / "home")})
    run("enable_profiling(report='~/s.json')", tmp_path, env={"HOME": str(tmp_path / "home")})
    assert sorted(os.listdir(tmp_path / "home")) == ["r.json", "s.json"]


def test_hostile_names_of_folders(hostile: Path) -> None:
    run(WORK, hostile, env={"GPUDEBUG_RUN_DIR": str(hostile), "GPUDEBUG_PROFILE": "sections.json"})
    assert "sections.json" in left(hostile)


def test_hostile_names_of_sections(tmp_path: Path) -> None:
    code = """
    enable_profiling()
    for name in ("two\\nlines", "\\x1b[31mred", "{x}%s", "\\udcff", "", "größe-模型"):
        with profile_section(name): pass
    print_profiling_summary(tree=True)
    """
    done = run(textwrap.dedent(code), tmp_path, env={"GPUDEBUG_PROFILE": "r.json"})
    assert len(left(tmp_path)["r.json"]["sections"]) == 6
    assert "\x1b" not in done.out
    assert "two\\nlines" in done.out
    assert "größe-模型" in done.out


def refuse() -> None:
    raise MemoryError("full")


@pytest.mark.parametrize(
    ("asked", "printed"),
    [
        ({}, ""),
        ({"GPUDEBUG_PROFILE": "r.json"}, "gpudebug: sections are not profiled: MemoryError: full\n"),
        ({"GPUDEBUG_PROFILE_SUMMARY": "5"}, "gpudebug: sections are not profiled: MemoryError: full\n"),
        (
            {"GPUDEBUG_PROFILE_SUMMARY": "often"},
            "gpudebug: GPUDEBUG_PROFILE_SUMMARY takes a whole number of iterations, not 'often'\n",
        ),
    ],
)
def test_profiling_that_cannot_begin_is_a_line(
    asked: dict[str, str], printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(exits, "places", ProfilerEnvironment(asked))
    exits.begin(refuse, str.split)  # type: ignore[arg-type]
    assert capsys.readouterr().err == printed


def test_methods_that_cannot_be_timed_are_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def locked(text: str) -> None:
        raise OSError("no")

    monkeypatch.setattr(exits, "places", ProfilerEnvironment({}))
    exits.begin(refuse, locked)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("GPUDEBUG_PROFILE_METHODS", "pkg:Policy")
    exits.begin(refuse, locked)
    assert capsys.readouterr().err == "gpudebug: methods are not profiled: OSError: no\n"
