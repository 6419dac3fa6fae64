"""Leases: how long a claim to implement holds, whatever the clocks do, and what is no lease."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.holders import as_user
from tests.support.processes import fork

from gpudebug.core.errors import StoreError
from gpudebug.edges import store
from gpudebug.edges.store import LEASE_S, Lease, Moment, leases

HOUR = 3600.0
NOW = Moment(host="a", boot="boot-1", boottime_s=100_000.0, wall_s=1_800_000_000.0)
SINCE = "2026-11-21T10:00:00+00:00"
NOBODY = 65534

ENDED, LIVE = False, True
# What the clocks were at the last renewal, and whether the lease holds at NOW.
CASES: dict[str, tuple[dict[str, object], bool]] = {
    "just now": ({}, LIVE),
    "59 minutes ago": ({"boottime_s": NOW.boottime_s - 59 * 60}, LIVE),
    "an hour ago, to the second": ({"boottime_s": NOW.boottime_s - HOUR}, ENDED),
    "two hours ago": ({"boottime_s": NOW.boottime_s - 2 * HOUR}, ENDED),
    "the wall clock was set back a year": ({"wall_s": NOW.wall_s + 365 * 24 * HOUR}, LIVE),
    "the wall clock was set on a year": ({"wall_s": NOW.wall_s - 365 * 24 * HOUR}, LIVE),
    "in the same boot, told by a container of another name": ({"host": "b"}, LIVE),
    "two hours ago, by a container of another name": (
        {"host": "b", "boottime_s": NOW.boottime_s - 2 * HOUR, "wall_s": NOW.wall_s},
        ENDED,
    ),
    "a boot's clock ahead by less than a lease": ({"boottime_s": NOW.boottime_s + 60}, LIVE),
    "a boot's clock ahead by more than a lease": ({"boottime_s": NOW.boottime_s + 2 * HOUR}, ENDED),
    "before this boot of the host": ({"boot": "boot-0", "boottime_s": 5.0}, ENDED),
    "before this boot, seconds ago by the wall clock": ({"boot": "boot-0", "wall_s": NOW.wall_s - 5}, ENDED),
    "on another host, a minute ago": ({"host": "b", "boot": "boot-b", "wall_s": NOW.wall_s - 60}, LIVE),
    "on another host, up for longer": ({"host": "b", "boot": "boot-b", "boottime_s": 1e9}, LIVE),
    "on another host, 61 minutes ago": ({"host": "b", "boot": "boot-b", "wall_s": NOW.wall_s - 3660}, ENDED),
    "on another host, ahead by 50 minutes": (
        {"host": "b", "boot": "boot-b", "wall_s": NOW.wall_s + 3000},
        LIVE,
    ),
    "on another host, ahead by 61 minutes": (
        {"host": "b", "boot": "boot-b", "wall_s": NOW.wall_s + 3660},
        ENDED,
    ),
    "a kernel that tells no boot, a minute ago": ({"boot": "", "wall_s": NOW.wall_s - 60}, LIVE),
    "a kernel that tells no boot, two hours ago": ({"boot": "", "wall_s": NOW.wall_s - 2 * HOUR}, ENDED),
}


@pytest.mark.parametrize(("then", "live"), CASES.values(), ids=CASES)
def test_a_lease_holds_for_an_hour_by_the_clock_that_can_be_trusted(
    then: dict[str, object], live: bool
) -> None:
    lease = Lease("a1", SINCE, replace(NOW, **then))  # type: ignore[arg-type]
    assert lease.live(NOW) is live


def test_without_a_boot_on_either_side_the_wall_clock_decides() -> None:
    nameless = replace(NOW, boot="")
    assert Lease(None, SINCE, replace(nameless, boottime_s=0.0)).live(nameless)
    assert not Lease(None, SINCE, replace(nameless, wall_s=0.0)).live(nameless)


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.floats(0, 1e9), st.floats(0, 2 * LEASE_S))
def test_no_jump_of_the_wall_clock_changes_a_lease(
    before: float, after: float, up: float, passed: float
) -> None:
    then, now = Moment("a", "b1", up, before), Moment("a", "b1", up + passed, after)
    assert Lease("a1", SINCE, then).live(now) is (now.boottime_s - then.boottime_s < LEASE_S)


class TestFiles:
    def test_a_lease_is_taken_renewed_and_dropped(self, hostile: Path) -> None:
        folder = hostile / "runs" / ".leases"
        assert leases.read(folder) == {}
        before = leases.now()
        taken = leases.take(folder, 3, "a1", SINCE)
        assert leases.read(folder) == {3: taken}
        assert (taken.session, taken.since) == ("a1", SINCE)
        assert before.boottime_s <= taken.renewed.boottime_s <= leases.now().boottime_s
        renewed = leases.renew(folder, 3, "a1", SINCE)
        assert renewed is not None
        assert renewed.renewed.boottime_s > taken.renewed.boottime_s
        assert leases.read(folder) == {3: renewed}
        assert renewed.live(leases.now())
        other = leases.take(folder, 12, None, SINCE)
        assert leases.read(folder) == {3: renewed, 12: other}
        leases.drop(folder, 3)
        leases.drop(folder, 3)
        assert leases.read(folder) == {12: other}

    def test_dropping_what_never_was_makes_nothing(self, tmp_path: Path) -> None:
        leases.drop(tmp_path / ".leases", 1)
        assert list(tmp_path.iterdir()) == []

    def test_the_file_says_everything_for_people_too(self, tmp_path: Path) -> None:
        leases.take(tmp_path, 1, None, SINCE)
        said = json.loads((tmp_path / "h1.json").read_text())
        assert (said["session"], said["since"]) == (None, SINCE)
        assert set(said) == {"session", "since", "host", "boot", "boottime_s", "wall_s"}
        assert said["boot"] and said["host"] == os.uname().nodename
        assert abs(said["wall_s"] - time.time()) < 60

    @pytest.mark.parametrize(
        ("session", "since"), [("a2", SINCE), (None, SINCE), ("a1", "2026-11-21T11:00:00+00:00")]
    )
    def test_a_lost_claim_renews_nothing(self, tmp_path: Path, session: str | None, since: str) -> None:
        taken = leases.take(tmp_path, 1, "a1", SINCE)
        assert leases.renew(tmp_path, 1, session, since) is None
        assert leases.renew(tmp_path, 2, "a1", SINCE) is None
        assert leases.read(tmp_path) == {1: taken}

    def test_a_lease_that_ended_may_be_renewed_by_its_holder(self, tmp_path: Path) -> None:
        leases.take(tmp_path, 1, "a1", SINCE)
        path = tmp_path / "h1.json"
        said = json.loads(path.read_text())
        path.write_text(json.dumps({**said, "boottime_s": said["boottime_s"] - 2 * HOUR}))
        assert not leases.read(tmp_path)[1].live(leases.now())
        renewed = leases.renew(tmp_path, 1, "a1", SINCE)
        assert renewed is not None and renewed.live(leases.now())


GOOD = {"session": "a1", "since": SINCE, "host": "a", "boot": "b", "boottime_s": 1, "wall_s": 2.5}


def changed(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "cut off": changed()[:-9],
    "no UTF-8": b'{"session": "\xff"}',
    "no object": b"[1, 2]",
    "another program's": b'{"pid": 12}',
    "deep": b"[" * 4000,
    "endless": b'{"since": "' + b"x" * 100_000 + b'"}',
    "a number of a session": changed(session=7),
    "no session": json.dumps({k: v for k, v in GOOD.items() if k != "session"}).encode(),
    "no time": changed(boottime_s=None),
    "a text for a time": changed(wall_s="now"),
    "not a number": b'{"session": null, "since": "", "host": "", "boot": "", "boottime_s": NaN, "wall_s": 1}',
    "infinite": changed(wall_s=float("inf")),
    "beyond any number": changed(boottime_s=10**400),
}


class TestNoLease:
    @pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
    def test_what_is_broken_is_none_and_may_be_replaced(self, tmp_path: Path, data: bytes) -> None:
        good = leases.take(tmp_path, 1, "a1", SINCE)
        (tmp_path / "h2.json").write_bytes(data)
        assert leases.read(tmp_path) == {1: good}
        assert leases.renew(tmp_path, 2, "a1", SINCE) is None
        taken = leases.take(tmp_path, 2, "a1", SINCE)
        assert leases.read(tmp_path) == {1: good, 2: taken}

    @pytest.mark.parametrize(
        "name", ["h0.json", "h01.json", "h-1.json", "h1.json.tmp", ".h1.json.x.tmp", "H1.json", "h².json"]
    )
    def test_other_names_are_none(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(changed())
        assert leases.read(tmp_path) == {}

    @pytest.mark.parametrize(
        "make", [os.mkdir, os.mkfifo, lambda p: os.symlink("/nowhere", p), lambda p: os.symlink(p, p)]
    )
    def test_what_is_no_file_is_none(self, tmp_path: Path, make: Callable[[Path], None]) -> None:
        make(tmp_path / "h1.json")
        assert leases.read(tmp_path) == {}

    def test_a_lease_that_leads_elsewhere_is_not_written(self, tmp_path: Path) -> None:
        folder, outside = tmp_path / "leases", tmp_path / "precious"
        folder.mkdir()
        outside.write_text("mine")
        (folder / "h1.json").symlink_to(outside)
        with pytest.raises(StoreError) as caught:
            leases.take(folder, 1, "a1", SINCE)
        assert caught.value.next
        assert outside.read_text() == "mine"

    @pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root may")
    def test_what_may_not_be_read_has_not_ended(self, tmp_path: Path) -> None:
        leases.take(tmp_path, 1, "a1", SINCE)
        (tmp_path / "h1.json").chmod(0o600)
        here = os.open(tmp_path, os.O_RDONLY)

        def read() -> None:
            # Its own folders are closed to others, but what is open may be passed through.
            os.fchdir(here)
            with pytest.raises(store.NotPermitted):
                leases.read(Path("."))
            with pytest.raises(store.NotPermitted):
                leases.take(Path("."), 1, "a2", SINCE)

        tmp_path.chmod(0o777)
        (tmp_path / ".lock").chmod(0o666)
        assert as_user(NOBODY, read) == 0
        os.close(here)


def test_a_full_disk_leaves_the_old_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = leases.take(tmp_path, 1, "a1", SINCE)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="free some disk space"):
        leases.renew(tmp_path, 1, "a1", SINCE)
    assert leases.read(tmp_path) == {1: taken}
    assert sorted(os.listdir(tmp_path)) == [".lock", "h1.json"]


def test_whenever_a_renewal_is_killed_the_lease_is_whole(tmp_path: Path) -> None:
    leases.take(tmp_path, 1, "a1", SINCE)
    dice = random.Random(4)

    def renew_for_ever() -> None:
        while True:
            leases.renew(tmp_path, 1, "a1", SINCE)

    for _ in range(30):
        pid = fork(renew_for_ever)
        time.sleep(dice.uniform(0.002, 0.03))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert leases.read(tmp_path)[1].since == SINCE
        assert leases.renew(tmp_path, 1, "a1", SINCE) is not None


def test_renewals_and_takings_at_once_never_bring_a_lost_claim_back(tmp_path: Path) -> None:
    """Eight old holders renew all the time; whoever took the lease last has it in the end."""
    leases.take(tmp_path, 1, "a0", SINCE)

    def renew_for_ever(session: str) -> None:
        while True:
            leases.renew(tmp_path, 1, session, SINCE)

    pids = []
    try:
        for n in range(8):
            pids.append(fork(lambda n=n: renew_for_ever(f"a{n}")))  # type: ignore[misc]
        for n in range(1, 60):
            leases.take(tmp_path, 1, f"a{n}", SINCE)
            assert leases.read(tmp_path)[1].session == f"a{n}"
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert leases.read(tmp_path)[1].session == "a59"
