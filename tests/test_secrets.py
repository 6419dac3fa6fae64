"""No secret leaves its place: a campaign through every command, canaries wherever one could be picked up."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.support import canaries, scripted_agent
from tests.support.canaries import Planted, plant, plant_patch

SESSION = {"GPUDEBUG_SESSION": "agent-1"}


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return plant(tmp_path)


def report(p: Planted) -> None:
    """The page, without the script that draws its plots: it is long, and nobody's data."""
    p.run("report", "--markdown").expect(0)
    page = Path(p.run("report", "--json").expect(0).json["page"])
    scripts = re.findall("<script[^>]*>.*?</script>", text := page.read_text("utf-8"), re.DOTALL)
    plots = max(scripts, key=len)
    assert len(plots) > 1_000_000
    assert '"number":9' in text
    p.said.append((str(page), text.replace(plots, "")))
    page.unlink()


@pytest.mark.slow
def test_a_campaign_through_every_command_spills_none(planted: Planted) -> None:
    p = planted
    repo = p.campaign.folder
    p.both("doctor", status=p.run("doctor").status)
    p.both("status")
    p.run("next").expect(0)
    p.run("baseline", "reference", "--json").expect(0)
    p.both("next", status=5)
    said = ("--description", f"password={canaries.IN_DESCRIPTION}", "--method", f"try {canaries.IN_METHOD}")
    p.run("propose", "--title", f"Waits {canaries.IN_TITLE}", *said, "--set", "--lr=0.2").expect(0)
    p.run("next").expect(0)
    p.run("accept", "1").expect(0)

    # Code: a change with a secret is refused, and stays where it is; without it, it is tested.
    p.run("propose", "--title", f"Reads {canaries.IN_TITLE}", *said, "--code", "--json").expect(0)
    worktree = Path(p.run("next", "--json", env=SESSION).expect(5).json["worktree"])
    (worktree / "data.py").write_text(f'READERS = 8\nPASSPHRASE = "{canaries.IN_WORKTREE}"\n')
    p.both("next", status=1, env=SESSION)
    p.run("release", "2", env=SESSION).expect(0)
    assert Path(p.run("next", "--json", env=SESSION).expect(5).json["worktree"]) == worktree
    (worktree / "data.py").write_text("READERS = 8\n")
    p.run("next", "--json", env=SESSION)
    for words in (("wait",), ("status",), ("show", "1"), ("show", "2"), ("verify",), ("export",)):
        p.run(*words)
        p.run(*words, "--json")
    p.both("propose", "--title", "Both", "--patch", plant_patch(p, "secret.patch"), status=1)
    p.both("propose", "--title", "Flag", "--set", f"--token={canaries.IN_PATCH}", status=1)
    p.both("next", env={"GPUDEBUG_SESSION": canaries.IN_SESSION}, status=2)

    # A crash in the background, with its traceback; what people write by hand.
    p.run("propose", "--title", "Crashes", "--set", "--steps=3", "--json").expect(0)
    p.run("next", "--detach", "--json", env=SESSION)
    p.run("next", "--detach").expect(0)
    p.run("wait", "--json")
    p.both("show", "3")
    p.run("reopen", "3", "--json")
    p.run("next")

    agent = f"{scripted_agent.command()} --token={canaries.AGENT_FLAG}"
    plan = scripted_agent.script(
        repo.parent / "plan.json",
        [["say", f"my key is {canaries.SAID_BY_AGENT}"], ["propose", "--set --lr=0.4"], ["next"]],
    )
    p.run("loop", "--agent", agent, "--idle", "1", env=plan)
    p.run("loop", "--agent", agent, "--idle", "1", "--json", env=plan)

    runs = [name for name in p.campaign.runs() if name[0] == "0"]
    log = str(repo / "runs" / runs[0] / "train.log")
    p.both("analyze", log)
    p.both("compare", "1", "2")
    saves = shlex.join([scripted_agent.GPUDEBUG[0], "saves.py", "--token", canaries.IN_PRINTED_CONFIG])
    p.run("sample", "--json", "--device", "cpu:1", "--", *shlex.split(saves)).expect(0)
    p.run("compare", saves, f"{saves} --x=1", "--runs", "1", "--device", "cpu:1")
    p.run("baseline", "--import", str(repo / "runs" / runs[0] / "samples.csv"), "--log", log, "--json")
    p.run("baseline", "--aa", "--runs", "1")
    p.run("init", "--agent", "codex")
    with p.campaign.progress.open("a") as f:
        f.write(
            f"### Hypothesis 9: By hand {canaries.IN_HAND_WRITTEN}\n"
            f"- **Description**: {canaries.IN_HAND_WRITTEN}\n- **Status**: UNTESTED\n"
        )
    p.both("show", "9")
    p.both("status")
    report(p)
    p.run("next", "--json")
    text = p.campaign.text
    p.campaign.progress.write_text(text.replace(canaries.IN_HAND_WRITTEN, "x"))
    spilled = p.spilled()
    assert not spilled, "\n".join(f"{canary} in {where}" for where, canary in sorted(set(spilled)))
