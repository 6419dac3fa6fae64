from __future__ import annotations

import time

import psutil
import pytest
from tests.support.processes import wait_until

from gpudebug.core.errors import LaunchError
from gpudebug.edges.launcher.link import WardenLink


def test_a_warden_that_chokes_says_why_and_is_no_good_ending() -> None:
    link = WardenLink({"no": "specification"}, ())
    while link.open:
        link.wait(1.0, None)
    assert link.leave(10.0) is False
    assert "KeyError" in link.said


def test_one_that_does_not_go_is_killed_after_the_patience() -> None:
    link = WardenLink({}, ())
    warden = psutil.Process(link.pid)
    warden.suspend()
    begin = time.monotonic()
    assert link.leave(0.3) is False
    assert time.monotonic() - begin >= 0.3
    assert not psutil.pid_exists(link.pid)


def test_a_command_wakes_a_stopped_warden() -> None:
    link = WardenLink({}, ())
    warden = psutil.Process(link.pid)
    warden.suspend()
    wait_until(lambda: warden.status() == psutil.STATUS_STOPPED)
    link.command("kill INTERRUPTED")
    wait_until(lambda: warden.status() != psutil.STATUS_STOPPED)
    link.kill()
    link.leave(5.0)


def test_no_process_to_be_had_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")
    with pytest.raises(LaunchError, match="cannot start a process") as caught:
        WardenLink({}, ())
    assert caught.value.status == 125
