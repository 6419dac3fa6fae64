from __future__ import annotations

from gpudebug.core.campaign.handover import JudgedChange, of_campaign, of_nothing, of_session
from gpudebug.core.words import Status

FASTER = JudgedChange(
    number=1,
    title="The data are made anew",
    cause="recomputed",
    status=Status.VALIDATED,
    why="all gates pass",
    change="--set --read=once",
    gain="steps_per_s 13.1 to 26.9 steps/s, 2.05x (95% CI 1.18x to 3.59x)",
    runs=4,
    command="python3 train.py --read=once",
)
CRASHED = FASTER._replace(
    number=2, status=Status.REJECTED, why="outcome: CRASHED (exception): ValueError: no"
)
PATCHED = FASTER._replace(number=3, change="--patch p/w.patch", patch="p/w.patch", command=None)


def test_a_gain_is_told_with_its_cause_figure_change_and_what_to_run() -> None:
    assert of_session(FASTER) == (
        "Hypothesis 1 (The data are made anew, cause recomputed) is VALIDATED: with `--set --read=once` "
        "steps_per_s 13.1 to 26.9 steps/s, 2.05x (95% CI 1.18x to 3.59x), by 4 runs. "
        "The command with it: `python3 train.py --read=once`. "
        "Your checkout and gpudebug.yaml are as they were. To adopt it, run `gpudebug accept 1`; "
        "`gpudebug next` then measures old and new in turn, and `gpudebug export` writes what was accepted."
    )
    assert "The patch is p/w.patch. Your checkout" in of_session(PATCHED)


def test_what_was_not_validated_promises_nothing() -> None:
    told = of_session(CRASHED)
    assert "is REJECTED: outcome: CRASHED (exception): ValueError: no. It was tested with" in told
    assert told.endswith("Your checkout and gpudebug.yaml are as they were.")
    assert "accept" not in told and "2.05x" not in told


def test_a_campaign_tells_what_is_accepted_and_what_is_left_to_accept() -> None:
    told = of_campaign("exhausted: 2 tested", 2, [PATCHED, FASTER], [], None, None)
    assert told.startswith(
        "The campaign has ended (exhausted: 2 tested), with 2 hypotheses tested. Hypothesis 3"
    )
    assert "`gpudebug accept 3`" in told and "VALIDATED too: hypothesis 1 (" in told
    told = of_campaign(
        "solved", 1, [], [FASTER], "steps_per_s 13.2 to 31.3: 2.37x", "python3 train.py --read=once"
    )
    assert "with 1 hypothesis tested. Accepted: hypothesis 1 (" in told
    assert "Together, as measured: steps_per_s 13.2 to 31.3: 2.37x. The command from now on: `python3" in told
    assert "Together they are not measured yet." in of_campaign("solved", 1, [], [FASTER], None, None)
    assert of_campaign("out of budget.", 3, [], [], None, None).endswith(
        "(out of budget), with 3 hypotheses tested. No change was VALIDATED. "
        "Your checkout and gpudebug.yaml are as they were."
    )


def test_a_session_without_a_proposal_tells_why_and_what_was_tested() -> None:
    told = of_nothing("the rest is the GPU's own time.", 1, [CRASHED], [])
    assert told == (
        "This session proposes nothing more: the rest is the GPU's own time. 1 hypothesis is tested: "
        "hypothesis 2 (The data are made anew) is REJECTED. The agent reports no other likely cause. "
        "Your checkout and gpudebug.yaml are as they were."
    )
    assert "0 hypotheses are tested. The agent" in of_nothing("all good", 0, [], [])
    many = [CRASHED._replace(number=n) for n in range(1, 6)]
    told = of_nothing("w", 5, many, [FASTER])
    assert "hypothesis 5 (The data are made anew) is REJECTED, and 2 before." in told
    assert "hypothesis 2 (" not in told and "2.05x (95% CI" in told and "`gpudebug accept 1`" in told
