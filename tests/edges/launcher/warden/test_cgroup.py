from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.support.processes import spec_for, wait_until

from gpudebug.edges.launcher import launch
from gpudebug.edges.launcher.warden import cgroup
from gpudebug.edges.launcher.warden.cgroup import Cgroup, folder_name


@pytest.fixture
def group(tmp_path: Path) -> Cgroup:
    made = Cgroup.create(str(tmp_path))
    if made is None:
        pytest.skip("no writable cgroup here")
    yield made
    made.kill()
    wait_until(made.remove)


def fill(group: Cgroup, command: str = "sleep 60") -> subprocess.Popen:
    """A process that is a member before it starts its command."""
    return subprocess.Popen(["sh", "-c", f"echo 0 > '{group.folder}/cgroup.procs'; {command}"])


NAMES = ["m", "runs/0001 b", "runs/0001_b", "../../x", "ü" * 500, "a\nb", "\udcff"]


@pytest.mark.parametrize("marker", NAMES)
def test_a_name_is_one_safe_path_component(marker: str) -> None:
    name = folder_name(marker)
    assert name.startswith("gpudebug-")
    assert len(name) < 200
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def test_markers_that_differ_have_names_that_differ() -> None:
    assert len({folder_name(marker) for marker in NAMES}) == len(NAMES)


def test_members_are_killed_and_the_group_goes(group: Cgroup, tmp_path: Path) -> None:
    child = fill(group, "mkdir -p '" + group.folder + "/inner'; sleep 60 & sleep 60")
    wait_until(lambda: len(group.pids()) == 3)
    assert not group.remove(), "it still has members"
    assert [found.folder for found in Cgroup.find(str(tmp_path))] == [group.folder]
    group.kill()
    child.wait()
    wait_until(group.remove)
    assert not Path(group.folder).exists()
    assert group.pids() == []
    assert group.remove(), "gone already"
    group.kill()
    assert list(Cgroup.find(str(tmp_path))) == []


def test_a_used_group_is_not_taken_over(group: Cgroup, tmp_path: Path) -> None:
    again = Cgroup.create(str(tmp_path))
    assert again is not None, "an empty one left by a killed warden is"
    child = fill(group)
    wait_until(group.pids)
    assert Cgroup.create(str(tmp_path)) is None
    group.kill()
    child.wait()


@pytest.mark.parametrize("switch", ["auto", "off"])
def test_the_job_runs_inside(group: Cgroup, tmp_path: Path, switch: str) -> None:
    spec = spec_for(("cat", "/proc/self/cgroup"), tmp_path / "run", cgroup=switch)
    launch(spec)
    inside = folder_name(spec.marker) in (tmp_path / "run/train.log").read_text()
    assert inside is (switch == "auto")
    assert list(Cgroup.find(spec.marker)) == []


@pytest.mark.parametrize(
    ("mountinfo", "own", "expected"),
    [
        (
            "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/user.slice/a\n",
            "/sys/fs/cgroup/user.slice/a",
        ),
        ("30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/\n", "/sys/fs/cgroup"),
        ("30 1 0:26 /pod /cg rw shared:4 - cgroup2 none rw\n", "3:cpu:/x\n0::/pod/job\n", "/cg/job"),
        ("30 1 0:26 / /my\\040cg rw - cgroup2 none rw\n", "0::/x\n", "/my cg/x"),
        ("30 1 0:26 /pod /cg rw - cgroup2 none rw\n", "0::/elsewhere\n", None),
        ("30 1 0:26 / /cg rw - cgroup2 none rw\n", "0::/../other\n", None),
        ("30 1 0:26 / /cg rw - cgroup cgroup rw,cpu\n", "0::/x\n", None),
        ("30 1 0:26 / /cg rw - cgroup2 none rw\n", "4:memory:/x\n", None),
        ("", "", None),
    ],
)
def test_where_the_own_group_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mountinfo: str, own: str, expected: str | None
) -> None:
    (tmp_path / "mountinfo").write_text(mountinfo)
    (tmp_path / "cgroup").write_text(own)
    monkeypatch.setattr(cgroup, "SELF", str(tmp_path))
    assert cgroup.own_folder() == expected


def test_nowhere_to_write_means_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text("30 1 0:26 / /proc rw - cgroup2 none rw\n")
    (tmp_path / "cgroup").write_text("0::/\n")
    monkeypatch.setattr(cgroup, "SELF", str(tmp_path))
    assert Cgroup.create("m") is None
