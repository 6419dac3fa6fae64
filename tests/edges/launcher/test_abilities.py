"""What this machine offers to end process trees: asked, never assumed, and left as it was."""

from __future__ import annotations

import os

from gpudebug.edges.launcher.abilities import containment
from gpudebug.edges.launcher.warden import processes
from gpudebug.edges.launcher.warden.cgroup import own_folder


def test_the_means_are_those_of_this_machine() -> None:
    before = processes.is_subreaper()
    found = containment()
    assert set(found) == {"subreaper", "pidfd", "cgroup"}
    assert found["subreaper"] is True
    assert found["pidfd"] is hasattr(os, "pidfd_open")
    folder = own_folder()
    assert found["cgroup"] is (folder is not None and os.access(folder, os.W_OK))
    assert processes.is_subreaper() is before


def test_being_one_already_it_stays_one() -> None:
    before = processes.is_subreaper()
    processes.set_subreaper(True)
    try:
        assert containment()["subreaper"] is True
        assert processes.is_subreaper() is True
    finally:
        processes.set_subreaper(before)
