"""`gpudebug doctor`: every failing line says how to mend it, and looking changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, contents, gpudebug, make_campaign, record
from tests.support.slurm import SlurmSystem

from gpudebug.engine.tools.doctor import startable

ENTRY = "### Hypothesis 1: The loader waits\n- **Status**: UNTESTED\n"


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return make_campaign(tmp_path / "repo", progress=ENTRY)


def checks(answer: dict[str, object]) -> dict[str, dict[str, str]]:
    return {c["name"]: c for c in answer["checks"]}  # type: ignore[attr-defined]


def test_a_good_campaign_is_well(campaign: Campaign) -> None:
    before = contents(campaign.folder)
    answer = campaign.json("doctor")
    found = checks(answer)
    assert answer["ok"] is True
    assert set(found) >= {"python", "git", "device", "containment", "disk", "locks", "config", "progress"}
    assert {found[n]["result"] for n in ("git", "containment", "locks", "config", "progress")} == {"ok"}
    assert "1 hypothes" in found["progress"]["found"]
    assert contents(campaign.folder) == before


def spoil_config(c: Campaign) -> None:
    c.config.write_text("devise: cpu\n" + c.config.read_text())


def spoil_command(c: Campaign) -> None:
    c.config.write_text(c.config.read_text().replace("command: ", "command: no-such-program # "))


def spoil_progress(c: Campaign) -> None:
    c.progress.write_text(ENTRY + ENTRY)


def spoil_device(c: Campaign) -> None:
    c.config.write_text(c.config.read_text().replace("cpu:1", "replay:nowhere"))


FAILURES = {
    "config": (spoil_config, "devise"),
    "workload": (spoil_command, "not found"),
    "progress": (spoil_progress, "line 1"),
    "campaign device": (spoil_device, "nowhere"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_fails_is_named_with_what_mends_it(campaign: Campaign, name: str) -> None:
    spoil: Callable[[Campaign], None]
    spoil, said = FAILURES[name]
    spoil(campaign)
    answer = campaign.json("doctor", status=1)
    check = checks(answer)[name]
    assert check["result"] == "failed"
    assert said in check["found"]
    assert check["next"]
    done = campaign.run("doctor").expect(1)
    assert done.err == ""
    assert f"FAILED  {name}" in done.out
    assert f"next: {check['next']}" in done.out


def test_without_a_repository_or_campaign_it_still_answers(tmp_path: Path) -> None:
    done = gpudebug(tmp_path, "doctor").expect(1)
    assert "FAILED  git" in done.out
    assert "git init" in done.out
    assert "gpudebug init" in done.out
    assert list(tmp_path.iterdir()) == []


def test_a_cpu_is_never_presented_as_a_gpu(campaign: Campaign) -> None:
    device = checks(campaign.json("doctor", env={"CUDA_VISIBLE_DEVICES": ""}))["device"]
    assert device["result"] == "warning"
    assert "CPU" in device["found"]


def test_recordings_are_found_from_anywhere(campaign: Campaign) -> None:
    record(campaign.folder / "recorded", "0001-baseline-workload")
    campaign.config.write_text(campaign.config.read_text().replace("cpu:1", "replay:recorded@60x"))
    words = ("-C", str(campaign.folder))
    answer = gpudebug("/", *words, "doctor", "--json").expect(0).json
    assert checks(answer)["campaign device"]["result"] == "ok"
    assert gpudebug("/", *words, "next", "--json").expect(0).json["action"] == "recorded_baseline"


def test_a_python_of_the_repository_is_not_started_unasked(campaign: Campaign) -> None:
    assert startable(campaign.folder) == (sys.executable,)
    for folder, known in ((campaign.folder, False), (campaign.folder.parent, True)):
        python = folder / "python3"
        python.symlink_to(sys.executable)
        text = campaign.config.read_text().replace(sys.executable, str(python))
        (campaign.folder / "gpudebug.yaml").write_text(text)
        assert (str(python) in startable(campaign.folder)) is known
        campaign.config.write_text(text.replace(str(python), sys.executable))


def test_a_campaign_of_this_host_has_no_cluster(tmp_path: Path) -> None:
    done = make_campaign(tmp_path / "repo").run("doctor", "--cluster").expect(1)
    assert "runs are made on this host itself" in done.err


def test_it_checks_the_cluster_alone(tmp_path: Path) -> None:
    make_campaign(tmp_path / "repo").run("doctor", "--cluster", "--ask").expect(2)


@pytest.mark.slow
def test_two_nodes_of_a_real_slurm(tmp_path: Path, slurm: SlurmSystem) -> None:
    campaign = make_campaign(tmp_path / "repo", config="runner: {slurm: {}}\n")
    answer: Any = campaign.json("doctor", "--cluster", env=slurm.env, timeout=120)
    found = {check["name"]: check for check in answer["checks"]}
    assert answer["ok"], found
    assert found["request"]["found"] == "the partition has 1 node with gpu:1"
    assert found["folder"]["found"] == "n0, n1 see the campaign's folder"
    assert found["locks"]["found"] == "a lock of one node is respected on the other"
    assert found["hosts"]["result"] == "warning"
    assert slurm.queue() == {}
