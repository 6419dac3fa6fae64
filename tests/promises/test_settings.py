"""What is measured and by which bar is a person's choice: a session cannot move it, not for one run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.campaigns import (
    Campaign,
    copied,
    git,
    gpudebug,
    make_campaign,
    make_replay_campaign,
    record,
)

from gpudebug.edges import git as snapshot
from gpudebug.edges import store
from gpudebug.engine.campaign.files import read_config
from gpudebug.engine.campaign.pin_record import FILE
from gpudebug.engine.campaign.private import campaign_folder

SESSION = {"GPUDEBUG_SESSION": "agent-1"}


def pin_of(campaign: Campaign) -> Path:
    config = read_config(store.Workspace(campaign.folder))
    return (
        campaign_folder(campaign.folder, config.campaign, snapshot.whereabouts(campaign.folder)).path / FILE
    )


@contextmanager
def edited(campaign: Campaign, old: str, new: str) -> Iterator[None]:
    """gpudebug.yaml with one thing changed, as it was afterwards."""
    text = campaign.config.read_text()
    assert old in text
    campaign.config.write_text(text.replace(old, new))
    try:
        yield
    finally:
        campaign.config.write_text(text)


def forged(folder: Path) -> Path:
    """Recordings of a device that is not there, as an agent would write them."""
    for number, (label, util, rate) in enumerate(
        [("baseline-workload", 20, 10), ("baseline-workload", 20, 10), ("h1", 90, 45)], 1
    ):
        run = record(folder, f"{number:04}-{label}", util=util, rate=rate, uuid="GPU-5e1f0c0d-1")
        facts = json.loads((run / "run.json").read_text())
        facts["devices"][0] |= {"name": "NVIDIA A100-SXM4-80GB", "kind": "nvml", "driver": "550.54"}
        (run / "run.json").write_text(json.dumps(facts))
    return folder


@pytest.fixture
def measured(tmp_path: Path) -> Campaign:
    """A campaign on the CPU whose settings a person has pinned."""
    return make_campaign(tmp_path / "repo").pin()


@pytest.mark.parametrize("verb", ["next", "baseline"])
def test_a_session_cannot_measure_recordings_for_a_moment(measured: Campaign, verb: str) -> None:
    forged(measured.folder / "hypotheses" / "rec")
    measured.propose("--set --lr=0.2")
    with edited(measured, "device: cpu:1", "device: replay:hypotheses/rec@60x"):
        done = measured.run(verb, env=SESSION).expect(1)
        assert "device is replay:hypotheses/rec@60x, pinned is cpu:1" in done.err
        assert "gpudebug settings --accept" in done.err
        assert done.err.count("\n") == 1
    assert measured.runs() == []
    assert measured.statuses() == ["UNTESTED"]


def test_a_session_cannot_use_recordings_while_a_person_with_a_baseline_is_away(
    recorded_on_cpu: Campaign,
) -> None:
    forged(recorded_on_cpu.folder / "hypotheses" / "rec")
    before = recorded_on_cpu.runs()
    recorded_on_cpu.propose("--set --lr=0.2")
    with edited(recorded_on_cpu, "device: cpu:1", "device: replay:hypotheses/rec@60x"):
        recorded_on_cpu.run("next", env=SESSION).expect(1)
    assert recorded_on_cpu.runs() == before


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    made = make_campaign(tmp_path_factory.mktemp("cpu") / "repo", config="criteria: {loss: any}\n")
    made.json("baseline")
    return made


@pytest.fixture
def recorded_on_cpu(original: Campaign, tmp_path: Path) -> Campaign:
    return copied(original, tmp_path / "repo")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("max_runs: 3", "max_runs: 9", "protocol.max_runs is 9, pinned is 3 (weaker)"),
        (
            "device:",
            "criteria: {success: 1, failure: 0}\ndevice:",
            "criteria.success is 1, pinned is 20 (weaker)",
        ),
        ("device:", "budget: {hypotheses: 99}\ndevice:", "budget.hypotheses is 99, pinned is 20 (weaker)"),
        ("device:", "probe: false\ndevice:", "probe is false, pinned is true (weaker)"),
        (
            "device:",
            "metric: steps_per_s\ncriteria: {success: 1.2x, failure: 1.1x}\ndevice:",
            "metric is steps_per_s",
        ),
        ("--work=0.2", "--work=0.9", "workload.command is"),
        ("timeout: 60s", "timeout: 60s\n  env: {OMP_NUM_THREADS: '1'}", "workload.env"),
        ("campaign: test", "campaign: other", "no person has pinned"),
    ],
)
def test_a_session_under_other_settings_is_refused_with_the_line(
    measured: Campaign, old: str, new: str, said: str
) -> None:
    with edited(measured, old, new):
        done = measured.run("next", env=SESSION).expect(1)
    assert said in done.err
    assert measured.runs() == []


def test_a_session_in_a_campaign_that_no_person_pinned_is_refused(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    done = campaign.run("next", env=SESSION).expect(1)
    assert "no person has pinned the settings of this campaign yet" in done.err
    assert "a person runs: gpudebug settings --accept" in done.err
    assert campaign.runs() == []


def test_only_a_person_pins(measured: Campaign) -> None:
    before = pin_of(measured).read_bytes()
    with edited(measured, "max_runs: 3", "max_runs: 9"):
        done = measured.run("settings", "--accept", env=SESSION).expect(1)
        assert "session agent-1 cannot pin settings" in done.err
        assert pin_of(measured).read_bytes() == before
        told = measured.json("settings", "--accept")
    assert told["differences"] == ["protocol.max_runs is 9, pinned is 3 (weaker)"]
    assert pin_of(measured).read_bytes() != before


def test_the_pin_is_closed_to_others_and_says_what_is_pinned(measured: Campaign) -> None:
    file = pin_of(measured)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(file.read_text())["settings"]["protocol.max_runs"] == 3


def test_nothing_that_a_clone_brings_is_a_pin(measured: Campaign, tmp_path: Path) -> None:
    pin = pin_of(measured)
    for place in ("gpudebug/campaigns", "runs", "runs/campaigns", "progress", "hypotheses"):
        folder = measured.folder / place / pin.parent.name
        folder.mkdir(parents=True)
        shutil.copy(pin, folder / FILE)
    git(measured.folder, "add", "--all", "--force")
    git(measured.folder, "commit", "--quiet", "-m", "A pin")
    git(tmp_path, "clone", "--quiet", str(measured.folder), str(tmp_path / "clone"))
    clone = Campaign(tmp_path / "clone")
    assert clone.json("settings")["pinned"] is False
    assert "no person has pinned" in clone.run("next", env=SESSION).expect(1).err


def test_a_link_in_the_place_of_the_pin_is_no_pin(measured: Campaign) -> None:
    pin = pin_of(measured)
    shutil.move(pin, measured.folder / "pin.json")
    os.symlink(measured.folder / "pin.json", pin)
    assert measured.json("settings")["pinned"] is False
    assert measured.run("next", env=SESSION).expect(1)
    measured.json("settings", "--accept")
    assert measured.json("settings")["pinned"] is True


def test_what_only_reads_never_pins(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    for verb in ("status", "verify", "settings", "diagnose"):
        campaign.run(verb)
    assert not pin_of(campaign).exists()


def test_a_linked_worktree_has_a_pin_of_its_own(measured: Campaign, tmp_path: Path) -> None:
    git(measured.folder, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    linked = Campaign(tmp_path / "linked")
    assert linked.json("settings")["pinned"] is False
    linked.pin()
    assert pin_of(linked) != pin_of(measured)


def test_init_pins_what_it_writes(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "train.py").write_text("")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "Start")
    gpudebug(folder, "init", "--command", "python3 train.py", "--campaign", "test").expect(0)
    assert gpudebug(folder, "settings", "--json").json["pinned"] is True


class Judged:
    """A campaign of recordings, pinned so from the start, in which a hypothesis gains 9 points."""

    @staticmethod
    def make(folder: Path) -> Campaign:
        recordings = folder / "recordings"
        record(recordings, "0001-baseline-workload", util=20, rate=10)
        record(recordings, "0002-h1", util=29, rate=30)
        return make_replay_campaign(
            folder / "repo", recordings, config="target: 25\ncriteria: {success: 20, failure: 10}\n"
        )


@pytest.fixture(scope="module")
def weaker_original(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A verdict that was reached while a person had lowered the bar."""
    campaign = Judged.make(tmp_path_factory.mktemp("weaker"))
    campaign.json("baseline")
    campaign.propose("--set --lr=0.2")
    with edited(campaign, "{success: 20, failure: 10}", "{success: 1, failure: 0}"):
        refused = campaign.run("next").expect(1)
        assert "criteria.success is 1, pinned is 20 (weaker)" in refused.err
        assert "criteria.failure is 0, pinned is 10 (weaker)" in refused.err
        assert "gpudebug settings --accept" in refused.err
        campaign.run("settings", "--accept").expect(0)
        assert campaign.json("next")["verdict"] == "VALIDATED"
        assert campaign.json("status")["next"]["action"] == "stop"
    campaign.run("settings", "--accept").expect(0)
    return campaign


@pytest.fixture
def weaker(weaker_original: Campaign, tmp_path: Path) -> Campaign:
    return copied(weaker_original, tmp_path / "repo")


def test_a_verdict_by_weaker_terms_solves_nothing_and_says_so(weaker: Campaign) -> None:
    status = weaker.json("status")
    (h,) = status["hypotheses"]
    assert (h["status"], h["verified"]) == ("VALIDATED", True)
    assert h["weaker_terms"][0] == "criteria.success is 1, pinned is 20 (weaker)"
    assert status["next"]["action"] != "stop"
    assert "weaker terms: criteria.success" in weaker.run("status").out
    assert "VALIDATED  weaker terms" in weaker.run("show", "1").out
    found = weaker.run("verify", "--json").json
    assert found["ok"] is None
    assert "weaker terms" in found["unchecked"][0]


def test_a_verdict_by_weaker_terms_is_accepted_by_a_person_who_means_it(weaker: Campaign) -> None:
    done = weaker.run("accept", "1").expect(1)
    assert "weaker terms" in done.err
    assert "gpudebug accept 1 --terms-differ" in done.err
    assert "a person" in weaker.run("accept", "1", "--terms-differ", env=SESSION).expect(1).err
    told = weaker.json("accept", "1", "--terms-differ")
    assert any("weaker terms" in note for note in told["notes"])


def test_a_report_marks_weaker_terms(weaker: Campaign) -> None:
    weaker.run("report", "-o", "report.html").expect(0)
    assert "weaker terms" in (weaker.folder / "report.html").read_text()
    assert "VALIDATED, weaker terms" in weaker.run("report", "--markdown").out


@pytest.mark.slow
def test_an_acceptance_from_before_the_bar_was_raised_is_not_handed_over_unsaid(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0002-baseline-workload", util=20, rate=10)
    record(recordings, "0003-h1", util=50, rate=30)
    campaign = make_replay_campaign(tmp_path / "repo", recordings)
    campaign.json("baseline")
    campaign.propose("--set --lr=0.2")
    assert campaign.json("next")["verdict"] == "VALIDATED"
    campaign.run("accept", "1").expect(0)
    assert "replayed" in campaign.run("export", "-o", "first").expect(0).out
    campaign.config.write_text(campaign.config.read_text() + "criteria: {success: 60, failure: 50}\n")
    campaign.run("settings", "--accept").expect(0)
    assert "weaker terms" in campaign.run("export", "-o", "second").expect(1).err
    campaign.run("accept", "1", "--terms-differ").expect(0)
    campaign.run("export", "-o", "second").expect(0)
    assert "weaker terms" in (campaign.folder / "second" / "README.md").read_text()


def test_settings_that_change_during_a_command_are_refused(
    measured: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpudebug.core.errors import ConfigError
    from gpudebug.engine.run.prepare import claimed_campaign

    with claimed_campaign(measured.folder, lambda _: None, "gpudebug next", "agent-1") as cycle:
        cycle.again()
        with (
            edited(measured, "max_runs: 3", "max_runs: 9"),
            pytest.raises(ConfigError, match=r"edited while .* protocol.max_runs is 9, was 3"),
        ):
            cycle.again()
        assert cycle.setup.config.protocol.max_runs == 3


def test_a_person_pins_by_the_first_next_and_is_told(tmp_path: Path) -> None:
    campaign = Judged.make(tmp_path)
    done = campaign.run("next").expect(0)
    assert "pinned the settings of gpudebug.yaml: device replay" in done.err
    told = campaign.json("settings")
    assert (told["pinned"], told["differences"], told["replayed"]) == (True, [], True)
    runs = [json.loads(run.read_text()) for run in (campaign.folder / "runs").glob("0*/run.json")]
    assert [run["settings"] for run in runs] == [told["digest"]] * 2
    assert "pinned" not in campaign.run("settings", "--accept", "--json").json["differences"]


def test_a_person_who_records_a_baseline_pins_the_edited_settings(weaker: Campaign) -> None:
    with edited(weaker, "success: 20", "success: 15"):
        done = weaker.run("baseline").expect(0)
        assert "pinned again: criteria.success is 15, pinned is 20 (weaker)" in done.err
        assert weaker.json("settings")["differences"] == []


def test_what_no_measurement_depends_on_may_be_edited(measured: Campaign) -> None:
    measured.config.write_text(
        measured.config.read_text().replace("goal: Keep the device busy.", "goal: Another.")
        + "guidelines: Be kind.\ncontext: [train.py]\nexpected: {steps_per_s: {default: [1, 2]}}\n"
    )
    assert measured.json("settings")["differences"] == []


def test_a_session_cannot_put_another_program_in_the_place_of_the_command(
    measured: Campaign, tmp_path: Path
) -> None:
    measured.config.write_text(measured.config.read_text().replace(measured_python(measured), "python"))
    measured.run("settings", "--accept").expect(0)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(shutil.which("python") or "/usr/bin/python3")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = measured.run("next", env={**SESSION, "PATH": path}).expect(1)
    assert "resolved.workload.program is" in done.err


def measured_python(campaign: Campaign) -> str:
    import yaml

    return str(yaml.safe_load(campaign.config.read_text())["workload"]["command"]).split()[0]


@pytest.mark.slow
def test_a_recording_never_passes_for_a_device(tmp_path: Path) -> None:
    """Runs that a person made on recordings in a campaign of another device are no evidence of it."""
    forged(tmp_path / "repo" / "hypotheses" / "rec")
    campaign = make_campaign(tmp_path / "repo", config="target: 50\n").pin()
    campaign.propose("--set --lr=0.2")
    with edited(campaign, "device: cpu:1", "device: replay:hypotheses/rec@60x"):
        campaign.run("settings", "--accept").expect(0)
        campaign.json("next")
        assert campaign.json("next")["verdict"] == "VALIDATED"
        status = campaign.run("status").out
        assert "replayed: recording of NVIDIA A100-SXM4-80GB" in status
        assert campaign.json("status")["next"]["action"] != "stop"
    campaign.run("settings", "--accept").expect(0)
    (h,) = campaign.json("status")["hypotheses"]
    assert h["replayed"] is True
    assert "replayed: its runs are recordings" in h["doubts"][0]
    found = campaign.run("verify", "--json").expect(1).json
    assert any("a recording is not evidence" in str(p["why"]) for p in found["problems"])
    assert "replayed" in campaign.run("accept", "1").expect(1).err
    assert "replayed" in campaign.run("accept", "1", "--terms-differ").expect(1).err
    assert "VALIDATED, replayed" in campaign.run("report", "--markdown").out
    assert "VALIDATED  replayed" in campaign.run("show", "1").out


def test_recordings_that_are_pinned_from_the_start_serve_every_verb(tmp_path: Path) -> None:
    campaign = Judged.make(tmp_path)
    campaign.run("next").expect(0)
    assert "replayed: recording of recorded (CPU)" in campaign.run("status").out
    found = campaign.json("verify")
    assert found["ok"] is True
    assert any("replayed" in note for note in found["notes"])
    assert "Replayed: recordings were played back" in campaign.run("report", "--markdown").out
    assert campaign.run("settings").out.rstrip().endswith("recordings are the device")


def test_a_sample_and_a_comparison_of_recordings_say_so(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-sample", seconds=2)
    done = gpudebug(tmp_path, "sample", "--device", f"replay:{recordings}@60x", "--", "true")
    assert "note: replayed: recordings were played back" in done.out
