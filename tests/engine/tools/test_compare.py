"""`gpudebug compare`: real commands in turn, recorded runs, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, Done, gpudebug, killed_at_the_end, wait_for
from tests.support.comparisons import run, stored

INFER = """\
import os, sys, time
pause = float(sys.argv[1])
print('latency: 300 ms')
for _ in range(30):
    began = time.perf_counter()
    time.sleep(pause)
    print(f'latency: {1000 * (time.perf_counter() - began):.1f} ms')
"""
SLOW, FAST = f"{sys.executable} infer.py 0.02", f"TORCH_COMPILE=1 {sys.executable} infer.py 0.005"
LOG = "".join(f"latency: {10 + i % 3} ms\n" for i in range(40))


def compare(folder: Path, *words: str, status: int = 0, **more: Any) -> Done:
    return gpudebug(folder, "compare", "--device=cpu:1", *words, **more).expect(status)


def refused(folder: Path, *words: str, status: int = 1) -> str:
    """The one line of an expected error."""
    (line,) = compare(folder, *words, status=status).err.splitlines()[-1:]
    assert line.startswith("gpudebug: ")
    assert "; next: " in line
    return line


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder in which an inference program was compared with a faster variant of itself."""
    folder = tmp_path_factory.mktemp("compared")
    (folder / "infer.py").write_text(INFER)
    return folder, compare(folder, SLOW, FAST, "--json").json


def test_two_commands_run_in_turn(compared: tuple[Path, Any]) -> None:
    folder, answer = compared
    assert {"ratio", "ratio_ci", "verdict", "a", "b", "differences"} <= answer.keys()
    assert (answer["verdict"], answer["figure"]) == ("faster", "latency")
    assert 1 < answer["ratio_ci"][0] < answer["ratio"] < answer["ratio_ci"][1]
    assert answer["ratio"] > 2
    assert answer["a"]["runs"] == ["0001-compare-a", "0003-compare-a"]
    assert answer["b"]["runs"] == ["0002-compare-b", "0004-compare-b"]
    assert sorted(p.name for p in folder.iterdir()) == ["compare-1", "infer.py"]
    for name in answer["files"]:
        assert (Path(name) / "manifest.json").exists()


ENDLESS = """\
import itertools, sys, time
for step in itertools.count(1):
    time.sleep(float(sys.argv[1]))
    print(f'step {step} loss {1 / step:.4f}', flush=True)
"""


@pytest.mark.slow
def test_commands_that_never_end_are_ended_alike(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ENDLESS)
    slow, fast = (f"{sys.executable} train.py {wait}" for wait in ("0.06", "0.01"))
    done = compare(tmp_path, slow, fast, "--run-for=5s", "--runs=1", "--json", timeout=300)
    assert "each run is ended after 5 s of steady work" in done.err
    answer = done.json
    assert (answer["verdict"], answer["figure"]) == ("faster", "throughput")
    assert answer["ratio"] > 2
    records = [json.loads((Path(folder) / "run.json").read_text()) for folder in answer["files"]]
    assert [r["outcome"] for r in records] == ["ENDED_BY_PLAN"] * 2
    assert any(note.startswith("gpudebug ended each run after 5 s") for note in answer["notes"])


def test_a_time_to_end_at_that_says_nothing_is_refused(compared: tuple[Path, Any]) -> None:
    line = refused(compared[0], SLOW, FAST, "--run-for=soon", status=2)
    assert "--run-for: expected auto, end, a duration such as 90s" in line
    a, b = compared[1]["files"][:2]
    line = refused(compared[0], a, b, "--run-for=9s", status=2)
    assert "--run-for and --timeout go with two commands" in line


def test_what_was_measured_of_each(compared: tuple[Path, Any]) -> None:
    a, b = compared[1]["a"], compared[1]["b"]
    assert b["latency"]["mean_s"] < a["latency"]["mean_s"] < 0.3 == a["latency"]["first_s"]
    assert a["latency"]["min_s"] >= 0.02
    assert a["latency"]["count"] + a["latency"]["warmup"] == 62
    assert a["wall_time"]["min_s"] >= 0.6
    assert a["peak_rss_mb"] > 1
    assert a["peak_device_mb"] is b["peak_device_mb"] is None
    assert (a["throughput"], a["utilisation"]) == (None, None)


def test_what_differs_between_them(compared: tuple[Path, Any]) -> None:
    differences = {d["name"]: (d["a"], d["b"]) for d in compared[1]["differences"]}
    assert differences == {"compile": ("not set", "on"), "arguments": ("0.02", "0.005")}
    assert {"warm-up", "device", "interpreter", "packages"} <= compared[1]["same"].keys()
    assert any("may have been cold" in note for note in compared[1]["notes"])
    assert compared[1]["a"]["stand_in"] is compared[1]["b"]["stand_in"] is True


def test_its_runs_can_be_compared_again(compared: tuple[Path, Any]) -> None:
    folder, answer = compared
    a, b = (os.path.relpath(answer["files"][i], folder) for i in (0, 2))
    text = compare(folder, a, b).out
    assert "Verdict: faster: B is " in text
    assert "by latency" in text
    assert "only one run a side" in text
    assert compare(folder, b, a, "--json").json["verdict"] == "slower"


def test_nothing_to_tell_apart(tmp_path: Path) -> None:
    answer = compare(tmp_path, "true", "true", "--runs=1", "--warm-up", "--json").json
    assert answer["verdict"] == "cannot_tell"
    assert answer["figure"] == "wall_time"
    assert answer["a"]["runs"] + answer["b"]["runs"] == ["0001-compare-a", "0002-compare-b"]
    assert len(list((tmp_path / "compare-1" / "runs").glob("0*"))) == 2
    assert any("the same command" in note for note in answer["notes"])
    assert not any("cold" in note for note in answer["notes"])


def test_a_command_that_fails_ends_it(tmp_path: Path) -> None:
    line = refused(tmp_path, "true", "sh -c 'echo out of luck >&2; exit 3'")
    assert "run 0002-compare-b of B did not complete: CRASHED (exception): out of luck" in line
    assert "compare-1/runs/0002-compare-b/train.log" in line
    assert (tmp_path / "compare-1" / "runs" / "0002-compare-b" / "manifest.json").exists()


def test_a_time_out_is_no_completed_run(tmp_path: Path) -> None:
    assert "TIMED_OUT" in refused(tmp_path, "sleep 60", "true", "--timeout=0.3s")


def test_ctrl_c_ends_it_and_keeps_what_was_run(tmp_path: Path) -> None:
    process = Campaign(tmp_path).start("compare", "--device=cpu:1", "sleep 600", "true")
    folder = tmp_path / "compare-1" / "runs" / "0001-compare-a"
    with killed_at_the_end(process):
        wait_for((folder / "samples.csv").exists)
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"run 0001-compare-a was interrupted" in said.splitlines()[-1]
    assert json.loads((folder / "run.json").read_text())["outcome"] == "INTERRUPTED"
    assert not (tmp_path / "compare-1" / "runs" / "0002-compare-b").exists()


NOTHING_RUNS = {
    "not found": (("true", "no-such-program"), 1, "no-such-program: command not found"),
    "a pipe": (("true", "true | cat"), 2, "B: | has a meaning of its own"),
    "an open quote": (("sh -c 'true", "true"), 2, "A: the quote ' is never closed"),
    "empty": (("true", ""), 2, "B: the command is empty"),
    "a missing run": (("true", "0007-h1"), 1, "the run is missing"),
    "a folder": (("true", "folder"), 1, "is not a run: it has no run.json"),
    "a baseline without a campaign": (("baseline", "1"), 1, "no gpudebug.yaml"),
    "no such device": (("true", "true", "--device=tpu"), 1, "tpu"),
}


@pytest.mark.parametrize(("words", "status", "said"), NOTHING_RUNS.values(), ids=NOTHING_RUNS)
def test_what_cannot_work_is_known_before_anything_runs(
    tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    (tmp_path / "folder").mkdir()
    assert said in refused(tmp_path, *words, status=status)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_run_and_a_command_are_not_measured_alike(tmp_path: Path) -> None:
    stored(tmp_path, run())
    assert "A is a recorded run and B is a command" in refused(tmp_path, "runs/0001-x", "true", status=2)


def test_secrets_of_a_command_are_not_shown(tmp_path: Path) -> None:
    words = ("API_TOKEN=hunter2hunter2 true", "true --password=swordfish1", "--runs=1", "--json")
    done = compare(tmp_path, *words)
    assert "hunter2" not in done.out + done.err
    assert "swordfish" not in done.out + done.err
    assert {"variable API_TOKEN", "--password"} <= {d["name"] for d in done.json["differences"]}


def two(folder: Path, **changes: Any) -> tuple[Path, Path]:
    """Two recorded runs, the second with `changes`."""
    a = stored(folder, run(facts={"name": "0001-a"}), LOG)
    b = stored(folder, run(**{"rate": 20.0, "wall": 30.0, "facts": {"name": "0002-b"}, **changes}), LOG)
    return a.path, b.path


def test_recorded_runs_are_compared_by_throughput(tmp_path: Path) -> None:
    two(tmp_path)
    answer = compare(tmp_path, "runs/0001-a", "runs/0002-b", "--json").json
    assert (answer["verdict"], answer["figure"], answer["ratio"]) == (
        "faster",
        "throughput",
        pytest.approx(2),
    )
    assert set(answer["ratios"]) == {"throughput", "latency", "wall_time"}
    assert answer["a"]["latency"]["mean_s"] == pytest.approx(0.011, rel=0.02)
    assert sorted(os.listdir(tmp_path)) == ["runs"]


ALTERED = {"run.json": ("30.0", "13.0"), "evidence.json": ("20.0", "29.0"), "train.log": ("10", "90")}


@pytest.mark.parametrize(("name", "digits"), ALTERED.items(), ids=ALTERED)
def test_an_altered_run_is_refused(tmp_path: Path, name: str, digits: tuple[str, str]) -> None:
    _, b = two(tmp_path)
    text = (b / name).read_text()
    (b / name).write_text(text.replace(*digits, 1))
    line = refused(tmp_path, "runs/0001-a", "runs/0002-b")
    assert "was altered after the run was sealed" in line
    assert str(b / name) in line


def test_records_that_are_none_are_refused(tmp_path: Path) -> None:
    _, b = two(tmp_path)
    (b / "evidence.json").write_text("{}")
    assert "not what gpudebug writes" in refused(tmp_path, "runs/0001-a", "runs/0002-b")
    (b / "manifest.json").unlink()
    assert "is an unfinished run" in refused(tmp_path, "runs/0001-a", "runs/0002-b")


def test_a_run_that_did_not_complete_is_refused(tmp_path: Path) -> None:
    two(tmp_path, outcome="CRASHED", signal=9, exit_status=None)
    line = refused(tmp_path, "runs/0001-a", "runs/0002-b")
    assert "run 0002-b did not complete: CRASHED, signal 9: latency: 10 ms" in line


def test_recorded_runs_take_no_options_for_running(tmp_path: Path) -> None:
    two(tmp_path)
    for words in (("--runs=3",), ("--warm-up",), ("--timeout=3s",)):
        refused(tmp_path, "runs/0001-a", "runs/0002-b", *words, status=2)
    assert "is on both sides" in refused(tmp_path, "runs/0001-a", "runs/0001-a/", status=2)


def test_a_campaigns_baseline_against_a_hypothesis(told: Campaign) -> None:
    answer = told.json("compare", "baseline", "1")
    assert answer["verdict"] == "faster"
    assert answer["ratio"] == pytest.approx(3, rel=0.1)
    assert answer["a"]["label"] == "baseline of the workload"
    assert answer["b"]["label"] == "hypothesis 1: The loader waits"
    assert "change" in {d["name"] for d in answer["differences"]}
    names = [runs[0] for runs in (answer["a"]["runs"], answer["b"]["runs"])]
    assert told.json("compare", *names)["ratio"] == pytest.approx(answer["ratio"], rel=0.05)
    assert "hypothesis 2: Waiting: no recorded runs" in told.run("compare", "baseline", "2").expect(1).err
    assert "hypothesis 9: no recorded runs" in told.run("compare", "baseline", "h9").expect(1).err


def test_commands_in_a_campaign_are_its_runs(campaign: Campaign) -> None:
    answer = compare(campaign.folder, "true", "true", "--runs=1", "--json").json
    assert campaign.runs() == ["0001-compare-a", "0002-compare-b"]
    assert answer["files"][0] == str(campaign.folder / "runs" / "0001-compare-a")
    # A comparison is nobody's evidence: the campaign goes on as if it were not there.
    assert campaign.json("status")["next"]["action"] == "record_baseline"


def test_commands_wait_for_no_other_run_of_the_campaign(campaign: Campaign) -> None:
    process = campaign.start("sample", "--device=cpu:1", "--", "sleep", "600")
    with killed_at_the_end(process):
        wait_for((campaign.folder / "runs" / "0001-sample" / "samples.csv").exists)
        assert "another gpudebug runs here" in refused(campaign.folder, "true", "true", status=6)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
