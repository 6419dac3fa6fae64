"""The GPUs of all nodes that a run spans: sampled where they are, joined by node, unknown if they are not."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from signal import SIGINT
from typing import Any

import pytest
from tests.support import nvml
from tests.support.campaigns import Campaign, make_campaign, wait_for
from tests.support.node_steps import FIRST, OTHER, TwoNodes

from gpudebug.core.evidence.build import build
from gpudebug.core.evidence.run_readings import EndedRun, RunReadings
from gpudebug.core.records import DeviceInfo
from gpudebug.core.samples.row import HEADER, DeviceReading, csv_row
from gpudebug.core.samples.table import SampleTable, read_samples
from gpudebug.core.trainlog.reader import LogReader
from gpudebug.core.words import Outcome
from gpudebug.edges import clusters, launcher
from gpudebug.edges.clusters import steps
from gpudebug.edges.clusters.steps import RunningStep
from gpudebug.edges.launcher import Launched, Tick
from gpudebug.engine.run import counts, nodes
from gpudebug.engine.run.files import Files
from gpudebug.engine.run.nodes import FoundNodes, NodeSamplers, find_nodes, first_alone, sampled_beside

COMMAND = f"{shlex.quote(sys.executable)} train.py --duration=6"


def baseline(tmp_path: Path, two: TwoNodes) -> tuple[Campaign, Path]:
    campaign = make_campaign(tmp_path / "repo", device="nvml", command=COMMAND)
    campaign.run("baseline", env=two.env).expect(0)
    return campaign, campaign.folder / "runs" / "0001-baseline-workload"


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


@pytest.mark.slow
def test_the_gpus_of_the_other_node_are_sampled_and_named_by_node(tmp_path: Path) -> None:
    two = TwoNodes(tmp_path / "nodes", "util=20 power=100")
    campaign, folder = baseline(tmp_path, two)
    record, evidence = read(folder, "run.json"), read(folder, "evidence.json")
    assert [(d["node"], d["uuid"]) for d in record["devices"]] == [("n0", FIRST), ("n1", OTHER)]
    # One host has one clock.
    assert abs(record["node"]["clocks"].pop("n1")) < 0.05
    assert record["node"]["clocks"] == record["node"]["unsampled"] == {}
    # Both are GPU 0 of their nodes.
    assert [(d["node"], d["index"], round(d["gpu_util"]["mean"], 1)) for d in evidence["devices"]] == [
        ("n0", 0, 80.0),
        ("n1", 0, 20.0),
    ]
    assert round(evidence["utilisation"], 1) == 50.0
    assert [round(d["power_w"]["mean"]) for d in evidence["devices"]] == [300, 100]
    assert "samples.n1.csv" in read(folder, "manifest.json")["files"]
    assert record["written"]["samples.n1.csv"]["bytes"] == (folder / "samples.n1.csv").stat().st_size
    status = " ".join(campaign.run("status", env=two.env).expect(0).out.split())
    assert "least 20.0% (GPU 0 on n1), median 50.0%, most 80.0% (GPU 0 on n0)" in status
    assert campaign.json("verify", env=two.env)["problems"] == []
    with (folder / "samples.n1.csv").open("a") as samples:
        samples.write("9,9\n")
    assert [p["field"] for p in campaign.json("verify", env=two.env, status=1)["problems"]] == [
        "samples.n1.csv"
    ]
    # A node that is silent later is still one of the run's, and its device unknown.
    through(two, "exit 1")
    campaign.run("baseline", env=two.env).expect(0)
    later = folder.with_name("0003-baseline-workload")
    assert [d["uuid"] for d in read(later, "run.json")["devices"]] == [FIRST, OTHER]
    assert read(later, "run.json")["node"]["unsampled"] == {"n1": "its sampler did not answer"}
    assert read(later, "evidence.json")["utilisation"] is None
    assert campaign.json("verify", env=two.env)["problems"] == []


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TwoNodes]:
    """Puts this process on node n0 of two."""

    def enter(**more: Any) -> TwoNodes:
        two = TwoNodes(tmp_path / "nodes", "util=20", **more)
        for name, value in two.env.items():
            monkeypatch.setenv(name, value)
        return two

    return enter


def table(rows: Sequence[DeviceReading]) -> SampleTable:
    return read_samples([HEADER, *map(csv_row, rows)], "samples.csv")


OWN = (DeviceInfo(index=0, uuid=FIRST, name="GPU", kind="nvml"),)
ORDER = {"interval": 0.05, "host_interval": 1.0, "marker": "a run"}


def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "samples.csv", tmp_path / "train.log", tmp_path / "sampler.json", nodes=("n1",))


def sampled(tmp_path: Path, found: FoundNodes, seconds: float = 0.5) -> NodeSamplers:
    """What became of the samplers of a run that lasted so long."""
    with sampled_beside(found.others, files(tmp_path), ORDER) as samplers:
        samplers.seeing(lambda tick: None)(Tick(0.1, 0, None))
        time.sleep(seconds)
        samplers.end(seconds + 0.1)
    return samplers


def test_a_run_beside_which_another_node_is_sampled(tmp_path: Path, around: Callable[..., TwoNodes]) -> None:
    around()
    found = find_nodes(OWN, None, {})
    assert [(d.node, d.uuid) for d in found.devices] == [("n0", FIRST), ("n1", OTHER)]
    assert found.notes == ()
    samplers = sampled(tmp_path, found)
    text = (tmp_path / "samples.n1.csv").read_text()
    assert samplers.counted["samples.n1.csv"]["bytes"] == len(text)
    times = [float(line.partition(",")[0]) for line in text.splitlines()[1:]]
    assert 0.1 <= min(times) < max(times)
    assert samplers.unsampled == {}


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"version": "20.11.9"}, "Slurm 20.11 has no step that shares memory and GPUs"),
        ({"before": "echo 'srun: error: Unable to create step' >&2; exit 1"}, "Unable to create step"),
        ({"before": "exec sleep 600"}, "its sampler did not answer"),
        ({"before": "export LD_LIBRARY_PATH={none}"}, "no NVIDIA driver here"),
        ({"before": 'echo \'{{"node": "n1", "devices": [7]}}\'; exec sleep 600'}, "did not answer"),
    ],
)
def test_a_node_that_cannot_be_sampled_is_unknown_and_said(
    tmp_path: Path,
    around: Callable[..., TwoNodes],
    monkeypatch: pytest.MonkeyPatch,
    how: dict[str, str],
    why: str,
) -> None:
    if "sleep" in str(how):
        monkeypatch.setattr(nodes, "READY_S", 0.3)
        monkeypatch.setattr(nodes, "ENDS_S", 0.1)
    none = nvml.no_driver(tmp_path)["LD_LIBRARY_PATH"]
    around(**{key: text.format(none=none) for key, text in how.items()})
    found = find_nodes(OWN, None, {})
    assert [d.node for d in found.devices] == ["n0"]
    assert found.others is not None
    assert why in found.others.unsampled["n1"]
    assert found.notes == (f"the devices of node n1 are unknown: {found.others.unsampled['n1']}",)
    # Nothing is tried again, and nothing lies in the run's folder.
    with sampled_beside(found.others, files(tmp_path), ORDER) as samplers:
        samplers.end(1.0)
    assert not (tmp_path / "samples.n1.csv").exists()


def test_a_sampler_that_is_lost_costs_its_figures_and_nothing_else(
    tmp_path: Path, around: Callable[..., TwoNodes]
) -> None:
    two = around()
    found = find_nodes(OWN, None, {})
    # From now on a step on n1 is cut off.
    srun = two.folder / "bin" / "srun"
    srun.write_text(srun.read_text().replace('exec "$@"', 'timeout -s KILL 1.5 "$@"'))
    samplers = sampled(tmp_path, found, 2.5)
    assert (samplers.counted, samplers.silent) == ({}, {"n1"})
    assert samplers.unsampled == {"n1": "its sampler ended early"}


def through(two: TwoNodes, command: str) -> None:
    """From now on a step's program is run so on n1."""
    srun = two.folder / "bin" / "srun"
    srun.write_text(srun.read_text().replace('exec "$@"', command))


def test_a_sampler_without_a_last_word_has_its_rows_up_to_its_last_count(
    tmp_path: Path, around: Callable[..., TwoNodes]
) -> None:
    two = around()
    found = find_nodes(OWN, None, {})
    through(two, '"$@" | grep --line-buffered -v notes')
    samplers = sampled(tmp_path, found, 2.8)
    path = tmp_path / "samples.n1.csv"
    assert samplers.unsampled == {}
    assert samplers.counted["samples.n1.csv"]["bytes"] == path.stat().st_size
    assert 2.0 <= float(path.read_text().splitlines()[-1].partition(",")[0]) < 2.8
    assert counts.compare(files(tmp_path), launched(), samplers.counted).altered == {}
    # What was counted long before the end says nothing of the end.
    with sampled_beside(found.others, files(tmp_path), ORDER) as early:
        early.seeing(lambda tick: None)(Tick(2.5, 0, None))
        time.sleep(0.5)
        early.end(60.0)
    assert (early.counted, early.unsampled) == ({}, {"n1": "its sampler ended early"})
    assert early.silent == {"n1"}


def launched() -> Launched:
    return Launched(Outcome.COMPLETED, 0, None, None, 0.0, 1.0, 0, None)


def test_a_file_that_is_short_of_its_count_makes_its_node_unknown_and_not_the_run(
    tmp_path: Path, around: Callable[..., TwoNodes]
) -> None:
    around()
    samplers = sampled(tmp_path, find_nodes(OWN, None, {}))
    path = tmp_path / "samples.n1.csv"
    path.write_text(path.read_text()[:-10])
    found = counts.compare(files(tmp_path), launched(), samplers.counted)
    assert (found.altered, list(found.short), found.written) == ({}, ["samples.n1.csv"], {})
    samplers.lose(found.short)
    assert samplers.counted == {}
    assert samplers.unsampled["n1"].startswith("its samples are not all there: it has ")
    assert files(tmp_path).without(found.short).beside == {}


def test_what_this_host_lacks_makes_the_others_unknown(
    tmp_path: Path, around: Callable[..., TwoNodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    around()
    found = find_nodes(OWN, None, {})
    gone = files(tmp_path / "gone")
    with sampled_beside(found.others, gone, ORDER) as samplers:
        samplers.end(1.0)
    assert list(samplers.unsampled) == ["n1"]
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
        without = find_nodes(OWN, None, {})
        with sampled_beside(found.others, files(tmp_path), ORDER) as samplers:
            samplers.end(1.0)
    assert without.others is not None
    assert [without.others.unsampled, samplers.unsampled] == [{"n1": "No such file or directory"}] * 2
    broken = sampled_until(tmp_path, found, lambda step: monkeypatch.setattr(step, "messages", fail))
    assert broken.unsampled == {"n1": "Stale file handle"}


def fail() -> None:
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def sampled_until(
    tmp_path: Path, found: FoundNodes, then: Callable[[RunningStep], object], seconds: float = 0.2
) -> NodeSamplers:
    """The samplers of a run at whose end something becomes of their step."""
    with sampled_beside(found.others, files(tmp_path), ORDER) as samplers:
        samplers.seeing(lambda tick: None)(Tick(0.1, 0, None))
        assert samplers._running is not None
        then(samplers._running)
        samplers.end(seconds)
        # Once more at the end of the block.
        samplers._running = None
    return samplers


def test_an_interrupt_at_the_end_takes_nothing_from_the_run(
    tmp_path: Path, around: Callable[..., TwoNodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    two = around()
    found = find_nodes(OWN, None, {})
    through(two, f'"$@"; touch {tmp_path}/over; exec sleep 600')
    monkeypatch.setattr(steps, "HURRIED_S", 0.1)

    def press(_step: object) -> None:
        threading.Thread(
            target=lambda: (wait_for((tmp_path / "over").exists, 30), os.kill(me, SIGINT))
        ).start()

    me = os.getpid()
    samplers = sampled_until(tmp_path, found, press)
    assert (list(samplers.counted), samplers.unsampled) == (["samples.n1.csv"], {})
    with pytest.raises(KeyboardInterrupt):
        launcher.raise_held()
    launcher.raise_held()


def test_a_device_that_was_not_sampled_is_unknown_with_the_reason() -> None:
    run = EndedRun(
        name="r",
        role="workload",
        outcome=Outcome.COMPLETED,
        devices=(*OWN, DeviceInfo(index=0, uuid=OTHER, name="GPU", kind="nvml", node="n1")),
        unsampled={"n1": "its sampler ended early"},
    )
    rows = [DeviceReading(elapsed=t / 5, gpu_util=90.0, gpu_index=0, gpu_uuid=FIRST) for t in range(60)]
    evidence = build(run, RunReadings(samples=table(rows), log=LogReader().summary()))
    assert [(d.node, d.gpu_util is None, d.reason) for d in evidence.devices][1:] == [
        ("n1", True, "its sampler ended early")
    ]
    assert evidence.utilisation is None


def test_one_node_the_stand_in_and_a_recording_ask_nobody(
    around: Callable[..., TwoNodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    two = around()
    cpu = find_nodes((DeviceInfo(index=0, uuid="CPU", name="CPU", kind="cpu"),), None, {})
    assert (cpu.others, cpu.devices[0].node) == (None, None)
    assert "measures node n0 alone" in cpu.notes[0]
    replay = find_nodes((DeviceInfo(index=0, uuid=FIRST, name="GPU", kind="replay"),), None, {})
    assert replay == FoundNodes(replay.devices)
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n0")
    assert find_nodes(OWN, None, {}) == FoundNodes(OWN)
    monkeypatch.delenv("SLURM_JOB_ID")
    assert find_nodes(OWN, None, {}) == FoundNodes(OWN)
    assert not (two.folder / "calls").exists()


def test_a_training_that_sees_fewer_gpus_is_sampled_on_these(
    around: Callable[..., TwoNodes],
) -> None:
    two = around()
    (two.folder / "n1").write_text(f"count=2\ngpu 0 uuid=GPU-cc\ngpu 1 uuid={OTHER}\n")
    assert [d.uuid for d in find_nodes(OWN, None, {}).devices] == [FIRST, "GPU-cc", OTHER]
    found = find_nodes(OWN, None, {"CUDA_VISIBLE_DEVICES": "1"})
    assert [d.uuid for d in found.devices] == [FIRST, OTHER]
    assert found.others is not None
    assert found.others.devices == {"n1": {"kind": "nvml", "uuids": [OTHER]}}


def test_a_node_that_is_silent_once_is_asked_again(
    tmp_path: Path, around: Callable[..., TwoNodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    around(before=f"if mkdir {tmp_path / 'once'}; then exit 1; fi")
    found = find_nodes(OWN, None, {})
    assert [(d.node, d.uuid) for d in found.devices] == [("n0", FIRST), ("n1", OTHER)]
    assert (found.notes, found.others and found.others.unsampled) == ((), {})


def ran_across(first: str, *others: str, **node: object) -> dict[str, Any]:
    """The run.json of a run in this allocation whose other node had a GPU."""
    around = clusters.inside()
    assert around is not None
    theirs = DeviceInfo(index=0, uuid=OTHER, name="GPU", kind="nvml", node="n1", processes=(7,))
    there = {"name": first, "nodes": [first, *others], "allocation": around.allocation}
    record = {"name": "0001-baseline", "node": {**there, **node}}
    return {**record, "devices": [theirs.model_dump(mode="json")]}


def test_a_silent_node_has_the_devices_that_it_had_in_a_run_of_this_allocation(
    tmp_path: Path, around: Callable[..., TwoNodes]
) -> None:
    two = around(before=f"if [ -e {tmp_path}/dead ]; then exit 1; fi")
    (tmp_path / "dead").touch()
    found = find_nodes(OWN, None, {}, [ran_across("n0", "n1"), {"name": "0002-imported"}])
    assert [(d.node, d.uuid, d.processes) for d in found.devices[1:]] == [("n1", OTHER, ())]
    assert found.others is not None
    assert (found.others.devices, found.others.unsampled) == (
        {"n1": {"kind": "nvml", "uuids": [OTHER]}},
        {},
    )
    assert found.notes[0].endswith(": taken to be those of run 0001-baseline")
    # It is asked at each run all the same.
    assert sampled(tmp_path, found).unsampled == {"n1": "its sampler did not answer"}
    (tmp_path / "dead").unlink()
    assert sampled(tmp_path, found).unsampled == {}
    (tmp_path / "dead").touch()
    foreign = {**ran_across("n0", "n1"), "devices": [{"uuid": "a", "name": "b"}]}
    null = {**foreign, "devices": None}
    elsewhere = (
        ran_across("n0", "n1", allocation="1.7"),
        ran_across("n1", "n0"),
        ran_across("n0", allocation=None),
    )
    for other in (*elsewhere, foreign, null):
        assert [d.node for d in find_nodes(OWN, None, {}, [other]).devices] == ["n0"]
    srun = two.folder / "bin" / "srun"
    srun.write_text(srun.read_text().replace("22.05.8", "20.11.9"))
    older = find_nodes(OWN, None, {}, [ran_across("n0", "n1")])
    assert [d.node for d in older.devices] == ["n0", "n1"]
    assert older.others is not None
    assert "Slurm 20.11" in older.others.unsampled["n1"]


def test_outside_of_a_campaign_it_is_said_that_one_node_is_sampled(
    around: Callable[..., TwoNodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    around()
    assert first_alone() == ("outside of a campaign node n0 alone is sampled, not n1",)
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n0")
    assert first_alone() == ()


def test_a_file_of_another_node_that_the_job_wrote_to_is_not_believed(
    tmp_path: Path, around: Callable[..., TwoNodes]
) -> None:
    around()
    samplers = sampled(tmp_path, find_nodes(OWN, None, {}))
    path = tmp_path / "samples.n1.csv"
    assert counts.compare(files(tmp_path), launched(), samplers.counted).altered == {}
    path.write_text(path.read_text().replace(",2048,", ",9999,"))
    found = counts.compare(files(tmp_path), launched(), samplers.counted)
    assert list(found.altered) == ["samples.n1.csv"]
    assert counts.ending(launched(), found.altered).outcome is Outcome.SAMPLER_LOST
    assert files(tmp_path).without(found.altered).beside == {}


def test_two_nodes_of_one_host_have_one_gpu(around: Callable[..., TwoNodes]) -> None:
    two = around()
    (two.folder / "n1").write_text((two.folder / "n0").read_text())
    found = find_nodes(OWN, None, {})
    assert [d.node for d in found.devices] == ["n0"]
    assert found.others is not None
    assert (found.others.step, found.others.unsampled) == (None, {})


def test_nodes_that_are_too_many_or_oddly_named_are_left_out_and_said(
    around: Callable[..., TwoNodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    around(version="20.11")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[0-17],a/b")
    found = find_nodes(OWN, None, {})
    assert found.others is not None
    assert found.others.unsampled["a/b"] == "its name cannot be one of a file"
    assert found.others.unsampled["n17"] == "the job has more than 16 other nodes"
    assert "Slurm 20.11" in found.others.unsampled["n16"]
