"""Asking a training's Python about itself: nothing that is under test runs, and nothing of it is left."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.support.campaigns import gpudebug, make_campaign, wait_for
from tests.support.interpreters import VERSIONS
from tests.support.interpreters import interpreter as python_of

from gpudebug.core.errors import GpudebugError
from gpudebug.edges import launcher
from gpudebug.edges.launcher import interpreter, try_profiling


@pytest.fixture(autouse=True)
def forgotten() -> None:
    launcher.ask_anew()


def script(folder: Path, text: str) -> str:
    path = folder / "python3"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_says_its_version_packages_and_path() -> None:
    asked = launcher.ask(sys.executable, dict(os.environ), (), ("pytest", "nowhere"))
    assert asked is not None
    assert asked.version == ".".join(map(str, sys.version_info[:3]))
    assert asked.packages["pytest"] == pytest.__version__
    assert asked.found["pytest"] == (str(Path(pytest.__file__).parent), False)
    assert "nowhere" not in asked.found
    assert not {str(Path(interpreter._PROGRAM).parent), os.getcwd(), ""} & set(asked.path)


NOISE = "echo hello from sitecustomize"
ANSWERS = ["exit 1", "echo nonsense", "echo 'gpudebug-asked [1]'", "echo 'gpudebug-asked {}'", NOISE]


@pytest.mark.parametrize("answer", ANSWERS)
def test_one_that_does_not_answer_is_unknown(tmp_path: Path, answer: str) -> None:
    assert launcher.ask(script(tmp_path, answer), dict(os.environ)) is None
    assert launcher.ask("/no/such/python", {}) is None


def test_a_warden_that_is_killed_before_there_is_an_answer_leaves_it_unknown(tmp_path: Path) -> None:
    killing = script(tmp_path, f"touch {tmp_path}/done; rm ../answer; kill -9 $PPID; sleep 20")
    assert launcher.ask(killing, dict(os.environ)) is None
    assert (tmp_path / "done").exists()


def test_what_it_prints_beside_its_answer_does_no_harm(tmp_path: Path) -> None:
    noisy = script(tmp_path, f'{NOISE}; echo more >&2; exec {sys.executable} "$@"')
    asked = launcher.ask(noisy, dict(os.environ))
    assert asked is not None
    assert asked.version


def test_modules_under_test_do_not_run_in_it(tmp_path: Path) -> None:
    for name in ("json", "sitecustomize", "usercustomize", "importlib", "sys"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:.:", "PYTHONUSERBASE": str(tmp_path)}
    assert launcher.ask(sys.executable, env, (tmp_path,)) is not None
    assert not (tmp_path / "ran").exists()


def test_a_users_own_path_outside_of_the_repository_counts(tmp_path: Path) -> None:
    (tmp_path / "lib" / "mine").mkdir(parents=True)
    (tmp_path / "lib" / "mine" / "__init__.py").touch()
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}
    asked = launcher.ask(sys.executable, env, (tmp_path / "repo",), ("mine",))
    assert asked is not None
    assert asked.found["mine"] == (str(tmp_path / "lib" / "mine"), False)
    assert str(tmp_path / "lib") in asked.path


def test_one_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "PATIENCE_S", 0.5)
    began = time.monotonic()
    hanging = script(tmp_path, f"setsid sleep 300 & echo $! > {tmp_path}/pid; sleep 300")
    assert launcher.ask(hanging, dict(os.environ)) is None
    assert time.monotonic() - began < 8
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists())


def test_it_is_asked_once_until_it_is_another_file(tmp_path: Path) -> None:
    counting = f'echo x >> {tmp_path}/asked; exec {sys.executable} "$@"'
    path = script(tmp_path, counting)
    for _ in range(2):
        assert launcher.ask(path, dict(os.environ)) is not None
    assert (tmp_path / "asked").read_text() == "x\n"
    script(tmp_path, f"{counting} ")
    assert launcher.ask(path, dict(os.environ)) is not None
    assert (tmp_path / "asked").read_text() == "x\nx\n"


def checks(answer: dict[str, object]) -> dict[str, dict[str, str]]:
    return {c["name"]: c for c in answer["checks"]}  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_library_works_on_every_python(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = try_profiling(python_of(version))
    assert told["version"].startswith(version + ".")
    assert {s["name"] for s in told["report"]["sections"]} == {"outer", "inner", "memory", "failing"}
    assert told["at_exit"]["notes"]
    assert 0 < told["pair_ns"] < told["section_ns"] < 100_000
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_found(tmp_path: Path) -> None:
    answer = gpudebug(tmp_path, "doctor", "--profiling", "--json").expect(0).json
    found = checks(answer)
    assert answer["ok"] is True
    assert list(found) == ["library", "sections", "memory", "report", "overhead"]
    assert {c["result"] for c in found.values()} == {"ok"}
    assert "20 calls inside another section" in found["sections"]["found"]
    assert "32 MB" in found["memory"]["found"]
    done = gpudebug(tmp_path, "doctor", "--profiling").expect(0)
    assert [line.split()[:2] for line in done.out.splitlines()] == [["ok", name] for name in found]
    assert list(tmp_path.iterdir()) == []


def test_the_workloads_python_is_tried_as_well(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    config = campaign.config.read_text()
    campaign.config.write_text(config.replace("command: ", f"command: {python_of('3.8')} train.py # ", 1))
    found = checks(campaign.json("doctor", "--profiling"))
    assert "3.8" in found["workload's library"]["found"]
    assert len(found) == 10


BROKEN = {
    "fails": (
        "#!/bin/sh\necho some traceback >&2\necho 'ImportError: no such thing' >&2\nexit 1\n",
        "no such thing",
    ),
    "silent": ("#!/bin/sh\nexit 7\n", "exit status 7"),
    "says_nothing": ("#!/bin/sh\nexit 0\n", "no readable report"),
    "no_program": ("", "Exec format error"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_python_in_which_it_fails_is_named_with_a_way_to_see_why(tmp_path: Path, how: str) -> None:
    script, said = BROKEN[how]
    python = tmp_path / "python3"
    python.write_text(script)
    python.chmod(0o755)
    with pytest.raises(GpudebugError, match=said) as caught:
        try_profiling(str(python))
    assert str(python) in caught.value.message
    assert (caught.value.next or "").startswith("see the whole error with: PYTHONPATH=")
    campaign = make_campaign(tmp_path / "repo")
    config = campaign.config.read_text()
    campaign.config.write_text(config.replace("command: ", f"command: {python} train.py # ", 1))
    done = campaign.run("doctor", "--profiling").expect(1)
    assert "FAILED  workload's library" in done.out
    assert done.err == ""
