"""A training that does not run below its command is refused before anything is launched."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.campaigns import gpudebug, make_repository

from gpudebug.engine.run.reach import beyond_reach

CONFIG = """\
campaign: test
workload: {command: bash launch.sh}
device: cpu:1
"""
SCRIPT = "set -e\nssh box python train.py\n"


def test_scripts_of_shells_are_read(tmp_path: Path) -> None:
    (tmp_path / "launch.sh").write_text(SCRIPT)
    beyond = beyond_reach(["bash", "launch.sh"], tmp_path)
    assert beyond is not None
    assert beyond.client == "ssh"
    assert beyond_reach(["bash", "other.sh"], tmp_path) is None


@pytest.mark.parametrize("command", [("baseline",), ("next",)])
def test_no_baseline_rests_on_it(tmp_path: Path, command: tuple[str, ...]) -> None:
    folder = make_repository(tmp_path / "repo", {"launch.sh": SCRIPT, "gpudebug.yaml": CONFIG})
    error = gpudebug(folder, "--json", *command).expect(1).json["error"]
    assert error["code"] == "out_of_reach"
    assert error["message"].startswith("`ssh` runs the training on another host")
    assert "gpudebug why --" in error["next"]
    assert not list((folder / "runs").glob("0*"))


def test_a_look_at_it_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text("#!/bin/sh\n")
    (tmp_path / "ssh").chmod(0o755)
    error = gpudebug(tmp_path, "--json", "why", "--", "./ssh", "box", "python", "train.py").expect(1).json
    assert error["error"]["code"] == "out_of_reach"
    assert [p.name for p in tmp_path.iterdir()] == ["ssh"]


@pytest.mark.slow
def test_of_a_container_on_this_host_the_devices_are_shown_and_no_cause(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "docker").chmod(0o755)
    words = ("--json", "why", "--for", "7s", "--device=cpu:1", "--", "./docker", "run", "image", "train")
    answer = gpudebug(tmp_path, *words).expect(0).json
    assert answer["devices"]
    assert answer["causes"] == []
    assert "runs the training in a container" in answer["problem"]
