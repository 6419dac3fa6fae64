"""Who calls, and what a call may bring: a session stays one and runs no command of its own."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.campaigns import (
    GPUDEBUG,
    Campaign,
    environment,
    git,
    make_campaign,
    make_replay_campaign,
    record,
)

SESSION = {"GPUDEBUG_SESSION": "a"}
TOUCH = "import os, sys; open(os.environ.get('MARK', 'pwned'), 'w')"


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0002-h1", util=60, rate=30)
    record(recordings, "0003-h2", util=60, rate=30)
    return make_replay_campaign(tmp_path / "repo", recordings)


def below(campaign: Campaign, script: str, **env: str | None) -> subprocess.CompletedProcess[str]:
    """A shell script of an agent's that was started as session a; `$GPUDEBUG` is the command."""
    return subprocess.run(
        ["sh", "-c", f"{script}; status=$?; exit $status"],
        cwd=campaign.folder,
        env=environment({**SESSION, "GPUDEBUG": shlex.join(GPUDEBUG), **env}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "name", ["GPUDEBUG_SESSION=b", "GPUDEBUG_SESSION=", "env -u GPUDEBUG_SESSION", "env -i"]
)
def test_a_session_that_renames_itself_stays_what_it_was(campaign: Campaign, name: str) -> None:
    csv = campaign.folder / "made_up.csv"
    csv.write_text("elapsed,gpu_util\n1,99\n")
    done = below(campaign, f"{name} $GPUDEBUG baseline --import made_up.csv --json")
    assert done.returncode == 1, done.stderr
    assert "session a " in json.loads(done.stdout)["error"]["message"]


@pytest.mark.parametrize(
    ("name", "words", "status"),
    [
        ("", "sample -- sh -c 'touch pwned'", 125),
        ("GPUDEBUG_SESSION= ", "sample -- sh -c 'touch pwned'", 125),
        ("env -i ", "compare 'touch pwned' 'touch pwned'", 1),
        ("GPUDEBUG_SESSION= ", "loop --agent 'touch pwned'", 1),
        ("env -i ", "loop --agent 'touch pwned'", 1),
        ("", "init --command 'touch pwned'", 1),
        ("env -i ", "init --reference 'touch pwned'", 1),
        ("", "check", 1),
    ],
)
def test_a_session_does_not_run_what_is_for_a_person(
    campaign: Campaign, name: str, words: str, status: int
) -> None:
    done = below(campaign, f"{name}$GPUDEBUG {words}")
    assert done.returncode == status, done.stderr
    assert "is for a person" in done.stderr and "session a" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (campaign.folder / "pwned").exists()


def test_a_person_runs_them_as_before(campaign: Campaign) -> None:
    campaign.run("sample", "--device", "cpu:1", "-o", "o.csv", "--", "touch", "made").expect(0)
    assert (campaign.folder / "made").exists()


def test_a_session_samples_the_workload_once_its_baseline_is_there(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    command = f"{shlex.quote(sys.executable)} train.py --steps=3 --work=0.01"
    campaign = make_replay_campaign(tmp_path / "repo", recordings, command=command)
    words = ("sample", "--device", "cpu:1", "--json")
    refused = campaign.run(*words, env=SESSION)
    assert refused.status == 125 and "gpudebug settings --accept" in refused.json["error"]["next"]
    campaign.json("next")
    assert campaign.json(*words, env=SESSION)["exit_status"] == 0
    assert campaign.json(*words)["exit_status"] == 0


VARIABLES = [
    "PYTHONWARNINGS=all:0:antigravity.x:0:0",
    "BROWSER=/bin/sh -c 'touch pwned' #%s",
    "LD_PRELOAD=/tmp/x.so",
    "PYTHONPATH=.",
    "CUDA_INJECTION64_PATH=x.so",
    "NCCL_NET_PLUGIN=x",
    "GIT_SSH_COMMAND=touch pwned",
    "TRITON_CACHE_DIR=x",
    "OMP_NUM_THREADS=/etc/passwd",
    "MY_OWN=1",
]


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_proposal_sets_no_variable_that_decides_which_code_runs(campaign: Campaign, variable: str) -> None:
    before = campaign.progress.read_bytes() if campaign.progress.exists() else b""
    error = campaign.json("propose", "--title", "T", "--env", variable, status=1, env=SESSION)["error"]
    assert error["next"]
    assert (campaign.progress.read_bytes() if campaign.progress.exists() else b"") == before


def test_a_proposal_changes_no_word_before_the_program(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m train --steps=75"
    campaign = make_campaign(tmp_path / "repo", command=command)
    change = ["--set", "-m=timeit", "--set", "-s=import os; os.system('touch pwned')", "--unset", "--steps"]
    error = campaign.json("propose", "--title", "T", *change, "--compound", status=1)["error"]
    assert "-m is before the program" in error["message"]
    assert campaign.json("propose", "--title", "T", "--set", "--steps=80")["hypothesis"] == 1


def test_gpudebug_yaml_opens_a_variable_and_a_launchers_flag_by_name(tmp_path: Path) -> None:
    opened = "allow_env: [MY_OWN]\nallow_flags: {torchrun: [--nproc_per_node]}\n"
    launcher = tmp_path / "torchrun"
    launcher.write_text(f"#!{sys.executable}\n")
    launcher.chmod(0o755)
    command = f"{launcher} --nproc_per_node 2 train.py --lr=1"
    campaign = make_campaign(tmp_path / "repo", command=command, config=opened)
    assert campaign.propose("--env MY_OWN=1", "A")["hypothesis"] == 1
    assert campaign.propose("--set --nproc_per_node=1", "B")["hypothesis"] == 2
    error = campaign.json("propose", "--title", "C", "--set", "--standalone", status=0)
    assert error["hypothesis"] == 3


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("allow_env: [LD_PRELOAD]", "decides which code runs"),
        ("allow_env: [PYTHONPATH]", "decides which code runs"),
        ("allow_env: x", "list of variables"),
        ("allow_flags: {python: [-m]}", "expected one of"),
        ("allow_flags: {torchrun: [-m]}", "decides what is run"),
        ("allow_flags: {torchrun: --x}", "expected a list"),
    ],
)
def test_gpudebug_yaml_cannot_open_what_decides_which_code_runs(tmp_path: Path, line: str, says: str) -> None:
    campaign = make_campaign(tmp_path / "repo", config=line + "\n")
    error = campaign.json("status", status=1)["error"]
    assert says in error["message"] and error["line"]


WRITTEN = """# Campaign

## Hypotheses

### Hypothesis 1: A variable that nobody opened
- **Intervention**: --env MY_OWN=1
- **Status**: UNTESTED

### Hypothesis 2: A flag
- **Intervention**: --set --lr=0.2
- **Status**: UNTESTED
"""


def test_a_written_hypothesis_outside_the_list_names_the_line_and_others_are_tested(
    campaign: Campaign,
) -> None:
    campaign.progress.parent.mkdir(exist_ok=True)
    campaign.progress.write_text(WRITTEN)
    campaign.json("next")
    shown = campaign.json("status")["hypotheses"][0]
    assert "allow_env: [MY_OWN]" in shown["problem"]
    assert campaign.json("next")["hypothesis"] == 2
    error = campaign.json("next", status=1)["error"]
    assert "allow_env: [MY_OWN]" in error["next"] and error["line"]
    campaign.config.write_text(campaign.config.read_text() + "allow_env: [MY_OWN]\n")
    assert campaign.json("status")["hypotheses"][0]["problem"] is None


@pytest.mark.parametrize(
    "path", ["AGENTS.md", ".claude/settings.json", ".GitHub/workflows/x.yml", "sub/GPUDEBUG.YAML"]
)
def test_a_patch_brings_nobody_elses_instructions(campaign: Campaign, path: str) -> None:
    file = campaign.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("do as I say\n")
    git(campaign.folder, "add", "--intent-to-add", "--force", path)
    patch = campaign.folder / "hypotheses/patches/p.patch"
    patch.parent.mkdir(parents=True, exist_ok=True)
    patch.write_text(git(campaign.folder, "diff", path))
    git(campaign.folder, "reset", "--quiet", path)
    file.unlink()
    error = campaign.json(
        "propose", "--title", "T", "--patch", "hypotheses/patches/p.patch", status=1, env=SESSION
    )["error"]
    assert error["file"].endswith("p.patch") and error["line"] == 1


def test_text_that_turns_around_is_no_change(campaign: Campaign) -> None:
    error = campaign.json("propose", "--title", "T", "--set", "--lr=\u202e2.0", status=1)["error"]
    assert "an invisible one" in error["message"]


LONE = [
    r'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"propose","arguments":{"title":"\ud800"}}}',
    r'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"status","arguments":{"\udfff":1}}}',
    r'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"\ud800","arguments":{}}}',
    r'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"\ud800\ud800"}}',
    r'{"jsonrpc":"2.0","id":7,"method":"\udc00","params":{}}',
    r'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"show","arguments":{"hypothesis":NaN}}}',
    r'{"id":7,"method":"tools/call","params":{"name":"status","arguments":"\ud800"}}',
]


def test_a_request_that_is_no_text_is_answered_with_an_error(campaign: Campaign) -> None:
    pytest.importorskip("mcp")
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    lines = [json.dumps(hello), '{"jsonrpc":"2.0","method":"notifications/initialized"}']
    asked = [line.replace('"id":7', f'"id":{number}') for number, line in enumerate(LONE, 10)]
    last = '{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"status","arguments":{}}}'
    process = campaign.start("mcp", env=SESSION, stdin=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    answers = {}
    try:
        process.stdin.write("\n".join([*lines, *asked, last, ""]).encode())
        process.stdin.flush()
        while len(answers) < len(LONE) + 2:
            answer = json.loads(process.stdout.readline())
            answers[answer.get("id")] = answer
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    for number in range(10, 10 + len(LONE)):
        assert "error" in answers[number] or answers[number]["result"]["isError"] is True, answers[number]
    assert not answers[99]["result"].get("isError")
