"""Locks of cores: `cpu:N` at once as long as there are cores for each, and notes of who shares them."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from tests.support.holders import holding

from gpudebug.core.errors import BusyError, StoreError
from gpudebug.edges import store
from gpudebug.edges.store import hostlocks, locks

HOLDER = {"path": "/one", "campaign": "c", "session": None, "since": "now", "command": "gpudebug next"}
OTHER = "`gpudebug next` in /one, campaign c, since now"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the locks will be; not there yet."""
    monkeypatch.setenv(hostlocks.VARIABLE, str(tmp_path / "locks"))
    return tmp_path / "locks"


@pytest.fixture
def cores(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A process that may use three cores, whatever this machine has."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 6})
    yield [3, 5, 6]


def hold(count: int, said: list[str] | None = None) -> AbstractContextManager[tuple[int, ...]]:
    return store.core_locks(count, HOLDER, (said if said is not None else []).append)


def busy(count: int) -> str:
    with pytest.raises(BusyError) as caught, hold(count):
        pass
    assert caught.value.exit_code == 6
    return caught.value.message


def names(fds: tuple[int, ...]) -> list[str]:
    return [Path(os.readlink(f"/proc/self/fd/{fd}")).name for fd in fds]


def test_each_has_cores_of_its_own_while_there_are_enough(cores: list[int]) -> None:
    with hold(1) as one, hold(2) as two:
        assert names(one) == ["CPU-3.lock"]
        assert names(two) == ["CPU-5.lock", "CPU-6.lock"]
    with hold(3) as all_of_them:
        assert len(all_of_them) == 3


def test_too_few_are_refused_at_once_with_their_holder_and_none_is_kept(cores: list[int]) -> None:
    with holding(lambda: hold(2)):
        began = time.monotonic()
        assert busy(2) == f"device cpu:2: 2 of 3 cores are in use by {OTHER}"
        assert time.monotonic() - began < locks.ENDING_S / 2
        with hold(1) as last:
            assert names(last) == ["CPU-6.lock"]


def test_one_core_for_two(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1})
    with holding(lambda: hold(1)) as other:
        assert busy(1) == f"device cpu:1: the core is in use by {OTHER}"
        other.release()
        with hold(1) as fds:
            assert len(fds) == 1


def test_more_than_there_are_is_all(cores: list[int]) -> None:
    with hold(8) as fds:
        assert len(fds) == 3


def test_who_shares_the_cores_leaves_a_note_and_is_told_of_the_others(cores: list[int]) -> None:
    said: list[str] = []
    with ExitStack() as held:
        held.enter_context(hold(0, said))
        assert said == []
        held.enter_context(hold(1, said))
        assert [line.partition(" measures")[0] for line in said] == [OTHER]
        held.enter_context(hold(0, said))
        assert len(said) == 2


def test_who_else_measures_on_the_cores_is_named_by_campaign(cores: list[int]) -> None:
    other = {**HOLDER, "campaign": None}
    with hold(0) as mine, store.core_locks(1, other) as its:
        assert store.sharing(mine, 0) == ("`gpudebug next`",)
        # Cores of one's own are shared with notes alone.
        assert store.sharing(its, 1) == ("campaign c",)
        with hold(1) as third:
            assert store.sharing(third, 1) == ("campaign c",)
            assert store.sharing(mine, 0) == ("`gpudebug next`", "campaign c")
    with hold(0) as mine:
        assert store.sharing(mine, 0) == ()


def test_who_holds_the_choice_keeps_nobody_from_sharing(
    cores: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "ENDING_S", 0.1)
    with hold(0):
        pass
    said: list[str] = []
    with open(Path(os.environ[hostlocks.VARIABLE]) / "CPU.lock", "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with hold(0, said) as fds:
            assert fds == ()
        assert busy(1) == "the locks of the cores are held by an unknown process"
    assert said[0].startswith("the locks of the cores are held by an unknown process")


def test_a_folder_that_is_not_safe_stops_locks_and_no_note(folder: Path, cores: list[int]) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    said: list[str] = []
    with hold(0, said) as fds:
        assert fds == ()
    assert "others could take its locks away" in said[0]
    with pytest.raises(StoreError, match="others could take"), hold(1):
        pass
