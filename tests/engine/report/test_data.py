"""The data of a report: real campaigns of recordings, whole ones, broken ones, and long ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import PATCHES, WORKERS
from tests.support.campaigns import Campaign, contents, make_replay_campaign

from gpudebug.engine.report import data as datas
from gpudebug.engine.report import hypotheses, runs
from gpudebug.engine.report.data import gather

KEYS = {
    *("format", "gpudebug", "made", "status", "story", "settings", "machine", "reference", "causes", "gain"),
    *("hypotheses", "runs", "skipped", "notes", "replayed"),
}
RUN_KEYS = {
    *("name", "role", "hypothesis", "outcome", "reason", "start", "duration_s", "window", "utilisation"),
    *("spark", "steps_per_s", "step_unit", "loss", "timeline", "loss_points", "loss_by", "step_times"),
    *("failure", "folder", "files"),
}


def rounded(value: Any) -> Any:
    """A JSON value with the digits that a report keeps."""
    return json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.7g}"))


def test_the_data_is_plain_json_and_gathering_changes_nothing(told: Campaign) -> None:
    before = contents(told.folder)
    found = gather(told.folder)
    assert contents(told.folder) == before
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert set(found) == KEYS
    assert (found["format"], found["skipped"], found["notes"]) == (1, [], [])
    assert found["settings"] == told.config.read_text()
    status = told.json("status")
    assert {key: status[key] for key in ("campaign", "next", "budget", "files")} == {
        key: found["status"][key] for key in ("campaign", "next", "budget", "files")
    }
    assert "hypotheses" not in found["status"]
    for own, known in zip(found["hypotheses"], rounded(status["hypotheses"]), strict=True):
        assert {**own, **known, "age_s": own["age_s"]} == own
    assert found["machine"]["host"]
    assert [d["name"] for d in found["machine"]["devices"]] == ["recording of recorded"]
    assert found["causes"] == []


def test_a_run_has_its_figures_and_its_series(told: Campaign) -> None:
    run = gather(told.folder)["runs"]["0003-h1"]
    assert set(run) >= RUN_KEYS
    assert (run["role"], run["hypothesis"], run["outcome"]) == ("h1", 1, "COMPLETED")
    assert run["utilisation"] == pytest.approx(60, abs=1)
    assert len(run["spark"]) == 40
    (device,) = run["timeline"]
    assert (device["index"], device["uuid"], device["name"]) == (0, "CPU", "recording of recorded")
    rows = told.folder.joinpath("runs/0003-h1/samples.csv").read_text().splitlines()[1:]
    assert len(device["points"]) == len(rows)
    assert device["points"][0][1] == pytest.approx(60, abs=3)
    assert run["window"]["rule"] == "steps"
    assert (run["loss"]["trend"], run["loss"]["points"]) == ("CONVERGING", 60)
    assert (run["loss_by"], len(run["loss_points"])) == ("step", 60)
    assert run["loss_points"][-1] == [1200, 0.5]
    assert run["folder"] == str(told.folder / "runs" / "0003-h1")
    assert {"samples.csv", "train.log", "evidence.json"} <= set(run["files"])


def test_a_hypothesis_has_what_was_changed_and_what_came_of_it(told: Campaign) -> None:
    first, second = gather(told.folder)["hypotheses"]
    shown = rounded(told.json("show", "1"))
    for key in ("status", "delta_pp", "gates", "notes", "figures", "probe", "sections", "description"):
        assert first[key] == shown[key]
    assert {**first["course"], **shown["course"]} == first["course"]
    assert first["course"]["text"].startswith("Level 20.0% during the trial")
    assert second["course"] is None
    assert first["baseline_runs"] == [f"000{n}-baseline-workload" for n in (1, 2, 5)]
    assert first["trial_runs"] == ["0003-h1", "0004-h1"]
    assert "--lr=0.1 " in first["command"]["before"]
    assert first["command"]["after"] == first["command"]["before"].replace("--lr=0.1", "--lr=0.2")
    assert (first["diff"], first["differences"], first["hollow"]) == (None, [], False)
    assert (second["status"], second["gates"], second["command"]) == ("UNTESTED", [], None)
    assert (second["baseline_runs"], second["trial_runs"]) == ([], [])


def test_what_was_accepted_is_told_with_its_gain_and_its_patch(adopted: Campaign) -> None:
    found = gather(adopted.folder)
    gain = found["gain"]
    assert [(s["hypothesis"], s["intervention"]) for s in gain["accepted"]] == [
        (2, f"--patch {PATCHES}/workers.patch"),
        (1, "--set --lr=0.2"),
    ]
    assert gain["start"] == pytest.approx(20, abs=1)
    assert gain["now"] == pytest.approx(75, abs=1)
    assert gain["gained"] == pytest.approx(55, abs=1)
    assert "(95% CI +" in gain["gained_text"]
    assert (gain["target"], gain["gap_to"]) == (80, "target")
    assert gain["gap"] == pytest.approx(5, abs=1)
    patched = found["hypotheses"][1]
    assert patched["diff"] == adopted.folder.joinpath(PATCHES, "workers.patch").read_text()
    assert "+    return os" not in patched["diff"]
    assert all(f"+{line}" in patched["diff"] for line in WORKERS.splitlines()[:2])
    assert patched["command"]["before"] == patched["command"]["after"]


def test_after_an_acceptance_the_figure_of_now_is_that_of_its_trial(judged: Campaign) -> None:
    judged.json("accept", "1")
    gain = gather(judged.folder)["gain"]
    assert (gain["start"], gain["now"]) == (pytest.approx(20, abs=1), pytest.approx(60, abs=1))


def test_the_baseline_from_before_the_acceptance_is_not_what_it_is_now(judged: Campaign) -> None:
    (judged.folder / "train.py").write_text("# mine\n" + (judged.folder / "train.py").read_text())
    judged.json("accept", "2")
    gain = gather(judged.folder)["gain"]
    assert gain["start"] == pytest.approx(20, abs=1)
    assert (gain["now"], gain["gap"], gain["gained"]) == (None, None, None)
    assert gain["gained_why"] == "the baseline of today is the one before the first acceptance"


def _torn(run: Path, name: str) -> None:
    (run / name).write_bytes(b'{"format": 1, "run')


def _deep(run: Path, name: str) -> None:
    (run / name).write_text("[" * 200_000)


def _other_format(run: Path, name: str) -> None:
    (run / name).write_text('{"format": 99}')


def _other_shape(run: Path, name: str) -> None:
    (run / name).write_text('["no", "record"]')


def _half(run: Path, name: str) -> None:
    found = json.loads((run / name).read_text())
    (run / name).write_text(json.dumps({**found, "devices": 7}))


def _gone(run: Path, name: str) -> None:
    (run / name).unlink()


BROKEN: tuple[tuple[Callable[[Path, str], None], str, str], ...] = (
    (_torn, "run.json", "run.json: not readable as JSON"),
    (_torn, "evidence.json", "evidence.json: not readable as JSON"),
    (_deep, "run.json", "run.json: not readable as JSON"),
    (_deep, "evidence.json", "evidence.json: not readable as JSON"),
    (_other_format, "run.json", "run.json: has format 99, this gpudebug reads 1"),
    (_other_format, "evidence.json", "evidence.json: has format 99, this gpudebug reads 1"),
    (_other_shape, "run.json", "run.json: is not what gpudebug writes"),
    (_other_shape, "evidence.json", "evidence.json: is not what gpudebug writes"),
    (_half, "run.json", "run.json: is not what gpudebug writes"),
    (_half, "evidence.json", "evidence.json: is not what gpudebug writes"),
    (_gone, "run.json", "run.json: cannot read: No such file or directory"),
    (_gone, "evidence.json", "evidence.json: cannot read: No such file or directory"),
    (_gone, "manifest.json", "it is unfinished: it was cut off, or is under way"),
)


def test_runs_that_cannot_be_told_of_are_named_and_spoil_no_other(told: Campaign) -> None:
    folder = told.folder / "runs"
    expected = {}
    for number, (spoil, name, why) in enumerate(BROKEN, 10):
        run = folder / f"00{number}-h1"
        shutil.copytree(folder / "0003-h1", run)
        spoil(run, name)
        expected[run.name] = why
    (folder / "0030-h1").mkdir()
    expected["0030-h1"] = "run.json: cannot read: No such file or directory"
    found = gather(told.folder)
    assert {s["run"]: s["why"] for s in found["skipped"]} == expected
    assert list(found["runs"]) == told.runs()[:5]
    assert found["runs"]["0003-h1"]["timeline"]
    assert found["hypotheses"][0]["gates"]


def test_the_trials_own_runs_are_broken(told: Campaign) -> None:
    trial = ["0003-h1", "0004-h1"]
    for name in trial:
        _torn(told.folder / "runs" / name, "evidence.json")
    found = gather(told.folder)
    assert [s["run"] for s in found["skipped"]] == trial
    assert (found["hypotheses"][0]["status"], found["hypotheses"][0]["trial_runs"]) == ("VALIDATED", trial)
    assert found["hypotheses"][0]["command"] is None


def test_without_any_run_folder_the_progress_file_tells(told: Campaign) -> None:
    shutil.rmtree(told.folder / "runs")
    found = gather(told.folder)
    assert (found["runs"], found["skipped"], found["machine"]) == ({}, [], None)
    (note,) = found["notes"]
    assert note.startswith("no run folder is here (runs/")
    assert [h["status"] for h in found["hypotheses"]] == ["VALIDATED", "UNTESTED"]
    assert [e["what"] for e in found["story"]] == ["baseline", "trial"]
    assert "UNVERIFIED" in found["story"][1]["text"]


def test_one_folder_of_several_is_missing(told: Campaign) -> None:
    shutil.rmtree(told.folder / "runs" / "0003-h1")
    found = gather(told.folder)
    assert found["skipped"] == [{"run": "0003-h1", "why": "the run folder is not here, others are"}]


def test_before_anything_ran(campaign: Campaign) -> None:
    found = gather(campaign.folder)
    for key, nothing in (("runs", {}), ("hypotheses", []), ("story", []), ("skipped", []), ("notes", [])):
        assert found[key] == nothing
    assert (found["machine"], found["gain"], found["reference"]) == (None, None, None)
    assert found["causes"] == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("samples.csv", "not a samples CSV: the first line must name at least elapsed and gpu_util"),
        ("train.log", None),
    ],
)
def test_a_run_whose_series_cannot_be_read(told: Campaign, name: str, said: str | None) -> None:
    path = told.folder / "runs" / "0003-h1" / name
    if said is None:
        path.unlink()
        path.mkdir()
    else:
        path.write_text("nothing of that kind\n")
    found = gather(told.folder)
    run = found["runs"]["0003-h1"]
    if said is None:
        assert run["loss_points"]
        assert len(run["loss_points"]) <= 40
    else:
        assert run["timeline"] == []
        assert found["notes"] == [f"{name} of run 0003-h1 cannot be read: {said}"]
    assert run["utilisation"] == pytest.approx(60, abs=1)


def test_a_run_without_samples_and_log(told: Campaign) -> None:
    for name in ("samples.csv", "train.log"):
        (told.folder / "runs" / "0003-h1" / name).unlink()
    run = gather(told.folder)["runs"]["0003-h1"]
    assert (run["timeline"], run["step_times"], run["loss_by"]) == ([], None, "step")
    # What the evidence keeps of the loss is shorter than the log.
    assert 0 < len(run["loss_points"]) <= 40


def test_other_surroundings_are_named(told: Campaign) -> None:
    path = told.folder / "runs" / "0003-h1" / "run.json"
    record = json.loads(path.read_text())
    record["packages"]["numpy"] = "0.1"
    record["knobs"] = {**(record["knobs"] or {}), "OMP_NUM_THREADS": "3"}
    path.write_text(json.dumps({**record, "cpu_quota": 1.5}))
    rows = {d["name"]: (d["before"], d["after"]) for d in gather(told.folder)["hypotheses"][0]["differences"]}
    assert rows["CPU quota"][1] == "1.5 cores"
    assert rows["package numpy"][1] == "0.1"
    assert rows["variable OMP_NUM_THREADS"][1] == "3"


def test_room_goes_to_baselines_and_validated_hypotheses_first(
    judged: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datas, "POINTS", 700)
    monkeypatch.setattr(hypotheses, "SIZE", 2)
    found = gather(judged.folder)
    whole = [name for name, run in found["runs"].items() if run["timeline"]]
    rejected = found["hypotheses"][2]["trial_runs"]
    assert found["hypotheses"][2]["status"] == "REJECTED"
    assert 0 < len(whole) < len(found["runs"])
    assert set(found["status"]["baselines"]["workload"]["runs"]) <= set(whole)
    assert not set(rejected) & set(whole)
    assert all(run["spark"] for run in found["runs"].values())
    assert [bool(h["gates"]) for h in found["hypotheses"]] == [False, False, False, True]
    without = f"{len(found['runs']) - len(whole)} of {len(found['runs'])} runs"
    assert found["notes"] == [
        f"{without} are shown by 40 figures each, without their series: "
        "those of baselines, of accepted and validated hypotheses and the newest come first",
        "3 hypotheses are shown without gates, sections and patch: `gpudebug show H` has them",
    ]


def test_runs_beyond_the_limit_are_counted(judged: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datas, "RUNS", 4)
    found = gather(judged.folder)
    assert len(found["runs"]) == 3
    assert set(found["status"]["baselines"]["workload"]["runs"]) <= set(found["runs"])
    assert found["notes"][0].startswith(f"{len(judged.runs()) - 3} of {len(judged.runs())} runs are not on")


def test_a_long_run_is_thinned(told: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "TIMELINE", 40)
    monkeypatch.setattr(runs, "LOSSES", 10)
    path = told.folder / "runs" / "0003-h1" / "samples.csv"
    lines = path.read_text().splitlines(keepends=True)
    cells = lines[31].split(",")
    lines[31] = ",".join([cells[0], "99.99", *cells[2:]])
    path.write_text("".join(lines))
    run = gather(told.folder)["runs"]["0003-h1"]
    points = run["timeline"][0]["points"]
    assert len(points) <= 20
    assert max(p[1] for p in points) == 100.0
    assert len(run["loss_points"]) <= 10


def test_a_long_patch_is_cut_with_a_note(adopted: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypotheses, "PATCH", 60)
    patched = gather(adopted.folder)["hypotheses"][1]
    assert len(patched["diff"]) <= 60
    assert any("the patch is shown up to" in note for note in patched["notes"])


def test_names_of_files_that_are_no_text(told: Campaign) -> None:
    run = told.folder / "runs" / "0003-h1"
    (run / "caf\udce9.bin").write_bytes(b"")
    names: list[str] = gather(told.folder)["runs"]["0003-h1"]["files"]
    assert "caf?.bin" in names
    "".join(names).encode("utf-8")


def test_two_campaigns_of_one_folder(told: Campaign) -> None:
    path = told.folder / "runs" / "0007-baseline-workload"
    shutil.copytree(told.folder / "runs" / "0001-baseline-workload", path)
    record: dict[str, Any] = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**record, "campaign": "another"}))
    found = gather(told.folder)
    assert list(found["runs"]) == told.runs()[:5]
    assert (found["skipped"], len(found["story"])) == ([], 2)


@pytest.mark.slow
def test_a_reference_and_its_gap(tmp_path: Path, recordings: Path) -> None:
    campaign = make_replay_campaign(
        tmp_path / "repo", recordings, config="reference: {command: 'python3 other.py'}\n"
    )
    campaign.json("next")
    campaign.json("next")
    found = gather(campaign.folder)
    assert found["gain"]["gap"] == pytest.approx(70, abs=1)
    assert (found["gain"]["gap_to"], found["gain"]["target"]) == ("reference", pytest.approx(80, abs=1))
    assert found["reference"]["lines"]
    assert found["causes"] and all(cause["for"] for cause in found["causes"])
    assert [e["role"] for e in found["story"]] == ["workload", "reference"]


def test_a_catalogue_that_cannot_be_read_is_a_note(told: Campaign) -> None:
    folder = told.folder / "hypotheses" / "catalogue" / "own"
    folder.mkdir(parents=True)
    (folder / "broken.yaml").write_text("id: [")
    found = gather(told.folder)
    assert found["causes"] == []
    assert any(note.startswith("no causes are named") for note in found["notes"])
