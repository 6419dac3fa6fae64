"""The loop with a scripted agent, a real process that edits files and calls the real command."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support import scripted_agent
from tests.support.campaigns import (
    Campaign,
    Done,
    contents,
    git,
    killed_at_the_end,
    make_replay_campaign,
    record,
    wait_for,
)

SECRET = "correct-horse-battery"


class Looped:
    """A campaign with a plan for its agents."""

    def __init__(self, campaign: Campaign, *turns: list[list[Any]]) -> None:
        self.campaign = campaign
        self.plan = campaign.folder.parent / "plan.json"
        self.env = {**scripted_agent.script(self.plan, *turns), "AGENT_API_KEY": SECRET}
        self.words = ("loop", "--agent", f"{scripted_agent.command()} --token={SECRET}")

    def run(self, *words: str, **more: Any) -> Done:
        return self.campaign.run(*self.words, *words, env=self.env, **more)

    def json(self, *words: str, status: int) -> Any:
        return self.run(*words, "--json").expect(status).json

    @property
    def folders(self) -> list[Path]:
        return sorted((self.campaign.folder / "runs" / "sessions").iterdir())

    def said(self, number: int) -> str:
        return (self.folders[number] / "transcript.log").read_text()

    def told(self, number: int) -> Any:
        return json.loads((self.folders[number] / "session.json").read_text())


def test_two_sessions_with_nothing_to_propose_end_the_loop(recorded: Campaign) -> None:
    looped = Looped(recorded, [["none", "each likely cause was tested"]], [["none", "nor do I see one"]])
    told = looped.json("--idle", "1", status=4)
    assert told["ending"] == "nothing left"
    assert told["why"].startswith("nothing left to propose, by the word of sessions loop-")
    assert [looped.told(n)["nothing"] for n in (0, 1)] == [True, True]
    assert "propose --none each likely cause was tested -> 7" in looped.said(0)
    assert "propose --none nor do I see one -> 4" in looped.said(1)


@pytest.mark.slow
def test_one_session_after_the_other(recorded: Campaign) -> None:
    before = (recorded.folder / "train.py").read_bytes()
    looped = Looped(
        recorded,
        [["say", f"key {SECRET}"], ["propose", "--set --lr=0.2", "Left to the loop"]],
        [["propose", "--code", "Forgotten"], ["write", "train.py", "slow = True\n"]],
        [["propose", "--code", "Astray"], ["next"], ["edit", "train.py", "# astray\n"]],
        [],
    )
    done = looped.run("--idle", "1", "--json").expect(1)
    told = done.json
    assert (told["action"], told["ending"], told["campaign"], told["accepted"]) == (
        "stop",
        "idle",
        "test",
        [],
    )
    assert [(s["verdict"], s["hypothesis"], s["proposed"], s["exit_status"]) for s in told["sessions"]] == [
        (None, None, [1], 0),
        ("REJECTED", 2, [2], 0),
        (None, None, [3], 0),
        (None, 3, [], 0),
    ]
    assert [h["status"] for h in told["hypotheses"]] == ["VALIDATED", "REJECTED", "UNTESTED"]
    assert told["next_command"] == "gpudebug accept 1"
    assert told["checkout_changed"] == ["train.py"]
    assert "1 session in a row did nothing" in told["why"]
    assert all(Path(f).exists() for f in told["files"])
    assert [s["transcript"] for s in told["sessions"]] == [str(f / "transcript.log") for f in looped.folders]
    assert len({s["session"] for s in told["sessions"]}) == 4

    # What was written in the checkout stays, and is nobody's base.
    assert (recorded.folder / "train.py").read_bytes() == before + b"# astray\n"
    assert b"# astray" not in (recorded.folder / "hypotheses/patches/h2-forgotten.patch").read_bytes()
    assert recorded.json("status")["hypotheses"][0]["verified"]
    assert len([r for r in recorded.runs() if "baseline-workload" in r]) <= 3, "no baseline was recorded anew"
    assert "changed in the checkout by an unknown author, not measured: train.py" in done.err

    # Each event is a line; what is kept holds no secret.
    event = r"gpudebug: \d\d:\d\d:\d\d |gpudebug: (?:hypothesis \d+|baseline \w+): |\d{4}-"
    assert all(re.match(event, line) for line in done.err.splitlines())
    assert "tested hypothesis 1: VALIDATED" in done.err
    assert "left a change of hypothesis 2 untested: testing it" in done.err
    assert "key [redacted]\n" in looped.said(0)
    kept = [p.read_text() for p in (recorded.folder / "runs" / "sessions").rglob("*") if p.is_file()]
    assert not any(SECRET in text for text in (*kept, done.out, done.err, recorded.text))
    assert looped.told(0)["command"][-1] == "--token=[redacted]"
    assert "gpudebug: propose one hypothesis" in (looped.folders[0] / "brief.md").read_text()
    assert "write the change of hypothesis 3" in (looped.folders[3] / "brief.md").read_text()
    assert f"session {looped.folders[3].name}" in (looped.folders[3] / "brief.md").read_text()


def test_agents_that_fail_end_the_loop(recorded: Campaign) -> None:
    looped = Looped(recorded, [["child", 60], ["exit", 3]], [["hang", 60]])
    done = looped.run("--failures", "2", "--session-timeout", "0.6s").expect(1)
    assert "2 sessions in a row failed" in done.out
    assert "no verdict, no proposal, stopped at its time limit" in done.out
    assert f"read runs/sessions/{looped.folders[1].name}/transcript.log, correct --agent" in done.out
    assert [looped.told(n)["outcome"] for n in (0, 1)] == ["CRASHED", "TIMED_OUT"]
    assert looped.told(0)["leaked"] == 1
    assert re.search(r"loop-\d{8}-1  propose .* no verdict, exit status 3\n", done.out)
    assert "Next: gpudebug status" in done.out


@pytest.mark.slow
def test_a_killed_loop_is_gone_on_with(recorded: Campaign) -> None:
    looped = Looped(
        recorded,
        [["propose", "--code", "Cut off"], ["write", "train.py", "# half\n"], ["kill_loop"], ["hang", 60]],
        [["propose", "--set --lr=0.2"], ["next"]],
    )
    assert looped.run().status == -signal.SIGKILL
    assert recorded.statuses() == ["TESTING"]
    agents = [p for p in psutil.process_iter() if _is_agent(p, looped)]
    assert len(agents) == 1
    done = looped.run("--hypotheses", "1", "--json").expect(4)
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in agents)
    assert f"session {looped.folders[0].name} was cut off" in done.err
    assert looped.told(0)["kept"] == "hypotheses/patches/h1-cut-off.patch"
    assert (looped.told(0)["outcome"], looped.told(0)["end"] is not None) == ("INTERRUPTED", True)
    assert "# half" in (recorded.folder / looped.told(0)["kept"]).read_text()
    assert done.json["ending"] == "out of budget"
    assert done.json["sessions"][0]["session"] == looped.folders[1].name != looped.folders[0].name


def _is_agent(process: psutil.Process, looped: Looped) -> bool:
    try:
        return process.environ().get("GPUDEBUG_RUN") == str(looped.folders[0])
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def test_ctrl_c_ends_agent_and_loop_and_another_loop_is_refused_before(recorded: Campaign) -> None:
    looped = Looped(recorded, [["propose", "--code"], ["next"], ["hang", 60]])
    loop = recorded.start(*looped.words, env=looped.env)
    with killed_at_the_end(loop):
        wait_for(lambda: looped.plan.with_suffix(".turn").exists() and "next -> 5" in looped.said(0))
        error = looped.json("--json", status=6)["error"]
        assert f"pid {loop.pid}, `gpudebug loop`, since" in error["message"]
        assert recorded.json("status")["hypotheses"][0]["claim"]["session"] == looped.folders[0].name
        os.kill(loop.pid, signal.SIGTERM)
        assert loop.wait(60) == 130
        assert b"the loop was interrupted; next: gpudebug loop goes on from here" in loop.communicate()[1]
    assert recorded.statuses() == ["UNTESTED"]
    assert looped.told(0)["end"]
    assert looped.told(0)["proposed"] == [1]
    assert git(recorded.folder, "worktree", "list").count("\n") == 1


@pytest.mark.slow
def test_a_run_in_the_background_outlives_its_session(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload")
    record(tmp_path / "recordings", "0002-h1", util=60, rate=30, seconds=90)
    campaign = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings")
    looped = Looped(campaign, [["propose", "--set --lr=0.2"], ["next", "--detach"]])
    done = looped.run("--hypotheses", "1", "--json").expect(4)
    assert [(s["verdict"], s["hypothesis"]) for s in done.json["sessions"]] == [("VALIDATED", 1)]
    assert "its run goes on: waiting for it" in done.err


def test_a_change_that_cannot_be_tested_is_the_next_sessions_to_correct(recorded: Campaign) -> None:
    recorded.add("\n### Hypothesis 1: By hand\n- Intervention: --unset --nope\n- Status: UNTESTED\n")
    looped = Looped(recorded, [["edit", "gpudebug.yaml", "target: 10\n"]])
    done = looped.run("--json").expect(1)
    assert "hypothesis 1 cannot be tested" in done.err
    brief = (looped.folders[0] / "brief.md").read_text()
    assert "Hypothesis 1 cannot be tested" in brief
    assert "Hypothesis 1 has no change that gpudebug can make" in brief
    # And settings that an agent changed are nothing to go on with.
    assert done.json["ending"] == "settings changed"
    assert "git diff" in done.json["why"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--agent", ""), 2, "--agent is empty"),
        (("--agent", "a | b"), 2, "| has a meaning of its own to a shell"),
        (("--agent", "A=1 no-such-agent"), 1, "no-such-agent: command not found"),
        (("--agent", "true", "--device-time", "2x"), 2, "--device-time: expected a duration"),
        (("--agent", "true", "--session-timeout", "0s"), 2, "a session needs some time"),
        (("--agent", "true", "--failures", "0"), 2, "--failures"),
        ((), 2, "--agent"),
    ],
)
def test_bad_input_is_one_line(original: Campaign, words: tuple[str, ...], status: int, said: str) -> None:
    before = contents(original.folder)
    done = original.run("loop", *words).expect(status)
    assert said in done.err
    assert done.err.count("\n") == 1
    assert contents(original.folder) == before
