"""Nothing that an agent writes becomes a command, a path outside the repository or a verdict."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.campaigns import Campaign, contents
from tests.support.statuses import ageless
from tests.support.tampering import reseal

from gpudebug.core.change.intervention import from_options
from gpudebug.engine.campaign.load import load
from gpudebug.engine.hypotheses.propose import propose

ENTRY = """
### Hypothesis {number}: By hand
- **Description**: Mine.
- **Intervention**: {change}
- **Status**: {status}
- **Result**:
  - GPU util before: 20.0%
  - GPU util after: 99.0%
  - Improvement: +79.0pp (95% CI +78.0 to +80.0)
  - Throughput: 10 to 90 steps/s
{more}"""


def by_hand(number: int, change: str = "--set --lr=0.9", status: str = "VALIDATED", more: str = "") -> str:
    return ENTRY.format(number=number, change=change, status=status, more=more)


def refused(campaign: Campaign, *words: str, status: int = 1, **more: Any) -> str:
    """One clear line; nothing of the user's is different afterwards."""
    before = own(campaign)
    done = campaign.run(*words, **more).expect(status)
    (line,) = done.err.splitlines()
    assert done.out == "" and line.startswith("gpudebug: ") and "; next: " in line
    assert own(campaign) == before
    return line


def own(campaign: Campaign) -> dict[str, tuple[int, str]]:
    return {k: v for k, v in contents(campaign.folder).items() if not k.startswith("runs/.")}


@pytest.mark.parametrize(
    "more",
    [
        "- **Accepted**: 1\n",
        "  - Runs: runs/0002-h1\n- **Accepted**: 1\n",
        "  - Runs: ../../0002-h1, /etc/0002-h1\n",
    ],
    ids=["accepted", "another's runs", "runs elsewhere"],
)
def test_a_verdict_by_hand_is_shown_unverified_and_is_worth_nothing(told: Campaign, more: str) -> None:
    before = ageless(told.json("status"))
    told.add(by_hand(7, more=more) + "\n")
    after = ageless(told.json("status"))
    *others, mine = after["hypotheses"]
    assert (mine["number"], mine["verified"], mine["delta_pp"], mine["throughput_ratio"]) == (
        7,
        False,
        None,
        None,
    )
    assert others == before["hypotheses"]
    # Neither solved, nor a baseline with its change, nor a reason to do anything else next.
    assert (after["next"], after["baselines"]) == (before["next"], before["baselines"])
    shown = told.run("status").expect(0).out
    assert re.search(r"By hand\n +UNVERIFIED", shown) and "UNVERIFIED" in told.run("show", "7").expect(0).out
    assert "UNVERIFIED" in refused(told, "accept", "7")
    assert told.json("verify", status=1)["ok"] is False
    if "Accepted" in more:
        assert "UNVERIFIED" in refused(told, "export")


def test_figures_of_a_baseline_by_hand_are_never_compared_against(told: Campaign) -> None:
    measured = told.json("status")["baselines"]["workload"]
    text = told.text
    told.progress.write_text(text.replace("**GPU util**: 20.0%", "**GPU util**: 1.0%"))
    stated = told.json("status")["baselines"]["workload"]
    assert (stated["verified"], stated["gpu_util"]) == (False, measured["gpu_util"])
    assert "UNVERIFIED" in told.run("status").out
    tested = told.json("next")
    assert (tested["hypothesis"], tested["verdict"]) == (2, "REJECTED")
    assert told.json("show", "2")["figures"]["gpu util before"].startswith("20.")
    told.progress.write_text(re.sub(r"- \*\*Runs\*\*.*\n", "", text, count=1))
    assert told.json("status")["next"]["action"] == "record_baseline"


def forge(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("resealed", [False, True])
def test_a_verdict_that_was_forged_in_its_run_folder_is_none(judged: Campaign, resealed: bool) -> None:
    folders = [judged.folder / "runs" / judged.json("show", n)["runs"][-1] for n in ("1", "3")]
    good, bad = (json.loads((folder / "verdict.json").read_text()) for folder in folders)
    own_keys = ("hypothesis", "change_digest", "claim", "runs", "baseline_runs")
    forge(folders[1] / "verdict.json", **good | {key: bad[key] for key in own_keys if key in bad})
    if resealed:
        reseal(folders[1])
    result = re.search(r"(?s)Hypothesis 1:.*?(- \*\*Result\*\*:.*?)  - Runs", judged.text)
    assert result
    entry = re.compile(
        r"(?s)(Hypothesis 3:.*?\*\*Status\*\*: )REJECTED[^\n]*\n- \*\*Result\*\*:.*?(  - Runs)"
    )
    forged = entry.sub(lambda m: f"{m[1]}VALIDATED\n{result[1]}{m[2]}", judged.text, count=1)
    assert forged != judged.text
    judged.progress.write_text(forged)
    # The manifest shows a slip or an edit; it is no proof against somebody who mends it as well. What is
    # taken into the baseline is derived again from samples and logs.
    assert judged.json("status")["hypotheses"][2]["verified"] is resealed
    said = "does not follow from its evidence" if resealed else "UNVERIFIED"
    assert said in refused(judged, "accept", "3")


def test_what_was_sealed_is_what_counts_and_accept_looks_at_the_samples(judged: Campaign) -> None:
    samples = next(judged.folder.glob("runs/*-h1/samples.csv"))
    text = samples.read_text()
    samples.write_text(text.replace(",60.", ",99."))
    assert "does not follow from its evidence" in refused(judged, "accept", "1")
    samples.write_text(text)
    judged.json("accept", "1")
    evidence = max(judged.folder.glob("runs/*-baseline-workload/evidence.json"))
    forge(evidence, utilisation=1.0)
    baseline = judged.json("status")["baselines"]["workload"]
    assert (baseline["valid"], baseline["verified"]) == (False, False)
    assert "is not as it was sealed" in baseline["why"]


WORDS = {
    "command": "$(touch pwned)",
    "two": "1; touch pwned",
    "pipe": "1 | tee pwned && touch pwned",
    "backticks": "`touch pwned`",
    "redirect": "1 > pwned",
    "glob": "* ~ {a,b} $HOME",
    "quotes": "a' \"b",
}


def test_what_a_shell_would_take_for_its_own_is_one_word(recorded: Campaign) -> None:
    said = {"title": "A value", "description": "", "method": ""}
    recorded.config.write_text(f"{recorded.config.read_text()}allow_env: [MODE]\n")
    recorded.pin()
    for number, value in enumerate(WORDS.values()):
        flag, variable = f"--lr={value}", f"MODE={value}"
        propose(
            recorded.folder,
            **said,
            change=from_options(env=[variable]) if number % 2 else from_options([flag]),
        )
        written = load(recorded.folder).entries.interventions[number + 1].changes
        assert [one.words[-1] for one in written] == [variable if number % 2 else flag]
    assert recorded.json("next")["hypothesis"] == 1
    run = next(recorded.folder.glob("runs/*-h1/run.json"))
    argv = json.loads(run.read_text())["argv"]
    assert argv[-2:] == [f"--lr={WORDS['command']}", "--work=0.2"]
    assert not list(recorded.folder.rglob("pwned"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("--set --lr=0.2; touch pwned", "touch"),
        ("--set --lr=0.2 && touch pwned", "'&&' is no change"),
        ("python evil.py", "python"),
        ("--patch ../../evil.patch", "hypotheses/patches"),
        ("--patch /etc/passwd", "hypotheses/patches"),
        ("--patch hypotheses/patches/../../gpudebug.yaml", "hypotheses/patches"),
        ("--env PATH=/tmp/evil", "PATH"),
        ("--env GPUDEBUG_RUN=/tmp/evil", "GPUDEBUG_RUN"),
    ],
)
def test_a_change_by_hand_is_no_command_and_no_path(recorded: Campaign, change: str, said: str) -> None:
    recorded.add(by_hand(1, change, "UNTESTED"))
    done = recorded.run("next")
    assert done.status == 1 and said in done.err
    assert not list(recorded.folder.rglob("pwned"))


def test_a_malformed_name_of_a_session_is_refused(told: Campaign) -> None:
    env = {"GPUDEBUG_SESSION": "../a\n;touch pwned"}
    for words in (("next",), ("propose", "--title", "t", "--set", "--a=1"), ("accept", "1")):
        assert "not a session name" in refused(told, *words, status=2, env=env)
