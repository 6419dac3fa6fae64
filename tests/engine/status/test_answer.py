"""`status` and `show`: where the campaign stands, from the files alone, changing nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, contents, make_replay_campaign, record
from tests.support.processes import drop_privileges

from gpudebug.core.answers.show import UnreadRun
from gpudebug.engine.status.answer import show
from gpudebug.terminal import show as render

UNUSUAL = """\
# by hand
## Hypothesis 2 - no bold, dashes
* description: star bullets
* Status - untested
## **Hypothesis 5:** Emoji and bold
* **Status:** ✅ VALIDATED - by an agent
* Result: it was faster
```
### Hypothesis 9: in a fence
- Status: VALIDATED
```
### Own section
Text.
"""


def test_looking_changes_nothing(told: Campaign) -> None:
    before = contents(told.folder)
    for words in (("status",), ("status", "--json"), ("show", "1"), ("show", "2", "--json")):
        told.run(*words).expect(0)
    assert contents(told.folder) == before


def test_text_and_json_say_the_same(told: Campaign) -> None:
    answer, text = told.json("status"), told.run("status").expect(0).out
    assert f"Campaign {answer['campaign']}" in text
    for hypothesis in answer["hypotheses"]:
        assert re.search(rf"^ +{hypothesis['number']}  {hypothesis['status']} ", text, flags=re.M)
    assert f"{answer['hypotheses'][0]['delta_pp']:+.1f}pp" in text
    assert answer["next"]["why"] in text
    assert f"Target   {answer['target']:.1f}%" in text
    low, high = answer["hypotheses"][0]["delta_ci"]
    assert low < answer["hypotheses"][0]["delta_pp"] < high


def test_show_names_files_that_are_there(told: Campaign) -> None:
    answer = told.json("show", "1")
    assert all(Path(f).exists() for f in answer["files"])
    assert str(told.folder / "runs" / "0003-h1") in answer["files"]
    assert answer["evidence"][0]["utilisation"] == pytest.approx(60, abs=1)
    text = told.run("show", "1").expect(0).out
    for gate in answer["gates"]:
        assert gate["name"] in text


def test_show_ends_with_the_picture_of_the_verdict(told: Campaign) -> None:
    course = told.json("show", "1")["course"]
    runs = [point["run"] for point in course["points"]]
    assert runs == [name for name in told.runs() if (told.folder / "runs" / name / "evidence.json").exists()]
    assert course["points"][0]["level"] == pytest.approx(20, abs=1)
    assert course["effect"]["after"] == pytest.approx(60, abs=1)
    ascii_only = {"LC_ALL": "C", "COLUMNS": "120"}
    *_, last = told.run("show", "1", env=ascii_only).expect(0).out.rstrip().split("\n\n")
    assert last.isascii() and max(map(len, last.split("\n"))) <= 80
    heading, _, *rows, legend = last.split("\n")
    assert heading == f"The verdict, gpu_util of {len(runs)} runs in their order:"
    assert [row.split()[0] for row in rows] == [*(name[:4] for name in runs), "effect"]
    assert [row.split()[1] for row in rows] == [*("AT"["-h" in name] for name in runs), "+39.9pp"]
    assert legend.startswith("A unchanged, T changed;")


def test_without_a_verdict_there_is_no_picture(told: Campaign) -> None:
    assert told.json("show", "2")["course"] is None
    assert "The verdict" not in told.run("show", "2").expect(0).out
    # What no run backs is drawn as little as it is shown as a delta.
    told.progress.write_text(told.text.replace("+39.9pp", "+59.9pp"))
    assert told.json("show", "1")["course"] is None


def test_entry_status_and_show_have_the_same_figures(tmp_path: Path) -> None:
    """Of runs that differ: a mean of all is neither the level during the trial nor what the ratio is of."""
    folder = tmp_path / "recordings"
    for number, (name, util, rate) in enumerate(
        [(f"baseline-{n}", 20 + n, 9.0 + n) for n in range(4)]
        + [(f"h1-{n}", 58 + n, 30 - n) for n in range(9)]
    ):
        record(folder, f"{number + 1:04}-{name.rsplit('-', 1)[0]}", util=util, rate=rate)
    campaign = make_replay_campaign(tmp_path / "repo", folder)
    campaign.json("next")
    campaign.propose("--set --lr=0.2")
    campaign.json("next")
    (row,) = campaign.json("status")["hypotheses"]
    answer = campaign.json("show", "1")
    figures = answer["figures"]
    before, after = (float(x) for x in re.findall(r"[\d.]+", figures["throughput"])[:2])
    assert after / before == pytest.approx(row["throughput_ratio"], rel=0.01)
    ratio = f"{row['throughput_ratio']:.2f}x"
    assert answer["throughput_ratio"] == row["throughput_ratio"]
    assert next(g["value"] for g in answer["gates"] if g["name"] == "throughput").startswith(ratio)
    assert re.search(rf"^ +[+-][\d.]+pp .* {ratio} ", campaign.run("status").expect(0).out, flags=re.M)
    before, after = (float(figures[f"gpu util {side}"].split("%")[0]) for side in ("before", "after"))
    assert before + row["delta_pp"] == pytest.approx(after, abs=0.15)
    assert figures["improvement"].startswith(f"{row['delta_pp']:+.1f}pp")
    assert (answer["course"]["effect"]["before"], answer["course"]["effect"]["after"]) == pytest.approx(
        (before, after), abs=0.06
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [("null", "it is not what gpudebug writes"), ("{", "not readable as JSON"), (None, "there is none here")],
)
def test_show_names_a_run_whose_evidence_cannot_be_read(
    told: Campaign, content: str | None, why: str
) -> None:
    trials = ("0003-h1", "0004-h1")
    for name in ("0001-baseline-workload", *trials):
        path = told.folder / "runs" / name / "evidence.json"
        path.unlink() if content is None else path.write_text(content)
    answer = show(told.folder, 1)
    assert ([e["run"] for e in answer.evidence], answer.probe) == (["0005-baseline-workload"], ())
    assert answer.skipped == [UnreadRun(run=name, why=why) for name in trials]
    assert f"\nRun 0003-h1: unreadable evidence: {why}\n" in render.show(answer)


def test_a_run_folder_that_nobody_may_look_into_is_named(told: Campaign) -> None:
    closed = [told.folder / "runs" / name for name in told.runs()]
    for folder in closed:
        folder.chmod(0)
    try:
        shown, watched, verified = (
            told.run(*words, preexec_fn=drop_privileges)
            for words in (("show", "1"), ("status", "--watch"), ("verify",))
        )
    finally:
        for folder in closed:
            folder.chmod(0o755)
    assert "Run 0003-h1: unreadable evidence: cannot read: Permission denied" in shown.expect(0).out
    assert "run 0001-baseline-workload cannot be read" in watched.expect(0).out
    assert "0005-baseline-workload/run.json: cannot read: Permission denied" in watched.out
    assert "run 0003-h1: runs/0003-h1/manifest.json cannot read: Permission denied" in verified.expect(0).out


def test_a_file_in_the_seeds_own_format_is_read(tmp_path: Path, recordings: Path) -> None:
    campaign = make_replay_campaign(tmp_path / "repo", recordings, progress=UNUSUAL)
    answer = campaign.json("status")
    assert [(h["number"], h["status"]) for h in answer["hypotheses"]] == [(2, "UNTESTED"), (5, "VALIDATED")]
    assert answer["hypotheses"][1]["verified"] is False
    assert campaign.text == UNUSUAL


def test_the_target_is_the_references_less_failure(tmp_path: Path, recordings: Path) -> None:
    config = "reference: {command: 'python3 other.py'}\n"
    campaign = make_replay_campaign(tmp_path / "repo", recordings, config=config)
    assert campaign.json("status")["target"] == 80
    campaign.json("next")
    campaign.json("next")
    assert campaign.json("status")["target"] == pytest.approx(80, abs=1)
    campaign.config.write_text(campaign.config.read_text() + "criteria: {failure: 15}\n")
    assert campaign.json("status")["target"] == pytest.approx(75, abs=1)
    campaign.config.write_text(campaign.config.read_text() + "target: 42\n")
    assert campaign.json("status")["target"] == 42


def test_values_of_one_flag_are_a_table(told: Campaign) -> None:
    told.propose("--set --seed=1", "Not of the sweep")
    answer = told.json("status")
    (sweep,) = answer["sweeps"]
    assert (sweep["parameter"], sweep["standing"]) == ("--lr", "0.1")
    first, second = sweep["rows"]
    tested = answer["hypotheses"][0]
    assert (first["value"], first["hypothesis"], first["status"]) == ("0.2", 1, "VALIDATED")
    for key in ("delta_pp", "delta_ci", "throughput_ratio", "verified"):
        assert first[key] == tested[key]
    assert (second["value"], second["hypothesis"], second["delta_pp"]) == ("0.3", 2, None)
    text = told.run("status").expect(0).out
    assert "Sweep of --lr (now 0.1)" in text
    assert re.search(rf"^  0\.2 +1  VALIDATED +\{tested['delta_pp']:+.1f}pp ", text, flags=re.M)
    assert re.search(r"^  0\.3 +2  UNTESTED$", text, flags=re.M)


def test_a_sweep_is_told_from_hypotheses_that_cannot_be_read(recorded: Campaign) -> None:
    for number, change in enumerate(("--set --lr=0.2", "--frobnicate", "--set --lr=0.4"), start=1):
        recorded.add(
            f"\n### Hypothesis {number}: By hand\n- **Intervention**: {change}\n- **Status**: REJECTED\n"
        )
    (sweep,) = recorded.json("status")["sweeps"]
    assert [(row["value"], row["verified"], row["delta_pp"]) for row in sweep["rows"]] == [
        ("0.2", False, None),
        ("0.4", False, None),
    ]


def test_a_figure_below_half_of_what_is_expected(recorded: Campaign) -> None:
    assert recorded.json("status")["expected"] == []
    recorded.config.write_text(
        recorded.config.read_text() + "expected:\n  steps_per_s: {recorded: [30, 40], default: [1, 2]}\n"
        "  gpu_util: {NVIDIA A100: [90, 100]}\n"
    )
    (row,) = recorded.json("status")["expected"]
    assert (row["figure"], row["device"], row["range"]) == ("steps_per_s", "recorded", [30, 40])
    assert row["measured"] == pytest.approx(10, abs=0.5)
    assert row["standing"] == "faulty"
    said = "measured 10 steps/s: less than half of what is expected: a configuration fault is likely"
    assert f"Expected steps_per_s 30 to 40 (recorded), {said}" in " ".join(recorded.run("status").out.split())
    assert recorded.json("status")["baselines"]["workload"]["valid"]


def test_a_baseline_says_what_learning_is_judged_by(recorded: Campaign) -> None:
    """As the answer of the command that recorded it does."""
    for _ in ("as recorded", "from the evidence"):
        baselines = recorded.json("status")["baselines"]
        assert baselines["workload"]["learning"] == "the loss that the log prints"
        recorded.config.write_text(recorded.config.read_text() + "\n")
    recorded.config.write_text(recorded.config.read_text() + "criteria: {loss: any}\n")
    assert recorded.json("status")["baselines"]["workload"]["learning"] is None


def test_what_is_expected_before_anything_was_measured(campaign: Campaign) -> None:
    campaign.config.write_text(
        campaign.config.read_text() + "expected: {steps_per_s: {default: [1, 2]}, gpu_util: {A100: [1, 2]}}\n"
    )
    (row,) = campaign.json("status")["expected"]
    assert (row["measured"], row["standing"], row["note"]) == (None, "unknown", "not measured yet")
