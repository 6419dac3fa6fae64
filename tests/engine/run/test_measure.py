"""One measured run: what its folder says, and the secrets that only the training's own log may hold."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import nvml
from tests.support.campaigns import Campaign, make_campaign
from tests.support.places import SUPPORT

from gpudebug.edges import launcher
from gpudebug.engine.run.measure import measure

HF = "hf_" + "aB3" * 12
PLANTED = {
    "argv": "sk-" + "proj-Ab12Cd34Ef56Gh78" * 2,
    "variable": "correct-horse-battery",
    "config": "plain-but-secret-value",
    "log": HF,
}


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """A workload of one second that is given a secret by every way there is, and prints all of them."""
    command = (
        f"{shlex.quote(sys.executable)} train.py --duration=1 --api_key={PLANTED['argv']}"
        f" --say={PLANTED['log']} --print-env=DB_PASSWORD --crash=20 --output_dir=out/{{run}}"
    )
    trainer = SUPPORT / "trainer.py"
    program = trainer.read_text().replace(
        "    return parser.parse_args()",
        '    add("--api_key")\n    add("--output_dir")\n    return parser.parse_args()',
    )
    program = program.replace("the planted crash", f"no access with {HF}")
    made = make_campaign(tmp_path / "repo", command=command, files={"train.py": program})
    text = made.config.read_text().replace(
        "  timeout", f"  env: {{MY_TOKEN: {PLANTED['config']}}}\n  timeout"
    )
    made.config.write_text(text)
    return made


def test_secrets_are_nowhere_but_in_the_log(campaign: Campaign) -> None:
    env = {"DB_PASSWORD": PLANTED["variable"]}
    said = [campaign.run(*words, env=env) for words in (("next",), ("next", "--json"), ("status",))]
    assert said[0].status == 1
    assert "[redacted]" in said[0].err
    secrets = list(PLANTED.values())
    for done in said:
        assert not [s for s in secrets if s in done.out + done.err]
    runs = [campaign.folder / "runs" / name for name in campaign.runs()]
    assert runs
    for run in runs:
        holding = {
            p.name
            for p in run.iterdir()
            if p.is_file() and any(s in p.read_text(errors="replace") for s in secrets)
        }
        assert holding == {"train.log"}
        assert stat.S_IMODE((run / "train.log").stat().st_mode) == 0o600
        log = (run / "train.log").read_text()
        assert HF in log
        assert PLANTED["variable"] in log
    if campaign.progress.exists():
        assert not [s for s in secrets if s in campaign.text]


def test_run_json_says_what_was_launched_and_where(campaign: Campaign) -> None:
    campaign.run("next", env={"DB_PASSWORD": PLANTED["variable"]})
    folder = campaign.folder / "runs" / "0001-baseline-workload"
    run = json.loads((folder / "run.json").read_text())
    assert (run["format"], run["campaign"], run["role"]) == (1, "test", "baseline-workload")
    assert run["argv"][0] == sys.executable
    assert "--output_dir=out/0001-baseline-workload" in run["argv"]
    assert run["environment"] == ["MY_TOKEN"]
    assert len(run["commit"]) == 40
    assert set(run["identity"]) == {"command", "tree", "interpreter", "reading", "device"}
    assert run["interpreter"].startswith(sys.executable)
    assert "pytest" in run["packages"]
    assert run["host"] == os.uname().nodename
    assert run["devices"][0]["uuid"] == "CPU"
    assert (run["outcome"], run["exit_status"], run["signal"]) == ("CRASHED", 1, None)
    assert run["failure"]["kind"] == "exception"
    assert run["start"] <= run["end"]
    assert 0 < run["duration_s"] < 30
    rows = (folder / "samples.csv").read_text().splitlines()
    assert rows[0].startswith("elapsed,gpu_util,mem_util,")
    assert rows[0].endswith(
        ",foreign_procs,foreign_cpu,cpu_wait,cpu_throttled,cpu_stolen,foreign_demand,energy_j"
    )
    assert len({row.count(",") for row in rows}) == 1


@pytest.mark.slow
def test_who_computes_on_the_gpu_already_is_said_and_recorded(tmp_path: Path) -> None:
    (tmp_path / "pids").write_text("4000001\n")
    env = nvml.standin(tmp_path, f"gpu 0 util=40 procs={tmp_path / 'pids'}")
    command = f"{shlex.quote(sys.executable)} train.py --duration=1 --write={{run_dir}}/config.yaml"
    made = make_campaign(tmp_path / "repo", device="nvml", command=command)
    done = made.run("next", env=env).expect(0)
    said = f"1 other process on NVIDIA Stand-in 100 ({nvml.uuid(0)}), PID 4000001: its figures are not"
    assert f"gpudebug: {said}" in done.err
    folder = made.folder / "runs" / "0001-baseline-workload"
    (device,) = json.loads((folder / "run.json").read_text())["devices"]
    assert (device["processes"], device["clocks_mhz"], device["power_limit_w"]) == (
        [4000001],
        [1410, 1593],
        400,
    )
    evidence = json.loads((folder / "evidence.json").read_text())
    assert evidence["conditions"]["foreign_procs"] == 1
    assert evidence["conditions"]["sm_clock_mhz"] == 1410
    assert (folder / "job" / "config.yaml").read_text() == "trained\n"


def test_an_interrupt_that_was_held_has_its_effect_before_the_next_run() -> None:
    nothing: Any = None
    with launcher.holding_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        measure(nothing, nothing)


def test_a_checkout_that_was_renamed_is_named_and_goes_on_where_it_is(tmp_path: Path) -> None:
    program = "import os\nos.rename(os.getcwd(), os.getcwd() + '-2')\n"
    campaign = make_campaign(tmp_path / "repo", files={"train.py": program})
    done = campaign.run("next").expect(1)
    line = done.err.splitlines()[-1]
    assert line.startswith(f"gpudebug: {campaign.folder}: was moved or removed while 0001-")
    moved = Campaign(tmp_path / "repo-2")
    assert moved.json("next")["action"] == "recovered"
