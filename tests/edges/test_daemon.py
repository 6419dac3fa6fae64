"""A process that outlives its caller: heard while the caller listens, and nobody's child."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import wait_for

from gpudebug.core.errors import LaunchError
from gpudebug.edges.daemon import Daemon, Ear

PROGRAM = """\
import json, os, sys, time
from pathlib import Path
from gpudebug.edges.daemon import Ear

def main(request, fd):
    ear = Ear(fd)
    words = json.loads(request)
    print("printed", flush=True)
    if words.get("crash"):
        raise RuntimeError("planted")
    ear.tell({"pid": os.getpid(), "ppid": os.getppid(), "read": sys.stdin.read(), "cwd": os.getcwd(),
              "session": os.getsid(0), "variable": os.environ.get("PLANTED"), "words": words})
    if words.get("wait"):
        while not Path(words["wait"]).exists():
            time.sleep(0.01)
        Path(words["wait"]).write_text(str(ear.tell({"again": True})))
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    (tmp_path / "planted_program.py").write_text(PROGRAM)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def start(request: str, cwd: Path = tmp_path, **env: str) -> Daemon:
        log = tmp_path / "its.log"
        return Daemon("planted_program", request, cwd=str(cwd), env={**os.environ, **env}, log=log)

    return start


def test_it_is_heard_and_is_nobodys_child(start, hostile: Path) -> None:  # type: ignore[no-untyped-def]
    daemon = start('{"word": "\\udcff é"}', hostile, PLANTED="here")
    said = daemon.hear(20)
    assert said is not None
    assert (
        said["words"] == {"word": "\udcff é"} and said["cwd"] == str(hostile) and said["variable"] == "here"
    )
    assert said["read"] == ""
    assert said["ppid"] != os.getpid() and said["session"] != os.getsid(0)
    daemon.leave()


def test_it_goes_on_when_nobody_hears_it(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    go = tmp_path / "go"
    daemon = start(f'{{"wait": "{go}"}}')
    assert daemon.hear(20)
    assert daemon.hear(0.05) is None
    daemon.leave()
    go.write_text("")
    wait_for(lambda: go.read_text() == "False")


def test_a_death_without_a_word_is_heard_and_logged(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    daemon = start('{"crash": true}')
    assert daemon.hear(20) == {}
    daemon.leave()
    said = (tmp_path / "its.log").read_text()
    assert "printed" in said and "RuntimeError: planted" in said


def test_one_that_cannot_be_started_is_an_expected_error(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(LaunchError) as raised:
        Daemon("json", "{}", cwd=str(tmp_path / "gone"), env=os.environ, log=tmp_path / "its.log")
    assert raised.value.next
    assert set(os.listdir("/proc/self/fd")) == before


def test_many_words_arrive_whole_and_in_order() -> None:
    hear, tell = os.pipe()
    ear = Ear(tell)
    assert all(ear.tell({"n": n, "text": "é" * 300}) for n in range(20))
    os.close(hear)
    assert not ear.tell({"n": 20})
    os.close(tell)


def test_its_end_of_the_pipe_is_not_inherited() -> None:
    hear, tell = os.pipe()
    os.set_inheritable(tell, True)
    Ear(tell)
    assert not os.get_inheritable(tell)
    os.close(hear)
    os.close(tell)
