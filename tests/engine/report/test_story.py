"""The story of a campaign: each event once, in its order, with the runs that it rests on."""

from __future__ import annotations

import shutil

from tests.support.campaigns import Campaign

from gpudebug.engine.report.data import gather


def events(campaign: Campaign) -> list[tuple[str, int | None]]:
    return [(e["what"], e["hypothesis"]) for e in gather(campaign.folder)["story"]]


def test_baselines_trials_and_acceptances_in_their_order(adopted: Campaign) -> None:
    story = gather(adopted.folder)["story"]
    assert [(e["what"], e["role"] or e["hypothesis"]) for e in story] == [
        ("baseline", "workload"),
        *(("trial", number) for number in _tested(adopted)),
        ("accepted", 2),
        ("accepted", 1),
        ("baseline", "workload"),
    ]
    first, *_, last = story
    assert first["text"] == "The baseline of the workload was recorded: GPU util 20.0%, 10 steps/s (2 runs)"
    assert last["text"].startswith("The baseline of the workload was recorded: GPU util 75.")
    times = [e["at"] for e in story if e["what"] != "accepted"]
    assert times == sorted(times)
    assert all(e["at"] is None and e["runs"] == [] for e in story if e["what"] == "accepted")
    first_trial = story[1]
    assert first_trial["runs"] == adopted.json("show", str(first_trial["hypothesis"]))["runs"]
    assert any("Hypothesis 3, Nothing: REJECTED, " in e["text"] for e in story)


def _tested(campaign: Campaign) -> list[int]:
    """The hypotheses in the order of their first runs."""
    names = [name for name in campaign.runs() if name.partition("-h")[2]]
    return list(dict.fromkeys(int(name.partition("-h")[2]) for name in names))


def test_what_is_accepted_and_not_measured_yet_stands_last(judged: Campaign) -> None:
    judged.json("accept", "4")
    assert events(judged)[-1] == ("accepted", 4)


def test_an_untested_hypothesis_is_no_event_and_a_hand_written_verdict_is_unverified(told: Campaign) -> None:
    told.add("\n### Hypothesis 9: By hand\n- **Status**: VALIDATED\n- **Result**:\n  - Improvement: +30pp\n")
    story = gather(told.folder)["story"]
    assert [(e["what"], e["hypothesis"]) for e in story] == [("baseline", None), ("trial", 1), ("trial", 9)]
    assert story[-1]["text"] == "Hypothesis 9, By hand: VALIDATED, UNVERIFIED: +30pp"
    assert story[-1]["at"] is None


def test_an_unreadable_run_of_a_baseline_is_left_out_of_its_event(told: Campaign) -> None:
    run = told.folder / "runs" / "0007-baseline-workload"
    shutil.copytree(told.folder / "runs" / "0001-baseline-workload", run)
    (run / "evidence.json").write_text("{")
    assert events(told) == [("baseline", None), ("trial", 1)]
