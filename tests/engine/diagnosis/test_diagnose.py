from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, copied, make_replay_campaign, record
from tests.support.collectives import checkpoints, healthy, written
from tests.support.looks import WAITING, look
from tests.support.trials import run
from tests.support.waiting import make_waiting_campaign

from gpudebug.core.errors import GpudebugError
from gpudebug.edges import store
from gpudebug.engine.campaign.load import load
from gpudebug.engine.diagnosis import case as diagnosing
from gpudebug.engine.diagnosis.diagnose import diagnose
from gpudebug.engine.diagnosis.offer import outlook
from gpudebug.terminal.diagnose import diagnose as render

LINE = "step {0}/100 loss {1} data_s: 0.30 update_s: 0.10\n"
LOG = "".join(LINE.format(n, 2 - n / 100) for n in range(1, 101))
PROGRESS = """\
# Test

## Hypotheses

### Hypothesis 1: The learning rate is too low
- **Intervention**: --set --lr=0.3
- **Status**: UNTESTED

### Hypothesis 2: Batches are loaded in the main process
- **Intervention**: --set --num_workers=4
- **Status**: UNTESTED

### Hypothesis 3: Something else entirely
- **Cause**: dl-no-workers
- **Intervention**: --set --work=0.4
- **Status**: UNTESTED
"""
BASELINE = ("0001-baseline-workload", "0002-baseline-workload")
CONTRACT = {"id", "probability", "ceiling_pp", "for", "against", "hypothesis"}
PROBE = "the probe's figures from inside the training"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("diagnose")
    record(folder / "recordings", "0001-baseline-workload", util=25, rate=10, log=LOG)
    made = make_replay_campaign(folder / "repo", folder / "recordings", progress=PROGRESS)
    made.json("baseline", "workload")
    return made


def test_a_baseline_gives_facts_causes_and_what_each_waiting_one_brings(original: Campaign) -> None:
    loaded = load(original.folder)
    case = diagnosing.case_of(loaded)
    assert case.facts.signals["log_data_share"] == pytest.approx(0.75)
    assert case.facts.runs == BASELINE
    assert case.cost_s == pytest.approx(2 * (case.facts.run_s or 0.0))
    assert case.diagnosis.causes[0].id.startswith("dl-")
    assert "dl-no-workers" in case.matches[2]
    assert case.matches[3] == {"dl-no-workers": 1.0}
    brings = diagnosing.shares_of(loaded.entries.document, case)
    assert brings[3] > brings[1]
    assert brings[2] > brings[1]
    assert diagnosing.case_of(loaded) is case


def test_what_the_programs_source_uses_tells_its_kind(original: Campaign, tmp_path: Path) -> None:
    other = copied(original, tmp_path / "repo")
    loaded = load(other.folder)
    assert diagnosing.facts(loaded.setup, loaded.history).kind == "other"
    (other.folder / "train.py").write_text("import gymnasium\nenv = gymnasium.make('Pong')\n")
    for name in BASELINE:
        run = store.RunFolder(other.folder / "runs" / name, str)
        record = {**run.read("run.json"), "identity": load(other.folder).history.identities["workload"]}
        (run.path / "run.json").write_text(json.dumps(record))
        run.seal()
    loaded = load(other.folder)
    assert diagnosing.facts(loaded.setup, loaded.history).kind == "rl"


def test_a_rejection_lowers_what_it_tested(original: Campaign, tmp_path: Path) -> None:
    before = diagnosing.case_of(load(original.folder))
    other = copied(original, tmp_path / "repo")
    text = other.text.replace(
        "--set --num_workers=4\n- **Status**: UNTESTED", "--set --num_workers=4\n- **Status**: REJECTED"
    )
    other.progress.write_text(text)
    after = diagnosing.case_of(load(other.folder))
    chances = [
        next(c.probability for c in case.diagnosis.causes if c.id == "dl-no-workers")
        for case in (before, after)
    ]
    assert chances[1] < 0.8 * chances[0]
    assert 2 not in diagnosing.shares_of(load(other.folder).entries.document, after)


def test_without_a_baseline_nothing_is_guessed(tmp_path: Path) -> None:
    made = make_replay_campaign(tmp_path / "repo", tmp_path, progress=PROGRESS)
    loaded = load(made.folder)
    case = diagnosing.case_of(loaded)
    assert dict(case.facts.signals) == {}
    assert case.facts.absent == {"baseline": "not recorded yet"}
    assert case.diagnosis.abstains == "no run of the workload has evidence yet: record its baseline"
    assert diagnosing.shares_of(loaded.entries.document, case) == {}


def test_the_campaigns_baseline_is_diagnosed(original: Campaign) -> None:
    found = original.json("diagnose")
    assert set(found["causes"][0]) >= CONTRACT
    assert tuple(found["runs"]) == BASELINE
    assert found["facts"]["log_data_share"] == pytest.approx(0.75)
    workers = next(c for c in found["causes"] if c["id"] == "dl-no-workers")
    assert workers["for"] == ["the log's data time is 75% of a step"]
    assert workers["hypothesis"]["number"] == 3
    assert workers["hypothesis"]["command"] == "gpudebug next"
    assert workers["ceiling_pp"] == pytest.approx(75, abs=1)
    assert {m["what"] for m in found["missing"]} >= {"the probe's figures from inside the training"}


@pytest.mark.parametrize(
    "name", ["0001-baseline-workload", "runs/0001-baseline-workload", "folder", "samples"]
)
def test_a_run_is_named_by_its_name_its_folder_or_its_samples(original: Campaign, name: str) -> None:
    folder = original.folder / "runs" / "0001-baseline-workload"
    name = {"folder": str(folder), "samples": str(folder / "samples.csv")}.get(name, name)
    found = diagnose(original.folder, name)
    assert found.runs == ("0001-baseline-workload",)
    assert found.campaign is None
    assert found.facts["log_data_share"] == pytest.approx(0.75)
    assert found.next_command.startswith("gpudebug propose --from-catalogue ")


def test_samples_and_log_outside_a_campaign_say_what_they_cannot_tell(
    original: Campaign, tmp_path: Path
) -> None:
    run = original.folder / "runs" / "0001-baseline-workload"
    (tmp_path / "mine.csv").write_bytes((run / "samples.csv").read_bytes())
    (tmp_path / "mine.log").write_bytes((run / "train.log").read_bytes())
    found = diagnose(tmp_path, "mine.csv")
    assert found.runs == ("mine",)
    assert found.facts["log_data_share"] == pytest.approx(0.75)
    probe = next(m for m in found.missing if m.what == "the probe's figures from inside the training")
    assert "only samples and log are left of this run" in probe.why
    assert found.next_command == "gpudebug init --command 'YOUR TRAINING COMMAND'"
    assert {c.hypothesis.command for c in found.causes} == {None}
    assert "propose" not in render(found)


def test_of_a_run_that_failed_before_its_training_no_cause_is_named(tmp_path: Path) -> None:
    log = "Traceback (most recent call last):\ntorch.cuda.OutOfMemoryError: CUDA out of memory.\n"
    record(tmp_path / "recordings", "0001-baseline-workload", log=log, seconds=3, exit_status=1)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    campaign.run("next").expect(1)
    answer = campaign.json("diagnose", "0001-baseline-workload")
    assert answer["causes"] == []
    assert "CUDA out of memory" in answer["abstains"]
    assert answer["failure"]["class"] == "oom_gpu"
    text = campaign.run("diagnose", "0001-baseline-workload").expect(0).out
    assert "oom-fallback" not in text
    assert "CUDA out of memory" in text


def test_samples_alone_name_the_gpu_that_the_others_wait_for(tmp_path: Path) -> None:
    written(checkpoints(50, devices=4, seconds=60.0), tmp_path / "ranks.csv")
    answer = diagnose(tmp_path, "ranks.csv")
    assert answer.abstains is None
    assert answer.causes[0].id == "straggler"
    assert answer.causes[0].exposed == pytest.approx(1 / 3.5, abs=0.02)
    shown = render(answer)
    assert "Devices: GPU 0 is idle every 3.5 s for " in shown
    assert "misleads" in shown


def test_samples_of_gpus_that_all_work_name_none(tmp_path: Path) -> None:
    written(healthy(devices=4, seconds=60.0), tmp_path / "ranks.csv")
    answer = diagnose(tmp_path, "ranks.csv")
    assert answer.abstains is not None
    assert "straggler" not in [c.id for c in answer.causes[:1]]
    assert "Devices: " not in render(answer)


def test_what_is_refused_is_said_and_not_recommended(tmp_path: Path) -> None:
    campaign = make_waiting_campaign(tmp_path)
    campaign.json("next")
    campaign.add("\n### Hypothesis 1: W\n- **Intervention**: --set --num_workers=4\n- **Status**: INVALID\n")
    first = (found := diagnose(campaign.folder)).causes[0]
    assert first.id == "dl-no-workers"
    assert first.hypothesis.refused.startswith("the same change is hypothesis 1 already (INVALID")
    assert first.hypothesis.command == "gpudebug reopen 1"
    assert "test     none is left: the same change is hypothesis 1 already" in render(found)
    assert "--from-catalogue dl-no-workers" not in found.next_command


@pytest.mark.parametrize(
    ("evidence", "missing", "abstains"),
    [
        ({"probe_reason": "`probe: false` in gpudebug.yaml"}, PROBE, "the evidence is thin"),
        ({"probe": {"pid": 1, "steps": 50, "data_wait_share": 0.6}}, "steps and loss in the log", None),
        ({"devices": [{"reason": "no driver"}]}, "utilisation of the device", "the evidence is thin"),
    ],
    ids=["no probe", "no log", "no device"],
)
def test_what_a_run_lacks_is_named(
    tmp_path: Path, evidence: dict[str, Any], missing: str, abstains: str | None
) -> None:
    run = tmp_path / "0003-sample"
    run.mkdir()
    told = {"format": 1, "run": run.name, "outcome": "COMPLETED", **evidence}
    (run / "run.json").write_text(json.dumps({"format": 1, "argv": ["python", "t.py"]}))
    (run / "evidence.json").write_text(json.dumps(told))
    found = diagnose(tmp_path, run.name)
    assert missing in {m.what for m in found.missing}
    assert (found.abstains or "").startswith(abstains or "")
    assert f"Missing: {missing.partition(' ')[0]}" in render(found)


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("0099-h1", 2, "0099-h1 is not a run here"),
        ("progress", 2, "progress is not a run folder or a samples CSV"),
        ("gpudebug.yaml", 2, "gpudebug.yaml is not a run folder or a samples CSV"),
        ("../..", 2, "../.. is not a run folder or a samples CSV"),
        ("0003-h9", 1, "the run was not finished"),
    ],
)
def test_what_is_no_run_is_refused(original: Campaign, name: str, status: int, said: str) -> None:
    cut = original.folder / "runs" / "0003-h9"
    cut.mkdir(exist_ok=True)
    (cut / "run.json").write_text("{}")
    with pytest.raises(GpudebugError) as refused:
        diagnose(original.folder, name)
    assert refused.value.exit_code == status
    assert said in refused.value.message


def test_no_campaign_and_no_run(tmp_path: Path) -> None:
    with pytest.raises(GpudebugError, match=r"no gpudebug\.yaml"):
        diagnose(tmp_path)


def test_the_text_names_causes_facts_ceiling_and_test(original: Campaign) -> None:
    text = original.run("diagnose").expect(0).out
    assert text.startswith("Diagnosis of test (2 runs): ")
    assert "for      the log's data time is 75% of a step" in text
    assert "ceiling  +75.0pp, to 100.0%; 4.00x steps/s" in text
    assert "hypothesis 3: Something else entirely" in text
    assert max(map(len, text.splitlines())) <= 110


def test_a_look_at_a_command_is_what_a_campaign_begins_with(tmp_path: Path) -> None:
    look(tmp_path)
    look(tmp_path, attached=4711)
    assert diagnose(tmp_path, "gpudebug-why-1").next_command == "gpudebug init --from gpudebug-why-1"
    again = diagnose(tmp_path, str(tmp_path / "gpudebug-why-1"))
    assert again.next_command == "gpudebug init --from gpudebug-why-1"
    assert diagnose(tmp_path, "gpudebug-why-2").next_command.startswith("gpudebug init --command ")


@pytest.mark.parametrize(("utilisation", "points"), [(79.0, True), (80.0, False)])
def test_at_its_target_a_run_is_offered_throughput_alone(
    utilisation: float, points: bool, tmp_path: Path
) -> None:
    look(tmp_path, run(utilisation, 10.0, probe=WAITING))
    first = diagnose(tmp_path, "gpudebug-why-1").causes[0]
    assert first.id == "dl-no-workers"
    assert (first.ceiling_pp is not None, first.ceiling_ratio is not None) == (points, True)


def test_a_campaign_at_its_target_is_offered_throughput_alone(original: Campaign, tmp_path: Path) -> None:
    campaign = copied(original, tmp_path / "repo")
    assert diagnosing.case_of(load(campaign.folder)).diagnosis.causes[0].ceiling_pp is not None
    campaign.config.write_text(campaign.config.read_text() + "target: 20\n")
    full = load(campaign.folder)
    assert diagnosing.case_of(full).diagnosis.causes[0].ceiling_pp is None
    offered = outlook(full)
    assert [cause.ceiling_pp for cause in offered.causes()] == [None] * len(offered.causes())
    assert "pp" not in offered.lines()[0]
    assert re.search(r"ceiling \d\.\d\dx", offered.lines()[0])
